"""What the journal and the papers tell people to run does run, and prints what they say."""

import shutil
from pathlib import Path

import pytest

from tests.content.fences import RUN, fits, read_fences
from tests.content.workshop import ROOT, Workshop, open_workshop

PAPERS = sorted(
    [
        *ROOT.glob("content/**/*.md"),
        *ROOT.glob("docs/*.md"),
        ROOT / "README.md",
    ]
)
NAMES = [str(path.relative_to(ROOT)) for path in PAPERS]


def find_faults(text: str, workshop: Workshop) -> list[str]:
    """Run every block of `text` in order; return what went wrong, up to the first block that fails.

    A block that fails ends the run, since those behind it build on it.
    """
    faults: list[str] = []
    for fence in read_fences(text):
        if fence.language not in RUN:
            continue
        try:
            printed = workshop.run(fence)
        except AssertionError as failure:
            return [*faults, f"line {fence.line}: {failure}"]
        if fence.output is not None and not fits(fence.output, printed):
            faults.append(f"line {fence.line} printed:\n{printed}")
    return faults


@pytest.mark.parametrize("path", PAPERS, ids=NAMES)
def test_every_block_of_code_runs(path: Path, checkout: Path, tmp_path: Path) -> None:
    """A reader who copies the blocks of a paper one after another sees what the paper shows."""
    text = path.read_text(encoding="utf-8")
    if not any(fence.language in RUN for fence in read_fences(text)):
        return
    folder = tmp_path / "checkout"
    shutil.copytree(checkout, folder, symlinks=True)
    with open_workshop(folder) as workshop:
        faults = find_faults(text, workshop)
    assert not faults, "\n\n".join(faults)
