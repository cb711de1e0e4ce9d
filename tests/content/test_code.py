"""The code blocks of the journal and the documentation run, and print what they say."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.content.fences import RUN, fits, read_fences
from tests.content.workshop import ROOT, TAUGHT, Workshop, open_workshop

pytestmark = pytest.mark.size("test")

WRONG = """\
```bash
echo "as promised"
```

```output
as promised
```

```python
print("not as promised")
```

```output
as promised
```

```js
import { missing } from "./nowhere.mjs";
```

```bash
echo "never reached"
```
"""

OpenWorkshop = Callable[..., AbstractContextManager[Workshop]]
FOLLOWING = ("connect.md",)
"""Papers whose blocks follow addresses that the edge names."""
SHOWING_OWN_POSTS = ("README.md", "docs/api.md", "docs/connect.md", "docs/editors.md")
"""Papers of the product whose outputs show posts of this project."""
READ_FIRST = ("README.md",)
"""Papers that each run of `make test` has; the larger runs have all."""


@pytest.fixture
def opened(checkout: Path, tmp_path: Path) -> OpenWorkshop:
    """Return what opens a workshop in a fresh copy of the checkout."""

    @contextmanager
    def open_copy(**more: bool) -> Iterator[Workshop]:
        folder = tmp_path / "checkout"
        shutil.copytree(checkout, folder, symlinks=True)
        with open_workshop(folder, **more) as workshop:
            yield workshop

    return open_copy


def find_faults(text: str, workshop: Workshop) -> list[str]:
    """Run the blocks of `text` in order; return what went wrong.

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
        if fence.output is not None and not fits(fence.output, printed, varies=fence.varies):
            faults.append(f"line {fence.line} printed:\n{printed}")
    return faults


def name_of(path: Path) -> str:
    """Return a paper's name, as its test is called by it."""
    return str(path.relative_to(ROOT))


def has_code(path: Path) -> bool:
    """Return whether a paper has blocks that run."""
    return any(fence.language in RUN for fence in read_fences(path.read_text(encoding="utf-8")))


def marks_of(path: Path) -> list[pytest.MarkDecorator]:
    """Return which runs have a paper."""
    is_first = name_of(path) in READ_FIRST
    size = "test" if is_first or name_of(path) in changed_papers() else "ci"
    own = [pytest.mark.own_posts] * (name_of(path) in SHOWING_OWN_POSTS)
    return [pytest.mark.size(size), *own]


@cache
def changed_papers(checkout: Path = ROOT) -> frozenset[str]:
    """Return the papers that are new or changed since the last commit: `make test` has them too."""
    commands = (
        ["git", "diff", "--name-only", "HEAD", "--", "*.md"],
        ["git", "ls-files", "--others", "--exclude-standard", "--", "*.md"],
    )
    listed = [
        subprocess.run(command, cwd=checkout, check=False, capture_output=True, text=True).stdout
        for command in commands
    ]
    return frozenset("".join(listed).splitlines())


RUNNING = [pytest.param(path, marks=marks_of(path)) for path in TAUGHT if has_code(path)]


@pytest.mark.parametrize("path", RUNNING, ids=name_of)
def test_every_block_of_code_runs(path: Path, opened: OpenWorkshop) -> None:
    """A reader who copies the blocks of a paper one after another sees what the paper shows."""
    with opened(knows_its_port=path.name in FOLLOWING) as workshop:
        faults = find_faults(path.read_text(encoding="utf-8"), workshop)
    assert not faults, "\n\n".join(faults)


def test_papers_that_are_new_or_changed_are_found(tmp_path: Path) -> None:
    """A paper that is not committed yet is new; what is committed, or is no paper, is not."""
    for name in ("same.md", "changed.md"):
        (tmp_path / name).write_text("Words.\n")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    for name in ("changed.md", "new.md", "new.txt"):
        (tmp_path / name).write_text("Other words.\n")

    assert changed_papers(tmp_path) == {"changed.md", "new.md"}


@pytest.mark.parametrize(
    ("sample", "printed", "is_fit"),
    [
        ("9 posts in 0.4 s", "10 posts in 12.25 s", True),
        ("20260101T0000Z-1f", "20261120T0930Z-a0", True),
        ("9 posts in 0.4 s", "9 pages in 0.4 s", False),
        ("9 posts", "9 posts\n8 posts", False),
    ],
)
def test_figures_of_a_sample_may_differ(sample: str, printed: str, *, is_fit: bool) -> None:
    """Words and lines are what they were; of an output everything is, figures too."""
    assert fits(sample, printed, varies=True) is is_fit
    assert not fits(sample, printed)


def test_a_wrong_paper_is_noticed(opened: OpenWorkshop) -> None:
    """A block that prints something else is reported, and one that fails ends the run."""
    with opened() as workshop:
        faults = find_faults(WRONG, workshop)

    assert [fault.partition(":")[0].partition(" printed")[0] for fault in faults] == [
        "line 9",
        "line 17",
    ]
    assert "not as promised" in faults[0]
    assert "nowhere.mjs" in faults[1]
