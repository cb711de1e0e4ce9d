"""Every kind of page in Chromium, light and dark, on a telephone and at a desk."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from edge_api.schema.page_templates import PAGE_VARIABLES
from tests.judges.pages.conftest import wait_for
from tests.judges.pages.crawl import crawl, mapped
from tests.judges.pages.places import OCCASIONS, Place, at
from tests.judges.pages.sample import CONTACT
from tests.judges.pages.served import Served, serve
from tests.judges.pages.visit import VARIANTS, PageVisit, look_at_all

pytestmark = pytest.mark.size("test", grows=True)

_BROKEN = f"""---
title: Broken
slug: broken
date: 2026-03-01
---

<img src="https://elsewhere.invalid/x.png"> <img src="/images/none.png">
<p style="color: #eee; background: #fff">Pale</p>
<script>console.error("ran")</script>
<div class="wide"><table><tr><td>x</td></tr></table></div>
<nobr>{"A line that is never broken. " * 40}</nobr>
<button></button>
"""


def gather(visits: list[PageVisit], find: Callable[[PageVisit], object]) -> dict[str, object]:
    """Return what was found, by the page on which it was."""
    return {visit.name: found for visit in visits if (found := find(visit))}


def foreign(visit: PageVisit) -> list[str]:
    """Return what a page asked of other origins than its own."""
    parts = urlsplit(visit.url)
    own = (f"{parts.scheme}://{parts.netloc}/", "data:")
    return [url for url, _ in visit.requests if not url.startswith(own)]


@pytest.fixture(scope="module")
def broken(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[PageVisit]]:
    """Return visits of a page on which everything is wrong that is looked for."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "content" / "posts").mkdir(parents=True)
    (folder / "content" / "posts" / "broken.md").write_text(_BROKEN, encoding="utf-8")
    contact = CONTACT.read_text(encoding="utf-8")
    (folder / "content" / "pages").mkdir()
    (folder / "content" / "pages" / "contact.md").write_text(contact, encoding="utf-8")
    with serve(folder / "content", folder) as served:
        place = Place("broken", at("/journal/broken/"))
        yield wait_for(look_at_all(chromium, served, [place], VARIANTS))


def test_every_page_of_the_edge_has_an_occasion() -> None:
    """No template of the edge is left out of what is looked at."""
    shown = {place.template for place in OCCASIONS}

    assert set(PAGE_VARIABLES) - shown - {"search", "docs", "docs_try"} == set()


def test_links_lead_to_every_page(journal: Served) -> None:
    """Pages of the sitemap can be reached by links, and the journal has all kinds of pages."""
    pages = crawl(journal)

    assert set(mapped(journal)) <= set(pages)
    assert {"/", "/journal/", "/tags/", "/archive/", "/about/", "/contact/"} <= set(pages)


def test_pages_answer_as_they_should(visits: list[PageVisit]) -> None:
    """Each page has the status that is meant, and one heading of the first order."""
    assert gather(visits, lambda visit: visit.status != visit.place.status) == {}
    assert gather(visits, lambda visit: visit.html.count(b"<h1") != 1) == {}


def test_pages_have_no_barriers(visits: list[PageVisit]) -> None:
    """Axe finds nothing by WCAG 2.2 AA, nor by good practice."""
    assert gather(visits, lambda visit: visit.barriers) == {}


def test_pages_complain_of_nothing(visits: list[PageVisit]) -> None:
    """No error or warning is on the console, and the policy has stopped nothing."""
    assert gather(visits, lambda visit: visit.complaints) == {}


def test_pages_ask_nobody_else(visits: list[PageVisit]) -> None:
    """Every request goes to the origin of the page."""
    assert gather(visits, foreign) == {}


def test_pages_fit_the_screen(visits: list[PageVisit]) -> None:
    """Nothing is wider than the window."""
    assert gather(visits, lambda visit: max(0, visit.overflow)) == {}


@pytest.mark.size("ci")
def test_a_broken_page_is_found(broken: list[PageVisit]) -> None:
    """Each of these judgements finds its fault on a page that has it."""
    for visit in broken:
        said = " ".join(visit.barriers)

        assert visit.status == 200
        assert {rule for rule in ("image-alt", "button-name") if rule not in said} == set()
        assert any("CSP: script-src" in complaint for complaint in visit.complaints), visit
        assert any("404" in complaint for complaint in visit.complaints), visit
        assert any("elsewhere.invalid" in url for url in foreign(visit))


def test_a_wide_page_is_found(broken: list[PageVisit]) -> None:
    """A page wider than a telephone, and unreadable text, are detected."""
    narrow = [visit for visit in broken if visit.variant.width == 360]

    assert len(narrow) == 2
    assert all(visit.overflow > 0 for visit in narrow)
