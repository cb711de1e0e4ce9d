"""Posts are written, edited by hand, committed and pulled while processes die: nothing is lost."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.drills.writing import Drill, Ledger
from tests.drills.writing_site import Site
from tests.sizes import scaled

pytestmark = pytest.mark.size("ci")

INTERLEAVINGS = scaled(ci=20, judge=500)
SEED = 51


@pytest.mark.size("ci", grows=True)
@pytest.mark.parametrize("kind", ["git", "plain"])
def test_nothing_that_was_written_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Each acknowledged change is in its post, whole; foreign ones are kept, and not committed."""
    with ExitStack() as stack:
        site = Site(tmp_path, stack, has_git=kind == "git")
        report = Drill(site, SEED).run(INTERLEAVINGS)
    with capsys.disabled():
        print(f"\n{INTERLEAVINGS} interleavings, {kind}: {report}")  # noqa: T201  for a person

    assert report.faults == []
    assert report.acknowledged > INTERLEAVINGS


def test_a_lost_line_and_a_torn_one_are_caught() -> None:
    """The ledger names what a post no longer has, and a line that was cut."""
    ledger, post = Ledger(), Path("a.md")
    ledger.written = {"s1": "s1 word end1", "h2": "h2 word end2"}
    ledger.kept["a"] = {"s1"}

    assert ledger.list_damaged(post, "s1 word end1\nh2 wo\n") == [
        "a.md has the damaged line 'h2 wo'"
    ]
    assert ledger.list_lost({"a": {"s1", "h2"}}) == []
    assert ledger.list_lost({"a": {"s1"}}) == ["a has lost h2"]
