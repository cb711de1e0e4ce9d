"""Measures the pictures of the content folder, in processes and through the cache.

A picture is unpacked once, to see that it can be; after that its digest tells.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from site_build.incremental.cache import Cache, make_key
from site_build.incremental.spread import spread
from site_build.pictures.measure import LARGEST_FILE, Measured, is_picture, measure
from site_build.reading.folder import digest_file, read_bytes

_MEASURES = "measure"

_REFUSED = "cannot be read ({}); mend its permissions"


def measure_pictures(
    content: Path, files: Sequence[str], jobs: int, cache: Cache | None = None, code: str = ""
) -> dict[str, Measured]:
    """Return the measures of every picture among `files`, by path.

    `code` says which program measures; without a cache every picture is looked at.
    """
    paths = [path for path in files if is_picture(path)]
    keys = {path: _name(content, path, code) for path in paths} if cache else {}
    known = cache.recall(_MEASURES, keys, Measured) if cache else {}
    unknown = [path for path in paths if path not in known]
    fresh = {unknown[at]: each for at, each in spread(partial(_look, content), unknown, jobs)}
    if cache:
        cache.put(_MEASURES, [(keys[path], measured) for path, measured in fresh.items()])
        cache.keep_only(_MEASURES, keys.values())
    return {path: known.get(path) or fresh[path] for path in paths}


def _look(content: Path, path: str) -> Measured:
    try:
        data = read_bytes(content, path, LARGEST_FILE)
    except OSError as refusal:
        return Measured(None, _REFUSED.format(refusal.strerror))
    return measure(path, data)


def _name(content: Path, path: str, code: str) -> bytes:
    """Return the key for the measures of a file as it is now."""
    return make_key(code, path, digest_file(content, path, LARGEST_FILE))
