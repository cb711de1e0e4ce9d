"""What was acknowledged survives a kill at any moment, and the drill would notice if not."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent
KILLS = int(os.environ.get("DRILL_KILLS", "12"))
"""`make judge` asks for 200."""


@pytest.fixture(scope="module")
def crash() -> ModuleType:
    """Return the drill, which is a program of its own as well."""
    spec = importlib.util.spec_from_file_location("crash_drill", HERE / "crash.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_no_acknowledged_lead_is_lost(crash: ModuleType, tmp_path: Path) -> None:
    """Every lead that was answered with 201 is there after the kills."""
    seen = crash.drill(crash.PRODUCT, KILLS, tmp_path)

    assert len(seen.acknowledged) > KILLS
    assert seen.lost == set()


def test_drill_notices_answers_before_the_commit(crash: ModuleType, tmp_path: Path) -> None:
    """The same drill finds lost leads where the answer comes first."""
    seen = crash.drill(("-m", "tests.drills.answers_early"), 6, tmp_path)

    assert len(seen.lost) > 0
