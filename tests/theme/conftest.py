"""The theme's files as its tests see them, and a site that is built with them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest

from edge_api.schema.template_language import make_environment
from site_build.addresses import DEFAULT_ADDRESSES
from site_build.build.assets import Assets
from tests.own_journal import TEST_CONTENT

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
THEME = ROOT / "theme"
SITE_URL = "https://journal.example"


@pytest.fixture(scope="session")
def style() -> str:
    """Return the style sheet of every page."""
    return (THEME / "static" / "style.css").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def templates() -> jinja2.Environment:
    """Return an environment in which a name that nobody gives is an error."""
    environment = make_environment(
        jinja2.FileSystemLoader(THEME / "templates"), jinja2.StrictUndefined
    )
    environment.globals["asset"] = Assets(THEME / "static").locate
    environment.globals["addresses"] = DEFAULT_ADDRESSES._asdict()
    return environment


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the public folder of a site: posts that are hard on a theme, and pages."""
    folder = tmp_path_factory.mktemp("theme")
    shutil.copytree(HERE / "content", folder / "content")
    shutil.copytree(TEST_CONTENT / "pages", folder / "content" / "pages")
    build = [sys.executable, "-m", "pelican", str(folder / "content"), "-o", str(folder / "site")]
    said = subprocess.run(
        [*build, "-s", str(HERE / "strict_settings.py"), "-e", 'BUILD_NOW="2026-06-01"'],
        cwd=folder,
        env={
            **os.environ,
            "SITE_URL": SITE_URL,
            "BUILD_DIR": str(folder / "build"),
            "ACCESS_REQUESTS": "on",
        },
        check=False,
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    return folder / "site"
