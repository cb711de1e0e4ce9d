"""The stats as JSON, CSV and a tool: which days, whose numbers, what is refused."""

import csv
import io
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.edge.conftest import EdgeMaker, RunningEdge, error_of
from tests.edge.domain.conftest import MovableClock
from tests.edge.stats.figures import DAYS, FIGURES, FIRST, LLMS, VIEWS, fill

pytestmark = pytest.mark.each_engine
PATH = "/api/public/v1/stats"


@pytest.fixture
async def counted(make_edge: EdgeMaker) -> AsyncIterator[RunningEdge]:
    """Return an edge whose store has the counts of some days."""
    async with make_edge(MovableClock()) as edge:
        await fill(edge.service.store, VIEWS, FIGURES)
        yield edge


async def ask(edge: RunningEdge, query: str = "", **headers: str) -> Any:
    """Return the answer to a key that may read the stats."""
    given = {"X-API-Key": await edge.key("stats:read"), **headers}
    async with edge.ask("GET", f"{PATH}{query}", headers=given) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["Cache-Control"] == "no-store"
        return await answer.text() if "Accept" in headers else await answer.json()


async def test_the_seven_days_until_yesterday_are_summed(counted: RunningEdge) -> None:
    """With those before and today apart; the newest number of subscribers counts."""
    found = await ask(counted)
    assert (found["since"], found["until"]) == ("2026-05-25", "2026-05-31")
    assert (found["visitors"], found["visitors_before"], found["visitors_today"]) == (214, 176, 7)
    assert (found["views"], found["views_before"], found["views_today"]) == (61, 51, 9)
    assert found["counted_since"] == "2026-05-17"
    assert found["days"] == [
        {"day": "2026-05-25", "visitors": 14, "views": 11, "others": 0},
        {"day": "2026-05-29", "visitors": 0, "views": 0, "others": 7},
        {"day": "2026-05-31", "visitors": 200, "views": 50, "others": 40},
    ]
    assert found["pages"] == [
        {"path": "/", "views": 31, "others": 0},
        {"path": FIRST, "views": 30, "others": 7},
        {"path": LLMS, "views": 0, "others": 40},
    ]
    assert found["programs"] == [
        {"kind": "ai_crawler", "name": "GPTBot", "views": 40},
        {"kind": "feed_reader", "name": "Feedly", "views": 5},
        {"kind": "other_program", "name": "", "views": 2},
    ]
    kinds = {each["kind"]: (each["visitors"], each["views"]) for each in found["kinds"]}
    assert (kinds["person"], kinds["ai_crawler"], kinds["mcp"]) == ((214, 61), (3, 40), (0, 0))
    assert found["referrers"] == [
        {"name": "news.example", "count": 70},
        {"name": "other", "count": 4},
    ]
    assert found["sources"] == [{"name": "=mastodon", "count": 8}]
    assert found["subscribers"] == [
        {"name": "Feedly", "count": 38},
        {"name": "NewsBlur", "count": 3},
    ]


async def test_days_and_a_page_are_chosen(counted: RunningEdge) -> None:
    """Of one page there are views and no visitors; a limit cuts every list."""
    found = await ask(counted, "?since=2026-05-18&until=2026-06-01")
    assert (found["views"], found["visitors"]) == (61 + 51 + 9, 214 + 176 + 7)
    assert found["views_before"] == 1000
    found = await ask(counted, f"?path={FIRST}")
    assert (found["views"], found["views_before"], found["visitors"]) == (30, 50, 0)
    assert [each["path"] for each in found["pages"]] == [FIRST]
    assert [each["name"] for each in found["programs"]] == ["Feedly", ""]
    assert (found["referrers"], found["sources"], found["subscribers"]) == ([], [], [])
    found = await ask(counted, f"?path={LLMS}&limit=1")
    assert (found["views"], [each["others"] for each in found["days"]]) == (0, [40])
    found = await ask(counted, "?limit=1")
    assert len(found["pages"]) == len(found["referrers"]) == len(found["subscribers"]) == 1


async def test_nothing_counted_is_zeros(make_edge: EdgeMaker) -> None:
    """An empty store answers, also as CSV."""
    async with make_edge(MovableClock()) as edge:
        found = await ask(edge)
        assert (found["counted_since"], found["visitors"], found["days"]) == (None, 0, [])
        assert {each["views"] for each in found["kinds"]} == {0}
        sheet = await ask(edge, Accept="text/csv")
        assert sheet == "day,figure,name,kind,agent,count\r\n"


async def test_csv_has_every_count_and_no_formula(counted: RunningEdge) -> None:
    """Day by day, of pages first; JSON is sent where it is not named."""
    sheet = await ask(counted, Accept="text/csv")
    rows = list(csv.DictReader(io.StringIO(sheet, newline="")))
    assert rows[0] == {
        "day": "2026-05-25",
        "figure": "views",
        "name": "/",
        "kind": "person",
        "agent": "",
        "count": "11",
    }
    assert len(rows) == sum(1 <= ago <= 7 for ago in DAYS)
    assert sum(int(row["count"]) for row in rows if row["figure"] == "visitors") == 217
    assert "'=mastodon" in [row["name"] for row in rows]
    of_page = await ask(counted, f"?path={FIRST}", Accept="text/csv, application/json;q=0.5")
    assert {row["name"] for row in csv.DictReader(io.StringIO(of_page))} == {FIRST}
    assert (await ask(counted, Accept="text/csv, */*")).startswith("{")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?since=yesterday", "since: must be a day such as 2026-11-30"),
        ("?until=1780000000", "until: must be a day such as 2026-11-30"),
        ("?until=2026-02-30", "until: must be a day such as 2026-11-30"),
        ("?since=0001-01-01", "since: must be a day such as 2026-11-30"),
        ("?since=2026-06-02", "since: must not be after `until`"),
        ("?since=2000-01-01", "since: must be at most 3660 days before `until`"),
        ("?limit=0", "limit: must be 1 or more"),
        (f"?path={'x' * 501}", "path: must have 500 characters or fewer"),
        ("?path=%00", "path: must not contain NUL"),
    ],
)
async def test_a_wrong_parameter_is_named(counted: RunningEdge, query: str, said: str) -> None:
    """With what to write instead."""
    headers = {"X-API-Key": await counted.key("stats:read")}
    async with counted.ask("GET", f"{PATH}{query}", headers=headers) as answer:
        assert answer.status == 400
        assert (await error_of(answer)).startswith(said)


async def test_a_key_without_the_scope_reads_nothing(counted: RunningEdge) -> None:
    """Not even one for everything administrative."""
    for scopes in (("admin:read", "admin:write"), ("metrics:read",), ("posts:read",)):
        headers = {"X-API-Key": await counted.key(*scopes)}
        async with counted.ask("GET", PATH, headers=headers) as answer:
            assert answer.status == 403
            assert "stats:read" in await error_of(answer)
    async with counted.ask("GET", PATH) as answer:
        assert answer.status == 401
