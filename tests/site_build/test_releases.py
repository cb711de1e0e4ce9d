"""Builds side by side: what the links `current`, `previous` and `next` name."""

import pytest

from site_build.releases.release import build, serve_prepared
from tests.site_build.workbench import Workbench

pytestmark = pytest.mark.size("test")

LATER = "2026-06-01T12:00:00Z"
"""The instant of the small journal's scheduled post."""


def named(bench: Workbench, link: str) -> str:
    """Return the name of the build that a link names."""
    return (bench.output / link).readlink().name


def test_an_unchanged_build_keeps_the_previous_link(bench: Workbench) -> None:
    """However often the same is built, `previous` names what was served before it."""
    first = bench.build().name
    bench.post("fresh")
    second = bench.build().name
    assert (named(bench, "current"), named(bench, "previous")) == (second, first)

    for _ in range(2):
        assert bench.build().name == second
        assert named(bench, "previous") == first
    assert not (bench.output / first / "site" / "journal" / "fresh").exists()


def test_serving_a_prepared_build_again_keeps_the_previous_link(bench: Workbench) -> None:
    """Somebody built by hand at its instant, before the watcher looked at its clock."""
    first = bench.build().name
    prepared = build(bench.order(LATER), is_ahead=True).build_id
    assert bench.build(LATER).name == prepared

    assert serve_prepared(bench.output, prepared, keeps_second_spare=False)
    assert (named(bench, "current"), named(bench, "previous")) == (prepared, first)
    assert not (bench.output / "next").is_symlink()
