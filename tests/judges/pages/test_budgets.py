"""Bytes that are transferred for pages."""

from urllib.parse import urlsplit

import pytest

from tests.judges.pages.budgets import (
    BUDGETS,
    EXCEPTIONS,
    FIRST_VISIT,
    excess,
    weigh,
    weigh_first_visit,
)
from tests.judges.pages.served import Served
from tests.judges.pages.visit import PageVisit

pytestmark = pytest.mark.size("test", grows=True)


def of(served: Served, visits: list[PageVisit]) -> list[PageVisit]:
    """Return the visits of one journal."""
    return [visit for visit in visits if visit.url.startswith(served.origin)]


def test_pages_keep_their_budgets(journal: Served, sample: Served, visits: list[PageVisit]) -> None:
    """HTML, sheets, scripts and fonts of each page stay within what it may weigh."""
    found = {
        visit.name: over
        for served in (journal, sample)
        for visit in of(served, visits)
        if (over := excess(served, visit))
    }

    assert found == {}


def test_a_first_visit_is_light(journal: Served, visits: list[PageVisit]) -> None:
    """Whichever page somebody comes to first, on a slow line it is soon there."""
    weights = {
        visit.name: weigh_first_visit(journal, visit)
        for visit in of(journal, visits)
        if urlsplit(visit.url).path not in EXCEPTIONS
    }

    assert min(weights.values()) > BUDGETS["stylesheet"] / 2
    assert {name: weight for name, weight in weights.items() if weight > FIRST_VISIT} == {}


def test_an_exceeded_budget_is_detected(journal: Served, visits: list[PageVisit]) -> None:
    """The scales work: a page has a weight in what every page has, and a budget can be exceeded."""
    home = next(visit for visit in of(journal, visits) if visit.place.name == "/")
    weights = weigh(journal, home)

    assert 0 < weights["document"] < BUDGETS["document"]
    assert 0 < weights["stylesheet"] < BUDGETS["stylesheet"]
    home_with_more = PageVisit(home.place, home.variant, home.url, home.status)
    home_with_more.requests = [
        (f"{journal.origin}/feed.xml?{number}", "script") for number in range(99)
    ]
    assert excess(journal, home_with_more).keys() == {"script"}
