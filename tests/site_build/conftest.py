"""Desks for the tests of the site build."""

import shutil
from pathlib import Path

import pytest

from tests.site_build.workbench import JOURNAL, ROOT, Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk with a copy of the small journal."""
    shutil.copytree(JOURNAL, tmp_path / "content")
    return Desk(tmp_path / "content", tmp_path / "build")


@pytest.fixture
def empty_desk(tmp_path: Path) -> Desk:
    """Return a desk whose content folder is empty."""
    (tmp_path / "content").mkdir()
    return Desk(tmp_path / "content", tmp_path / "build")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of all that a build needs, to work on its theme."""
    folder = tmp_path / "project"
    for part in ("site_build", "theme", "edge_api/schema"):
        shutil.copytree(ROOT / part, folder / part)
    for part in ("edge_api/__init__.py", "pelicanconf.py"):
        shutil.copy(ROOT / part, folder / part)
    return folder
