"""Leads with the class of page and site that their sender came to the contact page from."""

from typing import Any

import pytest

from edge_api.db.query import Read, read_all
from edge_api.db.tables import LEADS
from tests.edge.stats.conftest import CHROME, POST, Counting

pytestmark = pytest.mark.each_engine

FORM = {
    "name": "Ann",
    "email": "ann@example.org",
    "budget_tier": "starter",
    "message": "A message that is long enough.",
}


async def send(counting: Counting, referrer: str | None = None, **more: Any) -> tuple[Any, Any]:
    """Open the contact page, send its form, and return the columns of the lead."""
    query, headers = more.pop("query", ""), more.pop("headers", {})
    came = {"Referer": referrer} if referrer else {}
    if more.pop("opens", True):
        assert await counting.get(f"/contact/{query}", headers={**headers, **came}) == 200
    status = await counting.get(
        "/contact/",
        method="POST",
        data={**FORM, "message": f"{FORM['message']} {referrer} {query}"},
        headers={
            **headers,
            "Sec-Fetch-Site": "same-origin",
            "Referer": f"http://journal.test/contact/{query}",
        },
        **more,
    )
    assert status == 303
    rows = await read_all(counting.edge.service.store, Read(LEADS))
    newest = max(rows, key=lambda row: str(row["id"]))
    return newest["origin"], newest["origin_page"]


@pytest.mark.parametrize(
    ("referrer", "origin"),
    [
        (None, ("none", None)),
        ("https://www.google.co.uk/search?q=secret", ("search", None)),
        ("https://chatgpt.com/c/secret", ("ai_assistant", None)),
        ("https://gemini.google.com/app", ("ai_assistant", None)),
        ("https://mastodon.social/@ann", ("social", None)),
        ("https://a.example.org/secret/", ("other_site", None)),
        ("http://203.0.113.9:8080/", ("other_site", None)),
        (f"http://journal.test{POST}", ("own_page", POST)),
        ("http://journal.test/search?q=secret", ("own_page", None)),
    ],
)
async def test_a_lead_keeps_its_class(
    counting: Counting, referrer: str | None, origin: tuple[str, str | None]
) -> None:
    """Of the request for the contact page, and nothing else of it."""
    assert await send(counting, referrer) == origin


async def test_the_link_below_a_post_names_it(counting: Counting) -> None:
    """By its query, also where this process did not see the page asked for."""
    assert await send(counting, query="?about=first-edge") == ("own_page", POST)
    counting.clock.move(seconds=1)
    sent = await send(counting, query="?about=first-edge", opens=False, address="192.0.2.1")
    assert sent == ("own_page", POST)
    counting.clock.move(seconds=1)
    assert await send(counting, opens=False, address="192.0.2.2") == (None, None)


async def test_a_wish_not_to_be_told_apart_is_heeded(counting: Counting) -> None:
    """Sec-GPC: nothing is noted, and nothing is kept of the form's own request."""
    wish = {"Sec-GPC": "1"}
    sent = await send(
        counting, f"http://journal.test{POST}", query="?about=first-edge", headers=wish
    )
    assert sent == (None, None)


async def test_a_form_with_an_error_loses_no_origin(counting: Counting) -> None:
    """The page is loaded again from itself, and the first note stays."""
    await counting.get("/contact/", headers={"Referer": "https://bing.com/"})
    assert await send(counting, "http://journal.test/contact/") == ("search", None)


async def test_the_first_storing_forgets_nothing(counting: Counting) -> None:
    """It comes some seconds after the start, and not at midnight."""
    await counting.get("/contact/", headers={"Referer": "https://bing.com/"})
    await counting.store()
    assert await send(counting, opens=False) == ("search", None)


async def test_midnight_forgets(counting: Counting) -> None:
    """With the salt of the day."""
    await counting.store()
    await counting.get("/contact/", agent=CHROME, headers={"Referer": "https://bing.com/"})
    counting.clock.move(hours=12)
    await counting.store()
    assert await send(counting, opens=False) == (None, None)
