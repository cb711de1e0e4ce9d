"""Sources that builds keep, so that a file with a fault stays as its readers know it.

Each lies once, under the digest of its bytes, in a folder beside the builds that nobody serves; a
build lists those that its readers see. Of a file that cannot be understood, this also tells what
its author surely meant. It knows neither findings nor pages.
"""

import codecs
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

KeptSources = Mapping[str, tuple[str, str]]
"""The digest of a source and the slug that it gives, by its path."""


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
    for document in documents:
        path, digest = document.path, document.digest
        if digest not in known:
            raw = b""
            with suppress(OSError):
                raw = (content / path).read_bytes()
            if hashlib.sha256(raw).hexdigest() != digest:
                continue
            partial = folder / f".{digest}"
            partial.write_bytes(raw)
            partial.replace(folder / digest)
        kept[path] = digest, document.slug
    return kept


def prune_sources(folder: Path, builds: Iterable[Path]) -> None:
    """Remove the sources that none of these builds lists. Raises OSError."""
    if folder.is_dir():
        wanted = {digest for build in builds for digest, _ in read_kept(build).values()}
        for name in {*os.listdir(folder)} - wanted:  # noqa: PTH208 - likewise
            (folder / name).unlink()


_FENCE: Final = re.compile(r"[-+~.]{2,}\w*[ \t]*")
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
_SLUG: Final = re.compile(
    r"""^[ \t]*["']?slug["']?\s*[:=]\s*["']?([^\s"',]+)""", re.IGNORECASE | re.MULTILINE
)


def is_withdrawn(raw: bytes) -> bool:
    """Return whether the head of a file, which cannot be understood, says that nobody may read it.

    In any case and any form: `Status: draft`, `draft = true`, `"published": false`.
    """
    return bool(_WITHDRAWN.search(_find_head(raw)))


def find_slug(raw: bytes) -> str:
    """Return the slug in the head of a file, which cannot be understood; empty without one."""
    found = _SLUG.search(_find_head(raw))
    return found[1] if found else ""


def _find_head(raw: bytes) -> str:
    """Return the text up to the fence that closes its head; all of it where none does."""
    is_wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = raw.decode("utf-16" if is_wide else "utf-8-sig", "replace").replace("\0", "")
    lines = text.strip().splitlines()
    ends = (at for at, line in enumerate(lines) if at and _FENCE.fullmatch(line))
    return "\n".join(lines[: next(ends, len(lines))])
