"""The measurement of swaps: a swap is followed to the reader, and one that never comes ends it."""

from itertools import islice
from pathlib import Path

import pytest

from benchmarks import swaps
from benchmarks.ground import Ground
from benchmarks.swaps import Reader, measure

pytestmark = pytest.mark.size("ci")

POSTS = 12


def test_a_swap_is_followed_to_the_reader(tmp_path: Path) -> None:
    """Back and forth; the site is built once more for the other text."""
    ground = Ground(tmp_path)
    found = list(islice(measure(ground, POSTS), 3))

    assert all(swap.seconds > 0 and swap.longest_ms > 0 and swap.calm_ms > 0 for swap in found)
    assert len({path.resolve() for path in ground.site(POSTS).glob("2*")}) >= 2


def test_a_swap_that_nobody_makes_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the address that did not change."""
    monkeypatch.setattr(swaps, "_PATIENCE", 0.5)
    monkeypatch.setattr(swaps, "_CALM", 0.1)
    ground = Ground(tmp_path)
    with ground.edge("none", posts=POSTS, leads=0) as edge:
        slug = edge.slugs()[0]
        with pytest.raises(SystemExit, match=f"/posts/{slug} does not say 'never'"):
            Reader(edge, slug).follow(lambda: None, "never")
