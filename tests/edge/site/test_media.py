"""Media types and caching of files, as tables."""

from collections.abc import Mapping

import pytest

from edge_api.http.static import (
    IMMUTABLE,
    SHORT_LIVED,
    cache_control,
    canonical_address,
    file_headers,
    markdown_alternate,
)
from edge_api.journal.site_files import SiteFile
from edge_api.operation.model import NEGOTIATED, REVALIDATE
from edge_api.schema.site_policy import media_type

pytestmark = pytest.mark.one_engine


def listed(*names: str) -> Mapping[str, SiteFile]:
    """Return files by the paths at which they answer."""
    return {
        f"/{name.removesuffix('index.html')}"
        if name.endswith("index.html")
        else f"/{name}": SiteFile(name)
        for name in names
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("journal/a/index.md", "text/markdown; charset=utf-8"),
        ("llms.txt", "text/plain; charset=utf-8"),
        ("theme/style.0123456789ab.css", "text/css; charset=utf-8"),
        ("feed.xml", "application/atom+xml"),
        ("tags/a/feed.xml", "application/atom+xml"),
        ("sitemap.xml", "application/xml"),
        ("images/A.PNG", "image/png"),
        ("images/a.jpeg", "image/jpeg"),
        ("theme/icon.svg", "image/svg+xml"),
        ("a.unknown", "application/octet-stream"),
        ("html", "application/octet-stream"),
        ("CNAME", "application/octet-stream"),
        (".well-known/security.txt", "text/plain; charset=utf-8"),
    ],
)
def test_media_type(name: str, kind: str) -> None:
    """The name tells the type; text says its charset; what is unknown is not guessed at."""
    assert media_type(name) == kind


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("theme/style.aeb533b7b54a.css", IMMUTABLE),
        ("theme/fonts/book.aeb533b7b54a.woff2", IMMUTABLE),
        ("theme/style.css", SHORT_LIVED),
        ("theme/style.aeb533b.css", SHORT_LIVED),
        ("images/photo.20260101.jpg", SHORT_LIVED),
        ("index.html", REVALIDATE),
        ("journal/a/index.md", REVALIDATE),
        ("feed.xml", SHORT_LIVED),
        ("theme/page.aeb533b7b54a.html", IMMUTABLE),
        ("pictures/aeb533b7b54a/shelf-960.avif", IMMUTABLE),
        ("pictures/shelf-960.avif", SHORT_LIVED),
        ("cards/shelf.png", SHORT_LIVED),
    ],
)
def test_caching(name: str, control: str) -> None:
    """Only an asset that carries its hash is kept for ever; pages are asked for each time."""
    assert cache_control(name) == control


def test_a_page_names_its_other_forms() -> None:
    """A page points at its twin, at what the build has for machines, and at the API."""
    files = listed("a/index.html", "a/index.md", "llms.txt")
    headers = dict(file_headers(files, files["/a/"], negotiated=False))

    assert headers["Link"].startswith('</a/index.md>; rel="alternate"; type="text/markdown", ')
    assert '</llms.txt>; rel="describedby"' in headers["Link"]
    assert '</docs/>; rel="service-doc"; type="text/html"' in headers["Link"]
    for rel in ("api-catalog", "service-desc", "status"):
        assert f'rel="{rel}"' in headers["Link"]
    assert "sitemap" not in headers["Link"]
    assert "feed" not in headers["Link"]
    assert headers["Vary"] == "Accept, Accept-Encoding"


def test_a_page_names_its_own_feeds_and_the_journals() -> None:
    """Feeds beside a page come before those of the whole journal, each once."""
    feeds = ("feed.xml", "feed.json", "tags/a/feed.xml")
    files = listed("index.html", "404.html", "tags/a/index.html", *feeds)

    def name(path: str) -> list[str]:
        link = dict(file_headers(files, files[path], negotiated=False))["Link"]
        return [each for each in link.split(", ") if "feed" in each]

    everywhere = [
        '</feed.xml>; rel="alternate"; type="application/atom+xml"',
        '</feed.json>; rel="alternate"; type="application/feed+json"',
    ]
    own = '</tags/a/feed.xml>; rel="alternate"; type="application/atom+xml"'
    assert name("/") == name("/404.html") == everywhere
    assert name("/tags/a/") == [own, *everywhere]


@pytest.mark.parametrize(
    ("name", "is_open"),
    [
        ("feed.json", True),
        ("tags/a/feed.xml", True),
        (".well-known/agent-skills/index.json", True),
        (".well-known/security.txt", True),
        ("index.html", False),
        ("robots.txt", False),
        ("a.json", False),
    ],
)
def test_feeds_and_well_known_files_allow_any_origin(name: str, is_open: bool) -> None:  # noqa: FBT001
    """Feeds and well-known files may be read by scripts of any origin, pages may not."""
    headers = dict(file_headers({}, SiteFile(name), negotiated=False))

    assert (headers.get("Access-Control-Allow-Origin") == "*") is is_open


def test_a_page_without_a_twin_does_not_vary_by_accept() -> None:
    """Without a choice, caches need not look at `Accept`."""
    files = listed("a/index.html")

    assert dict(file_headers(files, files["/a/"], negotiated=False))["Vary"] == "Accept-Encoding"
    assert markdown_alternate(files, files["/a/"]) is None


def test_a_twin_names_its_page() -> None:
    """A twin points at the page it says the same as, and may be cached."""
    files = listed("a/index.html", "a/index.md", "404.html", "404.md")
    headers = dict(file_headers(files, files["/a/index.md"], negotiated=False))

    assert headers["Link"] == '</a/>; rel="canonical"'
    assert headers["Cache-Control"] == REVALIDATE
    assert "Content-Location" not in headers
    assert "Link" not in dict(file_headers(files, files["/404.md"], negotiated=False))


def test_a_negotiated_twin_is_not_cached() -> None:
    """A twin in place of its page says where it lies and is kept by nobody."""
    files = listed("a/index.html", "a/index.md")
    headers = dict(file_headers(files, files["/a/index.md"], negotiated=True))

    assert headers["Content-Location"] == "/a/index.md"
    assert headers["Cache-Control"] == NEGOTIATED
    assert headers["Vary"] == "Accept, Accept-Encoding"


def test_names_are_escaped_in_headers() -> None:
    """A name in any script is written in ASCII in a header."""
    files = listed("tags/\u672c/index.html", "tags/\u672c/index.md")
    every = [
        value
        for path, file in files.items()
        for negotiated in (True, False)
        for _, value in file_headers(files, file, negotiated=negotiated)
        if path
    ]

    assert all(value.isascii() for value in every)
    assert any("/tags/%E6%9C%AC/index.md" in value for value in every)
    assert canonical_address(files, "/tags/\u672c") == "/tags/%E6%9C%AC/"


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/a", "/a/"),
        ("/a/index.html", "/a/"),
        ("/index.html", "/"),
        ("/b", None),
        ("/b/index.html", None),
        ("/aindex.html", None),
        ("/xindex.html", None),
        ("//a", None),
        ("", "/"),
    ],
)
def test_other_names_of_a_page(path: str, address: str | None) -> None:
    """A folder without its slash, and the file of a page, lead to the one address of the page."""
    files = listed("index.html", "a/index.html", "xindex.html")

    assert canonical_address(files, path) == address
