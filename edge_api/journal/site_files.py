"""The files of one build's site, listed once, and a search for those closest to a path."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest
from pathlib import Path
from types import MappingProxyType
from typing import Final

_MIN_SIMILARITY: Final = 0.6  # the least ratio of difflib, at most 1, for a suggestion


class PathSuggester:
    """Finds similar paths of one build by their trigrams."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Read the paths that may be suggested."""
        self._trigrams = {path: _trigrams(path.lower()) for path in paths}

    def find(self, asked: str, limit: int) -> list[str]:
        """Return at most `limit` paths that are similar to `asked`, the most similar first."""
        wanted = asked.lower()[:200]
        trigrams = _trigrams(wanted)
        shared = {path: len(trigrams & known) for path, known in self._trigrams.items()}
        # Only these are compared letter by letter.
        near = [path for path in nlargest(40, shared, key=shared.__getitem__) if shared[path]]
        similarity = {
            path: max(
                _ratio(wanted, path.lower()), _ratio(_page_name(wanted), _page_name(path.lower()))
            )
            for path in near
        }
        likely = [path for path, score in similarity.items() if score >= _MIN_SIMILARITY]
        return sorted(likely, key=lambda path: (-similarity[path], path))[:limit]


def _trigrams(text: str) -> frozenset[str]:
    return frozenset(text[start : start + 3] for start in range(len(text) - 2))


def _page_name(path: str) -> str:
    last = path.rstrip("/").rpartition("/")[2]
    return last.rpartition(".")[0] or last


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


HOME: Final = "/"
INDEX_HTML: Final = "index.html"
"""The file that is served for its folder."""
MARKDOWN_INDEX: Final = "index.md"
"""The name of a page's Markdown, beside it."""
WELL_KNOWN: Final = ".well-known"
"""The one hidden folder that is public (RFC 8615), in the root only."""

CODINGS: Final[Mapping[str, str]] = {"br": ".br", "gzip": ".gz"}
"""Content codings that a build makes, the smallest first, and the suffixes of their files."""
_SUFFIXES: Final = tuple(CODINGS.values())


@dataclass(frozen=True, slots=True, eq=False)
class SiteFile:
    """One public file, compared by identity, so that it is a cheap key."""

    name: str
    """Relative to the site's folder, with `/`."""
    codings: tuple[str, ...] = ()
    """The codings in which it exists as well."""


def list_site(
    folder: Path, known: Mapping[str, SiteFile] = MappingProxyType({}), *, is_bare: bool = False
) -> Mapping[str, SiteFile]:
    """Return the public files by path; equal ones are taken from `known`. Raises OSError.

    With `is_bare`, `about.html` is at `/about` too.
    """
    files: dict[str, SiteFile] = {}
    folders = [(os.fspath(folder), "")]
    for place, prefix in folders:
        names = {}
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith(".") and f"{prefix}{entry.name}" != WELL_KNOWN:
                    continue
                if entry.is_file(follow_symlinks=False):
                    names[entry.name] = f"{prefix}{entry.name}"
                elif entry.is_dir(follow_symlinks=False):
                    folders.append((entry.path, f"{prefix}{entry.name}/"))
        for last, name in names.items():
            if last.endswith(_SUFFIXES):
                continue
            codings = tuple([coding for coding, end in CODINGS.items() if f"{last}{end}" in names])
            path = f"/{prefix}" if last == INDEX_HTML else f"/{name}"
            file = known.get(path)
            # Builds share the objects: to free tens of thousands at once would delay requests.
            if file is None or (file.name, file.codings) != (name, codings):
                file = SiteFile(name, codings)
            files[path] = file
            if is_bare and last.endswith(".html") and name != "404.html":
                files.setdefault(path.removesuffix(".html"), file)
    return MappingProxyType(files)
