"""The feeds of the journal and of its tags, as they are served."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from selectolax.lexbor import LexborHTMLParser

from tests.judges.pages.atom import faults_of, faults_of_html
from tests.judges.pages.crawl import crawl
from tests.judges.pages.served import Served

pytestmark = pytest.mark.size("test")

ATOM, JSON = "application/atom+xml", "application/feed+json"
_SCHEMA = Path(__file__).parent / "schemas" / "json_feed.json"


def advertised(served: Served, kind: str) -> set[str]:
    """Return the paths of all feeds of a kind that pages name in their head."""
    return {
        (node.attributes["href"] or "").removeprefix(served.site_url)
        for html in crawl(served).values()
        for node in LexborHTMLParser(html).css(f'link[rel=alternate][type="{kind}"]')
    }


@cache
def validator() -> Draft202012Validator:
    """Return what holds a document against the schema, formats included."""
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def faults_of_json(feed: Any) -> list[str]:
    """Return what is wrong with a JSON Feed."""
    items = feed.get("items", [])
    ids = [item.get("id") for item in items]
    return [
        *(f"{error.json_path}: {error.message}" for error in validator().iter_errors(feed)),
        *(["an id stands twice"] if len(set(ids)) < len(ids) else []),
        *(fault for item in items for fault in faults_of_html(item.get("content_html", ""))),
    ]


@pytest.mark.parametrize("name", ["journal", "sample"])
def test_atom_feeds_are_valid(name: str, request: pytest.FixtureRequest) -> None:
    """Each feed that a page names is served as Atom, and has no fault."""
    served: Served = request.getfixturevalue(name)
    paths = advertised(served, ATOM)
    faults = {}
    for path in paths:
        status, headers, body = served.get(path)
        assert (status, headers["content-type"]) == (200, ATOM), path
        faults[path] = faults_of(body, served.site_url + path)

    assert "/feed.xml" in paths
    assert {path: found for path, found in faults.items() if found} == {}


@pytest.mark.parametrize("name", ["journal", "sample"])
def test_json_feeds_are_valid(name: str, request: pytest.FixtureRequest) -> None:
    """Each JSON Feed that a page names holds to version 1.1, and says what the Atom feed says."""
    served: Served = request.getfixturevalue(name)
    paths = advertised(served, JSON)
    faults = {}
    for path in paths:
        status, headers, body = served.get(path)
        feed = json.loads(body)
        assert (status, headers["content-type"]) == (200, JSON), path
        assert feed["feed_url"] == served.site_url + path
        assert served.get(path.replace(".json", ".xml"))[0] == 200
        faults[path] = faults_of_json(feed)

    assert "/feed.json" in paths
    assert {path: found for path, found in faults.items() if found} == {}


_NO_ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title></title>
<updated>yesterday</updated><link rel="self" href="/feed.xml"/><colour>red</colour>
<entry><id>one</id><title>One</title><updated>2026-01-01T00:00:00Z</updated>
<published>2026-02-01T00:00:00Z</published><category/>
<content type="html">&lt;script&gt;1&lt;/script&gt;&lt;a href="x" onclick="1"&gt;</content></entry>
<entry><id>one</id><title>One</title><title>Two</title><updated>2026-13-01T00:00:00Z</updated></entry>
</feed>"""
_SAID = (
    "feed: id is missing",
    "feed: title is empty",
    "updated 'yesterday'",
    "is not absolute",
    "colour is not Atom's",
    "nor each entry has an author",
    "xml:lang",
    "the id one stands 2",
    "is no IRI",
    "before it was published",
    "category without a term",
    "holds <script>",
    "holds onclick=",
    "href is 'x'",
    "title more than once",
    "'2026-13-01T00:00:00Z' is no",
    "neither content nor a link",
    "link rel=self is",
)


def test_faults_of_atom_are_found() -> None:
    """Each kind of fault is named."""
    found = "\n".join(faults_of(_NO_ATOM.encode(), "https://journal.test/feed.xml"))

    assert [said for said in _SAID if said not in found] == [], found
    assert faults_of(b"<feed>", "x") != []
    assert faults_of(b"<rss/>", "x") == ["the root is rss, not atom:feed"]


def test_faults_of_json_are_found() -> None:
    """Each kind of fault is named."""
    item = {
        "id": 1,
        "url": "x",
        "date_published": "2026-13-01",
        "content_html": "<script>1</script>",
    }
    feed = {"version": "1", "title": "", "items": [item, item, {"id": "a"}], "author": {}}
    found = "\n".join(faults_of_json(feed))

    for said in ("$.version", "$.title", "'author'", ".id:", ".url:", "date_published", "twice"):
        assert said in found, said
    assert "holds <script>" in found
    assert "$.items[2]" in found
