"""`python -m edge_api mail`, and mail in `serve`, as processes of their own."""

import asyncio
import json
import signal
import subprocess
from email import message_from_string, policy
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.edge.edge_process import Installation, free_port, until
from tests.edge.mail.outbox.post_office import LEAD, OWNER, PostOffice
from tests.edge.mail.outbox.scripted_relay import Relay
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

LEADS = "/api/public/v1/leads"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """Return the file that the commands open."""
    return f"sqlite:///{tmp_path}/edge.db"


@pytest.fixture
def installation(tmp_path: Path, store_url: str, journal: Path, relay: Relay) -> Installation:
    """Return an installation on the store of the test, which sends through the relay."""
    return Installation(
        tmp_path,
        {
            "DATABASE_URL": store_url,
            "BUILD_DIR": str(journal),
            "SITE_URL": "http://journal.test",
            "PORT": str(free_port()),
            "SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
            "OWNER_EMAIL": OWNER,
        },
    )


async def run(installation: Installation, *words: str) -> tuple[int, str, str]:
    """Run a command while the relay goes on."""
    return await asyncio.to_thread(installation.run, *words)


async def test_an_empty_outbox_is_reported(office: PostOffice, installation: Installation) -> None:
    """Nothing waits: one sentence, or an empty array."""
    assert await office.outbox() == []
    assert await run(installation, "mail", "list") == (
        0,
        "no mail waits, and none was given up\n",
        "",
    )
    assert json.loads((await run(installation, "mail", "list", "--json"))[1]) == []


async def test_waiting_and_given_up_mail_is_listed(
    office: PostOffice, relay: Relay, installation: Installation
) -> None:
    """A line for each message; what a terminal would obey is shown as a sign."""
    relay.recipient_answers.append("554 5.7.1 no")
    await office.take_lead()
    await office.tick()
    await office.take_lead()
    await office.change_entries(recipient_email="owner\x1b[31m@journal-keepers.net")
    code, said, _ = await run(installation, "mail", "list")
    rows = json.loads((await run(installation, "mail", "list", "--json"))[1])

    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == ["ID", *(row["id"] for row in rows)]
    assert "\x1b" not in said
    assert [row["state"] for row in rows] == ["given up", "waits"]
    assert rows[0]["due_at"] is None


async def test_mail_retry_counts_waiting_mail(
    office: PostOffice, installation: Installation
) -> None:
    """`mail retry --all` says how many messages are due at once, beside those given up."""
    await office.take_lead()
    said = (await run(installation, "mail", "retry", "--all"))[1]
    assert said == "0 messages queued again, 1 that waited is due now\n"


async def test_mail_is_queued_again_and_sent_by_a_process_of_its_own(
    office: PostOffice, relay: Relay, installation: Installation
) -> None:
    """`mail retry --all`, then `mail run`, which ends on SIGTERM with 0."""
    relay.recipient_answers.append("554 5.7.1 no")
    await office.take_lead()
    await office.tick()
    assert (await run(installation, "mail", "retry", "--all"))[1] == "1 message queued again\n"
    process = installation.start("mail")
    await relay.await_count(1)
    process.send_signal(signal.SIGTERM)
    said, complained = await asyncio.to_thread(process.communicate)

    assert (process.returncode, said) == (0, "sending mail for http://journal.test\n")
    assert OWNER not in complained
    assert sorted(await office.statuses()) == ["dlq", "failed", "pending", "pending", "sent"]


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("mail", "retry"), 2, "Give one of ID, --all"),
        *in_ci(
            (("mail", "retry", "nonsense"), 1, "No mail nonsense was given up"),
            (("mail", "preview", "nonsense"), 2, "is not one of"),
            (
                ("mail", "preview", "lead_notification", "--html", "--eml"),
                2,
                "Give at most one of",
            ),
            (("mail", "nonsense"), 2, "No such command 'nonsense'"),
        ),
    ],
)
async def test_wrong_usage_is_reported(
    office: PostOffice,
    installation: Installation,
    words: tuple[str, ...],
    code: int,
    complaint: str,
) -> None:
    """The error is one sentence, without a traceback."""
    assert await office.outbox() == []
    returned, _, complained = await run(installation, *words)

    assert (returned, "Traceback" in complained) == (code, False)
    assert complaint in complained


async def test_without_a_relay_there_is_nothing_to_run(installation: Installation) -> None:
    """`mail run` without SMTP_URL ends with 2 and says what is missing."""
    assert await run(installation.changed(SMTP_URL=""), "mail", "run") == (
        2,
        "",
        "mail is not configured: SMTP_URL is not set\n",
    )


@pytest.mark.parametrize(
    "template", ["lead_notification", *in_ci("lead_acknowledgement", "access_decision")]
)
async def test_each_message_can_be_looked_at(installation: Installation, template: str) -> None:
    """Its text, its HTML, and the whole of it as it is sent."""
    _, text, _ = await run(installation, "mail", "preview", template)
    _, html, _ = await run(installation, "mail", "preview", template, "--html")
    _, whole, _ = await run(installation, "mail", "preview", template, "--eml")

    assert text.startswith("Subject: ")
    assert html.lstrip().startswith("<!")
    message = message_from_string(whole, policy=policy.default)
    assert text.startswith(f"Subject: {message['Subject']}\n")
    assert message["Message-ID"].endswith("@journal.test>")


async def test_a_relay_needs_a_sender(installation: Installation) -> None:
    """SMTP_URL alone is refused, since mail is from somebody; it is never printed."""
    code, _, complained = await run(installation.changed(OWNER_EMAIL=""), "settings")
    assert (code, complained) == (
        2,
        "SMTP_URL: needs MAIL_FROM or OWNER_EMAIL as the sender\n",
    )
    secret = installation.changed(SMTP_URL="smtp://me:sesame@relay.example:587")
    assert "sesame" not in (await run(secret, "settings"))[1]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("new/*"))


async def test_a_lead_over_http_is_notified_at_once(
    installation: Installation, relay: Relay
) -> None:
    """The running service tells the owner, and says nothing of mail when it starts."""
    process = installation.start("serve")
    try:
        greeting = await asyncio.to_thread(_read_lines, process, 1)
        await asyncio.to_thread(_post_lead, int(installation.settings["PORT"]))
        await relay.await_count(1)
    finally:
        process.send_signal(signal.SIGTERM)
        _, complained = await asyncio.to_thread(process.communicate)

    assert greeting[0].startswith("serving http://journal.test")
    assert relay.recipients == [OWNER]
    assert LEAD["message"] in relay.taken[0].message.as_string()
    assert process.returncode == 0
    for word in (OWNER, LEAD["email"], LEAD["message"]):
        assert word not in complained


@pytest.mark.size("ci")
async def test_mail_is_seen_in_a_folder_where_there_is_no_relay(
    installation: Installation, tmp_path: Path
) -> None:
    """`serve --keep-mail DIR` puts what would be sent into a maildir, and says where."""
    bare = installation.changed(SMTP_URL="", OWNER_EMAIL="")
    process = bare.start("serve", "--keep-mail", "var/mail")
    try:
        greeting = await asyncio.to_thread(_read_lines, process, 2)
        await asyncio.to_thread(_post_lead, int(bare.settings["PORT"]))
        await until(lambda: bool(_files(tmp_path / "var/mail")))
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)

    assert greeting[1] == f"mail is not sent: it is in {tmp_path}/var/mail/new\n"
    (file,) = _files(tmp_path / "var/mail")
    assert LEAD["message"] in file.read_text()


@pytest.mark.parametrize("folder", ["note", *in_ci("note/mail", "/proc/mail")])
def test_mail_is_not_promised_where_it_cannot_be_kept(
    installation: Installation, tmp_path: Path, folder: str
) -> None:
    """A file in its place or in that of one above it, or no place at all: nothing is served."""
    (tmp_path / "note").write_text("a file")

    bare = installation.changed(SMTP_URL="", OWNER_EMAIL="")
    status, said, complained = bare.run("serve", "--keep-mail", folder)

    assert (status, said) == (2, "")
    assert complained.startswith("--keep-mail: the mail folder cannot be written: ")


@pytest.mark.size("ci")
async def test_a_relay_that_is_set_is_used_whatever_the_folder(
    installation: Installation, relay: Relay, tmp_path: Path
) -> None:
    """A SMTP_URL in `.env` is not overridden by `--keep-mail`."""
    (tmp_path / ".env").write_text(f"SMTP_URL={installation.settings['SMTP_URL']}\n")
    given = {name: text for name, text in installation.settings.items() if name != "SMTP_URL"}
    process = Installation(tmp_path, given).start("serve", "--keep-mail", "var/mail")
    try:
        await asyncio.to_thread(_read_lines, process, 1)
        await asyncio.to_thread(_post_lead, int(given["PORT"]))
        await relay.await_count(1)
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)

    assert not (tmp_path / "var/mail").exists()


def _read_lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def _post_lead(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=patience(20))
    connection.request("POST", LEADS, json.dumps(LEAD).encode(), JSON)
    assert connection.getresponse().status == 201
    connection.close()
