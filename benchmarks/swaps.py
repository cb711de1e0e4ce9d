"""How soon a new build is served, and what readers feel of it meanwhile.

`python -m benchmarks.swaps [COUNT ...] [--runs N] [--ground DIR]`. Two builds differ in one post,
and `current` names one and the other in turn. The clock stops with the first answer of the API that
has the post's other words. One reader asks for the post, its page and a list in turn, and pauses
for 2 ms after each answer; the edge has one core.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import psutil

from benchmarks.corpus import describe_corpus
from benchmarks.ground import API, SITE_URL, Edge, Ground
from benchmarks.server import LOAD_CORE, come_first, on_core, python
from edge_api.schema.index import CURRENT_LINK, point_link

_PATIENCE: Final = 120.0
"""Seconds after which a swap is not waited for any more."""
_CALM: Final = 2.0
"""Seconds between two swaps, in which the requests alone are measured."""
_PAUSE: Final = 0.002


@dataclass(frozen=True, slots=True)
class Swap:
    """One swap that was followed."""

    seconds: float
    """From the renamed link to the first answer of the new build."""
    processor: float
    """Seconds of the edge and of the processes that it started, without those of the requests."""
    longest_ms: float
    """The longest request from the swap until two seconds after it was served."""
    calm_ms: float
    """The longest request of two seconds before."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.swaps")
    parser.add_argument("counts", type=int, nargs="*", metavar="COUNT", default=[1_160, 10_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ground", type=Path, help="a folder to keep sites in for the next run")
    options = parser.parse_args()
    come_first()
    with ExitStack() as stack:
        folder = options.ground or stack.enter_context(tempfile.TemporaryDirectory())
        ground = Ground(Path(folder))
        for count in options.counts:
            print(f"{count:,} posts, {describe_corpus()}", flush=True)
            _print(list(islice(measure(ground, count), 1, 1 + options.runs)))  # the first warms


def measure(ground: Ground, posts: int) -> Iterator[Swap]:
    """Yield one swap after the other."""
    build_dir = ground.site(posts)
    content = build_dir.parent / "content"
    post = sorted(content.glob("*.md"))[posts // 2]
    builds = [_build(content, build_dir, post, f"Edit {time.time_ns()}.") for _ in range(2)]
    with ground.edge("swaps", posts=posts, leads=0) as edge, on_core(LOAD_CORE):
        reader = Reader(edge, post.stem)
        for name, words in cycle(builds):
            yield reader.follow(partial(point_link, build_dir, CURRENT_LINK, name), words)


def _build(content: Path, build_dir: Path, post: Path, words: str) -> tuple[str, str]:
    """Build with other last words of a post; return the build's name, and these words."""
    text = post.read_text(encoding="utf-8").partition("\n\nEdit ")[0].rstrip()
    post.write_text(f"{text}\n\n{words}\n", encoding="utf-8")
    options = ["--content", str(content), "--output", str(build_dir), "--site-url", SITE_URL]
    python("-m", "site_build", "build", *options)
    return (build_dir / CURRENT_LINK).resolve().name, words


class _Requests(NamedTuple):
    """Requests that were sent one after the other."""

    sent: int
    longest: float
    """Seconds."""
    ended: float


class Reader:
    """Asks an edge for a post, a page and a list, again and again."""

    def __init__(self, edge: Edge, slug: str) -> None:
        """Take the slug of the post that changes."""
        self._edge = edge
        self._host = edge.server.origin.removeprefix("http://")
        self._post = f"{API}/posts/{slug}"
        self._paths = cycle((self._post, f"/journal/{slug}/", f"{API}/posts?limit=20"))

    def follow(self, change: Callable[[], object], words: str) -> Swap:
        """Make a change; return what it took until the API's post has these words."""
        pid = self._edge.server.pid
        with closing(HTTPConnection(self._host, timeout=_PATIENCE)) as connection:
            used = _processor_of(pid)
            calm = self._read(connection, time.perf_counter() + _CALM)
            cost = (_processor_of(pid) - used) / calm.sent
            used, started = _processor_of(pid), time.perf_counter()
            change()
            first = self._read(connection, started + _PATIENCE, words)
            # What follows counts as well: garbage, and what other parts do with the new build.
            later = self._read(connection, time.perf_counter() + _CALM)
            spent = _processor_of(pid) - used - cost * (first.sent + later.sent)
        longest = max(first.longest, later.longest)
        return Swap(first.ended - started, spent, 1000 * longest, 1000 * calm.longest)

    def _read(self, connection: HTTPConnection, until: float, words: str = "") -> _Requests:
        """Ask until then, or until the post has these words."""
        sent, longest = 0, 0.0
        while (asked := time.perf_counter()) < until:
            path = next(self._paths)
            connection.request("GET", path, headers=dict(self._edge.keyed))
            answer = connection.getresponse()
            body = answer.read()
            ended = time.perf_counter()
            sent, longest = sent + 1, max(longest, ended - asked)
            if answer.status != HTTPStatus.OK:
                raise SystemExit(f"{path}: {answer.status}")
            if words and path == self._post and words in json.loads(body)["content"]:
                return _Requests(sent, longest, ended)
            time.sleep(_PAUSE)
        if words:
            raise SystemExit(f"{self._post} does not say {words!r} after {_PATIENCE:.0f} s")
        return _Requests(sent, longest, until)


def _processor_of(pid: int) -> float:
    """Return the processor time of a process, its children, and those that have ended."""
    parent = psutil.Process(pid)
    return sum(sum(each.cpu_times()[:4]) for each in (parent, *parent.children(recursive=True)))


def _print(swaps: list[Swap]) -> None:
    for name, unit, figures in (
        ("served after", "s", [each.seconds for each in swaps]),
        ("processor", "s", [each.processor for each in swaps]),
        ("longest request", "ms", [each.longest_ms for each in swaps]),
        ("without a swap", "ms", [each.calm_ms for each in swaps]),
    ):
        shown = [
            f"{each:.2f}" if unit == "s" else f"{each:.0f}" for each in (median(figures), *figures)
        ]
        print(f"  {name:16} {shown[0]} {unit} ({', '.join(shown[1:])})")
    print(f"  (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)", flush=True)


if __name__ == "__main__":
    main()
