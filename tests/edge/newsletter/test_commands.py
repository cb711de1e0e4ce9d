"""The commands that steer mailings, and the checks of the sender, its letters and their hosts."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread

import dns.message
import dns.rcode
import dns.rrset
import pytest
from dns import rdatatype
from dns.resolver import Resolver

from edge_api.__main__ import main
from edge_api.auth.actor import new_id, system_clock
from edge_api.db.newsletter_tables import MAILINGS
from edge_api.db.query import Insert
from edge_api.db.types import format_instant
from edge_api.mail.dispatcher import make_mail_service
from edge_api.newsletter.checks import check_sender
from edge_api.newsletter.sending import Letters
from edge_api.newsletter.subscribers import Subscribers
from edge_api.open_store import command_store
from edge_api.settings import Settings, read_settings
from tests.edge.edge_process import Installation
from tests.edge.newsletter.conftest import SITE
from tests.edge.small_builds import make_post, point_at, write_build

pytestmark = pytest.mark.one_engine
Run = Callable[..., tuple[int, str, str]]
LETTER = """From: The Journal <post@letters.journal.example>
List-Unsubscribe: <https://journal.example/unsubscribe?token=x>
List-Unsubscribe-Post: List-Unsubscribe=One-Click
DKIM-Signature: v=1; a=rsa-sha256; d={domain}; s=mail;
 h=From:Subject:{signed}; bh=x; b=y

Hello.
"""
BOTH = "List-Unsubscribe : LIST-UNSUBSCRIBE-\n POST"


@pytest.fixture
def given(tmp_path: Path, subscribed_journal: Path) -> dict[str, str]:
    """Return the settings of a journal with a newsletter."""
    return {
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "SITE_URL": SITE,
        "BUILD_DIR": str(subscribed_journal),
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "The Journal <post@letters.journal.example>",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street, Binding",
        "OWNER_EMAIL": "owner@journal-keepers.net",
        "MAIL_FROM": "journal@journal-keepers.net",
        "SMTP_URL": f"maildir:{tmp_path}/mail",
    }


@pytest.fixture
def run(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Return a way to run `newsletter`, which returns its status and what it prints."""
    for name, text in given.items():
        monkeypatch.setenv(name, text)
    assert main(["migrate"]) == 0

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["newsletter", *words])
        return status, *capsys.readouterr()

    return run


async def send_mail(given: dict[str, str]) -> None:
    """Send what is queued, as the edge does."""
    settings = read_settings(given, dotenv=None)
    async with command_store(settings) as store:
        letters = Letters(settings, store, system_clock).prepare
        mailing = make_mail_service(settings, store, system_clock, b"s" * 32, letters=letters)
        while await mailing.dispatcher.send_batch():
            pass


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("NEWSLETTER_POSTAL_ADDRESS", "", "NEWSLETTER_POSTAL_ADDRESS, the postal address"),
        ("NEWSLETTER_POSTAL_ADDRESS", "  ", "NEWSLETTER_POSTAL_ADDRESS, the postal address"),
        ("NEWSLETTER_FROM", "", "NEWSLETTER_FROM, its sender"),
        ("OWNER_EMAIL", "", "OWNER_EMAIL, the owner"),
        ("SMTP_URL", "", "SMTP_URL, the relay"),
        ("SITE_URL", "http://journal.example", "SITE_URL with https"),
    ],
)
def test_what_the_newsletter_needs_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, text: str, fault: str
) -> None:
    """Nothing runs without it."""
    monkeypatch.setenv(name, text)
    status, _, said = run("status")
    assert (status, said.count("\n")) == (2, 1)
    assert said.startswith(f"NEWSLETTER: on needs {fault}")


def test_a_mailing_is_steered(run: Run, given: dict[str, str], tmp_path: Path) -> None:
    """From a test to the owner until it is stopped; each command prints what came of it."""
    assert run("status") == (
        0,
        (
            "subscribers: 0 active, 0 pending, 0 ended, 0 bounced\n"
            "nothing is mailed until you send a test\nno mailing yet\n"
        ),
        "",
    )
    status, _, complained = run("release", "first")
    assert (status, "no test letter was sent to you yet" in complained) == (1, True)
    assert run("test", "zweiter")[:2] == (
        0,
        "a test to owner@journal-keepers.net is queued; the running edge sends it\n",
    )
    asyncio.run(send_mail(given))
    (letter,) = (tmp_path / "mail" / "new").iterdir()
    assert b"Zweiter" in letter.read_bytes()

    assert run("hold", "first")[::2] == (1, "first has no mailing; see newsletter status\n")
    status, said, _ = run("release", "first")
    assert (status, "first  due" in said) == (0, True)
    assert "first  held the owner held it" in run("hold", "first")[1]
    assert run("hold", "first")[::2] == (
        1,
        "This mailing is in no state to hold: its state is held\n",
    )
    assert "first  due" in run("resume", "first")[1]
    found = json.loads(run("skip", "first", "--json")[1])
    assert [(each["slug"], each["state"]) for each in found["mailings"]] == [("first", "ended")]
    assert found["subscribers"]["active"] == 0
    assert (found["is_tested"], found["delayed_confirmations"]) == (True, 0)
    assert "a test was sent\n" in run("status")[1]
    assert run("release", "nothing")[::2] == (
        1,
        "No post of the current build has this slug, or it is not to be mailed\n",
    )


def test_confirmations_that_wait_for_their_turn_are_told(run: Run, given: dict[str, str]) -> None:
    """Strangers who ask for many addresses make others wait."""

    async def ask() -> None:
        settings = read_settings(given, dotenv=None)
        async with command_store(settings) as store:
            mailing = make_mail_service(settings, store, system_clock, b"s" * 32)
            subscribers = Subscribers(store, system_clock, b"s" * 32, mailing.outbox)
            for number in range(62):
                wish = {"language": "", "source": "/", "consent": "New posts by mail"}
                await subscribers.ask({**wish, "email": f"r{number}@readers-club.net"})

    asyncio.run(ask())
    assert "2 confirmations wait: 60 go in an hour\n" in run("status")[1]


def test_a_renamed_post_is_steered_by_both_names(
    run: Run, given: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The mailing has its former slug."""
    run("test")
    asyncio.run(send_mail(given))
    build = tmp_path / "build"
    monkeypatch.setenv("BUILD_DIR", str(build))
    for renamed in ({}, {"before": "after"}):
        post = make_post("after" if renamed else "before")
        name = f"build-000{len(renamed)}"
        point_at(build, write_build(build, name, [post], site_url=SITE, renamed=renamed))
        if not renamed:
            assert run("release", "before")[::2] == (0, "")
    assert "before  held" in run("hold", "after")[1]
    assert "before  ended" in run("skip", "before")[1]


def test_without_a_newsletter_no_test_is_sent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the settings."""
    monkeypatch.setenv("NEWSLETTER", "off")
    status, _, complained = run("test")
    assert (status, "NEWSLETTER is off" in complained) == (1, True)


@pytest.mark.parametrize(
    ("domain", "signed", "status"),
    [
        ("letters.journal.example", BOTH, 0),
        ("journal.example", BOTH, 0),
        ("relay.example", BOTH, 1),
        ("example", "List-Unsubscribe", 1),
        ("example", BOTH, 1),
        ("letters.journal.example", "List-Unsubscribe", 1),
        ("", BOTH, 1),
    ],
)
def test_the_signature_of_a_letter(
    run: Run, tmp_path: Path, domain: str, signed: str, status: int
) -> None:
    """It must be the sender's own, or a parent domain's, and cover both headers."""
    file = tmp_path / "test.eml"
    file.write_text(LETTER.format(domain=domain, signed=signed))
    code, said, _ = run("check", str(file))
    assert code == status
    assert "List-Unsubscribe and List-Unsubscribe-Post" in said
    assert ("let your relay sign both" in said) == bool(status)


def test_what_is_no_letter(run: Run, tmp_path: Path) -> None:
    """A message without the headers, none at all, and one of two signatures that is enough."""
    file = tmp_path / "test.eml"
    good = LETTER.format(domain="journal.example", signed=BOTH)
    stranger = "DKIM-Signature: v=1; d=relay.example; h=From\n"
    for text, status in {
        "": 1,
        "\x00\xff;;;=": 1,
        "DKIM-Signature: \n\n": 1,
        good.replace("List-Unsubscribe-Post: ", "X: "): 1,
        good.replace("From: ", "X-From: ", 1): 1,
        stranger + good: 0,
    }.items():
        file.write_text(text)
        assert run("check", str(file))[0] == status, text
    assert run("check", str(tmp_path / "none.eml"))[0] == 2
    file.write_text(good.replace("List-Unsubscribe-Post: ", "X: "))
    assert run("check", str(file))[1] == (
        "the message has no List-Unsubscribe-Post: save it with all its headers; letters have it "
        "where SITE_URL is https\n"
    )


@contextmanager
def name_server(records: dict[str, list[str]]) -> Iterator[Resolver]:
    """Run a DNS server with TXT and MX records; yield a resolver that asks it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            while True:
                raw, client = server.recvfrom(4096)
                if raw == b"end":
                    return
                query = dns.message.from_wire(raw)
                reply, name = dns.message.make_response(query), query.question[0].name
                kind = rdatatype.to_text(query.question[0].rdtype)
                found = records.get(name.to_text(omit_final_dot=True), [])
                texts = [
                    f'"{each}"' if kind == "TXT" else each.removeprefix("MX ")
                    for each in found
                    if each.startswith("MX ") == (kind == "MX")
                ]
                if texts:
                    reply.answer.append(dns.rrset.from_text(name, 60, "IN", kind, *texts))
                else:
                    reply.set_rcode(dns.rcode.NXDOMAIN)
                server.sendto(reply.to_wire(), client)

        thread = Thread(target=answer)
        thread.start()
        resolver = Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], server.getsockname()[1]
        yield resolver
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ending:
            ending.sendto(b"end", server.getsockname())
        thread.join()


SENDER, PARENT = "letters.journal.example", "journal.example"
SPF, DMARC = "v=spf1 include:relay.example -all", "v=DMARC1; p=none"
MX = "MX 10 mail.journal.example."


@pytest.mark.parametrize(
    ("records", "faults"),
    [
        ({SENDER: [MX, SPF, "other"], f"_dmarc.{SENDER}": [DMARC]}, []),
        ({SENDER: [MX, SPF.upper()], f"_dmarc.{PARENT}": ["x", DMARC]}, []),
        ({}, ["no MX record", "has no DMARC record"]),
        ({PARENT: [MX, SPF], "_dmarc.example": [DMARC]}, ["no MX record", "has no DMARC record"]),
        ({SENDER: ["MX 0 .", SPF], f"_dmarc.{SENDER}": [DMARC]}, ["no MX record"]),
        ({SENDER: [MX, SPF, "v=spf1"], f"_dmarc.{SENDER}": [DMARC]}, ["; v=spf1"]),
        ({SENDER: [MX, "v=spf1 +all"], f"_dmarc.{SENDER}": [DMARC]}, ["found: v=spf1 +all"]),
        ({SENDER: [MX, "v=spf10 -all"], f"_dmarc.{SENDER}": ["v=DMARC2"]}, ["no DMARC"]),
    ],
)
def test_records_of_the_sender(
    given: dict[str, str], records: dict[str, list[str]], faults: list[str]
) -> None:
    """One SPF record that does not let everybody send, DMARC of the domain or a parent, and MX."""
    settings, notes = read_settings(given, dotenv=None), list[str]()
    with name_server(records) as resolver:
        found = list(check_sender(settings, notes, resolver))
        assert len(found) == len(faults), found
        assert all(fault in said for fault, said in zip(faults, found, strict=True))
        local = replace(settings, site_url="http://127.0.0.1:8000")
        assert list(check_sender(local, notes, resolver)) == []
        assert list(check_sender(replace(settings, newsletter="off"), notes, resolver)) == []
    has_spf = any(each.lower().startswith("v=spf1 ") for each in records.get(SENDER, []))
    assert [SENDER in each and "no SPF record" in each for each in notes] == [True] * (not has_spf)


def test_without_a_name_server(given: dict[str, str]) -> None:
    """It is unknown, which is no fault of the records."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    resolver = Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], port
    (said,) = check_sender(read_settings(given, dotenv=None), [], resolver)
    assert said.startswith(f"SPF and DMARC of {SENDER} are unknown: ")


async def store_mailings(settings: Settings) -> None:
    """Store mailings that linked to hosts: of yesterday, of long ago, and one that went to none."""
    now = system_clock()
    rows = []
    for slug, host, day, recipients in (
        ("a", "127.0.0.1", 1, 5),
        ("b", "former.example", 1, 5),
        ("c", "other.example", 61, 5),
        ("d", "third.example", 1, 0),
    ):
        due = format_instant(now.replace(year=now.year - (day > 60)))
        values: dict[str, object] = {
            "slug": slug,
            "subject": slug,
            "url": f"https://{host}/",
            "host": host,
        }
        values |= {"text_digest": slug * 64, "due_at": due, "recipients": recipients}
        rows.append(MAILINGS.new_row(values, format_instant(now), partial(new_id, now)))
    rows.append({**rows[0], "id": new_id(now), "slug": "waits", "due_at": None})
    held = {"held_at": format_instant(now), "held_for": "30 of the first 30 letters were refused"}
    rows.append({**rows[0], "id": new_id(now), "slug": "held", **held})
    async with command_store(settings, create=True) as store:
        await store.run(Insert(MAILINGS, rows))


def test_doctor_names_hosts_of_old_letters(tmp_path: Path, given: dict[str, str]) -> None:
    """Those of sixty days that SITE_URL is no longer."""
    given["SITE_URL"] = "http://127.0.0.1:9"
    asyncio.run(store_mailings(read_settings(given, dotenv=None)))
    code, said, _ = Installation(tmp_path, given).run("doctor")
    assert code == 1
    assert "letters of the last 60 days link to former.example, and SITE_URL is" in said
    assert "\nposts to be mailed or skipped: 2; see python -m edge_api newsletter status\n" in said
    assert "- a mailing is held: python -m edge_api newsletter status says why\n" in said
    assert "other.example" not in said
    assert "third.example" not in said
    assert "SPF" not in said
    assert ", newsletter," in said


@pytest.mark.parametrize(
    ("url", "relay", "is_said"),
    [(SITE, "", True), ("http://127.0.0.1:9", "", False), (SITE, "smtp://127.0.0.1:9", False)],
)
def test_doctor_mentions_a_maildir(
    tmp_path: Path, given: dict[str, str], url: str, relay: str, *, is_said: bool
) -> None:
    """Where readers wait for mail, which a folder of this machine gets in place of them."""
    given |= {"SITE_URL": url, "SMTP_URL": relay or given["SMTP_URL"], "NEWSLETTER": "off"}
    installation = Installation(tmp_path, given)
    assert installation.run("migrate")[0] == 0
    _, said, _ = installation.run("doctor")
    note = f"SMTP_URL is maildir:{tmp_path}/mail: mail is stored there, and nobody gets it"
    assert (note in said.splitlines()) == is_said
