"""The edge as a process: how it starts, what it refuses, and how it ends."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from edge_api.cli import serve
from edge_api.cli.doctor import CHECKED
from edge_api.health import check_units
from edge_api.http.logs import configure_logging
from edge_api.journal.builds import BuildManager
from tests.edge.conftest import CONTENT, run_build
from tests.edge.edge_process import ROOT, Installation, ServedEdge, free_port, until
from tests.edge.small_builds import make_post, point_at, write_build
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = [pytest.mark.each_engine, pytest.mark.size("test")]

READINESS = "/api/public/v1/readiness"
LEADS = "/api/public/v1/leads"
LEAD = json.dumps(
    {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}
).encode()
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return an installation with a small build and nothing else yet."""
    port = free_port()
    site_url = f"http://127.0.0.1:{port}"
    builds = tmp_path / "build"
    point_at(builds, write_build(builds, posts=[make_post("a")], site_url=site_url))
    (tmp_path / "content").mkdir()
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{tmp_path}/var/edge.db",
        "BUILD_DIR": str(builds),
    }
    return Installation(tmp_path, settings)


@pytest.fixture
def served(installation: Installation) -> Iterator[ServedEdge]:
    """Return a process that serves it."""
    with installation.serving() as edge:
        yield edge


@pytest.fixture(params=SIGNALS, ids=lambda number: number.name)
def signal_number(request: pytest.FixtureRequest) -> int:
    """Return each signal that ends the edge."""
    return int(request.param)


def one_sentence(complained: str) -> str:
    """Return the only line that was complained, without doctor's last; a trace would be several."""
    (line,) = [each for each in complained.splitlines() if not each.startswith("looked at: ")]
    return line


def connect(edge: ServedEdge) -> socket.socket:
    """Open a connection that is patient but not for ever."""
    return socket.create_connection(("127.0.0.1", edge.port), timeout=patience())


def read_all(connection: socket.socket) -> bytes:
    """Return everything until the end of the connection."""
    received = bytearray()
    while piece := connection.recv(65536):
        received += piece
    return bytes(received)


def test_the_start_prints_the_address(served: ServedEdge) -> None:
    """The first line has the address, and it answers there."""
    assert served.greeting == f"serving http://127.0.0.1:{served.port}\n"
    status, _, body = served.get(READINESS)
    assert (status, json.loads(body)["status"]) == (200, "pass")


def test_a_request_under_way_is_answered(served: ServedEdge, signal_number: int) -> None:
    """Readiness says no at once, the slow request gets its 201, and the exit code is 0."""
    head = f"POST {LEADS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    length = f"Content-Length: {len(LEAD)}\r\n\r\n"
    with connect(served) as slow:
        slow.sendall((head + length).encode() + LEAD[:10])
        served.process.send_signal(signal_number)
        assert served.await_body(READINESS, b'"error":"Not ready: shutting down"')
        slow.sendall(LEAD[10:])
        assert slow.recv(4096).startswith(b"HTTP/1.1 201 ")

    _, complained = served.process.communicate(timeout=patience(15))
    assert served.process.returncode == 0
    assert "Traceback" not in complained


def test_an_acknowledged_lead_is_there_after_the_end(
    installation: Installation, served: ServedEdge
) -> None:
    """It was stored before its answer, so the end loses nothing."""
    with connect(served) as client:
        client.sendall(
            f"POST {LEADS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(LEAD)}\r\n\r\n".encode()
            + LEAD
        )
        assert client.recv(4096).startswith(b"HTTP/1.1 201 ")
    assert served.end(signal.SIGTERM)[0] == 0

    with sqlite3.connect(installation.store) as database:
        assert database.execute("SELECT name FROM leads").fetchall() == [("Ann",)]
    database.close()


@pytest.mark.size("ci")
def test_an_idle_connection_does_not_hold_it_back(served: ServedEdge) -> None:
    """It is closed, and the process ends."""
    with connect(served) as idle, connect(served) as used:
        used.sendall(b"GET /api/public/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert used.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert served.end(signal.SIGTERM)[0] == 0
        assert (idle.recv(1), used.recv(1)) == (b"", b"")


@pytest.mark.size("ci")
def test_a_client_that_reads_nothing_does_not_hold_it_back(installation: Installation) -> None:
    """It is broken off in time: the exit code is 0 within 15 s."""
    builds = Path(installation.settings["BUILD_DIR"])
    files: dict[str, bytes | str] = {
        "index.html": "<p>home</p>",
        "images/large.bin": bytes(40_000_000),
    }
    url = f"http://127.0.0.1:{installation.settings['PORT']}"
    point_at(builds, write_build(builds, "build-large", files=files, site_url=url))
    with installation.serving() as edge, connect(edge) as deaf:
        deaf.sendall(b"GET /images/large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert deaf.recv(1024).startswith(b"HTTP/1.1 200 ")

        code, complained = edge.end(signal.SIGTERM)
        assert code == 0
        assert "Traceback" not in complained


@pytest.mark.size("ci")
def test_a_port_in_use_is_reported(installation: Installation) -> None:
    """In one sentence, with exit code 1."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(installation.settings["PORT"])))
        taken.listen()
        code, _, complained = installation.changed(LOG_FORMAT="text").run("serve")

    said = [line for line in complained.splitlines() if " INFO " not in line]
    assert (code, len(said)) == (1, 1)
    assert said[0] == (
        f"cannot listen on 127.0.0.1:{installation.settings['PORT']}: Address already in use; "
        "end what listens there (ss -lnp names it), or set another PORT"
    )


@pytest.mark.parametrize(("command", "status"), [("serve", 2), ("doctor", 1)])
def test_an_unreadable_dotenv_is_reported(
    installation: Installation, command: str, status: int
) -> None:
    """In one sentence with its fix; for doctor it is something wrong, and not a wrong use."""
    (installation.folder / ".env").mkdir()
    code, said, complained = installation.run(command)

    sentence = ".env cannot be read (Is a directory): run this as its owner, or let this user read"
    assert code == status
    assert one_sentence(said + complained).removeprefix("- ").startswith(sentence)


def test_doctor_says_each_thing_once(installation: Installation, tmp_path: Path) -> None:
    """Neither in two places nor in the words of two parts."""
    assert installation.run("migrate")[0] == 0
    nowhere = installation.changed(BUILD_DIR=str(tmp_path / "nowhere"))
    code, said, complained = nowhere.run("doctor")
    fix = "run python -m site_build build"
    assert (code, complained) == (1, "")
    about = [line for line in said.splitlines() if line.startswith("- ") and "build" in line]
    assert about == [f"- BUILD_DIR: {tmp_path / 'nowhere'} holds no build; {fix}"]

    build = tmp_path / "damaged" / "current"
    build.mkdir(parents=True)
    code, said, complained = installation.changed(BUILD_DIR=str(build.parent)).run("doctor")
    assert (code, complained) == (1, "")
    about = [line for line in said.splitlines() if line.startswith("- ") and "build" in line]
    assert [line.partition(": ")[0] for line in about] == ["- the newest build is not served"]


def test_doctor_names_keys_that_requests_got_before(installation: Installation) -> None:
    """With the commands that end them; a name moves no cursor; what has an end is not named."""
    made = {}
    for name in ("Lena's app", "a\x1b[2Jb", "posts"):
        scopes = "posts:read" if name == "posts" else "posts:read leads:read"
        words = ("keys", "issue", "--name", name, "--scopes", scopes, "--json")
        made[name] = json.loads(installation.run(*words)[1])["id"]
    assert installation.run("doctor") == (0, f"nothing is wrong\n{LOOKED}", "")
    with closing(sqlite3.connect(installation.store)) as connection, connection:
        connection.execute("UPDATE credentials SET needs_review = 1")

    code, said, complained = installation.run("doctor")
    first, *others = said.splitlines()
    commands = [line for line in others if line.startswith("  ")]
    sentence = (
        "- 2 keys given to requests can read all enquiries and never end: Lena's app, a\ufffd"
    )
    assert (code, complained, first.startswith(f"{sentence}[2Jb. End them?")) == (1, "", True)
    ids = [made["Lena's app"], made["a\x1b[2Jb"]]
    revoke = "python -m edge_api keys revoke"
    assert [line.strip().partition("  #")[0] for line in commands] == [
        f"{revoke} {each}" for each in ids
    ]
    assert installation.run("keys", "expire", ids[0])[0] == 0
    assert "- 1 key given to a request can read all" in installation.run("doctor")[1]
    assert installation.run("keys", "expire", ids[1], "--no-expiry")[0] == 0
    assert installation.run("doctor") == (0, f"nothing is wrong\n{LOOKED}", "")


@pytest.mark.parametrize(("state", "is_reported"), [("no", True), ("yes", False)])
async def test_a_clock_that_is_off_is_logged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    state: str,
    *,
    is_reported: bool,
) -> None:
    """In one line with its fix, by what systemd says."""
    program, asked = tmp_path / "timedatectl", tmp_path / "asked"
    answer = f'[ "$*" = "show -p NTPSynchronized --value" ] && echo {state}'
    program.write_text(f"#!/bin/sh\necho >>{asked}\n{answer}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(serve, "SYSTEMD", tmp_path)
    warnings: dict[str, str] = {}
    monkeypatch.setattr(serve, "CLOCK_CHECK_SECONDS", 0)
    watching = asyncio.create_task(serve.watch_clock(warnings))
    await until(lambda: asked.exists() and asked.stat().st_size > 2)
    watching.cancel()

    sentence = "the clock is not synchronised: run timedatectl set-ntp true"
    assert [line.message for line in caplog.records] == [sentence] * is_reported
    assert warnings == {"clock": sentence * is_reported}


def test_a_new_store_needs_no_backup_yet(installation: Installation) -> None:
    """Within two hours a timer need not have run; later it should have."""
    public = installation.changed(SITE_URL=f"http://127.0.0.1.test:{free_port()}")
    assert public.run("migrate")[0] == 0
    key = installation.store.with_suffix(".key")
    key.write_text("k" * 64)
    key.chmod(0o600)
    missed = "- there is no backup: let a timer run python -m edge_api backup"
    assert missed not in public.run("doctor")[1]

    os.utime(key, (time.time() - 7300,) * 2)
    assert missed in public.run("doctor")[1]


@pytest.mark.size("ci")
def test_a_host_of_another_machine_is_reported(installation: Installation) -> None:
    """An address of another machine cannot be listened on."""
    code, _, complained = installation.run("serve", "--host", "192.0.2.1")

    assert code == 1
    assert complained.splitlines()[-1].startswith("cannot listen on 192.0.2.1:")
    assert "Traceback" not in complained


LOOKED = f"looked at: {', '.join(CHECKED)}\n"
"""The last line of `doctor`."""
BAD = {
    "PORT": ("70000", "must be a port from 1 to 65535"),
    "SITE_URL": ("https://journal.test/", "must be an origin such as https://example.org"),
    "DATABASE_URL": ("mysql://x", "must be sqlite:///path/to/file.db"),
    "LEADS_REQUIRE_CREDENTIAL": ("perhaps", "must be true or false"),
    "TRUSTED_PROXIES": ("10.0.0.0/8, nowhere", "must be like 127.0.0.1,10.0.0.0/8, and 'nowhere'"),
    "RATE_LEADS": ("often", "must be like 5/10minutes;20/day, or 0 for no limit"),
    "RATE_LEADS_ATTEMPTS": ("-1", "must be like"),
    "RATE_AUTHENTICATED": ("10", "must be like"),
    "RATE_FAILED_AUTH": ("1/fortnight", "must be like"),
    "LOG_FORMAT": ("xml", "must be one of text, json"),
}


@pytest.mark.parametrize("command", ["serve", *in_ci("settings", "doctor", "migrate")])
def test_every_bad_setting_is_named(installation: Installation, command: str) -> None:
    """All at once, each in a sentence, with exit code 2 (of doctor 1); nothing is made."""
    bad = installation.changed(**{name: value for name, (value, _) in BAD.items()})
    code, said, complained = bad.run(command)

    assert code == (1 if command == "doctor" else 2)
    lines = [line.removeprefix("- ") for line in (said + complained).splitlines()]
    lines = [line for line in lines if not line.startswith("looked at: ")]
    assert len(lines) == len(BAD)
    for line, (name, (_, message)) in zip(sorted(lines), sorted(BAD.items()), strict=True):
        assert line.startswith(f"{name}: {message}")
    assert not installation.store.parent.exists()


def test_settings_come_from_a_file_as_well(installation: Installation) -> None:
    """From `.env`; the environment overrides it."""
    (installation.folder / ".env").write_text(
        "RATE_LEADS=7/hour\nPORT=1\nSECRET_KEY=hush-hush-hush-hush-hush-hush-hush-hush\n"
    )
    code, said, _ = installation.run("settings")

    values = {line.split()[0]: line.split()[1] for line in said.splitlines()}
    assert code == 0
    assert values["RATE_LEADS"] == "7/hour"
    assert values["PORT"] == installation.settings["PORT"]
    assert values["SITE_URL"] == f"http://127.0.0.1:{installation.settings['PORT']}"
    assert values["SECRET_KEY"] == "(hidden)"
    assert "hush" not in said


def test_settings_are_checked_with_what_the_replica_needs(installation: Installation) -> None:
    """A folder of a replica is printed, and of another one nothing; scratch_server.py has more."""
    folder = installation.folder / "replica"
    replicated = installation.changed(LITESTREAM_REPLICA=f"file://{folder}/")

    assert installation.run("settings", "--check") == (0, "\n", "")
    assert replicated.run("settings", "--check") == (0, f"{folder}\n", "")
    bucket = installation.changed(LITESTREAM_REPLICA="s3://bucket/path")
    assert bucket.run("settings", "--check") == (0, "\n", "")
    wrong = installation.changed(LITESTREAM_REPLICA="folder")
    assert wrong.run("settings", "--check")[0] == 2


def test_a_port_that_systemd_replaces_is_reported(installation: Installation) -> None:
    """The socket that systemd hands over has another port than PORT: a line says so."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        passed = f"exec 3<&{listening.fileno()}; export LISTEN_FDS=1 LISTEN_PID=$$"
        edge = subprocess.Popen(
            ["/bin/bash", "-c", f"{passed}; exec {sys.executable} -m edge_api serve"],
            cwd=installation.folder,
            env=installation.environment,
            pass_fds=(listening.fileno(),),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert edge.stdout
        lines = takewhile(lambda line: not line.startswith("development key"), edge.stdout)
        said = list(lines)
        edge.terminate()
        edge.communicate(timeout=patience())
        port, wanted = listening.getsockname()[1], installation.settings["PORT"]
    assert f"PORT {wanted} has no effect: the socket of systemd is on {port}\n" in said


@pytest.mark.parametrize("words", [("--workers", "2"), *in_ci((("--workers", "64"),))])
def test_more_workers_are_refused(installation: Installation, words: tuple[str, str]) -> None:
    """One process is what SQLite takes, which the sentence says."""
    code, _, complained = installation.run("serve", *words)

    assert code == 2
    assert "more than one worker needs PostgreSQL" in complained.splitlines()[0]


@pytest.mark.parametrize("port", ["0", *in_ci("70000", "-1", "http")])
def test_an_invalid_port_is_refused(installation: Installation, port: str) -> None:
    """Before anything is opened."""
    code, _, complained = installation.run("serve", "--port", port)

    assert code == 2
    assert "must be a port from 1 to 65535" in complained


def corrupt(store: Path) -> None:
    """Write rubbish where the store should be."""
    store.write_bytes(b"rubbish" * 1000)


def foreign(store: Path) -> None:
    """Put the database of another program there."""
    with sqlite3.connect(store) as database:
        database.execute("CREATE TABLE songs (title TEXT)")
    database.close()


def newer(store: Path) -> None:
    """Let a later edge have taken a step more."""
    with sqlite3.connect(store) as database:
        database.execute(f"PRAGMA application_id = {0x666F7265}")
        database.execute("PRAGMA user_version = 999")
    database.close()


def a_folder(store: Path) -> None:
    """Put a folder there."""
    store.mkdir()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (corrupt, "is no SQLite database: set DATABASE_URL to another file"),
        (foreign, "is no store of Fore-edge: set DATABASE_URL to another file"),
        *in_ci(
            (newer, "has schema version 999 and this edge knows"),
            (a_folder, "is no file: set DATABASE_URL to one"),
        ),
    ],
)
@pytest.mark.parametrize("command", ["serve", "migrate", "doctor"])
def test_an_unusable_store_is_refused(
    installation: Installation, spoil: Callable[[Path], None], message: str, command: str
) -> None:
    """In one sentence, with exit code 1, and the file is left as it was."""
    installation.store.parent.mkdir(mode=0o700)
    spoil(installation.store)
    installation.store.chmod(0o700)
    before = installation.store.is_file() and installation.store.read_bytes()
    code, said, complained = installation.run(command)

    assert code == 1
    assert f"{installation.store} {message}" in one_sentence(said + complained)
    assert (installation.store.is_file() and installation.store.read_bytes()) == before


@pytest.mark.parametrize("words", ["serve", "migrate", "doctor", "keys list", "backup", "upgrade"])
def test_a_store_that_is_gone_is_missed(installation: Installation, words: str) -> None:
    """No command makes an empty one where the key says that one was there."""
    assert installation.run("keys", "issue", "--name", "first")[0] == 0
    key = installation.store.with_suffix(".key")
    key.write_text("k" * 64)
    key.chmod(0o600)
    installation.store.unlink()
    code, said, complained = installation.run(*words.split())

    assert code == 1
    sentence = one_sentence(said + complained)
    assert f"{installation.store} is missing, but a store was there (edge.key beside" in sentence
    assert "restore it with python -m edge_api restore FILE --force" in sentence
    assert not installation.store.exists()


@pytest.mark.size("ci")
def test_a_second_edge_on_one_store_is_refused(
    installation: Installation, served: ServedEdge
) -> None:
    """It names the first, which serves on."""
    code, _, complained = installation.changed(PORT=str(free_port())).run("serve")

    assert code == 1
    assert str(served.process.pid) in one_sentence(complained)
    assert served.get(READINESS)[0] == 200


@pytest.mark.parametrize("content", [None, *in_ci(b"", b"short")])
def test_an_invalid_signing_key_is_refused(
    installation: Installation, content: bytes | None
) -> None:
    """A folder in its place, or a file that lost its content."""
    assert installation.run("migrate")[0] == 0
    key = installation.store.with_suffix(".key")
    if content is None:
        key.mkdir(mode=0o700)
    else:
        key.write_bytes(content)
        key.chmod(0o600)

    for command in ("serve", "doctor"):
        code, said, complained = installation.run(command)
        line = one_sentence(re.sub(".* INFO .*\n", "", said + complained))
        assert code == 1
        assert str(key) in line


def test_doctor_reports_no_error_when_all_is_well(installation: Installation) -> None:
    """Neither before the first start, once the store is made, nor while it is served."""
    assert installation.run("migrate")[0] == 0
    assert installation.run("doctor") == (0, f"nothing is wrong\n{LOOKED}", "")
    with installation.serving() as edge:
        assert installation.run("doctor") == (0, f"nothing is wrong\n{LOOKED}", "")
        assert installation.run("backup")[0] == 0
        status, said, complained = installation.run("doctor", "--deep")
        assert (status, complained) == (0, ""), said
        assert edge.end(signal.SIGTERM)[0] == 0


@pytest.mark.size("ci")
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("SECRET_KEY=" + "k" * 40, "SECRET_KEY"),
        *in_ci(
            ("SMTP_URL=smtps://user:word@relay.example", "SMTP_URL"),
            ("AWS_SECRET_ACCESS_KEY=b", "AWS_SECRET_ACCESS_KEY"),
            ("DATABASE_URL=postgresql://edge:word@db.example/journal", "DATABASE_URL"),
        ),
    ],
)
def test_a_secret_that_others_can_read_is_reported(
    installation: Installation, line: str, name: str
) -> None:
    """`doctor` complains of `.env` and `serve` warns once, until its rights are right."""
    dotenv = installation.folder / ".env"
    dotenv.write_text(f"PORT=9000\n{line}\n")
    dotenv.chmod(0o640)
    message = f".env holds {name} and can be read by others; run chmod 600 .env"
    asked = installation.changed(OWNER_EMAIL="owner@example.org", MAIL_DISPATCHER="off")
    with asked.serving() as edge:
        code, output, _ = asked.run("doctor")
        assert (code, f"- {message}\n" in output) == (1, True)
        assert edge.end(signal.SIGTERM)[1].count(message) == 1
    dotenv.chmod(0o600)
    with asked.serving() as edge:
        assert "- .env" not in asked.run("doctor")[1]
        assert ".env" not in edge.end(signal.SIGTERM)[1]


@pytest.mark.size("ci")
def test_settings_that_are_no_secrets_may_be_read(installation: Installation) -> None:
    """Nothing is wrong with a `.env` for all to read that holds a port."""
    dotenv = installation.folder / ".env"
    dotenv.write_text("PORT=9000\nSECRET_KEY=\nDATABASE_URL=sqlite:///var/edge.db\n")
    dotenv.chmod(0o644)
    assert "- .env" not in installation.run("doctor")[1]


@pytest.mark.size("ci")
def test_doctor_finds_an_edge_that_runs_former_code(
    installation: Installation, tmp_path: Path
) -> None:
    """It finds one where a source file has changed since, and one that noted no code at all."""
    message = f"- the installed code has changed since the edge started: restart it\n{LOOKED}"
    shutil.copytree(ROOT / "edge_api", tmp_path / "code" / "edge_api")
    upgraded = installation.changed(PYTHONPATH=str(tmp_path / "code"))
    lock = installation.store.with_name(f"{installation.store.name}-lock")
    with upgraded.serving() as edge:
        assert upgraded.run("doctor") == (0, f"nothing is wrong\n{LOOKED}", "")
        (tmp_path / "code" / "edge_api" / "added.py").write_text("")
        assert upgraded.run("doctor") == (1, message, "")
        lock.write_text(str(edge.process.pid))
        assert upgraded.run("doctor") == (1, message, "")
    assert upgraded.run("doctor") == (0, f"nothing is wrong\n{LOOKED}", "")


@pytest.mark.size("ci")
def test_doctor_reports_pending_access_requests(installation: Installation) -> None:
    """It is nothing wrong, so the status stays 0; once decided, nothing is said."""
    headers = {"Content-Type": "application/json"}
    order = json.dumps({"type": "anonymous"}).encode()
    with installation.serving() as edge:
        for said in ("1 request for access waits", "2 requests for access wait"):
            assert edge.post("/api/public/access-requests", order, headers)[0] == 201
            note = f"{said} for a decision; run python -m edge_api requests list"
            assert installation.run("doctor") == (0, f"nothing is wrong\n{note}\n{LOOKED}", "")
        listed = json.loads(installation.run("requests", "list", "--json")[1])
        for request in listed:
            assert installation.run("requests", "deny", request["id"])[0] == 0
        assert installation.run("doctor") == (0, f"nothing is wrong\n{LOOKED}", "")


def test_doctor_says_everything_that_is_wrong(installation: Installation) -> None:
    """One line for each, all in one go."""
    assert installation.run("migrate")[0] == 0
    installation.store.chmod(0o644)
    shutil.rmtree(installation.folder / "content")
    shutil.rmtree(installation.settings["BUILD_DIR"])
    ill = installation.changed(SITE_URL="http://journal.test")
    code, said, complained = ill.run("doctor")

    assert (code, complained) == (1, "")
    lines = said.splitlines()
    for part in ("CONTENT_DIR: ", "BUILD_DIR: ", f"{installation.store} can be read", "SITE_URL "):
        assert [line for line in lines if line.startswith(f"- {part}")], (part, said)
    assert all(line.startswith("- ") for line in lines[:-1])
    assert f"{lines[-1]}\n" == LOOKED


@pytest.mark.parametrize(
    "words", [("doctor",), ("audit",), *in_ci((("keys", "list"),), (("requests", "list"),))]
)
def test_reading_commands_make_no_store(installation: Installation, words: tuple[str, ...]) -> None:
    """A command in the wrong folder says that nothing is there, and leaves nothing there."""
    code, said, complained = installation.run(*words)

    assert code == 1
    assert f"there is no store at {installation.store}" in said + complained
    assert not installation.store.exists()


@pytest.mark.size("ci")
def test_doctor_finds_a_development_key_on_a_public_site(installation: Installation) -> None:
    """A key that was made while only this machine was served must not open a public one."""
    with installation.serving() as edge:
        assert edge.end(signal.SIGTERM)[0] == 0
    public = installation.changed(SITE_URL="https://journal.test")

    code, said, _ = public.run("doctor")

    (line,) = [line for line in said.splitlines() if "development key" in line]
    assert code == 1
    assert installation.run("keys", "revoke", line.split()[-1])[0] == 0
    assert "development key" not in public.run("doctor")[1]


@pytest.mark.size("ci")
def test_no_development_key_for_other_machines(installation: Installation) -> None:
    """If other machines reach the edge, no key with every scope is made."""
    with installation.start("serve", "--host", "0.0.0.0") as process:  # noqa: S104  the point
        assert process.stdout is not None
        greeting = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=patience(15))

    assert "on http://0.0.0.0:" in greeting
    assert "are answered: set SITE_URL to the address that readers use\n" in said
    assert "development key" not in said
    assert not installation.store.with_suffix(".dev-key").exists()


@pytest.mark.size("ci")
def test_the_last_answers_end_their_connections(installation: Installation) -> None:
    """A client that keeps its connection gets `Connection: close` before it is cut."""
    with installation.serving() as edge:
        _, before, _ = edge.get("/api/public/ping")
        edge.process.send_signal(signal.SIGTERM)
        assert edge.await_body("/api/public/v1/readiness", b"shutting down")
        _, behind, _ = edge.get("/api/public/ping")
        assert edge.process.wait(timeout=patience(15)) == 0

    assert "Connection" not in before
    assert behind["Connection"] == "close"


@pytest.mark.size("ci")
def test_doctor_sees_a_build_for_another_site(installation: Installation) -> None:
    """As readiness does."""
    assert installation.run("migrate")[0] == 0
    code, said, _ = installation.changed(SITE_URL="https://journal.test").run("doctor")

    mail, site, build, _ = said.splitlines()  # a new store does not miss a backup yet
    assert code == 1
    assert build.startswith("- the build was made for http")
    assert build.endswith(
        ", and the settings name https://journal.test: set the same PORT or SITE_URL here (in "
        ".env), or build it for that one: python -m site_build build"
    )
    assert mail.startswith("- SMTP_URL and OWNER_EMAIL: ")
    assert site.startswith("- https://journal.test is not answered by an edge (")


@pytest.mark.size("ci")
def test_doctor_logs_in_at_the_relay(installation: Installation) -> None:
    """It says why that fails, before a mail is lost."""
    assert installation.run("migrate")[0] == 0
    relay = f"smtp://127.0.0.1:{free_port()}"
    asked = installation.changed(SMTP_URL=relay, OWNER_EMAIL="ann@example.org")

    code, said, _ = asked.run("doctor")

    assert code == 1
    assert "- SMTP_URL: " in said


def test_doctor_names_units_that_do_not_run() -> None:
    """As `systemctl show` prints them; a unit that is not installed is left out."""
    shown = """\
Id=fore-edge.service
LoadState=loaded
ActiveState=active

Id=fore-edge-publish.service
LoadState=loaded
ActiveState=failed

Id=fore-edge-backup.timer
LoadState=not-found
ActiveState=inactive
"""
    (said,) = check_units(shown)
    assert said.startswith("fore-edge-publish.service is failed: journalctl -u fore-edge-publish")
    assert list(check_units("")) == []


def test_a_development_key_is_made_and_used_again(installation: Installation) -> None:
    """It opens everything, is kept for its owner alone, and is the same at the next start."""
    keys = []
    for _ in range(2):
        with installation.serving() as edge:
            assert edge.process.stdout is not None
            line = edge.process.stdout.readline()
            said, _, key = line.strip().rpartition(" ")
            assert said == "development key (all but posts:publish, this machine only):"
            assert edge.get("/api/public/v1/admin/leads", {"X-API-Key": key})[0] == 200
            keys.append(key)
            assert edge.end(signal.SIGTERM)[0] == 0

    file = installation.store.with_suffix(".dev-key")
    assert keys == [file.read_text().strip()] * 2
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.size("ci")
def test_no_development_key_on_a_public_site(installation: Installation) -> None:
    """Neither printed nor made."""
    with installation.changed(SITE_URL="https://journal.test").serving() as edge:
        assert edge.greeting.startswith("serving https://journal.test on ")
        edge.process.send_signal(signal.SIGTERM)
        said, _ = edge.process.communicate(timeout=patience(15))

    assert "fe_sk_" not in said
    assert not installation.store.with_suffix(".dev-key").exists()


@pytest.mark.size("ci")
def test_log_lines_are_json_where_that_is_set(installation: Installation) -> None:
    """Each line has its members, from the first to the last."""
    with installation.changed(LOG_FORMAT="json").serving() as edge:
        code, complained = edge.end(signal.SIGTERM)

    lines = [json.loads(line) for line in complained.splitlines()]
    assert code == 0
    for line in lines:
        assert set(line) == {"time", "level", "request_id", "logger", "message"}
    assert lines[0]["message"].startswith("serving build ")
    assert lines[-1]["message"].startswith("stopping: ")


async def test_a_fault_is_logged_with_the_id_of_its_request(
    make_edge: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client reads the id and nothing else; the line in the log has the trace."""
    async with make_edge() as edge:
        configure_logging("json")
        monkeypatch.delattr(BuildManager, "build")
        headers = {"X-Request-ID": "the-request-1"}
        async with edge.ask("GET", "/api/public/v1/posts", await edge.key(), headers=headers) as it:
            assert (it.status, await it.json()) == (500, {"error": "Internal error"})
            assert it.headers["X-Request-ID"] == "the-request-1"

    (line,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (line["level"], line["request_id"]) == ("error", "the-request-1")
    assert line["trace"].startswith("Traceback")


@pytest.mark.size("ci")
def test_the_edge_starts_without_a_build_and_serves_a_later_one(installation: Installation) -> None:
    """The journal says that it is not built; a build is served soon after it appears."""
    builds = Path(installation.settings["BUILD_DIR"])
    shutil.rmtree(builds)
    with installation.serving() as edge:
        assert edge.get("/")[0] == 503
        assert edge.get(READINESS)[0] == 503
        assert edge.get("/api/public/ping")[0] == 200
        url = f"http://127.0.0.1:{edge.port}"
        run_build(CONTENT, builds, site_url=url)
        assert edge.await_body("/", b"The first edge")
        assert edge.get(READINESS)[0] == 200

        point_at(builds, write_build(builds, "build-next", site_url=url))
        assert edge.await_body("/", b"<p>build-next</p>")


@pytest.mark.size("ci")
def test_doctor_sees_another_program_at_the_local_address(
    installation: Installation, tmp_path: Path
) -> None:
    """It reports that the program is no edge; silence is no fault: a journal need not be served."""
    port = free_port()
    local = installation.changed(PORT=str(port), SITE_URL=f"http://127.0.0.1:{port}")
    assert local.run("migrate")[0] == 0
    address = f"http://127.0.0.1:{port} is not answered by an edge"
    assert address not in local.run("doctor")[1]
    words = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as other:
        try:
            for _ in range(200):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            code, said, _ = local.run("doctor")
        finally:
            other.kill()

    assert code == 1
    assert f"- {address} (the status is 404): end what listens there (ss -ltnp names it)" in said
