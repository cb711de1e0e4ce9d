"""Structured data of pages in the terms of schema.org."""

import json

import pytest

from tests.judges.pages.crawl import crawl
from tests.judges.pages.served import Served
from tests.judges.pages.structured_data import faults_of, types_of

pytestmark = pytest.mark.size("test")


@pytest.mark.parametrize("name", ["journal", "sample"])
def test_structured_data_is_whole(name: str, request: pytest.FixtureRequest) -> None:
    """Each node has the properties of its type, and values that mean something."""
    pages = crawl(request.getfixturevalue(name))
    faults = {path: faults_of(html) for path, html in pages.items()}

    assert {path: found for path, found in faults.items() if found} == {}


def test_each_kind_of_page_says_what_it_is(journal: Served) -> None:
    """Home is a site and its publisher; a post is one, and has its breadcrumbs."""
    pages = crawl(journal)
    posts = [path for path in pages if path.startswith("/journal/") and path != "/journal/"]

    assert {"WebSite", "Organization"} <= types_of(pages["/"])
    assert len(posts) >= 3
    for path in posts:
        assert {"BlogPosting", "BreadcrumbList"} <= types_of(pages[path]), path


def of(*nodes: object) -> bytes:
    """Return a page with this JSON-LD."""
    graph = json.dumps({"@context": "https://schema.org", "@graph": nodes})
    return f'<script type="application/ld+json">{graph}</script>'.encode()


def test_faults_are_found() -> None:
    """Missing, empty, relative, unordered and unknown members are named."""
    post = {
        "@type": "BlogPosting",
        "headline": "",
        "url": "/a/",
        "datePublished": "2026-02-01",
        "dateModified": "2026-01-01",
    }
    crumbs = {
        "@type": "BreadcrumbList",
        "itemListElement": [{"@type": "ListItem", "position": 2}] * 2,
    }
    found = "\n".join(faults_of(of(post, crumbs, {"@type": "Thing"})))

    for said in (
        "lacks author",
        "headline is empty",
        "not absolute",
        "no instant",
        "modified before",
    ):
        assert said in found, said
    assert "positions are [2, 2]" in found
    assert "a crumb lacks" in found
    assert "Thing is a type" in found
    assert faults_of(b'<script type="application/ld+json">{</script>') != []
