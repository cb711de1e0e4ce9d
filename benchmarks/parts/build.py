"""The build of the site, cold and after one edit: its speed beside others', and its memory."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import psutil

from benchmarks.build_race import EDITS, BuildRace, Phase, race_builds
from benchmarks.builders import BUILDERS, HUGO, MAKES, PELICAN
from benchmarks.chart import Chart
from benchmarks.corpus import describe_corpus
from benchmarks.ground import SIZES, Ground
from benchmarks.load import ROUNDS
from benchmarks.race import EDGE
from benchmarks.section import Grid, Reached, Section

PROMISED: Final = SIZES[-1]
"""The posts of which the table speaks."""
_MEMORY: Final = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it
_BYTES_A_POST: Final = 600_000
"""What the sites of all builders and Hugo itself take for a post, amply."""
_CLOCK, _PROCESSOR = "by the clock", "by processor time"
_COLUMNS: Final = (
    "posts",
    "builder",
    "seconds",
    "by round",
    "ours is",
    "seconds of processor",
    "ours is",
    "peak MiB",
)
_MADE_COLUMNS: Final = ("posts", "builder", "files", "MiB")


def measure(ground: Ground) -> Section:
    """Measure each size."""
    before = os.getloadavg()[0]
    scratch = _choose_scratch(ground)
    races = [race_builds(BUILDERS, posts, count_rounds(posts), scratch) for posts in ground.sizes]
    where = "in memory" if scratch == _MEMORY else "on disk"
    load = f"load average {before:.1f} before and {os.getloadavg()[0]:.1f} after"
    return describe(races, f"Built {where}; {load}.")


def describe(races: Sequence[BuildRace], circumstances: str) -> Section:
    """Return the section of what was measured."""
    return Section(
        "The build",
        f"{_about(races)} {circumstances}",
        charts=[_chart(races, phase, by) for phase in Phase for by in (_CLOCK, _PROCESSOR)],
        grids=(
            *(Grid(phase.capitalize(), _COLUMNS, list(_rows(races, phase))) for phase in Phase),
            Grid("What was made", _MADE_COLUMNS, list(_made(races))),
        ),
        reached=next((_reach(race) for race in races if race.posts == PROMISED), {}),
    )


def count_rounds(posts: int) -> int:
    """Return how often so many posts are built: where each build takes minutes, once."""
    return 1 if posts >= PROMISED else ROUNDS


def _choose_scratch(ground: Ground) -> Path:
    """Return memory, where disks make no noise, or the ground where memory does not suffice."""
    if not _MEMORY.is_dir():
        return ground.folder
    free = min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available)
    return _MEMORY if free >= _BYTES_A_POST * max(ground.sizes) else ground.folder


def _about(races: Sequence[BuildRace]) -> str:
    rounds = ", ".join(f"{len(race.builds[EDGE])} of {race.posts:,}" for race in races)
    return (
        f"The same posts for all, {describe_corpus()}, with all cores. Rounds, in which all take "
        f"turns: {rounds} posts; medians of these. After one edit: the median of {EDITS}, each of "
        f"another post. Ratios say how many times as fast ours is. {MAKES}"
    )


def _reach(race: BuildRace) -> dict[str, Reached]:
    return {
        **{f"cold build/{peer}": race.compare(Phase.COLD, peer) for peer in (PELICAN, HUGO)},
        **{f"one edit/{peer}": race.compare(Phase.EDITED, peer) for peer in (PELICAN, HUGO)},
        "build memory": Reached(race.peaks(EDGE)),
    }


def _chart(races: Sequence[BuildRace], phase: Phase, by: str) -> Chart:
    curves = {
        name: [
            (race.posts, cost.seconds if by == _CLOCK else cost.processor)
            for race in races
            for cost in (race.middle(phase, name),)
        ]
        for name in races[0].builds
    }
    return Chart(f"{phase.capitalize()}, {by}", "posts", "s", EDGE, curves)


def _rows(races: Sequence[BuildRace], phase: Phase) -> Iterator[tuple[str, ...]]:
    for race in races:
        for name in race.builds:
            cost, ratio = race.middle(phase, name), race.compare(phase, name)
            by_clock, by_processor = f"{ratio.value:.2f} x", f"{ratio.by_cost:.2f} x"
            yield (
                f"{race.posts:,}",
                name,
                f"{cost.seconds:.2f}",
                ", ".join(f"{each.seconds:.2f}" for each in race.costs(phase, name)),
                "" if name == EDGE else by_clock,
                f"{cost.processor:.2f}",
                "" if name == EDGE else by_processor,
                f"{cost.peak_mib:.0f}",
            )


def _made(races: Sequence[BuildRace]) -> Iterator[tuple[str, ...]]:
    for race in races:
        for name, builds in race.builds.items():
            yield f"{race.posts:,}", name, f"{builds[0].files:,}", f"{builds[0].mib:.1f}"
