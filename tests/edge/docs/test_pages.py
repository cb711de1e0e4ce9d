"""The pages of the reference over HTTP: what they say, in which forms, and how they are kept."""

import gzip
import json
import re
import shutil
from collections import Counter
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from urllib.request import Request, urlopen

import brotli
import pytest
from selectolax.lexbor import LexborHTMLParser

from edge_api.db.problems import PROBLEMS
from edge_api.operations import OPERATIONS
from edge_api.schema.credentials import SCOPES
from edge_api.schema.paths import DOCS, DOCS_PAGES, GROUPS, TRY_OUT_PATH
from edge_api.settings import Settings
from tests.edge.docs.conftest import Reader
from tests.page_scripts import has_own_scripts_alone
from tests.patience import patience
from tools.environment import SetupError
from tools.vendor_swagger import FOLDER, check

pytestmark = pytest.mark.one_engine

PAGE_MOST = 40 * 1024
"""Bytes of a page, compressed."""
SHEET_MOST = 5 * 1024
SMALL_PAGE = "/docs/posts/"


def parse(reader: Reader, path: str) -> LexborHTMLParser:
    """Return a page as its elements."""
    return LexborHTMLParser(reader.page(path))


@pytest.mark.parametrize("path", DOCS_PAGES)
def test_a_page_is_light_and_in_order(reader: Reader, path: str) -> None:
    """A page is small, has one title, headings without gaps, and heads for all of its tables."""
    _, _, body = reader.edge.get(path, {"Accept-Encoding": "br"})
    page = LexborHTMLParser(brotli.decompress(body).decode())
    levels = [int(str(heading.tag)[1]) for heading in page.css("h1, h2, h3, h4, h5, h6")]

    assert len(body) <= PAGE_MOST
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(cell.attributes.get("scope") for cell in page.css("th"))
    assert page.css("style, [style], [onclick]") == []
    assert has_own_scripts_alone(page)


@pytest.mark.parametrize("path", DOCS_PAGES)
def test_every_link_of_a_page_leads_somewhere(reader: Reader, path: str) -> None:
    """A fragment is an element of its page, any other link of the site is answered."""
    page = parse(reader, path)
    links = {str(link.attributes["href"]) for link in page.css("main a[href]")}
    for link in links:
        place, _, fragment = link.partition("#")
        status, headers, body = reader.edge.get(place or path)
        if "html" in headers["Content-Type"] and fragment:
            there = LexborHTMLParser(body.decode())
            assert there.css_matches(f'[id="{fragment}"]'), link
        assert status == 200, link


def test_every_anchor_is_an_element_of_its_own(reader: Reader) -> None:
    """No id occurs twice on a page."""
    for path in DOCS_PAGES:
        counts = Counter(each.attributes["id"] for each in parse(reader, path).css("[id]"))
        assert {name for name, count in counts.items() if count > 1} == set()


def test_every_operation_is_on_one_page(reader: Reader) -> None:
    """Each has a section with its method and its path; no tag is forgotten."""
    assert Counter(tag for group in GROUPS.values() for tag in group.tags) == Counter(
        {operation.tag for operation in OPERATIONS}
    )
    pages = {path: parse(reader, path) for path in DOCS_PAGES}
    for operation in OPERATIONS:
        found = [page for page in pages.values() if page.css_matches(f"h2#{operation.name}")]
        assert len(found) == 1, operation.name
        (sign,) = found[0].css(f"section:has(#{operation.name}) > .sign")
        assert sign.text().split() == [operation.method, operation.path]


def test_the_overview_names_scopes_and_problems(reader: Reader) -> None:
    """Each scope is there with its sentence, and each problem."""
    text = reader.page(f"{DOCS}index.md")

    assert [
        scope for scope, sentence in SCOPES.items() if f"| `{scope}` | {sentence} |" not in text
    ] == []
    assert [each.message for each in PROBLEMS.values() if each.message not in text] == []
    assert "$" not in re.sub(r"```.*?```", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("path", DOCS_PAGES)
def test_every_page_exists_as_markdown(reader: Reader, path: str) -> None:
    """A client that prefers Markdown gets that form, under the headers of all pages."""
    status, headers, body = reader.edge.get(path, {"Accept": "text/markdown"})
    _, twin_headers, twin = reader.edge.get(f"{path}index.md")
    _, page_headers, _ = reader.edge.get(path)

    assert (status, body) == (200, twin)
    assert headers["Content-Location"] == f"{path}index.md"
    assert headers["Cache-Control"] == "private, no-store"
    assert "Accept" in headers["Vary"]
    assert twin_headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert f'<{path}>; rel="canonical"' in twin_headers["Link"]
    assert f'<{path}index.md>; rel="alternate"; type="text/markdown"' in page_headers["Link"]


@pytest.mark.parametrize("path", DOCS_PAGES[1:])
def test_both_forms_say_the_same(reader: Reader, path: str) -> None:
    """Each member, each kind and each example of the page is in the Markdown too."""
    page, twin = parse(reader, path), reader.page(f"{path}index.md")
    names = {cell.text(strip=True) for cell in page.css(".operation th[scope=row] code")}
    examples = {block.text().rstrip("\n") for block in page.css(".examples pre")}

    assert {name for name in names if f"`{name}`" not in twin} == set()
    assert {code for code in examples if code not in twin} == set()
    assert twin.startswith(f"# {page.css('h1')[0].text(strip=True)}\n")


def test_the_newest_post_is_the_example(reader: Reader) -> None:
    """The example of one post asks for one that exists."""
    listed = json.loads(
        reader.page("/api/public/v1/posts", {"X-API-Key": reader.environment["KEY"]})
    )

    assert f"/api/public/v1/posts/{listed['posts'][0]['slug']}'" in reader.page(
        SMALL_PAGE + "index.md"
    )


def test_a_page_is_kept_like_any_other(reader: Reader) -> None:
    """It has a validator for each coding, answers 304 and HEAD, and its other names lead to it."""
    plain = reader.edge.get(SMALL_PAGE)
    coded = {
        name: reader.edge.get(SMALL_PAGE, {"Accept-Encoding": name}) for name in ("br", "gzip")
    }
    etags = {answer[1]["ETag"] for answer in (plain, *coded.values())}

    assert len(etags) == 3
    assert brotli.decompress(coded["br"][2]) == gzip.decompress(coded["gzip"][2]) == plain[2]
    assert plain[1]["Cache-Control"] == "public, no-cache"
    for etag, asked in ((plain[1]["ETag"], ""), (coded["br"][1]["ETag"], "br")):
        conditions = {"If-None-Match": etag, "Accept-Encoding": asked}
        status, _, body = reader.edge.get(SMALL_PAGE, conditions)
        assert (status, body) == (304, b"")
    head = Request(f"http://127.0.0.1:{reader.edge.port}{SMALL_PAGE}", method="HEAD")
    with urlopen(head, timeout=patience()) as answer:  # noqa: S310  an address of this test
        assert answer.headers["Content-Length"] == str(len(plain[2]))
        assert answer.read() == b""
    for name in ("/docs/posts", "/docs/posts/index.html"):
        status, headers, _ = reader.edge.get(name)
        assert (status, headers["Location"]) == (301, SMALL_PAGE)
    assert reader.edge.post(SMALL_PAGE, b"", {})[0] == 405
    assert reader.edge.get("/docs/nothing/")[0] == 404


def test_the_sheet_is_small(reader: Reader) -> None:
    """The pages have a sheet of their own beside the site's, and it is light."""
    sheets = [link.attributes["href"] for link in parse(reader, DOCS).css("link[rel=stylesheet]")]
    own = [str(sheet) for sheet in sheets if sheet and "/docs." in sheet]

    assert len(own) == 1
    _, _, body = reader.edge.get(own[0], {"Accept-Encoding": "br"})
    assert len(body) <= SHEET_MOST


def test_every_rate_limit_is_listed(reader: Reader) -> None:
    """The overview has a row for each limit that there is, with the rate that holds."""
    rates = json.loads(reader.page("/api/public/v1/"))["limits"]
    _, _, table = reader.page(f"{DOCS}index.md").partition("| Limit | At most | Counted by |")
    rows = [line.split(" | ") for line in table.partition("\n\n")[0].splitlines()[2:]]

    assert [row[0].removeprefix("| ") for row in rows] == list(rates)
    assert {f"rate_{name}" for name in rates} == {
        field.name for field in fields(Settings) if field.name.startswith("rate_")
    }


def test_swagger_ui_is_kept_for_good(reader: Reader) -> None:
    """All that the page asks for is of this origin, and its names change with its content."""
    page = parse(reader, TRY_OUT_PATH)
    asked = [each.attributes.get("src") for each in page.css("script")]
    asked += [each.attributes["href"] for each in page.css("link[rel=stylesheet]")]

    own = [address for address in asked if str(address).startswith("/theme/try/")]
    assert len(own) == 4
    assert len(page.css(".running-head, .colophon, main #try")) == 3
    assert page.css(".prose a")[0].attributes["href"] == DOCS
    for address in map(str, asked):
        status, headers, _ = reader.edge.get(address, {"Accept-Encoding": "br"})
        assert (status, headers["Content-Encoding"]) == (200, "br")
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_swagger_ui_is_what_was_fetched() -> None:
    """The vendored files are those of the pinned package, its licence and notice among them."""
    check()


def test_a_changed_file_of_swagger_ui_is_noticed(tmp_path: Path) -> None:
    """A folder with another file, with a changed one, or without one, is not as it was pinned."""
    copy = shutil.copytree(FOLDER, tmp_path / "copy")
    check(copy)
    (copy / "NOTICE").unlink()
    (copy / "LICENSE").write_text("Do as you like.")
    (copy / "extra.js").write_text("")
    with pytest.raises(SetupError, match=r"copy: not as pinned: LICENSE, NOTICE, extra\.js$"):
        check(copy)


def test_a_page_says_what_kind_the_openapi_document_is(reader: Reader) -> None:
    """The link in a page and the one in its headers name the media type that is served."""
    _, headers, _ = reader.edge.get("/")
    (link,) = parse(reader, "/").css('link[rel="service-desc"]')
    _, served, _ = reader.edge.get(str(link.attributes["href"]))

    assert link.attributes["type"] == served["Content-Type"]
    assert f'rel="service-desc"; type="{served["Content-Type"]}"' in headers["Link"]


def test_everything_points_at_the_reference(reader: Reader) -> None:
    """The self-description, the catalog and the OpenAPI document say where it is."""
    origin = f"http://127.0.0.1:{reader.edge.port}"
    description = json.loads(reader.page("/api/public/v1/"))
    catalog = json.loads(reader.page("/.well-known/api-catalog"))
    document = json.loads(reader.page("/api/public/v1/openapi.json"))

    assert description["documentation"] == document["externalDocs"]["url"] == f"{origin}{DOCS}"
    assert [link["href"] for link in catalog["linkset"][0]["service-doc"]] == [f"{origin}{DOCS}"]
