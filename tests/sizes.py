"""The four sizes of a test run, and numbers that grow with them.

A test says the smallest run that it is part of: `pytest.mark.size("test")`. Without that mark it is
part of each run. The larger runs have it too, so that what a run leaves out is in a larger one.

A test that does more in a larger run, such as more kills of a drill, says `grows=True`: it runs
again where a run covers only what a smaller one left out (`--above`).
"""

from collections.abc import Iterable
from typing import Any

import pytest

SIZES = ("quick", "test", "ci", "judge")
"""From the smallest to the largest: `make quick`, `make test`, `.ci/run`, `make judge`."""
DEFAULT = "ci"
"""What plain `pytest` runs."""

FOUND = pytest.StashKey[dict[str, list[pytest.Mark]]]()
"""What was collected, by its name, before a run left any of it out: the marks of its size."""

_chosen = DEFAULT


def choose(size: str) -> None:
    """Have numbers as they are in a run of that size."""
    global _chosen  # noqa: PLW0603  one run has one size
    _chosen = size


def scaled(**numbers: int) -> int:
    """Return the number for this run: that of its size, or of the next smaller one that has one.

    In a run too small for all of them, which does not run the test, it is that of the smallest.
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
    """Tell whether this is the largest run."""
    return _chosen == SIZES[-1]


def size_of(marks: Iterable[pytest.Mark]) -> str:
    """Return the size of a test with those marks: the largest that one of them says."""
    return max((mark.args[0] for mark in marks), key=SIZES.index, default=SIZES[0])


def is_run(marks: Iterable[pytest.Mark], size: str, above: str | None) -> bool:
    """Tell whether a run has a test with those marks, where one of size `above` has been before."""
    marks = list(marks)
    needed = SIZES.index(size_of(marks))
    if above is None or needed > SIZES.index(above):
        return needed <= SIZES.index(size)
    return any(mark.kwargs.get("grows") for mark in marks)
