"""One edit with the watcher, from the saved file to the page that the edge serves, beside Hugo's.

The watcher builds the ground's own site; the files of its posts are as before in the end.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Final

from aiohttp import ClientSession

from benchmarks import ground as standing
from benchmarks.build_race import build, build_edited
from benchmarks.builders import CONTENT, HUGO, OTHER, OURS, Site, prepare
from benchmarks.cost import Cost
from benchmarks.ground import PING, SITE_URL, Edge, Ground
from benchmarks.load import forwarded
from benchmarks.section import Grid, Reached, Section
from benchmarks.server import Served, Took, look

SIZES: Final = (1_160, 10_000)
"""Posts of which the table speaks."""
ROUNDS: Final = 5
SETTLED: Final = 4.0
"""Seconds after an edit in which the watcher does what nobody waits for."""
_PATIENCE: Final = 600.0
"""Seconds in which an edit has to be served: the first one may build the whole site."""
_LOOK, _ASK, _PAUSE = 0.002, 0.01, 0.005
"""Seconds between two looks at the file, two questions for the page, and two of others: what the
edge takes to answer them counts as its swap's."""
_ABOUT: Final = (
    f"The watcher with all cores and an edge on one, over the same site; {ROUNDS} edits, each of "
    "another post, in turn with Hugo's build after the same edit. Built: the page is in the site "
    "that is served next. Served: the edge answers with it. Beside it one client asks for the "
    "home page, another post and the liveness of the service, one after the other with a pause of "
    f"{_PAUSE * 1000:.0f} ms; its longest wait counts until a second after the swap."
)
_COLUMNS: Final = (
    "posts",
    "built s",
    "CPU s",
    "later CPU s",
    "served s",
    "swap s",
    "its CPU s",
    "longest wait ms",
    f"{HUGO} s",
    "CPU s",
    "start of the edge s",
    "CPU s",
)


@dataclass(frozen=True, slots=True)
class Edit:
    """What one edit took."""

    built: Took
    """The watcher, from the saved file to the page in the site that is served next."""
    later: float
    """Seconds of processor that the watcher took afterwards."""
    swap: Took
    """The edge, from there to the page in its answer."""
    longest: float
    """The longest wait of other requests, in milliseconds."""


def measure(ground: Ground) -> Section:
    """Measure each size."""
    sizes = SIZES if ground.sizes == standing.SIZES else ground.sizes
    rows, reached = [], dict[str, Reached]()
    for posts in sizes:
        edits, others, start = _measure(ground, posts)
        rows.append(_row(posts, edits, others, start))
        reached |= reach(posts, edits, others, start)
    for row in rows:
        print("; ".join(map("{} {}".format, _COLUMNS, row)), flush=True)
    return Section("An edit", _ABOUT, grids=(Grid("Edits", _COLUMNS, rows),), reached=reached)


def reach(
    posts: int, edits: Sequence[Edit], others: Sequence[Cost], start: Took
) -> dict[str, Reached]:
    """Return the lines of one size, by name."""
    pairs, size = list(zip(edits, others, strict=True)), f"{posts:,} posts"
    return {
        f"watcher edit, {size}/{HUGO}": Reached(
            [other.seconds / edit.built.seconds for edit, other in pairs],
            [other.processor / edit.built.processor for edit, other in pairs],
        ),
        f"save to reader, {size}/{HUGO}": Reached(
            [other.seconds / (edit.built.seconds + edit.swap.seconds) for edit, other in pairs]
        ),
        f"swap, {size}": Reached(
            [edit.swap.seconds / start.seconds for edit in edits],
            [edit.swap.processor / start.processor for edit in edits],
        ),
        f"longest, {size}": Reached([edit.longest for edit in edits]),
    }


def _measure(ground: Ground, posts: int) -> tuple[list[Edit], list[Cost], Took]:
    """Return edits of ours and of Hugo's, and the start of the edge."""
    home = ground.site(posts).parent
    site = Site(OURS, home, [])
    with ExitStack() as stack:
        kept = stack.enter_context(keeping(home / CONTENT))
        theirs = ground.folder / f"editing-{posts}"
        shutil.rmtree(theirs, ignore_errors=True)  # a kept ground has that of an earlier run
        other = prepare(OTHER, theirs, posts)
        build(other)
        edge = stack.enter_context(ground.edge("editing", posts=posts, leads=0))
        watcher = stack.enter_context(watching(home))
        edits, others = [], []
        # The first one is not counted: the watcher has to know the site by then.
        for number in range(ROUNDS + 1):
            post = site.posts[(posts // 2 + number) % posts]
            text = post.read_text(encoding="utf-8")
            kept.append((post, text))
            edits.append(asyncio.run(time_edit(site, post, text, edge, watcher)))
            others.append(build_edited(other, number))
    return edits[1:], others[1:], edge.took


@contextmanager
def keeping(folder: Path) -> Iterator[list[tuple[Path, str]]]:
    """Yield a list for texts of files in a folder, and write them back at the end."""
    kept: list[tuple[Path, str]] = []
    try:
        yield kept
    finally:
        for file, text in kept:
            save(folder / file.name, text)


@contextmanager
def watching(home: Path) -> Iterator[Served]:
    """Run a watcher over a site of the ground, and end it."""
    words = ["--content", str(home / CONTENT), "--output", str(home / "build")]
    command = [sys.executable, "-m", "site_build", "watch", *words, "--site-url", SITE_URL]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ) as process:
        try:
            yield Served("", process.pid)
        finally:
            process.terminate()
            process.wait()


async def time_edit(site: Site, post: Path, text: str, edge: Edge, watcher: Served) -> Edit:
    """Add a word to the text of a post, and return what it took until the edge served it.

    Raises SystemExit where that does not happen.
    """
    word, waits, posts = f"afterthought{time.time_ns()}", list[float](), site.posts
    page, another = site.page(post), next(each for each in posts if each != post)
    paths = (PING, "/", _path(another))
    async with ClientSession(edge.server.origin) as session:
        beside = asyncio.create_task(_ask_others(session, paths, waits))
        before, began = watcher.processor_seconds(), time.perf_counter()
        end = began + _PATIENCE
        save(post, f"{text}\nAn {word}.\n")
        while word not in page.read_text(encoding="utf-8"):
            await _wait(_LOOK, end, f"{post.stem} was not built")
        built = look(watcher, began, before)
        done, before, began = watcher.processor_seconds(), _used(edge), time.perf_counter()
        while word not in await _read(session, _path(post)):
            await _wait(_ASK, end, f"{post.stem} was not served")
        swap = look(edge.server, began, before)
        await asyncio.sleep(1)
        beside.cancel()
        with suppress(asyncio.CancelledError):
            await beside
    await asyncio.sleep(SETTLED)
    return Edit(built, watcher.processor_seconds() - done, swap, max(waits))


async def _ask_others(session: ClientSession, paths: Sequence[str], waits: list[float]) -> None:
    """Ask for other things until this is cancelled; append the milliseconds of each."""
    for path in cycle(paths):
        began = time.perf_counter()
        await _read(session, path)
        waits.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(_PAUSE)


async def _read(session: ClientSession, path: str) -> str:
    async with session.get(path, headers=forwarded()) as answer:
        if not answer.ok:
            raise SystemExit(f"{path} answered {answer.status} beside an edit")
        return await answer.text()


async def _wait(seconds: float, end: float, otherwise: str) -> None:
    if time.perf_counter() > end:
        raise SystemExit(f"{otherwise} within {_PATIENCE:.0f} s")
    await asyncio.sleep(seconds)


def _path(post: Path) -> str:
    return f"/journal/{post.stem}/"


def _used(edge: Edge) -> float:
    return edge.server.processor_seconds()


def save(post: Path, text: str) -> None:
    """Write a text as editors save: by renaming."""
    partial = post.with_name(f".{post.name}.part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(post)


def _row(posts: int, edits: Sequence[Edit], others: Sequence[Cost], start: Took) -> tuple[str, ...]:
    def middle(values: Iterator[float]) -> str:
        return f"{median(values):.2f}"

    return (
        f"{posts:,}",
        middle(each.built.seconds for each in edits),
        middle(each.built.processor for each in edits),
        middle(each.later for each in edits),
        middle(each.built.seconds + each.swap.seconds for each in edits),
        middle(each.swap.seconds for each in edits),
        middle(each.swap.processor for each in edits),
        ", ".join(f"{each.longest:.0f}" for each in edits),
        middle(each.seconds for each in others),
        middle(each.processor for each in others),
        f"{start.seconds:.2f}",
        f"{start.processor:.2f}",
    )
