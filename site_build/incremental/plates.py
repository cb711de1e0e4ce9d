"""Pictures that were made once: kept in the cache as bytes, under the digest of their causes.

It knows nothing of what is in them.
"""

from collections.abc import Callable

from site_build.incremental.cache import Cache

PLATES = "plate"


class Plates:
    """Pictures by key, through the cache; `fresh` holds what the cache did not know."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.fresh: list[tuple[bytes, bytes]] = []

    def fetch(self, key: bytes, make: Callable[[], bytes]) -> bytes:
        """Return the picture kept for `key`, else what `make` returns; raises what it raises."""
        kept = self._cache.get(PLATES, key)
        if isinstance(kept, bytes):
            return kept
        data = make()
        self.fresh.append((key, data))
        return data
