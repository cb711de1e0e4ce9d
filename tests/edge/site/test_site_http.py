"""The built site over HTTP: forms of files, conditions, ranges, headers."""

from pathlib import Path
from typing import Any

import brotli
import pytest
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from tests.edge.site.conftest import LARGE, PAGE, RawClient
from tests.edge.small_builds import point_at, write_build

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

SECURITY = (
    "Content-Security-Policy",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Cross-Origin-Opener-Policy",
    "Permissions-Policy",
)
MARKDOWN = "Accept: text/markdown"


@pytest.mark.parametrize(
    ("path", "content_type", "body"),
    [
        ("/", "text/html; charset=utf-8", b"<p>home</p>"),
        ("/journal/a/", "text/html; charset=utf-8", PAGE.encode()),
        ("/journal/a/index.md", "text/markdown; charset=utf-8", b"# A\n"),
        ("/llms.txt", "text/plain; charset=utf-8", b"# Journal\n"),
        ("/feed.xml", "application/atom+xml", b"<feed/>"),
        ("/sitemap.xml", "application/xml", b"<urlset/>"),
        ("/images/edge.png", "image/png", b"\x89PNG"),
        ("/images/large.bin", "application/octet-stream", LARGE),
        ("/empty.txt", "text/plain; charset=utf-8", b""),
        ("/.well-known/security.txt", "text/plain; charset=utf-8", b"Contact: x"),
        ("/%E6%9C%AC/", "text/html; charset=utf-8", b"<p>book</p>"),
        ("/journal/a/?utm=x", "text/html; charset=utf-8", PAGE.encode()),
        ("/journal/%61/", "text/html; charset=utf-8", PAGE.encode()),
    ],
)
async def test_a_file_is_served(raw: RawClient, path: str, content_type: str, body: bytes) -> None:
    """Each file answers at its path with its type, its length, a validator and every safeguard."""
    answer = await raw.send(path)

    assert (answer.status, answer.body) == (200, body)
    assert answer.headers["Content-Type"] == content_type
    assert answer.headers["Content-Length"] == str(len(body))
    assert answer.headers["ETag"].startswith('"')
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert set(SECURITY) <= set(answer.headers)
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Request-ID"]
    assert "Server" not in answer.headers
    assert len(set(answer.headers)) == len(answer.headers)


async def test_style_sheets_lack_the_headers_of_pages(raw: RawClient) -> None:
    """A style sheet has no policy of its own; a picture, which can be opened by itself, has."""
    style = await raw.send("/theme/style.0123456789ab.css")
    picture = await raw.send("/images/edge.png")

    for_pages = {"Content-Security-Policy", "Permissions-Policy"}
    assert set(SECURITY) - set(style.headers) == for_pages
    assert set(SECURITY) <= set(picture.headers)


@pytest.mark.parametrize("path", ["/", "/journal/a/", "/feed.xml", "/images/large.bin", "/nothing"])
async def test_head_says_the_same(raw: RawClient, path: str) -> None:
    """HEAD has the head of GET and no body, from memory, from disk and for a missing page."""
    got, head = await raw.send(path), await raw.send(path, method="HEAD")

    assert (head.status, head.body) == (got.status, b"")
    varying = ("X-Request-ID", "Date")
    assert {(n, v) for n, v in head.headers.items() if n not in varying} == {
        (n, v) for n, v in got.headers.items() if n not in varying
    }


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/journal/a", "/journal/a/"),
        ("/journal/a?x=1&y=%20", "/journal/a/?x=1&y=%20"),
        ("/journal/a/index.html", "/journal/a/"),
        ("/index.html", "/"),
        ("/%E6%9C%AC", "/%E6%9C%AC/"),
        ("/contact", "/contact/"),
    ],
)
async def test_a_page_has_one_address(raw: RawClient, path: str, location: str) -> None:
    """Another name of a page leads to its one address for good, with the query."""
    answer = await raw.send(path)

    assert (answer.status, answer.headers["Location"]) == (301, location)
    assert set(SECURITY) <= set(answer.headers)


@pytest.mark.parametrize(
    ("path", "control", "embedding"),
    [
        ("/", "public, no-cache", "same-origin"),
        ("/journal/a/index.md", "public, no-cache", "same-origin"),
        ("/theme/style.0123456789ab.css", "public, max-age=31536000, immutable", "same-origin"),
        ("/images/edge.png", "public, max-age=300", "cross-origin"),
        ("/feed.xml", "public, max-age=300", "cross-origin"),
        ("/llms.txt", "public, max-age=300", "same-origin"),
    ],
)
async def test_caching_and_embedding(
    raw: RawClient, path: str, control: str, embedding: str
) -> None:
    """Pages are asked for each time, hashed assets never again; pictures and feeds may be shown."""
    answer = await raw.send(path)

    assert answer.headers["Cache-Control"] == control
    assert answer.headers["Cross-Origin-Resource-Policy"] == embedding


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("br, gzip", "br"), ("gzip", "gzip"), ("br;q=0, gzip", "gzip"), ("identity", None)],
)
async def test_a_form_that_the_build_compressed(
    raw: RawClient, accepted: str, coding: str | None
) -> None:
    """The compressed form that the client prefers is sent as the build made it."""
    answer = await raw.send("/journal/a/", f"Accept-Encoding: {accepted}")

    assert answer.headers.get("Content-Encoding") == coding
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    if coding == "br":
        assert brotli.decompress(answer.body) == PAGE.encode()
    if coding == "gzip":
        assert answer.body == b"as if it were gzip"


async def test_preferences_may_be_on_several_lines(raw: RawClient) -> None:
    """A list header in two lines is one list."""
    coded = await raw.send("/journal/a/", "Accept-Encoding: zstd", "Accept-Encoding: gzip")
    marked = await raw.send("/journal/a/", "Accept: text/html;q=0.5", MARKDOWN)
    etag = (await raw.send("/journal/a/")).headers["ETag"]
    unchanged = await raw.send("/journal/a/", 'If-None-Match: "x"', f"If-None-Match: {etag}")

    assert coded.headers["Content-Encoding"] == "gzip"
    assert marked.body == b"# A\n"
    assert unchanged.status == 304


async def test_each_form_has_its_own_validator(raw: RawClient) -> None:
    """No two forms of one page share a validator, and none takes another's for its own."""
    asked = ["Accept-Encoding: br", "Accept-Encoding: gzip", "Accept-Encoding: identity", MARKDOWN]
    etags = [(await raw.send("/journal/a/", line)).headers["ETag"] for line in asked]

    assert len(set(etags)) == len(asked)
    for line, own in zip(asked, etags, strict=True):
        for etag in etags:
            answer = await raw.send("/journal/a/", line, f"If-None-Match: {etag}")
            assert (answer.status == 304) is (etag == own)


async def test_an_unchanged_file_is_not_sent_again(raw: RawClient) -> None:
    """A 304 has the validator, the caching and the safeguards, and neither body nor its length."""
    etag = (await raw.send("/")).headers["ETag"]
    for condition in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        answer = await raw.send("/", f"If-None-Match: {condition}", "Range: bytes=0-1")
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["ETag"] == etag
        assert answer.headers["Cache-Control"] == "public, no-cache"
        assert set(SECURITY) | {"Vary", "Date"} <= set(answer.headers)
        assert {"Content-Length", "Content-Type"}.isdisjoint(answer.headers)


@pytest.mark.parametrize("path", ["/feed.xml", "/images/large.bin"])
@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("0-0", 0, 1), ("2-4", 2, 5), ("5-", 5, None), ("-3", -3, None), ("0-99999999", 0, None)],
)
async def test_a_part_of_a_file(
    raw: RawClient, path: str, asked: str, start: int, end: int | None
) -> None:
    """One range of bytes is answered alone, from memory and from disk."""
    whole = (await raw.send(path)).body
    answer = await raw.send(path, f"Range: bytes={asked}")
    part = whole[start:end]

    assert (answer.status, answer.body) == (206, part)
    first = start % len(whole)
    assert answer.headers["Content-Range"] == f"bytes {first}-{first + len(part) - 1}/{len(whole)}"
    assert answer.headers["Content-Length"] == str(len(part))


@pytest.mark.parametrize("path", ["/feed.xml", "/images/large.bin"])
async def test_unsatisfiable_ranges_are_refused(raw: RawClient, path: str) -> None:
    """A range beyond the end gets 416 with the size; what is no single range gets the whole."""
    whole = (await raw.send(path)).body
    beyond = await raw.send(path, "Range: bytes=99999999-")

    assert beyond.status == 416
    assert beyond.headers["Content-Range"] == f"bytes */{len(whole)}"
    for odd in ("bytes=0-1,3-4", "bytes=5-2", "lines=1-2", "bytes=x"):
        answer = await raw.send(path, f"Range: {odd}")
        assert (answer.status, answer.body) == (200, whole)


async def test_a_range_on_condition(raw: RawClient) -> None:
    """`If-Range` gives the part to clients with this very form, and the whole to all others."""
    etag = (await raw.send("/feed.xml")).headers["ETag"]
    for condition, status in ((etag, 206), (f"W/{etag}", 200), ('"x"', 200)):
        answer = await raw.send("/feed.xml", "Range: bytes=0-1", f"If-Range: {condition}")
        assert answer.status == status
    date = await raw.send(
        "/feed.xml", "Range: bytes=0-1", "If-Range: Sat, 21 Nov 2026 05:29:12 GMT"
    )
    assert date.status == 200


async def test_a_range_of_a_compressed_form(raw: RawClient) -> None:
    """A range counts the bytes of the form that is sent."""
    whole = await raw.send("/journal/a/", "Accept-Encoding: br")
    part = await raw.send("/journal/a/", "Accept-Encoding: br", "Range: bytes=3-7")

    assert (part.status, part.body) == (206, whole.body[3:8])
    assert part.headers["Content-Encoding"] == "br"
    assert part.headers["ETag"] == whole.headers["ETag"]


async def test_head_ignores_a_range(raw: RawClient) -> None:
    """A range is for GET alone (RFC 9110, section 14.2)."""
    answer = await raw.send("/feed.xml", "Range: bytes=0-0", method="HEAD")

    assert (answer.status, answer.headers["Content-Length"]) == (200, "7")


@pytest.mark.parametrize(
    ("path", "twin", "body"),
    [("/journal/a/", "/journal/a/index.md", b"# A\n"), ("/", "/index.md", b"# Home\n")],
)
async def test_a_page_as_markdown(raw: RawClient, path: str, twin: str, body: bytes) -> None:
    """A request for Markdown gets the twin with its location, and no cache keeps it."""
    answer = await raw.send(path, MARKDOWN)

    assert (answer.status, answer.body) == (200, body)
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer.headers["Content-Location"] == twin
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert "Accept" in answer.headers["Vary"].split(", ")
    assert (await raw.send(path, "Accept: */*")).headers["Content-Type"].startswith("text/html")


async def test_a_page_without_a_twin_stays_html(raw: RawClient) -> None:
    """Without Markdown, HTML is sent; a file that is no page is not negotiated."""
    page = await raw.send("/plain/", MARKDOWN)
    picture = await raw.send("/images/edge.png", MARKDOWN)

    assert page.headers["Content-Type"].startswith("text/html")
    assert picture.headers["Content-Type"] == "image/png"


async def test_a_page_leads_machines_on(raw: RawClient) -> None:
    """A page names its twin, the summary, the map of the site and the API's description."""
    link = (await raw.send("/journal/a/")).headers["Link"]

    assert '</journal/a/index.md>; rel="alternate"; type="text/markdown"' in link
    assert '</llms.txt>; rel="describedby"' in link
    assert '</sitemap.xml>; rel="sitemap"' in link
    assert '</api/public/v1/openapi.json>; rel="service-desc"' in link


async def test_an_address_near_by_is_shown_as_it_is(make_edge: Any, tmp_path: Path) -> None:
    """Nothing in a path is markup of the Markdown that names it."""
    odd = "notes~~one~~#two&amp;"
    files = {"index.html": "", "404.html": "", "404.md": "# Missing\n"}
    files |= {f"{odd}/index{end}": "" for end in (".html", ".md")}
    point_at(tmp_path, write_build(tmp_path, files=files))
    headers = {"Accept": "text/markdown"}
    async with (
        make_edge(BUILD_DIR=str(tmp_path)) as edge,
        edge.ask("GET", "/notes~~one~~", headers=headers) as answer,
    ):
        text = await answer.text()
    page = MarkdownIt("commonmark").enable("strikethrough").render(text)

    (link,) = LexborHTMLParser(page).css("li a")
    assert link.text() == f"/{odd}/"
    assert link.attributes["href"] == "/notes~~one~~%23two%26amp%3B/"


async def test_a_missing_page(raw: RawClient) -> None:
    """The site's own 404 page comes with its status, and as Markdown on request."""
    page = await raw.send("/nothing/here", 'If-None-Match: "x"', "Range: bytes=0-1")
    marked = await raw.send("/nothing/here", MARKDOWN)
    etag = page.headers["ETag"]
    conditional = await raw.send("/nothing/here", f"If-None-Match: {etag}")

    assert (page.status, page.body) == (404, b"<p>missing</p>")
    assert (marked.status, marked.body) == (404, b"# Missing\n")
    assert conditional.status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "PROPFIND"])
async def test_other_methods(raw: RawClient, method: str) -> None:
    """Another method is refused with those there are; where there is nothing, with 404."""
    lines = ("Content-Length: 0",)
    refused = await raw.send("/journal/a/", *lines, method=method)
    nothing = await raw.send("/nothing", *lines, method=method)

    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert nothing.status == 404


async def test_options(raw: RawClient) -> None:
    """OPTIONS names the methods; the contact page takes one more."""
    page = await raw.send("/journal/a/", method="OPTIONS")
    contact = await raw.send("/contact/", method="OPTIONS")

    assert (page.status, page.headers["Allow"]) == (204, "GET, HEAD, OPTIONS")
    assert contact.headers["Allow"] == "GET, HEAD, POST, OPTIONS"
