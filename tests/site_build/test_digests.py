"""The bytes of sites: built from nothing, after an edit, and with a post less."""

import json
from pathlib import Path

import pytest

from tests.site_build.digests import FILE, SITES, make_digests

pytestmark = pytest.mark.size("ci")


@pytest.mark.parametrize("name", SITES)
def test_a_site_has_its_recorded_digests(tmp_path: Path, name: str) -> None:
    """For an intended change, `python -m tests.site_build.digests` writes the digests anew."""
    expected = json.loads(FILE.read_text("utf-8"))[name]

    assert make_digests(SITES[name], tmp_path) == expected
