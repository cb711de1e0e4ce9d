"""Several servers under the same load, round by round in turn.

What slows the machine for a while slows all of them, so that their ratios last where their
figures do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.load import ROUNDS, SECONDS, Figure, Load, middle, run
from benchmarks.server import Served

EDGE: Final = "Fore-edge"


@dataclass(frozen=True, slots=True)
class Runner:
    """A server that takes part, and what it is asked."""

    name: str
    server: Served
    load: Load


@dataclass(frozen=True, slots=True)
class Race:
    """What each server reached, round by round."""

    title: str
    figures: dict[str, Sequence[Figure]]

    def middles(self) -> dict[str, Figure]:
        """Return the medians of each server's rounds."""
        return {name: middle(figures) for name, figures in self.figures.items()}

    def speeds(self, peer: str) -> list[float]:
        """Return how many times as many requests the edge answered as a peer, each round."""
        pairs = zip(self.figures[EDGE], self.figures[peer], strict=True)
        return [ours.per_second / theirs.per_second for ours, theirs in pairs]

    def costs(self, peer: str) -> list[float]:
        """Return how much of a peer's processor time a request costs the edge, each round."""
        pairs = zip(self.figures[EDGE], self.figures[peer], strict=True)
        return [ours.cpu_us / theirs.cpu_us for ours, theirs in pairs]

    def waits(self, peer: str) -> list[float]:
        """Return the edge's p99 as a part of a peer's median, each round."""
        pairs = zip(self.figures[EDGE], self.figures[peer], strict=True)
        return [ours.p99_ms / theirs.p50_ms for ours, theirs in pairs]


def race(
    title: str, runners: Sequence[Runner], seconds: int = SECONDS, count: int = ROUNDS
) -> Race:
    """Return what all reach in `count` rounds, after a warm-up."""
    for runner in runners:
        run(runner.load, runner.server, 1)
    rounds = [
        [run(runner.load, runner.server, seconds) for runner in runners] for _ in range(count)
    ]
    by_runner = zip(*rounds, strict=True)
    held = Race(title, {runner.name: each for runner, each in zip(runners, by_runner, strict=True)})
    _print(held)
    return held


def _print(held: Race) -> None:
    ours = median(figure.per_second for figure in held.figures[EDGE])
    print(held.title)
    for name, figure in held.middles().items():
        print(
            f"  {name:22} {figure.per_second:>9,.0f}/s  p99 {figure.p99_ms:>8.2f} ms"
            f"  {figure.cpu_us:>7.1f} us  {figure.resident_mib:>5.0f} MiB"
            f"  {ours / figure.per_second:>6.2f}",
            flush=True,
        )
