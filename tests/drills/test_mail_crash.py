"""Every lead is notified, whenever the dispatcher is killed; the drill would notice a loss."""

from pathlib import Path

import pytest

from tests.drills.mail import LEADS_A_LIFE, drill
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

KILLS = scaled(test=5, ci=20, judge=200)
HASTY_KILLS = 3
HASTY = ("-m", "tests.drills.hasty_mail")


@pytest.mark.size("test", grows=True)
async def test_no_notification_is_lost_or_repeated_without_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each lead is notified once; twice only where the relay's yes had not been stored."""
    report = await drill(tmp_path / "edge.db", KILLS)
    with capsys.disabled():
        print(f"\nmail: {report}")  # noqa: T201  what a person wants of a drill

    assert (report.kills, len(report.leads)) == (KILLS, KILLS * LEADS_A_LIFE)
    assert (report.lost, report.renamed, report.repeated_without_need) == (set(), set(), [])
    assert report.duplicates == len(report.unrecorded) <= KILLS
    assert len({life for life, _ in report.unrecorded}) == len(report.unrecorded)
    assert set(report.ids) == report.recorded[-1]
    assert len(report.ids) == len(report.leads)


@pytest.mark.size("ci")
async def test_a_dispatcher_that_logs_before_it_sends_is_caught(tmp_path: Path) -> None:
    """One that stores `sent` an instant too early loses notifications."""
    report = await drill(tmp_path / "edge.db", HASTY_KILLS, HASTY, moments=("recipient",))

    assert report.lost
