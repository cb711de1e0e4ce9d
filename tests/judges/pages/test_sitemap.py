"""The map of the site, held against the norm's own schema and against the site."""

from xml.etree import ElementTree as ET

import pytest
import xmlschema
from selectolax.lexbor import LexborHTMLParser

from tests.judges.pages.crawl import crawl, mapped
from tests.judges.pages.served import Served
from tools.judges import MODULES

pytestmark = pytest.mark.size("test")

_NONE = b"""<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>nowhere</loc><lastmod>yesterday</lastmod></url></urlset>"""


@pytest.fixture(scope="module")
def schema() -> xmlschema.XMLSchema:
    """Return the schema of sitemaps.org."""
    return xmlschema.XMLSchema(str(MODULES / "sitemap" / "schema" / "sitemap.xsd"))


def test_the_sitemap_is_valid(schema: xmlschema.XMLSchema, journal: Served, sample: Served) -> None:
    """It has no error by the schema."""
    for served in (journal, sample):
        _, headers, body = served.get("/sitemap.xml")
        errors = schema.iter_errors(ET.fromstring(body))  # noqa: S314  a map of our own
        assert [str(error) for error in errors] == []
        assert headers["content-type"] == "application/xml"


def test_the_sitemap_lists_exactly_the_pages(journal: Served) -> None:
    """It names once each page that wants to be found, by the address that the page gives itself."""
    pages, named = crawl(journal), mapped(journal)
    canonical = {}
    for path, html in pages.items():
        tree = LexborHTMLParser(html)
        own = tree.css_first("link[rel=canonical]")
        if own and not tree.css_first("meta[name=robots][content*=noindex]"):
            canonical[path] = (own.attributes["href"] or "").removeprefix(journal.site_url)

    assert len(set(named)) == len(named)
    assert {path: own for path, own in canonical.items() if own != path} == {}
    assert set(named) <= set(canonical)


def test_faults_are_found(schema: xmlschema.XMLSchema) -> None:
    """An address that is none and a day that is none are errors."""
    errors = list(schema.iter_errors(ET.fromstring(_NONE)))  # noqa: S314  written above

    assert len(errors) >= 2
