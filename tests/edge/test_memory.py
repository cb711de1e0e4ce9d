"""Long-lived objects are frozen for the garbage collector, and others are still freed."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edge_api import background as background_jobs
from edge_api.background import gc_freeze
from edge_api.journal.builds import BuildManager
from tests.edge.conftest import EdgeMaker
from tests.edge.mcp.agents import MODERN, Agent
from tests.edge.small_builds import SITE_URL, make_post, point_at, write_build

pytestmark = pytest.mark.size("test")

PAUSE = 0.01
TRIES = 3000


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.self = self


@pytest.fixture(autouse=True)
def _unsettled() -> Iterator[None]:
    """Begin with nothing passed over, as some builds leave it, and leave nothing so."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def is_looked_through(thing: object) -> bool:
    """Return whether the collector looks through a thing, each time that it looks through all."""
    return any(each is thing for each in gc.get_objects())


def test_frozen_objects_are_skipped_and_freed_later() -> None:
    """Even a cycle, at the next call."""
    knot = Knot()
    gone = weakref.ref(knot)
    gc_freeze()
    assert not is_looked_through(knot)

    del knot
    gc_freeze()
    assert gone() is None


def test_only_new_objects_are_collected_at_a_new_build() -> None:
    """All of it would keep requests waiting for a tenth of a second."""
    old, new = Knot(), Knot()
    gone = weakref.ref(old), weakref.ref(new)
    gc_freeze()
    new = Knot()
    del old
    gc_freeze(full=False)
    assert not is_looked_through(new)
    assert gone[0]() is not None

    gc_freeze()
    assert gone[0]() is gone[1]() is None


async def comes_true(holds: Callable[[], bool]) -> bool:
    """Return whether something holds before patience ends."""
    for _ in range(TRIES):
        if holds():
            return True
        await asyncio.sleep(PAUSE)
    return False


async def test_an_edge_freezes_its_objects_when_a_build_is_served(
    make_edge: EdgeMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start, and when another build takes over; the one before it is freed."""
    monkeypatch.setattr(background_jobs, "REFRESH_SECONDS", PAUSE)
    point_at(tmp_path, write_build(tmp_path, "build-0001", [make_post("ink")]))
    async with make_edge(exclusive=True, BUILD_DIR=str(tmp_path), SITE_URL=SITE_URL) as edge:
        builds = edge.service[BuildManager]
        assert not is_looked_through(builds.build())
        gone = weakref.ref(builds.build())

        point_at(tmp_path, write_build(tmp_path, "build-0002", [make_post("paper")]))
        assert await comes_true(lambda: builds.build().head.build_id == "build-0002")
        assert await comes_true(lambda: not is_looked_through(builds.build()))
        assert gone() is None


async def test_an_edge_freezes_its_objects_after_warming(make_edge: EdgeMaker) -> None:
    """The SDK is loaded with the first message, and stays."""
    async with make_edge(exclusive=True) as edge:
        newcomer = Knot()
        assert is_looked_through(newcomer)

        await Agent(edge, await edge.token(), MODERN).ask("tools/list")
        assert not is_looked_through(newcomer)


async def test_commands_do_not_freeze_objects(make_edge: EdgeMaker) -> None:
    """Commands are soon gone."""
    async with make_edge():
        newcomer = Knot()
        assert is_looked_through(newcomer)
        assert gc.get_freeze_count() == 0
