"""Keeps copies of sources, so that a file with a fault is still shown in its former version.

Each copy is stored once, named by the digest of its bytes, in a folder beside the builds that is
not served; a build lists the sources that it shows. This module also guesses from a head that
cannot be parsed whether its author withdrew the file.
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
"""Name of a build's list of kept sources, beside the posts index; `read_kept` reads it."""
KEPT_FOLDER: Final = ".sources"
"""Name of the folder in BUILD_DIR with the sources of all builds there."""

KeptSources = Mapping[str, str]
"""The digests of sources by their paths."""


def read_kept(build: Path) -> KeptSources:
    """Return the sources that a build shows; empty if it has no readable list."""
    with suppress(OSError, ValueError, TypeError):
        return dict(orjson.loads((build / KEPT_FILE).read_bytes()))
    return {}


def keep_sources(
    folder: Path, content: Path, documents: Iterable[Document], before: KeptSources
) -> KeptSources:
    """Copy each document's source into `folder` unless it is there; return the kept sources.

    For a source that changed since it was read, the entry in `before` stays. Raises OSError if the
    folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, str] = {}
    known = {*os.listdir(folder)}  # noqa: PTH208 - only names are needed
    for each in documents:
        if each.digest not in known:
            raw = b""
            with suppress(OSError):
                raw = (content / each.path).read_bytes()
            if hashlib.sha256(raw).hexdigest() != each.digest:
                kept |= {each.path: before[each.path]} if each.path in before else {}
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
        for name in {*os.listdir(folder)} - wanted:  # noqa: PTH208 - only names are needed
            (folder / name).unlink()


_LONGEST_HEAD: Final = 65_536
_GAP: Final = r"\s{0,9}+"
"""White space; bounded, since the time for three gaps grows with the cube of their length."""
_OFF: Final = r"""(?:false|no|off|n|f|0)\b"""
_WITHDRAWN: Final = re.compile(
    rf"""^[ \t]*+ (?:[-?][ ]+)? ["']? (?:
        (?:sta\w*+|visibility) ["']?{_GAP}[:=\uff1a]?{_GAP} (?:[!&]\S*+[ ])? ["'\[]?{_GAP}
            (?:drafts?|private|hidden|skip|unlisted)\b (?!["']?{_GAP}[:=])
        | (?:draft|private|hidden|unlisted) ["']?[ \t]*+ [:=\uff1a] (?!{_GAP}["']?{_OFF})
        | (?:publish(?:ed)?|public) ["']?{_GAP}[:=\uff1a]?{_GAP} ["']? {_OFF}
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""A line that withdraws a text, even with the wide colon of Chinese and Japanese keyboards."""


def is_withdrawn(head: str) -> bool:
    """Return whether a head that cannot be parsed withdraws its text from readers.

    It may do so in any case and syntax: `Status: draft`, `draft = true`, `"published": false`.
    """
    return bool(_WITHDRAWN.search(head))


def find_slug(raw: bytes) -> str:
    """Return the slug in the head of a file without parsing the head; empty without one."""
    found = re.search(
        r"""(?im)^[ \t]*+["']?slug["']?\s{0,9}+[:=]\s{0,9}+["']?([^\s"',]+)""", find_head(raw)
    )
    return found[1] if found else ""


def find_head(raw: bytes) -> str:
    """Return the head of a file without parsing it; each key of a head in braces gets a line.

    It ends at the fence below it; without a fence above or below, before the first empty line.
    """
    is_utf16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    plain = raw[: 2 * _LONGEST_HEAD].decode("utf-16" if is_utf16 else "utf-8-sig", "ignore")
    text = plain.replace("\0", "").replace("\r", "\n").strip()
    fence = re.match(r"[-+~.]{2,}+[^\n]*\n|", text)
    end = (fence and fence[0] and re.search(r"(?m)\n[-+~.]{2,}\w*[ \t]*$", text)) or re.search(
        r"\n[ \t]*\n", text
    )
    head = text[: end.start() if end else _LONGEST_HEAD]
    return re.sub("[{,]", "\n", head) if head[fence.end() if fence else 0 :][:1] == "{" else head
