"""The files of one build's site, listed once, and a search for those closest to a path."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from types import MappingProxyType
from typing import Final

_LONGEST: Final = 200  # characters of an asked path that are looked at
_RAREST: Final = 16  # trigrams that are looked up: those that the fewest paths have
_CANDIDATES: Final = 40  # paths that are compared letter by letter
_LIKENESS: Final = 0.6  # of 1, as difflib counts it, for a path to be worth naming


class PathSuggester:
    """The paths of one build, by their trigrams."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Take the paths that may be named."""
        self._paths = tuple(paths)
        self._holders: dict[str, list[int]] = defaultdict(list)
        for number, path in enumerate(self._paths):
            for trigram in set(_cut(path.lower())):
                self._holders[trigram].append(number)

    def find(self, asked: str, limit: int) -> list[str]:
        """Return at most `limit` paths that look like `asked`, the likest first."""
        wanted = asked.lower()[:_LONGEST]
        likeness = {path: _compare(wanted, path.lower()) for path in self._choose(wanted)}
        likely = [path for path, score in likeness.items() if score >= _LIKENESS]
        return sorted(likely, key=lambda path: (-likeness[path], path))[:limit]

    def _choose(self, wanted: str) -> Iterator[str]:
        known = sorted(
            (trigram for trigram in set(_cut(wanted)) if trigram in self._holders),
            key=lambda trigram: (len(self._holders[trigram]), trigram),
        )
        shared = Counter[int]()
        for trigram in known[:_RAREST]:
            shared.update(self._holders[trigram])
        for number, _ in shared.most_common(_CANDIDATES):
            yield self._paths[number]


def _cut(text: str) -> Iterator[str]:
    for start in range(len(text) - 2):
        yield text[start : start + 3]


def _compare(one: str, other: str) -> float:
    return max(_ratio(one, other), _ratio(_name(one), _name(other)))


def _name(path: str) -> str:
    last = path.rstrip("/").rpartition("/")[2]
    return last.rpartition(".")[0] or last


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


HOME: Final = "/"
MISSING: Final = "404.html"
INDEX: Final = "index.html"
"""The file that answers for its folder."""
MARKDOWN_INDEX: Final = "index.md"
"""The name of a page's Markdown, beside it."""
WELL_KNOWN: Final = ".well-known"
"""The one hidden folder that is public (RFC 8615), in the root only."""

CODINGS: Final[Mapping[str, str]] = {"br": ".br", "gzip": ".gz"}
"""Content codings that a build makes, the tightest first, and the suffixes of their files."""
_ENDS: Final = tuple(CODINGS.values())


@dataclass(frozen=True, slots=True, eq=False)
class SiteFile:
    """One public file, compared by identity, so that it is a cheap key."""

    name: str
    """Relative to the site's folder, with `/`."""
    codings: tuple[str, ...] = ()
    """The codings in which it is there as well."""


def list_site(folder: Path, *, is_bare: bool = False) -> Mapping[str, SiteFile]:
    """Return the public files by path; `is_bare`: without `.html` too. Raises OSError."""
    names = dict.fromkeys(_walk(os.fspath(folder)))
    files: dict[str, SiteFile] = {}
    for name in names:
        if not name.endswith(_ENDS):
            codings = tuple(coding for coding, end in CODINGS.items() if f"{name}{end}" in names)
            file = files[_address(name)] = SiteFile(name, codings)
            if is_bare and name.endswith(".html") and name != MISSING:
                files.setdefault(_address(name).removesuffix(".html"), file)
    return MappingProxyType(files)


def _address(name: str) -> str:
    folder, _, last = name.rpartition("/")
    if last != INDEX:
        return f"/{name}"
    return f"/{folder}/" if folder else "/"


def _walk(folder: str) -> Iterator[str]:
    folders = [(folder, "")]
    for place, prefix in folders:
        with os.scandir(place) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                if entry.name.startswith(".") and name != WELL_KNOWN:
                    continue
                if entry.is_file(follow_symlinks=False):
                    yield name
                elif entry.is_dir(follow_symlinks=False):
                    folders.append((entry.path, f"{name}/"))
