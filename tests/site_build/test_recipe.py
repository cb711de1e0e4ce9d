"""Causes for a new build of everything: no library and no file that shows in pages is forgotten."""

import sys
import unicodedata
import zlib
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


def test_a_patch_release_of_python_makes_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its minor version counts, and so do the libraries that it brings with it."""
    before = fingerprint_code()
    monkeypatch.setattr(sys, "version", "3.11.99 (main, Jan  1 2027, 00:00:00) [GCC 15.1.0]")
    monkeypatch.setattr(sys, "version_info", (*sys.version_info[:2], 99, "final", 0))
    fingerprint_code.cache_clear()
    assert fingerprint_code() == before

    fingerprints = {before}
    for module, name, value in (
        (sys.implementation, "cache_tag", "cpython-399"),
        (zlib, "ZLIB_RUNTIME_VERSION", "9.9.9"),
        (unicodedata, "unidata_version", "99.0.0"),
    ):
        monkeypatch.setattr(module, name, value)
        fingerprint_code.cache_clear()
        fingerprints.add(fingerprint_code())
    monkeypatch.undo()
    fingerprint_code.cache_clear()

    assert len(fingerprints) == 4
    assert fingerprint_code() == before


def test_the_recipe_names_every_file_that_the_program_reads_beside_itself() -> None:
    """A change of a text that the code fills in is a change of the code."""
    for folder in SOURCES:
        files = {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}
        others = {path for path in files if {"static", "starter"} & set(path.parts)}
        assert files - others == {path for path in list_sources(folder) if path not in others}
