"""What one part of the benchmarks has found: races, figures of its own, and the table's lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.chart import Chart
from benchmarks.race import Race


@dataclass(frozen=True, slots=True)
class Reached:
    """What was measured for a line of the table, round by round."""

    rounds: Sequence[float]
    costs: Sequence[float] = ()
    """The same by processor time, for a ratio of speeds: what else runs on the core spoils the
    speeds sooner than the times."""

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return median(self.rounds)

    @property
    def by_cost(self) -> float | None:
        """The median by processor time, where that was measured."""
        return median(self.costs) if self.costs else None


@dataclass(frozen=True, slots=True)
class Grid:
    """Figures that are no race: a row each, in columns with titles."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the report."""

    title: str
    about: str
    """How it was measured, in a sentence or two."""
    races: Sequence[Race] = ()
    grids: Sequence[Grid] = ()
    reached: Mapping[str, Reached] = field(default_factory=dict)
    """By the names of the lines."""
    charts: Sequence[Chart] = ()


def compare(held: Race, peer: str) -> Reached:
    """Return how many times as fast as a peer the edge was in a race."""
    return Reached(held.speeds(peer), [1 / each for each in held.costs(peer)])
