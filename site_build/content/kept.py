"""Sources that builds keep, so that a file with a fault stays as its readers know it.

Each lies once, under the digest of its bytes, in a folder beside the builds that nobody serves; a
build lists those that its readers see. Of a file that cannot be understood, this also tells what
its author surely meant. It knows neither findings nor pages.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from site_build.site import Document

KEPT_FILE: Final = "sources.json"
"""In a build, beside the posts index: what `read_kept` returns."""
KEPT_FOLDER: Final = ".sources"
"""In BUILD_DIR: the sources of all builds that are there."""

KeptSources = Mapping[str, str]
"""The digests of sources by their paths."""


def read_kept(build: Path) -> KeptSources:
    """Return what readers of a build see; nothing where it does not say so."""
    with suppress(OSError, ValueError):
        return dict(orjson.loads((build / KEPT_FILE).read_bytes()))
    return {}


def keep_sources(folder: Path, content: Path, documents: Iterable[Document]) -> KeptSources:
    """Copy each source into `folder` unless it is there, and return those that are there then.

    One that was changed since it was read is left out. Raises OSError where it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known, kept = {*os.listdir(folder)}, {}  # noqa: PTH208 - names alone are asked for
    for each in documents:
        if each.digest not in known:
            raw = b""
            with suppress(OSError):
                raw = (content / each.path).read_bytes()
            if hashlib.sha256(raw).hexdigest() != each.digest:
                continue
            partial = folder / f".{each.digest}"
            partial.write_bytes(raw)
            partial.replace(folder / each.digest)
        kept[each.path] = each.digest
    return kept


def prune_sources(folder: Path, builds: Iterable[Path]) -> None:
    """Remove the sources that none of these builds lists. Raises OSError."""
    if folder.is_dir():
        wanted = {digest for build in builds for digest in read_kept(build).values()}
        for name in {*os.listdir(folder)} - wanted:  # noqa: PTH208 - likewise
            (folder / name).unlink()


_FENCE: Final = re.compile(r"\n[-+~.]{2,}\w*[ \t]*$", re.MULTILINE)
"""The one that closes a head."""
_OFF: Final = r"""(?:false|no|off|n|f|0)\b"""
_WITHDRAWN: Final = re.compile(
    rf"""(?:^|[{{,]) [ \t]* ["']? (?:
        (?:sta\w*|visibility) ["']?\s*[:=]?\s* ["'\[]?\s*
            (?:draft|private|hidden)\b (?!["']?\s*[:=])
        | (?:draft|private|hidden) ["']?[ \t]* (?:$ | [:=] (?!\s*["']?{_OFF}))
        | (?:published|public) ["']?\s*[:=]?\s* ["']? {_OFF}
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def is_withdrawn(raw: bytes) -> bool:
    """Return whether the head of a file, which cannot be understood, says that nobody may read it.

    In any case and any form: `Status: draft`, `draft = true`, `"published": false`.
    """
    return bool(_WITHDRAWN.search(_find_head(raw)))


def find_slug(raw: bytes) -> str:
    """Return the slug in the head of a file, which cannot be understood; empty without one."""
    found = re.search(r"""(?im)^[ \t]*["']?slug["']?\s*[:=]\s*["']?([^\s"',]+)""", _find_head(raw))
    return found[1] if found else ""


def _find_head(raw: bytes) -> str:
    plain = raw.replace(b"\0", b"").replace(b"\r", b"\n")  # of UTF-16 what is ASCII stays
    return _FENCE.split(plain.decode("utf-8-sig", "ignore").strip(), maxsplit=1)[0]
