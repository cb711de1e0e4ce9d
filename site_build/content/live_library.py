"""The content folder held in memory: only files that changed are read again.

A file that cannot be used keeps what it said before, so that the rest of the site can be looked at
while its author fixes it. It knows no pages.
"""

import os
from collections.abc import Collection
from datetime import datetime

from site_build.cache import Cache
from site_build.checks.cross import find_repeated_slugs
from site_build.content.folder import Listing, measure_pictures
from site_build.content.library import (
    Content,
    Reading,
    collect,
    find_problems,
    keep_text,
    list_folder,
    read_source,
    read_sources,
)
from site_build.errors import Diagnostic
from site_build.images.measure import MeasuredImages
from site_build.markup.convert import Dialect
from site_build.progress import Request

_Stamp = tuple[int, int, int, int]
_GONE: _Stamp = (0, 0, 0, 0)


class LiveLibrary:
    """Every source file as it is, and the last one of it that could be used."""

    def __init__(self, request: Request, code: str, dialect: Dialect) -> None:
        """Read the folder; raises BuildError when it cannot be read.

        `code` says which program reads, `dialect` for which origin texts are converted.
        """
        self._request = request
        self._code, self._dialect = code, dialect
        self._cache = Cache(request.cache)
        self._listing = list_folder(request.content, dialect.rules)
        self._stamps = self._stamp(self._listing)
        with self._cache:
            self._readings, self._hits = read_sources(
                request, self._listing.sources, self._cache, code, dialect
            )
            self._good = {path: r for path, r in self._readings.items() if _is_usable(r)}
            self._album = self._measure(self._listing)

    def refresh(self, told: Collection[str] | None = None) -> bool:
        """Read what changed since the last time; return whether anything did.

        `told` are the only paths that may have changed, where that is known. Raises BuildError
        when the folder cannot be read; what was read stays then.
        """
        if told is not None and self._stamps.keys() >= set(told):
            folder = os.fspath(self._request.content)
            found = {path: _stamp(f"{folder}/{path}") for path in told}
            if _GONE not in found.values():
                return self._take(self._listing, {**self._stamps, **found})
        listing = list_folder(self._request.content, self._dialect.rules)
        return self._take(listing, self._stamp(listing))

    def _take(self, listing: Listing, stamps: dict[str, _Stamp]) -> bool:
        if stamps == self._stamps and listing == self._listing:
            return False
        changed = [
            path
            for path in listing.sources
            if path not in self._readings or stamps[path] != self._stamps.get(path)
        ]
        fresh = {}
        with self._cache:
            for path in changed:
                fresh[path], text = read_source(self._request.content, self._dialect, path)
                keep_text(self._cache, self._code, self._dialect, fresh[path], text)
            before = [self._stamps[path] for path in self._listing.files]
            if [stamps[path] for path in listing.files] != before:
                self._album = self._measure(listing)
        known = {**self._readings, **fresh}
        self._readings = {path: known[path] for path in listing.sources}
        good = {**self._good, **{path: r for path, r in fresh.items() if _is_usable(r)}}
        self._good = {path: reading for path, reading in good.items() if path in self._readings}
        self._listing, self._stamps = listing, stamps
        return True

    def list_errors(self) -> tuple[Diagnostic, ...]:
        """Return what would stop a build, sorted by place."""
        found = [each for each in self._listing.findings if each.severity == "error"]
        usable = []
        for reading in self._readings.values():
            if errors := _list_errors(reading):
                found += errors
            else:
                usable.append(reading.inspection.document)
        found += find_repeated_slugs(document for document in usable if document)
        return tuple(sorted(found))

    def check(self, now: datetime) -> tuple[Diagnostic, ...]:
        """Return every finding about the content as readers would see it at `now` (UTC)."""
        inspections = [each.inspection for each in self._readings.values()]
        return find_problems(inspections, self._listing, self._album, now, self._dialect.rules)

    def collect(self) -> Content:
        """Return what can be shown; of files that want the same address, the first."""
        shown: dict[tuple[str, str], tuple[str, Reading]] = {}
        for path, reading in sorted(self._good.items()):
            if document := reading.inspection.document:
                shown.setdefault((document.kind, document.slug), (path, reading))
        good = dict(shown.values())
        return collect(good, self._listing.files, self._album, self._hits, self._dialect.rules)

    def _measure(self, listing: Listing) -> MeasuredImages:
        request = self._request
        return measure_pictures(
            request.content, listing.files, request.jobs, self._cache, self._code
        )

    def _stamp(self, listing: Listing) -> dict[str, _Stamp]:
        folder = os.fspath(self._request.content)
        return {path: _stamp(f"{folder}/{path}") for path in (*listing.sources, *listing.files)}


def _stamp(path: str) -> _Stamp:
    """Return how a file looks: one that was replaced has another inode.

    The last instant tells of whatever else was changed, such as who may read it.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path costs more than the call
    except OSError:
        return _GONE
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


def _list_errors(reading: Reading) -> list[Diagnostic]:
    _, facts, findings, _ = reading.inspection
    notes = facts.notes if facts else ()
    return [each for each in (*findings, *notes) if each.severity == "error"]


def _is_usable(reading: Reading) -> bool:
    return reading.inspection.document is not None and not _list_errors(reading)
