"""Builders of sites on the same posts, cold and after one edit, round by round in turn.

A builder that leaves a post out, or does not show the edit, ends the run: its time would mean
nothing.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.builders import Builder, Site, prepare
from benchmarks.cost import Cost, run
from benchmarks.race import EDGE
from benchmarks.section import Reached

EDITS: Final = 3
"""Builds after one edit each, of which the median counts."""
_WORD: Final = "afterthought"
"""Stands in a page once the edit is in it."""


class Phase(StrEnum):
    """Which of the two builds of a site."""

    COLD = "cold build"
    EDITED = "one edit"


@dataclass(frozen=True, slots=True)
class Build:
    """What one builder took and made in one round."""

    costs: dict[Phase, Cost]
    files: int
    mib: float
    """What it made, a file that has two names counted once."""


@dataclass(frozen=True, slots=True)
class BuildRace:
    """What each builder took, round by round."""

    posts: int
    builds: dict[str, Sequence[Build]]

    def costs(self, phase: Phase, name: str) -> list[Cost]:
        """Return what a builder's builds of one kind took, each round."""
        return [build.costs[phase] for build in self.builds[name]]

    def middle(self, phase: Phase, name: str) -> Cost:
        """Return the medians of a builder's rounds, and the largest of its memory."""
        return _find_middle(self.costs(phase, name))

    def compare(self, phase: Phase, peer: str) -> Reached:
        """Return how many times as fast as a peer this project built."""
        pairs = list(zip(self.costs(phase, EDGE), self.costs(phase, peer), strict=True))
        return Reached(
            [theirs.seconds / ours.seconds for ours, theirs in pairs],
            [theirs.processor / ours.processor for ours, theirs in pairs],
        )

    def peaks(self, name: str) -> list[float]:
        """Return the most memory that a builder had, each round, in MiB."""
        return [max(cost.peak_mib for cost in each.costs.values()) for each in self.builds[name]]


def race_builds(
    builders: Sequence[Builder], posts: int, rounds: int, scratch: Path | None = None
) -> BuildRace:
    """Return what all take for so many posts; `scratch` is where they build."""
    print(f"{posts:,} posts, built by {len(builders)} builders, {rounds} x", flush=True)
    held = [_hold_round(builders, posts, scratch) for _ in range(rounds)]
    by_builder = zip(*held, strict=True)
    race = BuildRace(
        posts, {each.name: builds for each, builds in zip(builders, by_builder, strict=True)}
    )
    _print(race)
    return race


def _hold_round(builders: Sequence[Builder], posts: int, scratch: Path | None) -> list[Build]:
    """Build all cold, then all edited, so that what slows the machine for a while slows both."""
    with TemporaryDirectory(prefix="fore-edge-bench-", dir=scratch) as name:
        sites = [
            prepare(builder, Path(name) / str(place), posts)
            for place, builder in enumerate(builders)
        ]
        cold = [build(site) for site in sites]
        sizes = [_measure_output(site.output) for site in sites]
        edited = [[build_edited(site, number) for site in sites] for number in range(EDITS)]
    return [
        Build({Phase.COLD: first, Phase.EDITED: _find_middle(others)}, *size)
        for first, others, size in zip(cold, zip(*edited, strict=True), sizes, strict=True)
    ]


def build(site: Site) -> Cost:
    """Build a site; raises SystemExit when a post is missing from it."""
    cost = run(site.command)
    missing = [post.stem for post in site.posts if not site.page(post).is_file()]
    if missing:
        raise SystemExit(f"{site.builder.name} left out {len(missing)} posts: {missing[0]} …")
    return cost


def build_edited(site: Site, number: int) -> Cost:
    """Add a line to a post in the middle, another one each time, and build again."""
    post = site.posts[(len(site.posts) // 2 + number) % len(site.posts)]
    post.write_text(f"{post.read_text(encoding='utf-8')}\nAn {_WORD}.\n", encoding="utf-8")
    cost = build(site)
    if _WORD not in site.page(post).read_text(encoding="utf-8"):
        raise SystemExit(f"{site.builder.name} does not show what was added to {post.stem}")
    return cost


def _find_middle(costs: Sequence[Cost]) -> Cost:
    """Return the medians of what several builds took, and the largest of their memory."""
    return Cost(
        median(cost.seconds for cost in costs),
        median(cost.processor for cost in costs),
        max(cost.peak_mib for cost in costs),
    )


def _measure_output(folder: Path) -> tuple[int, float]:
    """Return how many files stand in a folder, and their MiB."""
    found = [(Path(place) / name).stat() for place, _, names in os.walk(folder) for name in names]
    sizes = {each.st_ino: each.st_size for each in found}
    return len(found), sum(sizes.values()) / 2**20


def _print(race: BuildRace) -> None:
    for phase in Phase:
        ours = race.middle(phase, EDGE)
        for name in race.builds:
            cost = race.middle(phase, name)
            print(
                f"  {phase:10}  {name:14} {cost.seconds:8.2f} s, of processor {cost.processor:8.2f}"
                f" s {cost.peak_mib:6.0f} MiB {cost.seconds / ours.seconds:6.2f}"
                f" ({cost.processor / ours.processor:.2f} by processor)",
                flush=True,
            )
