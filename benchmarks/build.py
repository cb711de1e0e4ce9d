"""The site build against stock Pelican and Hugo on the same posts, cold and after one edit.

`python -m benchmarks.build [COUNT ...] [--hugo PATH]`. All lies in memory; each has its own theme.
Pelican makes posts, an index, tags and a feed, Hugo a feed of each list; ours also makes twins,
cards, JSON-LD, related posts, feeds in two forms, an index for the edge, checks, gzip and Brotli.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
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
_HUGO = """
baseURL = "http://127.0.0.1:8000/"
title = "Stock"
theme = "own"
"""
_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it
_EVERY = 0.5
"""Seconds between two looks at the memory of a build."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured build."""

    seconds: float
    processor: float
    """Seconds of all processors together: steadier than the clock on a machine that is shared."""
    peak: float
    """MiB of memory of all its processes, what they share counted once; 0 where unknown."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A build from nothing, and one after a line was added to one post."""

    cold: Figure
    edited: Figure


@dataclass(frozen=True, slots=True)
class Builder:
    """Something that builds a site."""

    name: str
    prepare: Callable[[Path, int], list[str]]
    """Writes so many posts into `content/` of a folder; returns the command to run in it."""


def main() -> None:
    """Measure each count and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.build")
    parser.add_argument("counts", type=int, nargs="*", default=[1_000, 10_000], metavar="COUNT")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--hugo", default=shutil.which("hugo"), help="its binary, if not found")
    options = parser.parse_args()
    print(f"Posts {describe_corpus()}", flush=True)
    builders = list(_list_builders(options.hugo))
    for count in options.counts:
        # Each round measures all, so that what else the machine does falls on all alike.
        rounds = [[_measure(each, count) for each in builders] for _ in range(options.runs)]
        pairs = [_find_median(of_one) for of_one in zip(*rounds, strict=True)]
        _print(count, {each.name: pair for each, pair in zip(builders, pairs, strict=True)})


def _list_builders(hugo: str | None) -> Iterator[Builder]:
    yield Builder("ours", _prepare_ours)
    yield Builder("stock Pelican", _prepare_stock)
    if hugo:
        yield Builder("Hugo", lambda folder, count: _prepare_hugo(hugo, folder, count))
    else:
        print("Hugo is not here and is left out; --hugo names its binary")


def _print(count: int, pairs: dict[str, Pair]) -> None:
    print(f"{count:,} posts")
    _print_builds("cold", {name: pair.cold for name, pair in pairs.items()})
    _print_builds("after one edit", {name: pair.edited for name, pair in pairs.items()})


def _print_builds(title: str, figures: dict[str, Figure]) -> None:
    own = figures["ours"]
    for name, figure in figures.items():
        print(
            f"  {title:14}  {name:14}{figure.seconds:8.2f} s {figure.processor:8.2f} s of processor"
            f" {figure.peak:5.0f} MiB   {figure.seconds / own.seconds:6.2f} times ours"
            f" ({figure.processor / own.processor:.2f} of processor)",
            flush=True,
        )


def _find_median(pairs: Sequence[Pair]) -> Pair:
    return Pair(
        _find_median_figure([pair.cold for pair in pairs]),
        _find_median_figure([pair.edited for pair in pairs]),
    )


def _find_median_figure(figures: Sequence[Figure]) -> Figure:
    return Figure(
        median(f.seconds for f in figures),
        median(f.processor for f in figures),
        max(f.peak for f in figures),
    )


def _measure(builder: Builder, count: int) -> Pair:
    """Build in a new folder, edit one post, and build again."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        folder = Path(name)
        command = builder.prepare(folder, count)
        cold = _run(command, folder)
        post = sorted((folder / "content").glob("*.md"))[count // 2]
        post.write_text(f"{post.read_text(encoding='utf-8')}\nA line more.\n", encoding="utf-8")
        return Pair(cold, _run(command, folder))


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


def _prepare_hugo(hugo: str, folder: Path, count: int) -> list[str]:
    """Make a site with the theme that Hugo makes for a beginner, without its sample posts."""
    subprocess.run([hugo, "new", "theme", "own", "--quiet"], cwd=folder, check=True)
    shutil.rmtree(folder / "themes" / "own" / "content")
    write_posts(folder / "content", count)
    (folder / "hugo.toml").write_text(_HUGO, encoding="utf-8")
    return [hugo, "--quiet", "--source", str(folder)]


def _run(command: list[str], folder: Path) -> Figure:
    """Run a command; raises CalledProcessError when it fails."""
    began, started = _read_processor(), time.perf_counter()
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PORT": "8000", "HUGO_CACHEDIR": str(folder / "cache")}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment, cwd=root)
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
    return Figure(seconds, _read_processor() - began, peak)


def _read_processor() -> float:
    """Return the seconds of processor that ended children, and theirs, have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
