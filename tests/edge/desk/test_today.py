"""Today, the desk's first page: what waits, the time of the journal, the line of entries."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.internal_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES
from edge_api.db.query import Insert
from edge_api.db.table import Row, Table
from edge_api.db.tables import LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant
from edge_api.schema.index import CURRENT_LINK
from edge_api.schema.page_templates import NOTES_FILE, TEMPLATES_FOLDER
from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.desk.conftest import LEAD, Browser
from tests.edge.desk.test_actions import SUBJECT, ask_for_access
from tests.edge.domain.conftest import MovableClock
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.each_engine


async def add(owner: Browser, table: Table, **given: Any) -> Row:
    """Store a row."""
    row = make_row(table, given)
    await owner.edge.service.store.run(Insert(table, [row]))
    return row


def ago(**time: float) -> str:
    """Return an instant that is so long past."""
    return format_instant(datetime.now(UTC) - timedelta(**time))


async def waits(owner: Browser) -> dict[str, str]:
    """Return the sentences of Today, each with the address that it leads to."""
    links = (await owner.get("/desk/")).tree.css(".waits li:not(.fault, .calm) > a")
    return {each.text(): str(each.attributes["href"]) for each in links}


async def test_waiting_work_is_listed_in_sentences(owner: Browser) -> None:
    """Each leads to the screen that has it; what is only one has the singular."""
    assert await waits(owner) == {}
    first = await owner.lead(created_at=ago(days=3, hours=1))
    await ask_for_access(owner.edge)
    await owner.lead(status="spam")
    mail = {"queue": "transactional", "template_name": "lead_notification", "attempts": 3}
    mail |= {"subject_id": SUBJECT, "recipient_email": "o@example.org", "dead_at": ago(hours=1)}
    await add(owner, EMAIL_OUTBOX, **mail)
    event = {"endpoint_id": SUBJECT, "event": "lead.created", "subject_id": SUBJECT, "body": "{}"}
    await add(owner, WEBHOOK_DELIVERIES, **event, created_at=ago(), dead_at=ago())
    assert await waits(owner) == {
        "1 person waits for an answer; the oldest message has waited 3 days": (
            "/desk/leads/?status=new"
        ),
        "1 in spam": "/desk/leads/?status=spam",
        "1 request for access": "/desk/access/",
        "A webhook has failed since today": "/desk/webhooks/",
        "1 message could not be sent": "/desk/mail/",
    }
    await owner.lead(email=first["email"].upper(), created_at=ago(hours=2))
    await owner.lead(email="bo@example.org", remind_at=ago(hours=1))
    await add(owner, EMAIL_OUTBOX, **mail)
    said = list(await waits(owner))
    assert said[0].startswith("2 people wait for an answer")
    assert ("1 reminder is due" in said, "2 messages could not be sent" in said) == (True, True)


async def test_a_second_message_restarts_the_waiting_time(owner: Browser) -> None:
    """A reply of today to a thread of last year has not waited for a year."""
    lead = await owner.lead(created_at=ago(days=400))
    given = {"lead_id": lead["id"], "kind": "received", "email": lead["email"], "body": "Again"}
    await add(owner, LEAD_MESSAGES, **given, created_at=ago(minutes=5))
    (said,) = await waits(owner)
    assert "has waited 5 minutes" in said


async def test_the_page_of_today_can_be_empty(owner: Browser) -> None:
    """Before the first message, and when all are answered or put off."""
    shown = await owner.get("/desk/")
    assert "Nobody has written yet. Your form is at /contact/." in shown.said
    await owner.lead(remind_at=format_instant(datetime.now(UTC) + timedelta(days=1)))
    assert "All answered." in (await owner.get("/desk/")).said
    await owner.lead(status="contacted", created_at=ago())
    shown = await owner.get("/desk/")
    assert "All answered. 1 this month." in shown.said
    assert "Nobody has written" not in shown.said


async def test_counts_are_capped(owner: Browser) -> None:
    """More than a thousand are not counted: the page costs the same at a million."""
    given = {**LEAD, "created_at": ago()}
    rows = [make_row(LEADS, {**given, "email": f"a{n}@example.org"}) for n in range(1100)]
    await owner.edge.service.store.run(Insert(LEADS, rows))
    shown = await owner.get("/desk/")
    assert "1,000+ people wait" in shown.said
    assert "most on a day: 1,000+" in shown.said
    assert shown.one("[href='/desk/leads/']").text() == "Inbox 1,000+"


async def test_the_line_of_entries_counts_who_waits(owner: Browser, edge: RunningEdge) -> None:
    """On each page, also one of an error; not for a key that may not see leads."""
    await owner.lead()
    for path in ("/desk/", "/desk/leads/", "/desk/audit/", "/desk/tables/nothing/"):
        shown = await owner.get(path)
        assert shown.one(".desk-line [href='/desk/leads/']").text() == "Inbox 1", path
        assert shown.one("title").text().startswith("(1) "), path
        assert len(shown.tree.css("h1")) == 1
    assert (await owner.get("/desk/leads/")).one("title").text() == "(1) Inbox"
    helper = await Browser(edge).sign_in(await edge.key("admin:read", tables=("email_send_log",)))
    shown = await helper.get("/desk/")
    assert (shown.status, "Inbox" in shown.text) == (200, False)


async def test_the_current_entry_is_marked(owner: Browser) -> None:
    """The page itself, or the section that it belongs to."""
    shown = await owner.get("/desk/")
    assert shown.one(".desk-line [aria-current=page]").text() == "Today"
    assert (await owner.get("/desk/leads/")).one("[aria-current=page]").text() == "Inbox"


async def test_days_are_those_of_the_journal(make_edge: EdgeMaker) -> None:
    """Past ones are counted once a day, today at each look."""
    clock = MovableClock()
    async with make_edge(clock) as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        for at in ("2026-05-31T21:00:00.000000Z", "2026-05-31T23:00:00.000000Z"):
            await owner.lead(created_at=at)

        async def rows() -> dict[str, str]:
            found = (await owner.get("/desk/")).tree.css(".days tbody tr")
            return {each.css("th")[0].text(): each.css("td")[0].text() for each in found}

        first = await rows()
        assert (len(first), first["31 May"], first["1 Jun"]) == (30, "2", "0")
        await owner.lead(created_at="2026-06-01T10:00:00.000000Z")
        assert (await rows())["1 Jun"] == "1"
        clock.move(days=1)
        second = await rows()
        assert (second["31 May"], second["1 Jun"], second["2 Jun"]) == ("2", "1", "0")


@pytest.mark.parametrize(
    ("zone", "local"),
    [
        ("Asia/Tokyo", "1 Jun 2026, 08:00 JST"),
        ("America/New_York", "31 May 2026, 19:00 EDT"),
        ("Nowhere/Town", "31 May 2026, 23:00 UTC"),
        ("../../etc/passwd", "31 May 2026, 23:00 UTC"),
        (None, "31 May 2026, 23:00 UTC"),
        (5, "31 May 2026, 23:00 UTC"),
    ],
)
async def test_times_are_those_of_the_journal(
    make_edge: EdgeMaker, journal: Path, tmp_path: Path, zone: Any, local: str
) -> None:
    """With the zone's name; in UTC where the build names none, or one that nobody knows."""
    shutil.copytree(journal, tmp_path / "build", symlinks=True)
    file = (tmp_path / "build" / CURRENT_LINK).resolve() / TEMPLATES_FOLDER / NOTES_FILE
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "timezone": zone}))
    clock = MovableClock()
    async with make_edge(clock, BUILD_DIR=str(tmp_path / "build")) as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        await owner.lead(created_at="2026-05-31T23:00:00.000000Z")
        shown = await owner.get("/desk/")
        counts = {
            each.css("th")[0].text(): each.css("td")[0].text()
            for each in shown.tree.css(".days tbody tr")
        }
        assert counts[local.partition(" 2026")[0]] == "1"
        clock.now = datetime(2026, 5, 31, 23, tzinfo=UTC)
        await owner.post("/desk/sign-out/")
        await owner.sign_in(await edge.key())
        times = (await owner.get("/desk/audit/")).tree.css(".audit time")
        assert local in [each.attributes["title"] for each in times]


async def test_a_build_names_the_zone_of_its_settings(journal: Path) -> None:
    """As the settings of the journal have it."""
    notes = json.loads((journal / CURRENT_LINK / TEMPLATES_FOLDER / NOTES_FILE).read_bytes())
    assert notes["timezone"] == "UTC"


async def test_the_desk_works_without_a_build(make_edge: EdgeMaker, tmp_path: Path) -> None:
    """It has the same line, in a plain look, under the host's name."""
    async with make_edge(BUILD_DIR=str(tmp_path / "none")) as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        shown = await owner.get("/desk/")
        assert shown.status == 200
        assert shown.one("title").text() == "Today"
        assert shown.one(".journal").text() in edge.service.settings.site_url
        assert "UTC" in str((await owner.get("/desk/audit/")).one("time").attributes["title"])


async def test_a_page_names_who_signed_in(owner: Browser) -> None:
    """Beside the button that signs out."""
    shown = await owner.get("/desk/")
    assert "Signed in as the key test" in shown.one(".signed-in").text()
    assert (await owner.post("/desk/sign-out/")).to == "/desk/sign-in/"
