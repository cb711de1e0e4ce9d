"""The cache: it keeps to its size, and what was used last stays longest."""

import pytest

from edge_api.db.caches import SizedCache

pytestmark = pytest.mark.one_engine


def test_the_least_recently_used_goes_first() -> None:
    """Over its size, the cache lets go of what nobody asked for the longest."""
    cache: SizedCache[str] = SizedCache(limit=10)
    for key in "ab":
        cache.put(key, key.upper(), 5)
    assert cache.get("a") == "A"
    cache.put("c", "C", 5)

    assert [cache.get(key) for key in "abc"] == ["A", None, "C"]


def test_a_replaced_value_counts_once() -> None:
    """A new value under an old key takes the old one's room."""
    cache: SizedCache[str] = SizedCache(limit=10)
    for value in ("old", "new"):
        cache.put("a", value, 6)
    cache.put("b", "B", 4)

    assert [cache.get("a"), cache.get("b")] == ["new", "B"]


def test_a_value_larger_than_the_cache_is_not_kept() -> None:
    """A value that outgrows the cache leaves it empty, and the cache goes on working."""
    cache: SizedCache[str] = SizedCache(limit=10)
    cache.put("a", "A", 11)
    assert cache.get("a") is None
    cache.put("b", "B", 10)

    assert cache.get("b") == "B"
