"""A process that builds again and again keeps no open file and no entry of a search path."""

import shutil
import sys
from pathlib import Path

import psutil
import pytest

from site_build.errors import BuildError
from tests.site_build.workbench import ROOT, THEME, Workbench, run_journal

pytestmark = pytest.mark.size("test")


def list_open_caches() -> list[str]:
    """Return the cache's files that this process has open."""
    return [each.path for each in psutil.Process().open_files() if "cache.sqlite" in each.path]


@pytest.mark.parametrize(
    ("template", "source"),
    [
        ("article.html", "{{ 1 / 0 }}"),
        ("article.html", "{% if %}"),
        ("journal.html", "{% extends 'nowhere.html' %}"),
        ("contact_form.html", "{{ 1 / 0 }}"),
    ],
)
def test_a_build_that_is_stopped_leaves_no_file_open(
    bench: Workbench, tmp_path: Path, template: str, source: str
) -> None:
    """If the theme fails at the start, between or at the end, the cache is closed."""
    shutil.copytree(THEME, tmp_path / "theme")
    place = tmp_path / "theme" / "templates" / template
    place.write_text(source)

    # While the exception is held, so is everything that was at work.
    with pytest.raises(BuildError) as held:
        run_journal(bench.content, tmp_path / "output", tmp_path / "theme")

    assert list_open_caches() == []
    assert held.value.__traceback__


def test_bad_content_leaves_no_file_open(bench: Workbench, tmp_path: Path) -> None:
    """A build that refuses its content closes the cache."""
    bench.write("posts/bad.md", "no front matter")

    with pytest.raises(BuildError) as held:
        run_journal(bench.content, tmp_path / "output", BUILD_STRICT=True)

    assert list_open_caches() == []
    assert held.value.__traceback__


def test_a_build_closes_the_cache(bench: Workbench, tmp_path: Path) -> None:
    """A build that succeeds leaves no file open either."""
    run_journal(bench.content, tmp_path / "output")

    assert list_open_caches() == []


def test_builds_do_not_lengthen_the_search_path(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the settings are read, the project is on the module search path once."""
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(ROOT)])

    for _ in range(2):
        run_journal(bench.content, tmp_path / "output")

    assert sys.path.count(str(ROOT)) == 1
