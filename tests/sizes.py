"""The four sizes of a test run, and numbers that grow with them.

A test says the smallest run that it is part of: `pytest.mark.size("test")`. Without that mark it is
quick. `make quick` and `make test` run all that is of their size or a smaller one. `.ci/run` runs
`make test` and then what that left out; `make judge` runs what both left out (`--above`).

A test that is marked `alone` has a judge with a clock of its own: `tools/prove` leaves it out, and
the last step of `.ci/run` has it, with nothing beside it.

A test that does more in a larger run, such as more kills of a drill, says `grows=True`: it runs
again in each of them.
"""

import re
from collections.abc import Iterable
from typing import Any

import pytest

SIZES = ("quick", "test", "ci", "judge")
"""From the smallest to the largest: `make quick`, `make test`, `.ci/run`, `make judge`."""
DEFAULT = "ci"
"""The size of a plain `pytest`."""

FOUND = pytest.StashKey[dict[str, list[pytest.Mark]]]()
"""The marks of size of each test that was collected, by its name; deselected tests too."""
_MARK_OF_FILE = re.compile(r'^pytestmark = .*\bpytest\.mark\.size\("(\w+)"', re.MULTILINE)

_chosen = DEFAULT


def choose(size: str) -> None:
    """Set the size of this run, which `scaled` returns numbers for."""
    global _chosen  # noqa: PLW0603  one run has one size
    _chosen = size


def scaled(**numbers: int) -> int:
    """Return the number of this run's size, or of the next smaller size that has a number.

    A run that is smaller than all of them only imports the test; it gets the smallest number.
    """
    fitting = [size for size in SIZES[: SIZES.index(_chosen) + 1] if size in numbers]
    return numbers[fitting[-1] if fitting else min(numbers, key=SIZES.index)]


def in_ci(*cases: Any) -> list[Any]:
    """Return cases of a parametrized test that `make test` leaves out: one like them is enough."""
    wrapped = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        wrapped.append(pytest.param(*values, marks=pytest.mark.size("ci")))
    return wrapped


def is_whole() -> bool:
    """Return whether this is the largest run."""
    return _chosen == SIZES[-1]


def size_of(marks: Iterable[pytest.Mark]) -> str:
    """Return the size of a test with those marks: the largest that one of them says."""
    return max((mark.args[0] for mark in marks), key=SIZES.index, default=SIZES[0])


def size_of_file(text: str) -> str:
    """Return the size that a file's `pytestmark` says, on one line, without importing the file."""
    found = _MARK_OF_FILE.search(text)
    return found[1] if found else SIZES[0]


def is_run(marks: Iterable[pytest.Mark], size: str, above: str | None) -> bool:
    """Return whether a run has a test with those marks, if a run of size `above` was before it."""
    marks = list(marks)
    needed = SIZES.index(size_of(marks))
    if above is None or needed > SIZES.index(above):
        return needed <= SIZES.index(size)
    return any(mark.kwargs.get("grows") for mark in marks)
