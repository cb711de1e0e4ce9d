"""The tests of each run: no test is left out by all of them."""

import re

import pytest

from tests.scaled_numbers import (
    ROOT,
    find_faults,
    find_users,
    read_modules,
    read_tests,
    size_of_module,
)
from tests.sizes import FOUND, SIZES, is_run, scaled, size_of, size_of_file

RUN = re.compile(r"--size=(\w+)(?: --above=(\w+))?")
NEEDS_MORE = {"chromium", "postgresql", "judges", "installed"}
"""Fixtures that a quick run does without: a browser, PostgreSQL, and what npm installs."""

PLANTED = {
    "tests/part/conftest.py": """
COUNT = scaled(test=1, judge=9)
def rows(other): return [COUNT]
""",
    "tests/part/helper.py": "KILLS = scaled(quick=1, test=2, ci=3)\ndef kill(): return KILLS",
    "tests/part/test_rows.py": """
pytestmark = [mark.one_engine, mark.size("test")]
def test_rows(rows): pass
@pytest.mark.size("ci")
def test_dead(): scaled(test=1, ci=2)
def test_none(): pass
@pytest.mark.size("judge", grows=True)
def test_late(): scaled(judge=2)
""",
    "tests/part/test_kills.py": """
from tests.part.helper import kill as end
@pytest.mark.size("test", grows=True)
def test_kills(): end()
""",
}
"""Tests whose numbers are wrong, by their files."""


def runs_of(*names: str) -> list[tuple[str, str | None]]:
    """Return size and `--above` of each run that these files start."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    return [(size, above or None) for text in texts for size, above in RUN.findall(text)]


def marked(*marks: pytest.MarkDecorator) -> list[pytest.Mark]:
    """Return marks as a test has them."""
    return [each.mark for each in marks]


def test_there_are_four_runs() -> None:
    """`make quick` and `make test` have all of their size; the others what was left out before.

    `.ci/run` has the quick tests of the store once more, on a newer SQLite.
    """
    assert runs_of("Makefile") == [("quick", None), ("test", None), ("judge", "ci")]
    assert runs_of(".ci/run") == [("ci", "test"), ("quick", None)]
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_tests_marked_alone_run_last() -> None:
    """`tools/prove` leaves it out, and the last run of `.ci/run` has it and nothing else."""
    prove = (ROOT / "tools" / "prove").read_text(encoding="utf-8")
    last = (ROOT / ".ci" / "run").read_text(encoding="utf-8").rpartition("-m pytest ")[2]
    options = last.partition(" <")[0]

    assert ' -m "not alone" ' in prove
    assert options == "-m alone tests/judges"
    assert "tools/prove" not in last


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
    """Each test of a file that this run imports is in `.ci/run` or `make judge`."""
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


def test_each_number_is_used_in_the_run_that_it_names() -> None:
    """A test has none for runs too small for it, and grows where it has one for a larger run."""
    texts = read_tests()
    del texts["tests/test_sizes.py"]  # asks `scaled` itself
    modules = read_modules(texts)

    assert len(find_users(modules)) > 20
    assert find_faults(modules) == []


def test_a_number_that_no_run_uses_is_found() -> None:
    """It is found where a helper or a fixture makes it, too."""
    assert find_faults(read_modules(PLANTED)) == [
        "tests/part/conftest.py:2: scaled(judge=...): none of its tests grows, or is of that size",
        "tests/part/helper.py:1: scaled(quick=...): the smallest run of its tests is test",
        "tests/part/test_rows.py:5: scaled(test=...): the smallest run of its tests is ci",
    ]


def test_a_file_is_imported_unless_all_its_tests_are_of_a_larger_size(
    request: pytest.FixtureRequest,
) -> None:
    """A run reads the size of a file from its text, and that is what `pytestmark` says."""
    texts = {
        path: text for path, text in read_tests().items() if path.rpartition("/")[2][:5] == "test_"
    }
    modules = read_modules(texts)
    sizes = {path: size_of_file(text) for path, text in texts.items()}
    marked = {path: size_of_module(modules[path[:-3].replace("/", ".")]) for path in texts}
    chosen = SIZES.index(request.config.getoption("size"))
    ignore = request.config.hook.pytest_ignore_collect

    assert set(sizes.values()) == set(SIZES)
    assert sizes == marked
    assert {
        path for path in texts if ignore(collection_path=ROOT / path, config=request.config)
    } == {path for path, size in sizes.items() if SIZES.index(size) > chosen}


def test_only_its_size_leaves_a_test_out() -> None:
    """No test is skipped, and no file is ignored, for another reason."""
    leaving = re.compile(r"collect_[i]gnore|mark\.[s]kip|pytest\.[s]kip\(|import[o]rskip")

    assert [name for name, text in read_tests().items() if leaving.search(text)] == []
