"""Messages of `settings --check`, `serve` and `doctor` about values that are valid but mistaken."""

import json
import os
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from edge_api.background import WRONG_SECRET
from edge_api.cli.doctor import CHECKED
from edge_api.db.types import format_instant
from edge_api.schema.environment import VERSION, SettingsError
from edge_api.schema.writing import Spool
from edge_api.settings import find_missing_folders, find_mistakes, read_settings
from tests.edge.certificates import write_certificate
from tests.edge.edge_process import Installation, free_port
from tests.edge.small_builds import make_post, point_at, write_build
from tests.patience import patience
from tests.sizes import in_ci

PUBLIC = {"SITE_URL": "https://journal.example"}
MAILED = {**PUBLIC, "SMTP_URL": "smtp://relay.example", "OWNER_EMAIL": "owner@journal.example"}


UNNOTIFIED = "SMTP_URL and OWNER_EMAIL: without both nobody is notified of leads; set them"


def mistakes(given: Mapping[str, str], dotenv: Path = Path("none")) -> list[str]:
    """Return what is said of settings."""
    return list(find_mistakes(read_settings(given, None), dotenv))


@pytest.mark.parametrize("given", [{}, MAILED, {"RATE_LEADS": "0"}])
def test_valid_settings_give_no_message(given: dict[str, str]) -> None:
    """A journal on this machine needs neither mail nor limits."""
    assert mistakes(given) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (PUBLIC, UNNOTIFIED),
        ({**MAILED, "OWNER_EMAIL": "", "MAIL_FROM": "a@journal.example"}, UNNOTIFIED),
        (
            {**MAILED, "RATE_LEADS": "0", "RATE_TOKEN": "0"},
            "RATE_LEADS, RATE_ACCESS_REQUESTS, RATE_TOKEN: 0 is no limit",
        ),
        (
            {"PORT": "9464", "METRICS": "on", "METRICS_SOCKET": "9464"},
            "METRICS_SOCKET: 9464 is the port of PORT too; choose another one",
        ),
        *[
            ({"TRUSTED_PROXIES": networks}, "TRUSTED_PROXIES trusts everybody, ")
            for networks in ("0.0.0.0/0", "10.0.0.1,::/0", "0.0.0.0/1,128.0.0.0/1", "8000::/1,::/1")
        ],
    ],
)
def test_a_misconfiguration_is_reported(given: dict[str, str], words: str) -> None:
    """In one sentence with its fix."""
    (said,) = mistakes(given)

    assert said.startswith(words)


@pytest.mark.parametrize("networks", ["127.0.0.1", "10.0.0.0/8,fd00::/8", "0.0.0.0/1"])
def test_trusting_some_networks_is_no_mistake(networks: str) -> None:
    """Large ones of a provider are the operator's business."""
    assert mistakes({"TRUSTED_PROXIES": networks}) == []


def test_an_unknown_setting_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    """Variables of the replicator are known."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("SMPT_URL=x\nRATE_LEAD=0\nZZZ=1\nAWS_ACCESS_KEY_ID=a\nPORT=8000\nport=1\n")

    assert mistakes({}, dotenv) == [
        f"{dotenv}: SMPT_URL is no setting; did you mean SMTP_URL?",
        f"{dotenv}: RATE_LEAD is no setting; did you mean RATE_LEADS?",
        f"{dotenv}: ZZZ is no setting; remove it, or correct its name",
        f"{dotenv}: port is no setting; remove it, or correct its name",
    ]


def test_a_setting_without_a_value_is_reported(tmp_path: Path) -> None:
    """A line without `=` sets nothing; an empty value is one that was meant."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("PORT\nexport SITE_URL\nOWNER_EMAIL=\nAWS_REGION\n")

    assert mistakes({}, dotenv) == [
        f"{dotenv}: {name} has no value; write it like {name}=value"
        for name in ("PORT", "SITE_URL", "AWS_REGION")
    ]


def test_unknown_settings_are_reported_beside_bad_values(tmp_path: Path) -> None:
    """A misspelt name is why another setting is missing."""
    dotenv = tmp_path / ".env"
    dotenv.write_text("OWNER_MAIL=ann@example.org\nSMTP_URL=smtp://relay.example\n")
    with pytest.raises(SettingsError) as refused:
        read_settings({}, dotenv)

    assert refused.value.errors == [
        "SMTP_URL: needs MAIL_FROM or OWNER_EMAIL as the sender",
        f"{dotenv}: OWNER_MAIL is no setting; did you mean OWNER_EMAIL?",
    ]


def test_missing_folders_are_reported(tmp_path: Path) -> None:
    """Each by its setting."""
    given = {"CONTENT_DIR": str(tmp_path / "nope"), "BUILD_DIR": str(tmp_path)}
    content, build = find_missing_folders(read_settings(given, None))

    assert content == f"CONTENT_DIR: there is no folder {tmp_path}/nope; make it or set another"
    assert build.startswith(f"BUILD_DIR: {tmp_path} holds no build; run ")


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return an installation with a build and without content."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    point_at(tmp_path, write_build(tmp_path, posts=[make_post("a")], site_url=url))
    (tmp_path / "content").mkdir()
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(tmp_path),
    }
    return Installation(tmp_path, settings)


@pytest.mark.size("test")
def test_all_three_commands_report_a_mistake(installation: Installation) -> None:
    """`settings --check` on standard error, `serve` in its log, which goes on, and `doctor`."""
    (installation.folder / ".env").write_text("SMPT_URL=x\n")
    mistaken = installation.changed(TRUSTED_PROXIES="::/0", CONTENT_DIR="nope")
    sentences = [".env: SMPT_URL is no setting; did you mean SMTP_URL?", "TRUSTED_PROXIES trusts "]
    code, said, complained = mistaken.run("settings", "--check")
    assert (code, said) == (0, "\n")
    assert all(each in complained for each in (*sentences, "CONTENT_DIR: there is no folder nope"))
    with mistaken.serving() as edge:
        assert edge.get("/")[0] == 200
        code, said, _ = mistaken.run("doctor")
        _, log = edge.end(signal.SIGTERM)
    assert code == 1
    assert all(f"- {each}" in said for each in sentences)
    assert all(each in log for each in sentences)


@pytest.mark.size("test")
def test_doctor_has_a_form_for_programs(installation: Installation) -> None:
    """The same in one object, with the same status."""
    ill = installation.changed(TRUSTED_PROXIES="0.0.0.0/0")
    assert installation.run("migrate")[0] == 0
    for asked, status, count in ((installation, "pass", 0), (ill, "fail", 1)):
        code, said, complained = asked.run("doctor", "--json")
        found = json.loads(said)
        assert (code, complained) == (count, "")
        assert found.keys() == {"status", "version", "errors", "notes", "checked"}
        assert (found["status"], found["version"]) == (status, VERSION)
        named = [each for each in found["errors"] if each.startswith("TRUSTED_PROXIES trusts ")]
        assert (len(named), type(found["notes"]), found["checked"]) == (count, list, [*CHECKED])


@pytest.mark.size("test")
@pytest.mark.parametrize("spoil", ["", *in_ci("{{ lead.name", "{{ 1 / 0 }}")])
def test_invalid_templates_are_reported(installation: Installation, spoil: str) -> None:
    """As `serve` refuses them; `doctor` looks at everything else, too."""
    folder = installation.folder / "templates"
    if spoil:
        folder.mkdir()
        (folder / "lead_notification.txt").write_text(spoil)
    ill = installation.changed(MAIL_TEMPLATES=str(folder), TRUSTED_PROXIES="::/0")
    assert installation.run("migrate")[0] == 0
    code, said, complained = ill.run("settings", "--check")
    sentence = complained.splitlines()[-1]
    assert (code, said, sentence.startswith("MAIL_TEMPLATES: ")) == (2, "", True)
    assert ill.run("serve")[0] == 2
    code, said, complained = ill.run("doctor", "--json")
    errors = json.loads(said)["errors"]
    assert (code, complained, sentence in errors) == (1, "", True)
    assert [each for each in errors if each.startswith("TRUSTED_PROXIES trusts everybody")]
    assert f"- {sentence}\n" in ill.run("doctor")[1]


@pytest.mark.size("test")
def test_a_draft_of_settings_has_its_templates_in_the_journal(installation: Installation) -> None:
    """In a check of a new `.env` by `deploy`, a path is relative to the journal's folder."""
    draft = Installation(installation.folder / "var" / ".deploy", installation.settings)
    draft.folder.mkdir(parents=True)
    (installation.folder / "templates").mkdir()
    assert draft.changed(MAIL_TEMPLATES="templates").run("settings", "--check")[0] == 0
    code, _, complained = draft.changed(MAIL_TEMPLATES="elsewhere").run("settings", "--check")
    assert (code, complained.startswith("MAIL_TEMPLATES: ")) == (2, True)


@pytest.mark.size("test")
def test_doctor_has_its_form_where_settings_are_bad(installation: Installation) -> None:
    """Every error of them, and that nothing else was looked at."""
    (installation.folder / ".env").write_text("SMPT_URL=x\n")
    ill = installation.changed(PORT="0", DESK="perhaps")
    code, said, complained = ill.run("doctor", "--json")
    found = json.loads(said)
    assert (code, complained, found["status"], found["checked"]) == (1, "", "fail", [CHECKED[0]])
    assert {each.partition(":")[0] for each in found["errors"]} >= {"PORT", "DESK", ".env"}
    code, said, complained = ill.run("doctor")
    assert (code, complained, said.splitlines()[-1]) == (1, "", f"looked at: {CHECKED[0]}")


@pytest.mark.parametrize("words", [("--version",), ("--version", "doctor")])
@pytest.mark.size("test")
def test_the_version_is_printed(installation: Installation, words: tuple[str, ...]) -> None:
    """Without a store, and whatever follows."""
    assert installation.run(*words) == (0, f"fore-edge {VERSION}\n", "")


@pytest.mark.size("test")
def test_a_secret_key_of_another_store_is_reported(installation: Installation) -> None:
    """From the first start on, by `serve`, readiness and `doctor`; the right one ends it."""
    sentence = f"- {WRONG_SECRET}\n"
    with installation.serving() as edge:
        assert edge.end(signal.SIGTERM)[1].count("secret key") == 0
    wrong = installation.changed(SECRET_KEY="w" * 40)
    with wrong.serving() as edge:
        report = json.loads(edge.get("/api/public/v1/readiness")[2])
        assert report["checks"]["secret_key"] == {"status": "warn", "error": WRONG_SECRET}
        assert report["ready"]
        edge.get("/.well-known/jwks.json")  # which makes a signing key with the wrong secret
        assert sentence in wrong.run("doctor")[1]
        assert WRONG_SECRET in edge.end(signal.SIGTERM)[1]
    assert sentence not in installation.run("doctor")[1]

    assert wrong.run("signing-keys", "rotate")[0] == 0
    assert sentence not in wrong.run("doctor")[1]
    assert sentence in installation.run("doctor")[1]


@pytest.mark.size("test")
def test_an_older_store_is_accepted_unless_its_webhooks_show_another_key(
    installation: Installation,
) -> None:
    """Without a signing key the secrets of endpoints say which key the store was used with."""
    assert installation.run("migrate")[0] == 0
    url = "https://hooks.example/x"
    assert installation.run("webhooks", "add", url)[0] == 0
    sentence = f"- {WRONG_SECRET}\n"
    wrong = installation.changed(SECRET_KEY="w" * 40)
    assert sentence not in installation.run("doctor")[1]
    assert sentence in wrong.run("doctor")[1]
    with wrong.serving() as edge:
        edge.end(signal.SIGTERM)
    assert sentence not in installation.run("doctor")[1]


@contextmanager
def answering(
    certificate: tuple[Path, Path] | None, at: datetime, answer: bytes = b'{"checks": {}}'
) -> Iterator[int]:
    """Answer as an edge that is ready, over TLS with a certificate, at an instant."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response_only(200)
            self.send_header("Date", format_datetime(at, usegmt=True))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.size("test")
@pytest.mark.parametrize(
    ("days", "words"),
    [(-3, "expired on {end:%Y-%m-%d}"), (3, "expires in 2 days"), (60, "")],
)
def test_a_certificate_is_called_by_its_name(
    installation: Installation, tmp_path: Path, days: int, words: str
) -> None:
    """One that has expired is not a proxy that does not run."""
    now = datetime.now(UTC)
    end = now + timedelta(days=days)
    certificate = write_certificate(tmp_path, end=end)
    with answering(certificate, now) as port:
        url = f"https://localhost:{port}"
        asked = installation.changed(SITE_URL=url, SSL_CERT_FILE=str(certificate[0]))
        assert asked.run("migrate")[0] == 0
        said = asked.run("doctor")[1]

    sentence = f"- the certificate of {url} {words.format(end=end)}: run certbot renew; where"
    assert (sentence in said) is bool(words)
    assert ("certificate of" in said) is bool(words)
    assert "is not answered by an edge" not in said


@pytest.mark.size("test")
@pytest.mark.parametrize(
    ("host", "reason"), [("localhost", "self-signed certificate"), ("127.0.0.1", "IP address mis")]
)
def test_an_untrusted_certificate_is_reported(
    installation: Installation, tmp_path: Path, host: str, reason: str
) -> None:
    """Neither the port nor the proxy is wrong."""
    certificate = write_certificate(tmp_path)
    with answering(certificate, datetime.now(UTC)) as port:
        url = f"https://{host}:{port}"
        asked = installation.changed(SITE_URL=url)
        if host != "localhost":
            asked = asked.changed(SSL_CERT_FILE=str(certificate[0]))
        assert asked.run("migrate")[0] == 0
        said = asked.run("doctor")[1]

    assert f"- the certificate of {url} is refused by those who check it ({reason}" in said
    assert "is not answered by an edge" not in said
    assert "another PORT" not in said


@pytest.mark.size("test")
@pytest.mark.parametrize(
    "answer", [b"{}", b"[]", b'{"checks": []}', b'{"checks": {"store": null}}', b"nothing"]
)
def test_an_unexpected_readiness_answer_is_reported(
    installation: Installation, answer: bytes
) -> None:
    """In words, whatever it is."""
    with answering(None, datetime.now(UTC), answer) as port:
        url = f"http://127.0.0.1:{port}"
        asked = installation.changed(SITE_URL=url)
        assert asked.run("migrate")[0] == 0
        code, said, complained = asked.run("doctor")

    assert (code, complained) == (1, "")
    why = "Expecting value" if answer == b"nothing" else "its readiness has no checks): "
    assert f"- {url} is not answered by an edge ({why}" in said


@pytest.mark.size("test")
@pytest.mark.parametrize("days", [-20, 20])
def test_a_clock_that_is_days_off_is_reported_first(installation: Installation, days: int) -> None:
    """Against that of whoever answers at SITE_URL."""
    with answering(None, datetime.now(UTC) + timedelta(days=days)) as port:
        asked = installation.changed(SITE_URL=f"http://127.0.0.1:{port}", TRUSTED_PROXIES="::/0")
        assert asked.run("migrate")[0] == 0
        said = asked.run("doctor")[1]

    words = f"- the clock here and that of http://127.0.0.1:{port} differ by "
    assert said.startswith(words)
    assert said.splitlines()[0].endswith(" h: run timedatectl set-ntp true")


@pytest.mark.size("test")
def test_a_clock_behind_the_stored_rows_is_reported(installation: Installation) -> None:
    """No change was made in the future."""
    assert installation.run("migrate")[0] == 0
    assert installation.run("keys", "issue", "--name", "a")[0] == 0
    later = format_instant(datetime.now(UTC) + timedelta(days=20))
    with closing(sqlite3.connect(installation.store)) as store, store:
        store.execute("UPDATE audit_log SET at = ?", (later,))

    said = installation.run("doctor")[1]
    assert said.startswith(
        f"- the clock is behind {later}, when a change was made: run timedatectl"
    )


@pytest.mark.size("test")
def test_a_relay_that_is_not_reached_is_named(installation: Installation) -> None:
    """With its port and the next step."""
    port = free_port()
    asked = installation.changed(
        SMTP_URL=f"smtp://user:hush@127.0.0.1:{port}", OWNER_EMAIL="owner@journal.example"
    )
    assert asked.run("migrate")[0] == 0
    said = asked.run("doctor")[1]

    assert f"- SMTP_URL: 127.0.0.1, port {port}: the relay cannot be reached" in said
    assert "check its name and port" in said
    assert "hush" not in said


def test_a_watcher_that_cannot_write_is_named(installation: Installation, tmp_path: Path) -> None:
    """It says so once, and doctor until it can."""
    content, build = tmp_path / "closed", tmp_path / "build"
    content.mkdir(mode=0o555)
    where = {"WRITING": "on", "CONTENT_DIR": str(content)}
    journal = installation.changed(**where)
    assert journal.run("migrate")[0] == 0
    words = [sys.executable, "-m", "site_build.writing.process", str(content), str(build)]
    # Root may write where nobody may, unless it gives up that right.
    drop = [shutil.which("setpriv") or "", "--bounding-set=-all", "--inh-caps=-all"]
    command = [*(drop if os.geteuid() == 0 else []), *words, "https://journal.test"]
    environment = {**os.environ, **journal.environment}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert f"WRITING=on has no effect: {content} cannot be written" in said
        assert not Spool(journal.store.parent).is_watched()
        process.communicate(timeout=patience())
    _, said, _ = journal.run("doctor")
    assert f"- WRITING=on, but no watcher that can write {content} answers" in said
