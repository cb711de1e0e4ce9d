"""Digests of source files: one that looks as it did is not read again.

An editor that keeps the time of a file changes its `ctime` all the same. What was changed a moment
ago may be changed once more in the same instant, so that such a look is not remembered.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from site_build.incremental.cache import Cache, make_key
from site_build.reading.folder import GONE, Look, digest_file, look_at

_STAGE = "digest"
_SETTLED = 2_000_000_000
"""Nanoseconds after which a change shows in the times of a file, however coarse they are."""


def digest_sources(content: Path, paths: Iterable[str], cache: Cache) -> dict[str, str]:
    """Return the SHA-256 of each file, by path; an empty string where it cannot be read."""
    key, settled = make_key(os.fspath(content.absolute())), time.time_ns() - _SETTLED
    kept = cache.get(_STAGE, key)
    known: dict[str, tuple[Look, str]] = kept if isinstance(kept, dict) else {}
    digests: dict[str, str] = {}
    fresh: dict[str, tuple[Look, str]] = {}
    for path in paths:
        look, held = look_at(f"{content}/{path}"), known.get(path)
        digest = held[1] if held and held[0] == look else digest_file(content, path)
        if look != GONE and digest and look.ctime < settled:
            fresh[path] = look, digest
        digests[path] = digest
    if fresh != known:
        cache.put(_STAGE, [(key, fresh)])
        cache.keep_only(_STAGE, [key])
    return digests
