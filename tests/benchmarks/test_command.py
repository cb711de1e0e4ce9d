import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.__main__ import PARTS
from benchmarks.ground import Ground
from benchmarks.parts import pages, reading
from benchmarks.section import Section
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


@pytest.mark.parametrize("minutes", ["0.0", "many"])
def test_invalid_minutes_are_refused(minutes: str) -> None:
    """With an example."""
    result = run(f"--minutes={minutes}")

    assert result.returncode == 2
    assert "is no number of minutes, like 20 or 0.5" in result.stderr


def test_a_part_that_fails_is_named_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report has what was measured, and the status says that something is missing."""

    def fail(_ground: Ground) -> Section:
        raise SystemExit("there is no wrk")

    monkeypatch.setattr(reading, "measure", fail)
    monkeypatch.setattr(pages, "measure", lambda _ground: Section("Pages", "How."))
    given = ["python", "--report", str(tmp_path), "--ground", str(tmp_path), "reading", "pages"]
    monkeypatch.setattr(sys, "argv", given)
    monkeypatch.setattr(command, "come_first", lambda: None)

    assert command.main() == 1
    assert "NOT MEASURED: reading: there is no wrk" in capsys.readouterr().err
    assert "## Pages" in (tmp_path / "README.md").read_text()


def test_the_help_has_an_example_and_each_default() -> None:
    """It says what happens, too."""
    said = " ".join(run("--help").stdout.split())

    assert "Measure the service and the build beside their peers" in said
    assert "example: python -m benchmarks --report" in said
    assert said.count("(default: ") == 5


@pytest.mark.parametrize("part", PARTS)
def test_every_part_can_be_measured(part: str) -> None:
    """Each name is a module with its measurement."""
    assert callable(import_module(f"benchmarks.parts.{part}").measure)
