"""Measures the pictures of the content folder, in processes and through the cache.

A picture is unpacked once, to see that it can be; after that its digest tells.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from site_build.incremental.cache import Cache, make_key
from site_build.incremental.spread import spread
from site_build.pictures.measure import LARGEST_FILE, Measured, is_picture, measure

STAGE = "measure"

_REFUSED = "cannot be read ({}); mend its permissions"


def survey(
    content: Path, files: Sequence[str], jobs: int, cache: Cache | None = None, code: str = ""
) -> dict[str, Measured]:
    """Return the measures of every picture among `files`, by path.

    `code` says which program measures; without a cache every picture is looked at.
    """
    paths = [path for path in files if is_picture(path)]
    keys = {path: make_key(code, path, _digest(content, path)) for path in paths} if cache else {}
    known = _recall(cache, keys) if cache else {}
    unknown = [path for path in paths if path not in known]
    fresh = {unknown[at]: each for at, each in spread(partial(_look, content), unknown, jobs)}
    if cache:
        cache.put(STAGE, [(keys[path], measured) for path, measured in fresh.items()])
        cache.keep_only(STAGE, keys.values())
    return {path: known.get(path) or fresh[path] for path in paths}


def _recall(cache: Cache, keys: Mapping[str, bytes]) -> dict[str, Measured]:
    found = cache.find(STAGE, keys.values())
    kept = {path: found.get(key) for path, key in keys.items()}
    return {path: measured for path, measured in kept.items() if isinstance(measured, Measured)}


def _look(content: Path, path: str) -> Measured:
    try:
        data = _read(content, path)
    except OSError as refusal:
        return Measured(None, _REFUSED.format(refusal.strerror))
    return measure(path, data)


def _digest(content: Path, path: str) -> str:
    """Return the digest of a file; of one that cannot be read, an empty string."""
    try:
        return hashlib.sha256(_read(content, path)).hexdigest()
    except OSError:
        return ""


def _read(content: Path, path: str) -> bytes:
    """Return a file's bytes, cut one byte behind the largest size that is looked at."""
    with (content / path).open("rb") as file:
        return file.read(LARGEST_FILE + 1)
