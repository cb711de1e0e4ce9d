"""Lighthouse on every kind of page, on a telephone and at a desk, light and dark."""

from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from edge_api.schema import paths
from tests.judges.pages.lighthouse import GUISES, Demands, judge
from tests.judges.pages.places import Place, at, places, strains
from tests.judges.pages.served import Served

pytestmark = pytest.mark.size("judge")

MISSING = Place("missing", at("/404.html"))
"""Lighthouse judges no page whose status is an error: what a missing address gets is judged at its
file, and a refusal has the frame of the pages that are judged."""


NOT_OURS = {
    paths.TRY_OUT_PATH: "it loads Swagger UI, 1.9 MB of script; its barriers are judged by axe",
}
"""Pages that are not judged, by address, and why."""


def is_listed(served: Served, path: str) -> bool:
    """Return whether a page lets itself be found; those for one person do not."""
    _, _, body = served.get(path)
    robots = LexborHTMLParser(body).css_first("meta[name=robots]")
    return robots is None or "noindex" not in (robots.attributes["content"] or "")


def judged(found: list[Place]) -> list[Place]:
    """Return the places that an address leads to and whose answer is no error."""
    return [
        place
        for place in (*found, MISSING)
        if place.steps is None and place.status == 200 and place.name not in NOT_OURS
    ]


@pytest.mark.parametrize("guise", GUISES)
async def test_every_page_has_a_hundred_in_all_five(
    chromium: str, journal: Served, sample: Served, tmp_path: Path, guise: str
) -> None:
    """Pages that ask not to be found lose points of `seo` for that alone."""
    pages = {
        served.origin + path: Demands(is_listed(served, path))
        for served, found in ((journal, places(journal)), (sample, strains(sample)))
        for path in (place.path(served) for place in judged(found))
    }

    assert await judge(chromium, pages, guise, tmp_path) == {}
