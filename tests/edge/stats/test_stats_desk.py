"""The screen Stats, a post's reads, where a message came from, and who may see them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.desk.conftest import Browser
from tests.edge.domain.conftest import MovableClock
from tests.edge.stats.figures import FIGURES, FIRST, TODAY, VIEWS, fill

pytestmark = pytest.mark.each_engine
PATH = "/desk/stats/"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
async def edge(make_edge: EdgeMaker) -> AsyncIterator[RunningEdge]:
    """Return an edge on whose first day nothing is counted yet."""
    async with make_edge(MovableClock()) as running:
        yield running


@pytest.fixture
async def owner(edge: RunningEdge) -> Browser:
    """Return the owner's browser."""
    return await Browser(edge).sign_in(await edge.key())


async def test_it_begins_with_a_sentence(edge: RunningEdge, owner: Browser) -> None:
    """Then a chart, with a table of the same numbers, without script or inline style."""
    await fill(edge.service.store, VIEWS, FIGURES)
    shown = await owner.get(PATH)
    said = shown.one(".stats-sentence").text()
    assert said == "214 people read you this week, 38 more than last. 7 today, so far."
    titles = [each.text() for each in shown.tree.css("svg title")]
    assert len(titles) == 7
    assert (titles[0], titles[-1]) == ("25 May: 14", "31 May: 200")
    cells = [each.text() for each in shown.one("details table tbody tr").css("th, td")]
    assert cells == ["31 May", "200", "50", "40"]
    assert "style=" not in str(shown.one("main").html)
    assert not shown.tree.css("main script")
    assert "The first edge" in shown.said
    for name in ("GPTBot", "Feedly", "news.example", "=mastodon", "AI crawlers", "NewsBlur"):
        assert name in shown.said, name
    assert "What cannot be known" in shown.said


@pytest.mark.parametrize(
    ("query", "said", "bars"),
    [
        ("?span=month", "1,389 people read you in 30 days.", 30),
        ("?span=year", "1,389 people read you in 12 months.", 12),
        ("?span=century", "214 people read you this week", 7),
        (f"?page={FIRST}", "“The first edge” was opened 30 times this week, 20 fewer than last", 7),
        ("?page=/nowhere/%00", "/nowhere/ was opened 0 times this week, as many as last.", 7),
        (f"?page={'x' * 3000}", f"{'x' * 500} was opened 0 times this week", 7),
    ],
)
async def test_a_span_and_a_page_are_chosen(
    edge: RunningEdge, owner: Browser, query: str, said: str, bars: int
) -> None:
    """What was not counted before is not compared."""
    await fill(edge.service.store, VIEWS, FIGURES)
    shown = await owner.get(f"{PATH}{query}")
    assert shown.one(".stats-sentence").text().startswith(said)
    assert len(shown.tree.css("svg title")) == bars


async def test_the_first_days_say_what_there_is(edge: RunningEdge, owner: Browser) -> None:
    """Nothing, then today alone, then one day; the sentence compares with nothing."""
    shown = await owner.get(PATH)
    assert "Nobody read you this week." in shown.said
    assert "Nothing is counted yet." in shown.said
    assert not shown.tree.css("svg")
    store = edge.service.store
    await fill(store, {(0, "/", "person", ""): 3}, {(0, "visitors", "person"): 1})
    shown = await owner.get(PATH)
    assert "Nobody read you this week. 1 today, so far." in shown.said
    edge.service.clock.move(days=1)
    shown = await owner.get(PATH)
    assert shown.one(".stats-sentence").text() == "1 person read you this week."


async def test_without_visitors_it_counts_pages(edge: RunningEdge, owner: Browser) -> None:
    """With STATS_VISITORS=off."""
    views = {key: count for key, count in VIEWS.items() if key[0] < 15}
    await fill(edge.service.store, views, {})
    shown = await owner.get(PATH)
    said = shown.one(".stats-sentence").text()
    assert said.startswith("Your pages were opened 61 times this week, 10 more than last. Opened")
    assert "most: 50 times opened" in shown.said


@pytest.mark.parametrize(
    ("estimated", "said"),
    [
        (range(7, 15), "Your pages were opened 61 times this week, 10 more than last. Opened 9"),
        (range(7), "200 people read you this week. 7 today, so far."),
    ],
    ids=["switched off", "switched on"],
)
async def test_visitors_are_not_compared_with_days_that_did_not_estimate_them(
    edge: RunningEdge, owner: Browser, estimated: range, said: str
) -> None:
    """After STATS_VISITORS was changed between the two weeks."""
    views = {key: count for key, count in VIEWS.items() if key[0] < 15}
    figures = {key: n for key, n in FIGURES.items() if key[0] in estimated and key[0] != 7}
    await fill(edge.service.store, views, figures)
    shown = await owner.get(PATH)
    assert shown.one(".stats-sentence").text().startswith(said)


async def test_names_of_others_are_escaped(edge: RunningEdge, owner: Browser) -> None:
    """Programs, hosts and words are what strangers sent."""
    await fill(
        edge.service.store,
        {(1, f"/{HOSTILE}", "ai_crawler", HOSTILE): 1},
        {(1, figure, HOSTILE): 1 for figure in ("referrer", "source", "subscribers")},
    )
    shown = await owner.get(PATH)
    assert shown.said.count(HOSTILE) == 5
    assert HOSTILE not in shown.text


async def test_all_counts_are_given_as_csv(edge: RunningEdge, owner: Browser) -> None:
    """Of the chosen days, and of one page."""
    await fill(edge.service.store, VIEWS, FIGURES)
    whole = await owner.get("/desk/stats.csv?span=month")
    assert "stats.csv" in whole.headers["Content-Disposition"]
    assert len(whole.text.splitlines()) == 1 + len([key for key in (*VIEWS, *FIGURES) if key[0]])
    of_page = await owner.get(f"/desk/stats.csv?page={FIRST}")
    assert len(of_page.text.splitlines()) == 4


async def test_a_key_without_the_scope_sees_no_stats(edge: RunningEdge) -> None:
    """No entry, and the screen and its CSV say what is missing."""
    reader = await Browser(edge).sign_in(await edge.key("admin:read"))
    assert "Stats" not in (await reader.get("/desk/")).one(".desk-line").text()
    for path in (PATH, "/desk/stats.csv"):
        refused = await reader.get(path)
        assert (refused.status, "lacks the scope stats:read" in refused.said) == (403, True)


async def test_where_nothing_is_counted_there_is_no_screen(make_edge: EdgeMaker) -> None:
    """No entry, and the address says what switches it on."""
    async with make_edge(STATS="off") as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        assert "Stats" not in (await owner.get("/desk/")).one(".desk-line").text()
        shown = await owner.get(PATH)
        assert (shown.status, "STATS=on" in shown.said) == (503, True)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"origin": "search"}, "from the contact form · came by a search engine"),
        ({"origin": "none"}, "from the contact form · came by no link that tells"),
        ({"origin": "own_page", "origin_page": FIRST}, f"from the contact form · came by {FIRST}"),
        ({}, "from the contact form"),
    ],
)
async def test_a_message_says_where_its_sender_came_from(
    owner: Browser, columns: Any, said: str
) -> None:
    """In words, after how it was sent."""
    lead = await owner.lead(source="form", **columns)
    shown = await owner.get(f"/desk/leads/{lead['id']}/")
    assert " ".join(shown.one(".said header span").text().split()) == f"{said} · b"


async def test_a_year_of_a_large_journal(edge: RunningEdge, owner: Browser) -> None:
    """With 1,160 pages: the list is cut, and the sums are not."""
    pages = {(ago, f"/journal/{n}/", "person", ""): 2 for n in range(1160) for ago in (1, 300)}
    await fill(edge.service.store, pages, {(300, "visitors", "person"): 5})
    shown = await owner.get(f"{PATH}?span=year")
    assert len(shown.tree.css(".stats-parts section:first-child tbody tr")) == 50
    month = f"{TODAY - timedelta(days=300):%b %Y}"
    rows = {
        each.css("th")[0].text(): [cell.text() for cell in each.css("td")]
        for each in shown.tree.css("details table")[0].css("tbody tr")
    }
    assert rows[month] == ["5", "2,320", "0"]
