"""Texts that want to be scripts, wherever text is taken in: none of them runs in any browser.

A page is held without its policy too, so that the policy is the second line and not the first.
Bodies of posts are the exception: HTML in them is the author's, and there the policy holds.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.edge.edge_process import ROOT
from tests.judges.pages import echoes
from tests.judges.pages.conftest import wait_for
from tests.judges.pages.crawl import crawl
from tests.judges.pages.hostile import BODY, FIELD, write_hostile
from tests.judges.pages.payloads import CALL, FAMILIES, PAYLOADS, choose
from tests.judges.pages.running import Shown, watch
from tests.judges.pages.served import Served, serve
from tests.site_build.workbench import run_journal
from tests.sizes import scaled

pytestmark = pytest.mark.size("test", grows=True)

CHOSEN = choose(scaled(test=12, ci=40, judge=len(PAYLOADS)))
POSTS = "/api/public/v1/posts"
_CONTENT = "{http://www.w3.org/2005/Atom}content"
ELEMENTS = FAMILIES[0]
"""The payloads that are nothing but script elements."""
INERT = (
    f"<scr<script>ipt>{CALL}</scr</script>ipt>",  # what its element holds is no JavaScript
    f"<script>{CALL}",  # without its end it stays letters
    f"<math><script>{CALL}</script></math>",  # MathML has no scripts
    f"<x:script xmlns:x='http://www.w3.org/1999/xhtml'>{CALL}</x:script>",  # one in XML alone
)
"""Those of them that no browser runs."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a served journal with the payloads in it."""
    folder = tmp_path_factory.mktemp("hostile")
    with serve(write_hostile(folder / "content", CHOSEN), folder) as served:
        yield served


@pytest.fixture(scope="module")
def pages(hostile: Served) -> dict[str, bytes]:
    """Return every page of it, by its path."""
    return crawl(hostile)


def bodies(pages: dict[str, bytes]) -> list[Shown]:
    """Return the pages of posts whose body is a payload."""
    own = re.compile(rf"/journal/{BODY}-\d+/")
    return [Shown(path, path, is_authors=True) for path in pages if own.fullmatch(path)]


def is_planted(node: LexborNode) -> bool:
    """Return whether an element is a script that is not the site's own, or has a handler.

    A frame does not count: the build puts a link in its place, and one that ran would be an error.
    """
    values = node.attributes
    if any(name.startswith("on") and CALL in (value or "") for name, value in values.items()):
        return True
    source = values.get("src") or ""
    is_own = values.get("type") == "application/ld+json" or source.startswith("/theme/")
    has_code = bool({"src", "href", "xlink:href"} & set(values) or node.text())
    return node.tag == "script" and has_code and not is_own


def handed_out(served: Served) -> dict[str, str]:
    """Return the HTML of every post that programs are given, by where they are given it."""
    found = {}
    for slug in (f"{BODY}-{number}" for number in range(len(CHOSEN))):
        status, _, body = served.get(f"{POSTS}/{slug}", **{"X-API-Key": served.key})
        assert status == 200, slug
        found[f"API {slug}"] = json.loads(body)["content_html"]
    feed = ET.fromstring(served.get("/feed.xml")[2])  # noqa: S314  a feed of our own
    for number, element in enumerate(feed.iter(_CONTENT)):
        found[f"feed {number}"] = element.text or ""
    return found


def test_the_payloads_are_many_and_work() -> None:
    """There are more than 300, each of them different and with the call in one spelling."""
    spelled = ("__ran", "r'+'an", "u005fran", "x5f_ran", "95,95,114", "&#95;", "%5f%5f", "mro__")
    others = ("base64", "__subclasses__", "__globals__")

    assert len(PAYLOADS) > 300
    assert len(FAMILIES) > 10
    assert [each for each in PAYLOADS if not any(word in each for word in spelled + others)] == []


def test_every_post_was_built(pages: dict[str, bytes]) -> None:
    """No payload is kept away by the build: each is on a page of its own, of both sorts."""
    posts = {
        f"/journal/{sort}-{number}/" for sort in (FIELD, BODY) for number in range(len(CHOSEN))
    }

    assert posts - set(pages) == set()
    assert b"__ran" in b"".join(pages.values())


def test_fields_are_text(chromium: str, hostile: Served, pages: dict[str, bytes]) -> None:
    """Titles, tags, descriptions and the rest run nothing on any page, even without its policy."""
    found = [Shown(path, path) for path in pages if f"/{BODY}-" not in path]

    assert len(found) > len(CHOSEN) * 3 // 2  # some payloads give tags of one address
    assert wait_for(watch(chromium, hostile.origin, found, has_policy=False)) == {}


def test_bodies_run_nothing(chromium: str, hostile: Served, pages: dict[str, bytes]) -> None:
    """HTML in a body is the author's, and the site's policy lets none of it run."""
    found = bodies(pages)

    assert len(found) == len(CHOSEN)
    assert wait_for(watch(chromium, hostile.origin, found, has_policy=True)) == {}


@pytest.mark.size("ci")
def test_html_of_feeds_and_api_runs_no_script(chromium: str, hostile: Served) -> None:
    """The HTML of feeds and API runs nothing in a page of somebody else, who has no policy."""
    found = [
        Shown(name, "", f"<!DOCTYPE html><title>Reader</title>{html}".encode())
        for name, html in handed_out(hostile).items()
    ]

    assert wait_for(watch(chromium, hostile.origin, found, has_policy=False)) == {}


@pytest.mark.size("ci")
def test_echoed_input_is_text(chromium: str, hostile: Served) -> None:
    """Searches, addresses, forms, names of programs and mail run nothing, even without a policy."""
    found = [
        *echoes.addressed(CHOSEN),
        *echoes.filled_in(hostile, CHOSEN),
        *echoes.named(hostile, CHOSEN),
        *echoes.mailed(CHOSEN),
    ]

    assert len(found) >= 8 * len(CHOSEN)
    assert wait_for(watch(chromium, hostile.origin, found, has_policy=False)) == {}


@pytest.mark.size("ci")
def test_an_injection_is_detected(chromium: str, hostile: Served, tmp_path: Path) -> None:
    """A theme that prints a title unescaped lets scripts run, and that is seen."""
    theme = shutil.copytree(ROOT / "theme", tmp_path / "theme")
    article = theme / "templates" / "article.html"
    source = article.read_text(encoding="utf-8")
    holed = re.sub(r"(<h1[^>]*>){{ article\.title }}", r"\1{{ article.title|safe }}", source)
    assert holed != source
    article.write_text(holed, encoding="utf-8")
    content = write_hostile(tmp_path / "content", [f"<img src=x onerror={CALL}>", "<b onclick=x>"])
    run_journal(content, tmp_path / "output", theme)
    found = [
        Shown(f"{FIELD}-{number}", "", (tmp_path / "output" / page).read_bytes())
        for number in range(2)
        for page in [f"journal/{FIELD}-{number}/index.html"]
    ]
    seen = wait_for(watch(chromium, hostile.origin, found, has_policy=False))

    assert "a script ran" in seen[f"{FIELD}-0"]
    assert any("onclick" in each for each in seen[f"{FIELD}-1"])


@pytest.mark.size("ci")
def test_the_content_security_policy_blocks_scripts(
    chromium: str, hostile: Served, pages: dict[str, bytes]
) -> None:
    """Without it exactly those bodies run that have a script or a handler in their built HTML.

    So the watching sees every script that the policy stops in `test_bodies_run_nothing`.
    """
    found = bodies(pages)
    payloads = {f"/journal/{BODY}-{number}/": text for number, text in enumerate(CHOSEN)}
    built = {
        shown.path
        for shown in found
        if any(is_planted(node) for node in LexborHTMLParser(pages[shown.path]).css("*"))
    }
    seen = wait_for(watch(chromium, hostile.origin, found, has_policy=False))

    expected = {path for path in built if payloads[path] not in INERT}
    assert {payloads[path] for path in expected ^ set(seen)} == set()
    # Were scripts taken out of bodies, both sides above would be empty, and nothing be shown.
    assert set(ELEMENTS) & set(CHOSEN) - set(INERT) <= {payloads[path] for path in seen}
