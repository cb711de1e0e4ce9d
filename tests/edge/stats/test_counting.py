"""Requests that count, those that do not, and the kinds under which they count."""

from datetime import UTC, datetime
from typing import Any

import pytest

from edge_api.db.query import Read, read_all
from edge_api.db.stats_tables import DAILY_FIGURES, OTHER, PAGE_VIEWS
from edge_api.stats.counter import KEPT_MONTHS
from tests.edge.conftest import EdgeMaker
from tests.edge.stats.conftest import CHROME, POST, Counting

pytestmark = pytest.mark.each_engine


async def test_people_and_programs_count_apart(counting: Counting) -> None:
    """Each under its kind; what is no known program and no browser is another program.

    Of subscribers only a reader of the list is believed, with fewer than a million.
    """
    gptbot = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
    google = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    markdown, chatgpt = {"Accept": "text/markdown"}, f"{CHROME}; ChatGPT-User/1.0"
    asked: tuple[tuple[str, str, dict[str, str], tuple[str, str]], ...] = (
        (POST, CHROME, {}, ("person", "")),
        (POST, CHROME, markdown, ("markdown_reader", "")),
        (f"{POST}index.md", "curl/8.9.1", {}, ("markdown_reader", "curl")),
        (POST, "curl/8.9.1", {}, ("other_program", "curl")),
        (POST, gptbot, {}, ("ai_crawler", "GPTBot")),
        (POST, chatgpt, markdown, ("ai_assistant", "ChatGPT-User")),
        ("/robots.txt", google, {}, ("search_engine", "Googlebot")),
        ("/feed.xml", "Feedbin feed-id:1 - 142 subscribers", {}, ("feed_reader", "Feedbin")),
        ("/feed.xml", "Some Reader/1 (RSS; 7 subscribers)", {}, ("feed_reader", "")),
        ("/feed.json", "Feedly/1.0 (9999999 subscribers)", {}, ("feed_reader", "Feedly")),
        ("/llms.txt", "", {}, ("other_program", "")),
    )
    for path, agent, headers, _ in asked:
        assert await counting.get(path, agent, headers=headers) == 200
    assert await counting.views() == {(path, *kind): 1 for path, _, _, kind in asked}
    assert await counting.figures("subscribers") == {"Feedbin": 142}


async def test_what_does_not_count(counting: Counting) -> None:
    """Other methods, errors, redirects, prefetches, parts, and the owner's own visits."""
    asked: tuple[tuple[str, int, dict[str, Any]], ...] = (
        (POST, 200, {"method": "HEAD"}),
        (POST, 206, {"headers": {"Range": "bytes=0-9"}}),
        (POST.rstrip("/"), 301, {}),
        ("/missing/", 404, {}),
        (POST, 200, {"headers": {"Sec-Purpose": "prefetch;prerender"}}),
        (POST, 200, {"headers": {"Purpose": "prefetch"}}),
        (POST, 200, {"headers": {"Cookie": "a=b; desk=secret"}}),
        ("/search?q=secret", 200, {}),
        ("/api/public/ping", 200, {}),
        ("/shared/AAAAAAAAAAAAAAAAAAAAAA/", 404, {}),
    )
    for path, status, more in asked:
        assert (path, await counting.get(path, **more)) == (path, status)
    assert await counting.views() == {}
    await counting.get(POST, headers={"Cookie": "desk-browser=1"})
    assert await counting.views() == {(POST, "person", ""): 1}


async def test_people_open_pages_alone(counting: Counting) -> None:
    """Of the build, without the error page and the thanks; programs fetch other files as well."""
    files = "/feed.xml", "/robots.txt", "/opensearch.xml", "/404.html", "/contact/thanks/"
    for path in (POST, "/contact/", *files):
        assert await counting.get(path) == await counting.get(path, "curl/8.9.1") == 200
    programs = {(path, "other_program", "curl"): 1 for path in (POST, "/contact/", *files)}
    people = {(path, "person", ""): 1 for path in (POST, "/contact/")}
    assert await counting.views() == {**programs, **people}


async def test_a_day_ends_at_midnight(counting: Counting) -> None:
    """What was counted before it and stored after it is of the day before, also its visitors."""
    await counting.get(POST)
    counting.clock.move(hours=12)
    await counting.get(POST)
    await counting.get(POST)
    await counting.store()
    rows = await read_all(counting.edge.service.store, Read(PAGE_VIEWS))
    assert {row["day"]: row["count"] for row in rows} == {"2026-06-01": 1, "2026-06-02": 2}
    rows = await read_all(counting.edge.service.store, Read(DAILY_FIGURES))
    assert {row["day"]: row["count"] for row in rows} == {"2026-06-01": 1, "2026-06-02": 1}


async def test_a_copy_that_is_still_fresh_counts(counting: Counting) -> None:
    """The answer 304 is a reading, too, above all of feed readers."""
    async with counting.edge.ask("GET", "/feed.xml") as answer:
        etag = answer.headers["ETag"]
    agent = "Miniflux/2.0"
    assert await counting.get("/feed.xml", agent, headers={"If-None-Match": etag}) == 304
    assert (await counting.views())["/feed.xml", "feed_reader", "Miniflux"] == 1


async def test_counts_add_up(counting: Counting) -> None:
    """A day is a day in the journal's time zone, and later counts are added to its rows."""
    for _ in range(3):
        await counting.get(POST)
        await counting.store()
    counting.clock.move(days=1)
    await counting.get(POST)
    assert await counting.views() == {(POST, "person", ""): 4}
    rows = await read_all(counting.edge.service.store, Read(PAGE_VIEWS))
    assert {row["day"]: row["count"] for row in rows} == {"2026-06-01": 3, "2026-06-02": 1}
    for row in rows:  # an id says no time but that of midnight
        midnight = datetime.fromisoformat(row["day"]).replace(tzinfo=UTC).timestamp()
        assert int(row["id"].replace("-", "")[:12], 16) == midnight * 1000


async def test_visitors_are_estimated(counting: Counting) -> None:
    """By network and User-Agent, each day anew; Sec-GPC is counted and not told apart."""
    for address in (
        "198.51.100.7",
        "198.51.100.99",
        "203.0.113.1",
        "2001:db8:1:2::1",
        "2001:db8:1:3::1",
        "2001:db8::1",
        "2001:db8:0:3::1",
    ):
        await counting.get(POST, address=address)
        await counting.get("/", address=address)
    await counting.get(POST, address="192.0.2.1", headers={"Sec-GPC": "1"})
    await counting.get(POST, "curl/8.9.1")
    assert await counting.figures("visitors") == {"person": 4, "other_program": 1}
    assert (await counting.views())[POST, "person", ""] == 8
    counting.clock.move(days=1)
    await counting.get(POST)
    await counting.store()
    rows = await read_all(counting.edge.service.store, Read(DAILY_FIGURES))
    assert sum(row["count"] for row in rows if row["name"] == "person") == 5


async def test_referrers_are_named_from_five_networks_on(counting: Counting) -> None:
    """By host alone; one that few bring, an address and our own host are never named."""
    for number in range(6):
        for referrer in (
            "https://www.example.org/secret?q=1",
            "http://203.0.113.9/",
            "https://u:p@a.example/",
        ):
            address = f"198.51.{number}.7"
            await counting.get(POST, address=address, headers={"Referer": referrer})
        await counting.get(f"{POST}?ref=Rare{number}&a=b", address=address)
        await counting.get(f"{POST}?utm_source=Letter", address=address)
        await counting.get(f"{POST}?ref=ann@example.org", address=address)
    for _ in range(9):
        await counting.get(POST, headers={"Referer": "https://rare.example/"})
        await counting.get(POST, headers={"Referer": "http://journal.test/secret/"})
    for agent in range(5):  # one network with five browsers is one
        spam = {"Referer": "https://spam.example/"}
        await counting.get(POST, f"{CHROME} {agent}", f"203.0.113.{agent}", headers=spam)
    assert await counting.figures("referrer") == {"example.org": 2, OTHER: 4 + 12 + 9 + 5}
    assert await counting.figures("source") == {"letter": 2, OTHER: 4 + 6}


async def test_old_days_become_months(counting: Counting) -> None:
    """After 25 months, once, with every view kept."""
    for _ in range(40):
        await counting.get(POST)
        await counting.get("/feed.xml", "Feedbin feed-id:1 - 142 subscribers")
        await counting.store()
        counting.clock.move(days=1)
    before = await counting.views()
    counting.clock.move(days=31 * (KEPT_MONTHS + 1))
    for _ in range(3):
        await counting.store()
        counting.clock.move(days=1)
    assert await counting.views() == before
    rows = await read_all(counting.edge.service.store, Read(PAGE_VIEWS))
    found = sorted((row["day"], row["count"]) for row in rows if row["path"] == POST)
    assert found == [("2026-06-01", 30), ("2026-07-01", 10)]
    assert await counting.figures("subscribers") == {"Feedbin": 142}


async def test_stats_can_be_off(make_edge: EdgeMaker) -> None:
    """Nothing is counted, or no visitors."""
    async with make_edge(STATS="off") as edge:
        counting = Counting(edge, None)  # type: ignore[arg-type]
        await counting.get(POST)
        assert await counting.views() == {}
    async with make_edge(STATS_VISITORS="off") as edge:
        counting = Counting(edge, None)  # type: ignore[arg-type]
        await counting.get(POST)
        assert await counting.figures("visitors") == {}
        assert await counting.views() == {(POST, "person", ""): 1}
