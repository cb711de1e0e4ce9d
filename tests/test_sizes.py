"""Which run has which test, and that no test is left out by all of them."""

import re
from pathlib import Path

import pytest

from tests.sizes import FOUND, SIZES, is_run, scaled, size_of

ROOT = Path(__file__).resolve().parent.parent
RUN = re.compile(r"--size=(\w+)(?: --above=(\w+))?")
NEEDS_MORE = {"chromium", "postgresql", "judges", "installed"}
"""Fixtures that a quick run does without: a browser, PostgreSQL, and what npm installs."""


def runs_of(*names: str) -> list[tuple[str, str | None]]:
    """Return size and `--above` of each run that these files start."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    return [(size, above or None) for text in texts for size, above in RUN.findall(text)]


def marked(*marks: pytest.MarkDecorator) -> list[pytest.Mark]:
    """Return marks as a test has them."""
    return [each.mark for each in marks]


def test_the_runs_are_four() -> None:
    """`make quick` and `make test` have all of their size; the others what was left out before."""
    assert runs_of("Makefile") == [("quick", None), ("test", None), ("judge", "ci")]
    assert runs_of(".ci/run") == [("ci", "test")]
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("grows", [False, True])
def test_ci_and_judge_together_leave_no_size_out(size: str, *, grows: bool) -> None:
    """A test of each size is in one run; one that grows is in each run from its own size on."""
    marks = marked(pytest.mark.size(size, grows=grows))
    runs = [run for run in runs_of("Makefile", ".ci/run") if run != ("quick", None)]
    having = sorted(
        (run for run in runs if is_run(marks, *run)), key=lambda run: SIZES.index(run[0])
    )
    own = max(SIZES.index(size), SIZES.index("test"))

    assert [run[0] for run in having] == list(SIZES[own:] if grows else SIZES[own : own + 1])


def test_no_test_of_this_run_is_left_out(request: pytest.FixtureRequest) -> None:
    """Each test that was found, whether this run has it or not, is in `.ci/run` or `make judge`."""
    found = request.config.stash[FOUND]
    runs = runs_of("Makefile", ".ci/run")
    left_out = [name for name, marks in found.items() if not any(is_run(marks, *r) for r in runs)]

    assert found
    assert left_out == []


def test_a_quick_run_needs_nothing_but_python(request: pytest.FixtureRequest) -> None:
    """No quick test asks for a browser, for PostgreSQL or for a program of npm."""
    needing = [
        item.nodeid
        for item in request.session.items
        if size_of(item.iter_markers("size")) == "quick"
        and NEEDS_MORE & set(getattr(item, "fixturenames", ()))
    ]

    assert needing == []


def test_the_largest_mark_counts() -> None:
    """A test that is marked in a file that is marked runs where both say."""
    marks = marked(pytest.mark.size("ci"), pytest.mark.size("test"))

    assert size_of(marks) == "ci"
    assert size_of([]) == "quick"


def test_a_number_grows_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the size, or else of the next smaller size that has one."""
    numbers = []
    for size in SIZES:
        monkeypatch.setattr("tests.sizes._chosen", size)
        numbers.append(scaled(test=5, judge=200))

    assert numbers == [5, 5, 5, 200]


def test_no_file_is_left_out_of_collection() -> None:
    """Nothing is ignored or skipped: what a run leaves out, its marks leave out."""
    leaving = re.compile(r"collect_[i]gnore|mark\.[s]kip|pytest\.[s]kip\(|import[o]rskip")
    files = (ROOT / "tests").rglob("*.py")
    texts = {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for file in files
        if "node_modules" not in file.parts
    }

    assert [name for name, text in texts.items() if leaving.search(text)] == []
