"""Desks for the tests of the site build."""

import shutil
from pathlib import Path

import pytest

from tests.site_build.workbench import JOURNAL, Desk


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
