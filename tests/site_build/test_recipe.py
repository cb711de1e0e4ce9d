"""Causes for a new build of everything: no library and no file that shows in pages is forgotten."""

from pathlib import Path

import pytest

from site_build.build.fingerprint import SOURCES, fingerprint_code, list_sources


def test_another_release_of_a_library_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release is known by the name of its folder, wherever libraries are found."""
    monkeypatch.syspath_prepend(tmp_path)
    fingerprints = set()
    for name in ("lamp-1.0.dist-info", "lamp-1.1.dist-info"):
        folder = tmp_path / name
        folder.mkdir()
        fingerprint_code.cache_clear()
        fingerprints.add(fingerprint_code())
        folder.rmdir()
    fingerprint_code.cache_clear()
    fingerprints.add(fingerprint_code())

    assert len(fingerprints) == 3


def test_the_recipe_names_every_file_that_the_program_reads_beside_itself() -> None:
    """A change of a text that the code fills in is a change of the code."""
    for folder in SOURCES:
        files = {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}
        others = {path for path in files if path.parent.name in {"static", "starter"}}
        assert files - others == {path for path in list_sources(folder) if path not in others}
