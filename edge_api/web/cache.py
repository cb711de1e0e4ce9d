"""Things kept in memory up to a number of bytes: the least recently used go first."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

Kept = TypeVar("Kept")

CACHE_MOST: Final = 64 * 1024 * 1024
"""Bytes; some 10,000 pages of a journal in their compressed form."""


class SizedCache(Generic[Kept]):
    """Keeps answers by a key of the caller's."""

    def __init__(self, most: int = CACHE_MOST) -> None:
        self._kept: OrderedDict[Hashable, tuple[Kept, int, object]] = OrderedDict()
        self._most = most
        self._size = 0

    def get(self, key: Hashable) -> Kept | None:
        """Return what is kept under `key`."""
        entry = self._kept.get(key)
        if entry is None:
            return None
        self._kept.move_to_end(key)
        return entry[0]

    def keep(self, key: Hashable, value: Kept, size: int, owner: object = None) -> None:
        """Keep `value` of `size` bytes; what alone is larger than the cache is not kept.

        `owner` lives as long, so that its identity may be part of the key; its size is part of
        `size`.
        """
        replaced = self._kept.pop(key, None)
        self._size -= replaced[1] if replaced else 0
        if size > self._most:
            return
        self._size += size
        self._kept[key] = (value, size, owner)
        while self._size > self._most:
            _, (_, gone, _) = self._kept.popitem(last=False)
            self._size -= gone
