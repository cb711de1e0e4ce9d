"""The site build against stock Pelican on the same posts, cold and after one edit.

`python -m benchmarks.build [COUNT ...]`. Both make posts, a paginated index, tag pages and an Atom
feed; ours makes twins, an index for the edge and compressed forms besides. All lies in memory.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from benchmarks.corpus import describe_corpus, write_posts

_STOCK = """
SITENAME = AUTHOR = "Stock"
SITEURL = "http://127.0.0.1:8000"
TIMEZONE = "UTC"
DEFAULT_LANG = "en"
PLUGINS = []
DEFAULT_PAGINATION = 20
FEED_ALL_ATOM = "feed.xml"
CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = AUTHOR_FEED_ATOM = AUTHOR_FEED_RSS = None
"""
_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it
_EVERY = 0.5
"""Seconds between two looks at the memory of a build."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured build."""

    seconds: float
    peak: float
    """MiB of memory of all its processes, what they share counted once; 0 where unknown."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A build from nothing, and one after a line was added to one post."""

    cold: Figure
    edited: Figure


def main() -> None:
    """Measure each count and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.build")
    parser.add_argument("counts", type=int, nargs="*", default=[1_000, 10_000], metavar="COUNT")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    print(f"Posts {describe_corpus()}", flush=True)
    for count in options.counts:
        stock = _find_median([_measure(_prepare_stock, count) for _ in range(options.runs)])
        ours = _find_median([_measure(_prepare_ours, count) for _ in range(options.runs)])
        _print(count, stock, ours)


def _print(count: int, stock: Pair, ours: Pair) -> None:
    print(f"{count:,} posts")
    for name, theirs, own in (
        ("cold", stock.cold, ours.cold),
        ("after one edit", stock.edited, ours.edited),
    ):
        print(
            f"  {name:14}  stock Pelican {theirs.seconds:6.1f} s {theirs.peak:4.0f} MiB"
            f"   ours {own.seconds:6.2f} s {own.peak:4.0f} MiB"
            f"   {theirs.seconds / own.seconds:5.1f} times as fast",
            flush=True,
        )


def _find_median(pairs: Sequence[Pair]) -> Pair:
    return Pair(
        _find_median_figure([pair.cold for pair in pairs]),
        _find_median_figure([pair.edited for pair in pairs]),
    )


def _find_median_figure(figures: Sequence[Figure]) -> Figure:
    return Figure(median(f.seconds for f in figures), max(f.peak for f in figures))


def _measure(prepare: Callable[[Path, int], list[str]], count: int) -> Pair:
    """Build in a new folder, edit one post, and build again."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        folder = Path(name)
        command = prepare(folder, count)
        cold = _run(command)
        post = sorted((folder / "content").glob("*.md"))[count // 2]
        post.write_text(f"{post.read_text(encoding='utf-8')}\nA line more.\n", encoding="utf-8")
        return Pair(cold, _run(command))


def _prepare_stock(folder: Path, count: int) -> list[str]:
    write_posts(folder / "content", count, "pelican")
    settings = folder / "stock.py"
    settings.write_text(_STOCK, encoding="utf-8")
    words = [str(folder / "content"), "-s", str(settings), "-o", str(folder / "output"), "-q"]
    return [sys.executable, "-m", "pelican", *words]


def _prepare_ours(folder: Path, count: int) -> list[str]:
    write_posts(folder / "content", count)
    options = ["--content", str(folder / "content"), "--output", str(folder / "build")]
    return [sys.executable, "-m", "site_build", "build", *options]


def _run(command: list[str]) -> Figure:
    """Run a command; raises CalledProcessError when it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env={**os.environ, "PORT": "8000"}
    )
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, _weigh(process.pid))
        try:
            process.wait(_EVERY)
        except subprocess.TimeoutExpired:
            continue
    seconds = time.perf_counter() - started
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Figure(seconds, peak)


def _weigh(pid: int) -> float:
    """Return the memory of a process and its children now, in MiB."""
    try:
        parent = psutil.Process(pid)
        crew = [parent, *parent.children(recursive=True)]
        return float(sum(each.memory_full_info().pss for each in crew)) / 2**20
    except (psutil.Error, AttributeError):
        return 0.0  # It has just ended, or the system does not count so.


if __name__ == "__main__":
    main()
