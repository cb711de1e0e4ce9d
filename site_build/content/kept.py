"""Sources that builds keep, so that a file with a fault stays as its readers know it.

Each lies once, under the digest of its bytes, in a folder beside the builds that nobody serves; a
build lists those that its readers see. This also guesses from a head that cannot be parsed whether
its author withdrew the file. It knows neither findings nor pages.
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

KeptSources = Mapping[str, str]
"""The digests of sources by their paths."""


def read_kept(build: Path) -> KeptSources:
    """Return what readers of a build see; nothing where it does not say so."""
    with suppress(OSError, ValueError, TypeError):
        return dict(orjson.loads((build / KEPT_FILE).read_bytes()))
    return {}


def keep_sources(
    folder: Path, content: Path, documents: Iterable[Document], before: KeptSources
) -> KeptSources:
    """Copy each source into `folder` unless it is there, and return those that are there then.

    Of one that was changed since it was read, the one `before` stays. Raises OSError where it
    cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, str] = {}
    known = {*os.listdir(folder)}  # noqa: PTH208 - names alone are asked for
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
        for name in {*os.listdir(folder)} - wanted:  # noqa: PTH208 - likewise
            (folder / name).unlink()


_LONGEST_HEAD: Final = 65_536
_GAP: Final = r"\s{0,9}+"
"""Never more, since three of them in a row take a time with the cube of what they may hold."""
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
"""The colon of Chinese and Japanese keyboards is a usual slip."""


def is_withdrawn(head: str) -> bool:
    """Return whether a head, which cannot be understood, says that nobody may read its text.

    In any case and any form: `Status: draft`, `draft = true`, `"published": false`.
    """
    return bool(_WITHDRAWN.search(head))


def find_slug(raw: bytes) -> str:
    """Return the slug in the head of a file, which cannot be understood; empty without one."""
    found = re.search(
        r"""(?im)^[ \t]*+["']?slug["']?\s{0,9}+[:=]\s{0,9}+["']?([^\s"',]+)""", find_head(raw)
    )
    return found[1] if found else ""


def find_head(raw: bytes) -> str:
    """Return the head of a file, which cannot be understood, with a line for each key in braces.

    It ends at the fence below it; without a fence above or below, before the first empty line.
    """
    is_wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    plain = raw[: 2 * _LONGEST_HEAD].decode("utf-16" if is_wide else "utf-8-sig", "ignore")
    text = plain.replace("\0", "").replace("\r", "\n").strip()
    fence = re.match(r"[-+~.]{2,}[^\n]*\n|", text)
    end = (fence and fence[0] and re.search(r"(?m)\n[-+~.]{2,}\w*[ \t]*$", text)) or re.search(
        r"\n[ \t]*\n", text
    )
    head = text[: end.start() if end else _LONGEST_HEAD]
    return re.sub("[{,]", "\n", head) if head[fence.end() if fence else 0 :][:1] == "{" else head
