import subprocess
import sys
from importlib import import_module

import pytest

from benchmarks.__main__ import PARTS
from tests.patience import patience

pytestmark = pytest.mark.size("test")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmarks' command."""
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=patience(120)
    )


@pytest.mark.parametrize("sizes", ["0", "100,", "many", "-5", "1,0", "1000000"])
def test_invalid_sizes_are_refused(sizes: str) -> None:
    """With an example, and before anything is measured."""
    result = run(f"--posts={sizes}")

    assert result.returncode == 2
    assert "is no list of numbers, like 100,1000" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_help_has_an_example_and_each_default() -> None:
    """It says what happens, too."""
    said = " ".join(run("--help").stdout.split())

    assert "Measure the service and the build beside their peers" in said
    assert "example: python -m benchmarks --report" in said
    assert said.count("(default: ") == 4


@pytest.mark.parametrize("part", PARTS)
def test_every_part_can_be_measured(part: str) -> None:
    """Each name is a module with its measurement."""
    assert callable(import_module(f"benchmarks.parts.{part}").measure)
