"""Every subscriber gets the letter once, whenever the processes that queue and send are killed."""

from pathlib import Path

import pytest

from tests.drills.letters import drill
from tests.edge.engines import ENGINES, placed
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

KILLS = scaled(test=4, ci=20, judge=200)
PEOPLE = scaled(test=200, ci=1000, judge=10_000)


@pytest.mark.size("test", grows=True)
@pytest.mark.parametrize("engine", ENGINES)
async def test_nobody_is_skipped_and_doubles_are_the_same_message(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On one file with one process, and on PostgreSQL with two; one double a kill at the most."""
    with placed(engine, request, tmp_path) as url:
        report = await drill(url, tmp_path, PEOPLE, KILLS, 1 if engine == "sqlite" else 2)
    with capsys.disabled():
        print(f"\nletters on {engine}: {report}")  # noqa: T201  what a person wants of a drill

    assert (report.skipped, report.renamed) == (0, 0)
    assert report.doubled <= KILLS
    assert report.queued == report.logged == PEOPLE
