"""The preview in one process with its test: who sees a change first is then no matter of chance."""

import asyncio
import os
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import ClientSession

from site_build.markup.convert import Dialect
from site_build.pelican_plugin.plugin import list_sources
from site_build.preview.server import Preview, listen, name_origin, watch
from site_build.preview.session import PreviewSession, State
from site_build.progress import Request
from tests.patience import patience
from tests.site_build.workbench import SITE_URL, FleetingPath, Workbench

pytestmark = pytest.mark.size("test")


def open_session(bench: Workbench, origin: str) -> PreviewSession:
    """Return a preview of a workbench's content, which is served at `origin`."""
    state, cache = bench.output, bench.output / "cache.sqlite"
    now = datetime.max.replace(tzinfo=UTC)
    request = Request(bench.content, state / "site", state, state, cache, now, 1)
    return PreviewSession(request, Dialect(origin), list_sources(bench.content)[1:])


async def test_a_change_seen_by_a_request_is_checked_later(bench: Workbench) -> None:
    """With nothing watched, the page that is asked for shows the change; the warning follows."""
    listening = listen("127.0.0.1", 0)
    stage = open_session(bench, name_origin(listening))
    states: asyncio.Queue[State] = asyncio.Queue()
    preview, ending = Preview(stage, bench.content, "127.0.0.1", states.put_nowait), asyncio.Event()
    serving = asyncio.create_task(preview.serve(listening, (), ending))
    async with ClientSession(name_origin(listening)) as browser, asyncio.timeout(patience()):
        for number in range(3):
            bench.post("crooked", text=f"See [nothing](/journal/nowhere-{number}/).")
            async with browser.get("/journal/crooked/") as answer:
                assert f"nowhere-{number}" in await answer.text()
            while not warns_of(await states.get(), f"nowhere-{number}"):
                continue
    ending.set()
    await serving


def test_the_error_goes_when_a_moved_content_folder_is_back_unchanged(
    empty_bench: Workbench,
) -> None:
    """No file has changed since the last good reading, yet the state is made anew."""
    empty_bench.post("one")
    session = open_session(empty_bench, SITE_URL)
    away = empty_bench.content.rename(empty_bench.content.with_name("away"))
    session.refresh()
    assert session.state.site_problem

    away.rename(empty_bench.content)
    session.refresh()

    assert session.state.site_problem is None


async def test_a_folder_that_goes_as_the_watch_begins_ends_no_preview(tmp_path: Path) -> None:
    """Changes in it are reported when it is back; until then any file may have changed."""
    folder = FleetingPath(tmp_path / "content")
    async with asyncio.timeout(patience()), aclosing(watch([folder])) as glances:
        assert await anext(glances) is None
        folder.mkdir()
        await anext(glances)
        (folder / "a.md").touch()
        async for changes in glances:
            if changes and str(folder / "a.md") in changes:
                break


async def test_a_name_that_is_not_utf8_ends_no_preview(tmp_path: Path) -> None:
    """After it any file may have changed, and later changes are reported by their names."""
    async with asyncio.timeout(patience()), aclosing(watch([tmp_path])) as glances:
        assert await anext(glances) is None
        (tmp_path / os.fsdecode(b".caf\xe9.md.swp")).touch()
        (tmp_path / os.fsdecode(b"\xff.md")).touch()
        assert await anext(glances) is None
        assert await anext(glances) is None
        (tmp_path / "a.md").touch()
        async for changes in glances:
            if changes and str(tmp_path / "a.md") in changes:
                break


def warns_of(state: State, words: str) -> bool:
    """Return whether a state that was sent warns of this."""
    return any(words in each.message for each in state.findings)
