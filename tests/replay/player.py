"""Plays all walks on an engine, and compares what comes with the recording."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path

from tests.edge.edge_process import Installation
from tests.replay.coverage import read_operations
from tests.replay.recording import Json, Played
from tests.replay.stage import Engine, Postgres, Sqlite, Stage, build_site
from tests.replay.walk import PLANS, Plan, Walk

FEWEST = 2000
"""Pairs of request and answer: with fewer, something was not played."""
_WALKS = Path(__file__).parent / "walks"


def declare_walks() -> None:
    """Import every module of walks, which declares them."""
    for path in sorted(_WALKS.glob("*.py")):
        import_module(f"tests.replay.walks.{path.stem}")


@dataclass(frozen=True)
class Performance:
    """The results of all walks on one engine."""

    played: Played
    operations: list[tuple[str, str]]
    """Every operation that the edge documents: method and path."""

    @property
    def count(self) -> int:
        """The number of pairs of a request and its answer."""
        return sum(map(len, self.played.values()))


OnEnd = Callable[[str, list[Json]], None]
"""Called with the name and the entries of a walk when it ends, from any thread."""


def play(
    engine: Engine,
    folder: Path,
    builds: Path,
    only: str = "",
    on_end: OnEnd = lambda _name, _entries: None,
) -> Performance:
    """Take each walk whose name contains `only`.

    `folder` must be empty; the site is built below `builds`, unless it is there.
    """
    declare_walks()
    if not (builds / "current").exists():
        build_site(builds)
    stage = Stage(engine, folder, builds)
    stage.prepare()
    plans = [plan for plan in PLANS.values() if only in plan.name]
    slow = [plan for plan in plans if plan.slow]
    fresh = [plan for plan in plans if plan.fresh and not plan.slow]
    shared = sorted((plan for plan in plans if not plan.fresh), key=lambda plan: plan.kind)
    with ThreadPoolExecutor(len(slow) + 1) as threads:
        beside = [threads.submit(_play_alone, stage, plan, on_end) for plan in slow]
        played: dict[str, list[Json]] = {}
        for plan in fresh:
            played[plan.name] = _play_alone(stage, plan, on_end)
        for kind, group in groupby(shared, key=lambda plan: plan.kind):
            played |= _play_together(stage, kind, list(group), on_end)
        for plan, future in zip(slow, beside, strict=True):
            played[plan.name] = future.result()
    with stage.edge("writing") as installed:  # the one that documents all of them
        operations = read_operations(int(installed.settings["PORT"]))
    return Performance(played, operations)


def _play_alone(stage: Stage, plan: Plan, on_end: OnEnd) -> list[Json]:
    with stage.edge(plan.kind) as installed:
        return _take(stage, installed, plan, on_end)


def _play_together(
    stage: Stage, kind: str, plans: Sequence[Plan], on_end: OnEnd
) -> dict[str, list[Json]]:
    with stage.edge(kind) as installed:
        return {plan.name: _take(stage, installed, plan, on_end) for plan in plans}


def _take(stage: Stage, installed: Installation, plan: Plan, on_end: OnEnd) -> list[Json]:
    with _walking(stage, installed) as walking:
        try:
            plan.take(walking)
        except Exception as error:
            last_entries = "\n".join(map(str, walking.entries[-2:]))
            error.add_note(f"in the walk {plan.name}, behind\n{last_entries}")
            raise
        on_end(plan.name, walking.entries)
        return walking.entries


@contextmanager
def _walking(stage: Stage, installed: Installation) -> Iterator[Walk]:
    walking = Walk(stage, installed)
    try:
        yield walking
    finally:
        walking.close()


@contextmanager
def engine_for(name: str) -> Iterator[Engine]:
    """Give an engine by its name; a PostgreSQL is started, and removed at the end."""
    if name == "sqlite":
        yield Sqlite()
        return
    # Known only where it is needed: it is a part of the tests that knows modules of the edge.
    from tests.edge.postgresql import PostgreSQL  # noqa: PLC0415

    server = PostgreSQL()
    try:
        yield Postgres(server)
    finally:
        server.remove()
