"""Every answer is sent once whenever the edge is killed, and none that was taken back."""

from pathlib import Path

import pytest

from tests.drills.answers import drill
from tests.edge.engines import placed
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")
KILLS = scaled(test=4, ci=20, judge=200)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
@pytest.mark.size("test", grows=True)
async def test_no_answer_is_lost_and_none_sent_that_was_taken_back(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice only where a kill fell between the relay's yes and the commit, once a kill at most."""
    with placed(engine, request, tmp_path) as url:
        report = await drill(url, tmp_path, KILLS)
    with capsys.disabled():
        print(f"\nanswers on {engine}: {report}")  # noqa: T201  what a person wants of a drill

    assert report.kills == KILLS
    assert report.written
    assert report.undone
    found = report.lost, report.sent_all_the_same, report.half_undone, report.renamed
    assert found == (set(), set(), set(), set())
    assert report.duplicates <= KILLS
