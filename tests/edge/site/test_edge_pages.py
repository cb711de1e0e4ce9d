"""Pages that the edge renders in the look of the site, from what a build hands over."""

import asyncio
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from selectolax.lexbor import LexborHTMLParser

from edge_api.db.problems import Problem
from edge_api.http.pages import EdgePages
from edge_api.journal.builds import BuildManager
from edge_api.schema.page_templates import BASE_TEMPLATE, PAGE_VARIABLES, TEMPLATES_FOLDER, PageName
from tests.edge.small_builds import make_post, point_at, write_build, write_site

pytestmark = pytest.mark.one_engine

FRAME = "<title><!-- title --></title><h1><!-- title --></h1><main><!-- content --></main>"
WORDS = "{% for each in sentences %}<p>{{ each }}</p>{% endfor %}"


def hand_over(folder: Path, shell: str = FRAME, notice: str = WORDS) -> None:
    """Write what a build hands over into one."""
    write_site(folder / TEMPLATES_FOLDER, {BASE_TEMPLATE: shell, "notice.html": notice})


@pytest.fixture
def pages(site: Any) -> EdgePages:
    """Return the pages of an edge whose build has none yet."""
    return EdgePages(site.service[BuildManager])


async def test_a_page_is_rendered_in_the_frame_of_the_site(edge: Any) -> None:
    """A real build's page has the running head of the site, and the title wherever it belongs."""
    body = await edge.service.pages.render("notice", "Not <now>", sentences=["Later."], link=None)
    page = LexborHTMLParser(body)

    for selector, text in (("title", "Not <now> · Fore-edge"), ("h1", "Not <now>")):
        (found,) = page.css(selector)
        assert found.text() == text
    assert [node.text() for node in page.css("main p")] == ["Later."]
    assert "Journal" in page.css("header nav")[0].text()
    assert page.css('meta[name="robots"]')[0].attributes["content"] == "noindex"
    assert page.css('link[rel="stylesheet"]')
    assert b"<!--" not in body


async def test_inserted_markers_are_not_replaced_again(pages: EdgePages, build_dir: Path) -> None:
    """A value that looks like a place for the title, or like markup, is text."""
    hand_over(build_dir / "build-0001")
    odd = "<!-- title --><!-- content -->{{ 7*7 }}"
    body = (await pages.render("notice", odd, sentences=[odd])).decode()

    page = LexborHTMLParser(body)
    assert page.css("h1")[0].text() == page.css("p")[0].text() == odd


async def test_a_build_without_the_page_is_unavailable(pages: EdgePages) -> None:
    """503 with a time to try again, and nothing about where it was looked for."""
    with pytest.raises(Problem) as caught:
        await pages.render("notice", "Title", sentences=[])

    assert (caught.value.code, caught.value.headers["Retry-After"]) == ("unavailable", "60")
    assert caught.value.message == "This page cannot be shown now: try again later"


async def test_a_build_cleared_away_meanwhile_gives_way_to_the_next(
    site: Any, pages: EdgePages, build_dir: Path
) -> None:
    """A page whose build goes away before it was made is made with the next one."""
    newer = write_build(build_dir, "build-0002", [make_post("a")])
    hand_over(newer)
    builds, loop, gate = site.service[BuildManager], asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(max_workers=1))
    busy = loop.run_in_executor(None, gate.wait)
    asked = asyncio.create_task(pages.render("notice", "Title", sentences=["One"]))
    await asyncio.sleep(0)  # the page waits for the one thread that makes it
    shutil.rmtree(build_dir / "build-0001")
    old = builds.current
    builds.current = replace(old, folder=newer)
    gate.set()
    body = await asked
    await busy
    builds.current = old

    assert b"<main><p>One" in body


async def test_a_build_that_is_gone_is_unavailable(pages: EdgePages, build_dir: Path) -> None:
    """With no other in its place, a page is refused as unavailable."""
    shutil.rmtree(build_dir / "build-0001")
    with pytest.raises(Problem) as caught:
        await pages.render("notice", "Title", sentences=[])

    assert caught.value.code == "unavailable"


def test_each_page_is_declared() -> None:
    """The names that a page may be asked for by are those that a template is declared for."""
    assert tuple(PAGE_VARIABLES) == get_args(PageName)


async def test_no_build_at_all_is_unavailable(make_edge: Any, tmp_path: Path) -> None:
    """As long as nothing was built there is no look to show a page in."""
    async with make_edge(BUILD_DIR=str(tmp_path / "none")) as edge:
        with pytest.raises(Problem) as caught:
            await edge.service.pages.render("notice", "Title", sentences=[])
        assert caught.value.code == "unavailable"


async def test_the_next_build_has_its_own_templates(
    site: Any, pages: EdgePages, build_dir: Path
) -> None:
    """From the moment of the swap a page is made with the new build's frame and template."""
    hand_over(build_dir / "build-0001")
    assert b"<main><p>One" in await pages.render("notice", "Title", sentences=["One"])
    newer = write_build(build_dir, "build-0002", [make_post("a")])
    hand_over(newer, shell=FRAME.replace("main", "aside"), notice="<b>{{ sentences[0] }}</b>")
    point_at(build_dir, newer)
    await site.service[BuildManager].refresh()

    assert b"<aside><b>One</b>" in await pages.render("notice", "Title", sentences=["One"])


async def test_concurrent_pages_do_not_mix(pages: EdgePages, build_dir: Path) -> None:
    """Pages are made beside the event loop; none shows another's values."""
    hand_over(build_dir / "build-0001")
    texts = [f"Words {number}." for number in range(100)]
    making = (pages.render("notice", text, sentences=[text]) for text in texts)

    for text, body in zip(texts, await asyncio.gather(*making), strict=True):
        assert body.decode() == FRAME.replace("<!-- title -->", text).replace(
            "<!-- content -->", f"<p>{text}</p>"
        )
