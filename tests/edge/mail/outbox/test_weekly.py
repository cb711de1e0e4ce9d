"""The mail of Monday: once, when it is time, and only where it is wanted."""

import asyncio

import pytest

from edge_api.db.query import Delete, Filter, Store
from edge_api.db.stats_tables import PAGE_VIEWS
from tests.edge.mail.outbox.post_office import OWNER, PostOffice, open_office
from tests.edge.mail.outbox.scripted_relay import Relay
from tests.edge.stats.figures import FIGURES, FIRST, VIEWS, fill

pytestmark = pytest.mark.each_engine


@pytest.fixture(autouse=True)
async def _counted(store: Store) -> None:
    """Store the counts of the week before a Monday at noon."""
    await fill(store, VIEWS, FIGURES)


async def test_the_week_is_mailed_once_also_by_two_edges(
    office: PostOffice, relay: Relay, store: Store
) -> None:
    """In the language of the desk, also while the site moves; the next comes a week later."""
    other = open_office(store, office.clock, relay, SITE_URL="https://moved.example")
    edges = [each.mailing.outbox for each in (office, other, office, other)]
    await asyncio.gather(*(each.queue_week(store) for each in edges))
    await office.tick()
    await asyncio.gather(*(each.queue_week(store) for each in edges))
    await other.tick()
    assert relay.recipients == [OWNER]
    message = relay.taken[0].message
    assert message["Subject"] == "214 people read you this week, 38 more than last."
    part = message.get_body(("plain",))
    assert part is not None
    text = part.get_content().replace("\r\n", "\n")
    assert "People opened pages 61 times, most of all:\n  31  https://journal.example/\n" in text
    assert f"  30  https://journal.example{FIRST}\n" in text
    assert "They came from:\n  70  news.example\n" in text
    assert "  40  AI crawlers\n" in text
    assert "https://journal.example/desk/stats/" in text
    assert "STATS_MAIL=off" in text
    html = message.get_body(("html",))
    assert html is not None
    assert f'<a href="https://journal.example{FIRST}"' in html.get_content()

    office.clock.move(days=1)
    await office.mailing.outbox.queue_week(store)
    await office.tick()
    assert await office.statuses("weekly_stats") == ["pending", "sent"]
    office.clock.move(days=6)
    await office.mailing.outbox.queue_week(store)
    await office.tick()
    assert relay.taken[1].message["Subject"].startswith("7 people read you this week, 207 fewer")


async def test_it_waits_for_monday_at_seven(office: PostOffice, relay: Relay, store: Store) -> None:
    """Of the journal; sent later, it is still about the week before."""
    office.clock.move(hours=-6)
    await office.mailing.outbox.queue_week(store)
    assert await office.outbox() == []
    office.clock.move(hours=1, minutes=1)
    await office.mailing.outbox.queue_week(store)
    await office.tick_at(hours=10)
    assert relay.taken[0].message["Subject"].startswith("214 people")
    await office.tick_at(hours=30)
    assert len(relay.taken) == 1


@pytest.mark.parametrize(
    "changes",
    [{"STATS_MAIL": "off"}, {"STATS": "off"}, {"OWNER_EMAIL": ""}],
    ids=["mail off", "stats off", "no owner"],
)
async def test_where_it_is_not_wanted_nothing_is_queued(
    office: PostOffice, store: Store, changes: dict[str, str]
) -> None:
    """By either setting, or without an address."""
    other = open_office(store, office.clock, None, SMTP_URL="smtp://127.0.0.1:9", **changes)
    await other.mailing.outbox.queue_week(store)
    assert await other.outbox() == []


async def test_before_anything_is_counted_nothing_is_mailed(
    office: PostOffice, store: Store
) -> None:
    """A new journal has no week to tell of, and a part of Sunday is none either."""
    every = (Filter("id", "is", None, negated=True),)
    await store.run(Delete(PAGE_VIEWS, every))
    for ago, queued in ((0, 0), (1, 0), (2, 1)):
        await fill(store, {(ago, FIRST, "person", ""): 3}, {})
        await office.mailing.outbox.queue_week(store)
        assert len(await office.outbox()) == queued
