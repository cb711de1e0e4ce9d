"""Workbenches for the tests of the site build."""

import shutil
from pathlib import Path

import pytest

from tests.site_build.workbench import JOURNAL, ROOT, Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """Return a workbench with a copy of the small journal."""
    shutil.copytree(JOURNAL, tmp_path / "content")
    return Workbench(tmp_path / "content", tmp_path / "build")


@pytest.fixture
def empty_bench(tmp_path: Path) -> Workbench:
    """Return a workbench whose content folder is empty."""
    (tmp_path / "content").mkdir()
    return Workbench(tmp_path / "content", tmp_path / "build")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of all that a build needs, to work on its theme."""
    folder = tmp_path / "project"
    for part in ("site_build", "theme", "edge_api/schema"):
        shutil.copytree(ROOT / part, folder / part)
    for part in ("edge_api/__init__.py", "pelicanconf.py"):
        shutil.copy(ROOT / part, folder / part)
    return folder
