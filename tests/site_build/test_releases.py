"""Builds side by side: what the links `current`, `previous` and `next` name."""

import pytest

from site_build.releases.release import build, serve_prepared
from tests.site_build.workbench import Desk

pytestmark = pytest.mark.size("test")

LATER = "2026-06-01T12:00:00Z"
"""The instant of the small journal's scheduled post."""


def named(desk: Desk, link: str) -> str:
    """Return the name of the build that a link names."""
    return (desk.output / link).readlink().name


def test_an_unchanged_build_keeps_the_way_back(desk: Desk) -> None:
    """However often the same is built, `previous` names what was served before it."""
    first = desk.build().name
    desk.post("fresh")
    second = desk.build().name
    assert (named(desk, "current"), named(desk, "previous")) == (second, first)

    for _ in range(2):
        assert desk.build().name == second
        assert named(desk, "previous") == first
    assert not (desk.output / first / "site" / "journal" / "fresh").exists()


def test_a_prepared_build_that_is_served_already_keeps_the_way_back(desk: Desk) -> None:
    """Somebody built by hand at its instant, before the watcher looked at its clock."""
    first = desk.build().name
    prepared = build(desk.order(LATER), is_ahead=True).build_id
    assert desk.build(LATER).name == prepared

    assert serve_prepared(desk.output, prepared)
    assert (named(desk, "current"), named(desk, "previous")) == (prepared, first)
    assert not (desk.output / "next").is_symlink()
