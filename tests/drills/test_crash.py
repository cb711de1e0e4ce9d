"""Acknowledged rows survive a kill at any moment, and the drill would notice if they did not."""

from pathlib import Path

import pytest

from tests.drills.crash import drill
from tests.drills.targets import EdgeTarget, StoreTarget
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

STORE_KILLS = scaled(test=10, ci=60, judge=200)
EDGE_KILLS = scaled(test=5, ci=20, judge=200)
"""The edge takes twice as long to start."""
HASTY_KILLS = 60
"""At the most: a single one has about an even chance to fall between answer and commit."""
HASTY = ("-m", "tests.drills.hasty")


@pytest.mark.size("test", grows=True)
@pytest.mark.parametrize(("make", "kills"), [(StoreTarget, STORE_KILLS), (EdgeTarget, EDGE_KILLS)])
async def test_no_acknowledged_row_is_lost(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    make: type[StoreTarget | EdgeTarget],
    kills: int,
) -> None:
    """It is killed under eight writers, opened again, and holds all that it has said, whole."""
    report = await drill(make(tmp_path / "edge.db"), kills)
    with capsys.disabled():
        print(f"\n{make.__name__}: {report}")  # noqa: T201  what a person wants of a drill

    assert (report.kills, report.lost, report.halves) == (kills, set(), set())
    assert len(report.acknowledged) >= kills


async def test_a_store_that_answers_before_the_commit_is_caught(tmp_path: Path) -> None:
    """A writer that answers an instant too early loses rows in the same drill."""
    target = StoreTarget(tmp_path / "edge.db", HASTY)
    report = await drill(target, HASTY_KILLS, until_lost=True)

    assert report.lost
    assert report.lost <= report.acknowledged


@pytest.mark.size("ci")
async def test_an_edge_that_answers_before_the_commit_is_caught(tmp_path: Path) -> None:
    """Over HTTP too: an answer that has left the process too early is missed afterwards."""
    target = EdgeTarget(tmp_path / "edge.db", (*HASTY, "serve"))
    report = await drill(target, HASTY_KILLS, until_lost=True)

    assert report.lost
