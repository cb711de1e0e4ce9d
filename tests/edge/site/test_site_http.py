"""The built site over HTTP: forms of files, conditions, ranges, headers, and attacks on paths."""

from pathlib import Path
from typing import Any

import brotli
import pytest
from aiohttp import ClientError, ClientSession

from tests.edge.site.conftest import LARGE, PAGE, RawClient

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


async def test_preferences_may_stand_on_several_lines(raw: RawClient) -> None:
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
async def test_ranges_that_cannot_be(raw: RawClient, path: str) -> None:
    """A range beyond the end gets 416 with the size; what is no single range gets the whole."""
    whole = (await raw.send(path)).body
    beyond = await raw.send(path, "Range: bytes=99999999-")

    assert beyond.status == 416
    assert beyond.headers["Content-Range"] == f"bytes */{len(whole)}"
    for odd in ("bytes=0-1,3-4", "bytes=5-2", "lines=1-2", "bytes=x"):
        answer = await raw.send(path, f"Range: {odd}")
        assert (answer.status, answer.body) == (200, whole)


async def test_a_range_on_condition(raw: RawClient) -> None:
    """`If-Range` gives the part to who has this very form, and the whole to everyone else."""
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
    """Who asks for Markdown gets the twin, says where it lies, and no cache keeps it."""
    answer = await raw.send(path, MARKDOWN)

    assert (answer.status, answer.body) == (200, body)
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer.headers["Content-Location"] == twin
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert "Accept" in answer.headers["Vary"].split(", ")
    assert (await raw.send(path, "Accept: */*")).headers["Content-Type"].startswith("text/html")


async def test_a_page_without_a_twin_stays_html(raw: RawClient) -> None:
    """Where there is no Markdown, HTML comes; a file that is no page is not negotiated."""
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


async def test_a_missing_page(raw: RawClient) -> None:
    """The site's own 404 page comes with its status, as Markdown for who asks for that."""
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


ATTACKS = [
    "/../edge.db",
    "/../../etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/edge.db",
    "/%252e%252e/edge.db",
    "/%252e%252e%252fedge.db",
    "/..%5c..%5cedge.db",
    "/..\\..\\edge.db",
    "/journal/a/../../../edge.db",
    "/journal/..%00/",
    "/index.html%00.png",
    "/%00",
    "/%ff%fe",
    "/%c0%ae%c0%ae/edge.db",
    "/%",
    "/%zz",
    "/.env",
    "/%2eenv",
    "/./.env",
    "/.git/config",
    "/posts.json",
    "/../posts.json",
    "/site/index.html",
    "//edge.test/",
    "//edge.test/%2e%2e",
    "///",
    "/journal//a/",
    "/journal/a/index.html.br",
    "/journal/a/index.html.gz",
    "/journal/a/index.html/",
    "/journal/a/index.html/..",
    "/images/edge.png/",
    "/secret.txt",
    "/up/posts.json",
    "/" + "a" * 4000,
    "/" + "../" * 1000,
    "/~root",
    "/C:/edge.db",
    "/file:///edge.db",
    "/journal/a/;x=1",
    "/JOURNAL/A/",
]


@pytest.mark.parametrize("target", ATTACKS)
async def test_no_path_leaves_the_site(raw: RawClient, build_dir: Path, target: str) -> None:
    """No spelling of a path reaches a file that the build did not publish."""
    site = build_dir / "build-0001" / "site"
    (site / "secret.txt").symlink_to(build_dir / "build-0001" / "posts.json")
    (site / "up").symlink_to(build_dir / "build-0001")
    answer = await raw.send(target)

    assert answer.status in (400, 404)
    assert b"build_id" not in answer.body
    assert b"SECRET" not in answer.body
    assert "Location" not in answer.headers


async def test_a_target_beyond_ascii_is_no_trouble(raw: RawClient) -> None:
    """Raw bytes in a target are refused or not found."""
    for target in ("/\u672c/".encode(), b"/\xff", b"/\x7f", b"/a\tb"):
        assert (await raw.send(target)).status in (200, 400, 404)


async def test_links_planted_before_the_start_are_not_served(
    make_edge: Any, build_dir: Path, tmp_path: Path
) -> None:
    """A symbolic link in a build is no file of the site, wherever it leads."""
    (tmp_path / "outside.txt").write_text("SECRET")
    (build_dir / "build-0001" / "site" / "link.txt").symlink_to(tmp_path / "outside.txt")
    async with make_edge(BUILD_DIR=str(build_dir)) as edge, edge.ask("GET", "/link.txt") as answer:
        assert answer.status == 404


async def test_a_file_that_cannot_be_read(site: Any, build_dir: Path) -> None:
    """A file that is gone from the current build is 503 with a sentence; all else is served."""
    (build_dir / "build-0001" / "site" / "llms.txt").unlink()
    async with site.ask("GET", "/llms.txt") as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert "cannot be read" in (await answer.json())["error"]
    async with site.ask("GET", "/") as answer:
        assert answer.status == 200


async def test_a_large_file_that_shrinks_ends_the_connection(site: Any, build_dir: Path) -> None:
    """A file that turns out shorter than announced is never passed off as whole."""
    async with site.ask("HEAD", "/images/large.bin") as answer:
        assert answer.status == 200
    path = build_dir / "build-0001" / "site" / "images" / "large.bin"
    path.write_bytes(LARGE[:5000])
    with pytest.raises(ClientError):
        await (await site.ask("GET", "/images/large.bin")).read()
    async with site.ask("GET", "/") as answer:
        assert answer.status == 200


async def test_a_client_that_leaves_is_no_trouble(
    make_edge: Any, build_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who goes away in the middle of a large file leaves no error in the log."""
    with (build_dir / "build-0001" / "site" / "huge.bin").open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    async with make_edge(BUILD_DIR=str(build_dir)) as edge:
        async with ClientSession() as session, session.get(f"{edge.url}/huge.bin") as answer:
            await answer.content.read(10)
            answer.close()
        async with edge.ask("GET", "/") as answer:
            assert answer.status == 200
    assert caplog.records == []


async def test_without_a_build_pages_say_so(make_edge: Any, tmp_path: Path) -> None:
    """Before the first build every page is 503 with a sentence, and the API is there."""
    async with make_edge(BUILD_DIR=str(tmp_path / "none")) as edge:
        async with edge.ask("GET", "/") as answer:
            assert answer.status == 503
            assert (await answer.json())["error"] == "The journal is not built yet"
        async with edge.ask("GET", "/api/public/ping") as answer:
            assert answer.status == 200


@pytest.mark.parametrize("path", ["/", "/journal/a", "/nothing", "/images/large.bin", "/contact/"])
async def test_an_https_site_demands_https(make_edge: Any, build_dir: Path, path: str) -> None:
    """Every answer of an https origin says that the way to it must be https, and no other does."""
    name = "Strict-Transport-Security"
    for url, demanded in (("https://journal.test", True), ("http://journal.test", False)):
        async with (
            make_edge(BUILD_DIR=str(build_dir), SITE_URL=url) as edge,
            edge.ask("GET", path) as answer,
        ):
            assert (name in answer.headers) is demanded


async def test_a_site_without_a_404_page(make_edge: Any, build_dir: Path) -> None:
    """A build without that page answers a missing one with an Error."""
    (build_dir / "build-0001" / "site" / "404.html").unlink()
    async with make_edge(BUILD_DIR=str(build_dir)) as edge, edge.ask("GET", "/nothing") as answer:
        assert answer.status == 404
        assert await answer.json() == {"error": "There is no page at this address"}
