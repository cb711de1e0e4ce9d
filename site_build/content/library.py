"""The content folder held in memory: only files that changed are read again.

A file that cannot be used keeps what it said before, so that the rest of the site can be looked at
while its author fixes it. It knows no pages.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path

from site_build.cache import Cache
from site_build.checks.cross import CrossCheck, find_repeated_slugs
from site_build.checks.facts import Facts, judge_pictures, link_sources, list_shown, list_targets
from site_build.content.sources import (
    GONE,
    Content,
    Listing,
    Reading,
    Stamp,
    Texts,
    list_folder,
    measure_pictures,
    stamp,
)
from site_build.errors import Diagnostic
from site_build.images.responsive import ImageSet, MeasuredImages
from site_build.markup.convert import Dialect
from site_build.progress import Request
from site_build.site import Document


class ContentLibrary:
    """Every source file as it is, and the last one of it that could be used."""

    def __init__(self, request: Request, code: str, dialect: Dialect) -> None:
        """Read the folder; raises BuildError when it cannot be read.

        `code` says which program reads, `dialect` for which origin texts are converted.
        """
        self._request = request
        self._code, self._dialect = code, dialect
        self._cache, self._cross = Cache(request.cache), CrossCheck(dialect.rules)
        self._texts = Texts(request.content, self._cache, code, dialect)
        self._listing = list_folder(request.content, dialect.rules)
        self._stamps = self._stamp(self._listing)
        with self._cache:
            self._readings, self._hits = self._texts.examine_all(self._listing.sources, request)
            self._good = {path: r for path, r in self._readings.items() if _is_usable(r)}
            self._album = self._measure(self._listing)
        self._stamps |= self._list_unread()
        self._paths: Mapping[str, str] = {}
        """The addresses of source files by which `_links` were found."""
        self._links: dict[str, tuple[Facts, Mapping[str, str]]] = {}

    @property
    def count(self) -> int:
        """How many source files there are."""
        return len(self._readings)

    def refresh(self, told: Collection[str] | None = None) -> bool:
        """Read what changed since the last time; return whether anything did.

        `told` are the only paths that may have changed, where that is known. Raises BuildError
        when the folder cannot be read; what was read stays then.
        """
        if told is not None and not self._listing.has_links and self._stamps.keys() >= set(told):
            folder = os.fspath(self._request.content)
            found = {path: stamp(f"{folder}/{path}", follows=False) for path in told}
            stamps = {**self._stamps, **found}
            if GONE not in stamps.values():
                return self._take(self._listing, stamps)
        listing = list_folder(self._request.content, self._dialect.rules)
        return self._take(listing, self._stamp(listing))

    def _take(self, listing: Listing, stamps: dict[str, Stamp]) -> bool:
        if stamps == self._stamps and listing == self._listing:
            return False
        changed = [
            path
            for path in listing.sources
            if path not in self._readings or stamps[path] != self._stamps.get(path)
        ]
        self._hits = len(listing.sources) - len(changed)
        with self._cache:
            fresh = {path: self._texts.examine(path) for path in changed}
            before = {path: self._stamps[path] for path in self._listing.files}
            if {path: stamps[path] for path in listing.files} != before:
                self._album = self._measure(listing)
        known = {**self._readings, **fresh}
        self._readings = {path: known[path] for path in listing.sources}
        good = {**self._good, **{path: r for path, r in fresh.items() if _is_usable(r)}}
        self._good = {path: reading for path, reading in good.items() if path in self._readings}
        stamps |= self._list_unread()
        is_changed = (listing, stamps) != (self._listing, self._stamps)
        self._listing, self._stamps = listing, stamps
        return is_changed

    def _list_unread(self) -> dict[str, Stamp]:
        """Return stamps that fit no file, for those that the disk did not give."""
        sources = (path for path, each in self._readings.items() if not each.digest)
        pictures = (path for path, each in self._album.items() if not each.is_read)
        return dict.fromkeys((*sources, *pictures), GONE)

    def list_errors(self) -> tuple[Diagnostic, ...]:
        """Return what would stop a build, sorted by place."""
        found = [each for each in self._listing.findings if each.severity == "error"]
        usable = []
        for reading in self._readings.values():
            if errors := _list_errors(reading):
                found += errors
            else:
                usable.append(reading.document)
        found += find_repeated_slugs(document for document in usable if document)
        return tuple(sorted(found))

    def check(self, now: datetime) -> tuple[Diagnostic, ...]:
        """Return every finding about the content as readers would see it at `now` (UTC).

        What is wrong with each file, and what only all together show, sorted by place.
        """
        files = self._listing.files
        readings = self._readings.values()
        documents, facts = _list_facts(readings)
        findings = [*self._listing.findings, *chain.from_iterable(e.findings for e in readings)]
        complete, paths = len(documents) == len(readings), self._dialect.rules.list_paths(files)
        findings += self._cross.check(documents, facts, files, now, complete=complete)
        findings += judge_pictures(documents, facts, self._album, paths)
        return tuple(sorted(findings))

    def collect(self) -> Content:
        """Return what can be shown; of files that want the same address, the first."""
        shown: dict[tuple[str, str], Reading] = {}
        for _, reading in sorted(self._good.items()):
            if document := reading.document:
                shown.setdefault((document.kind, document.slug), reading)
        rules, files = self._dialect.rules, self._listing.files
        documents, facts = _list_facts(shown.values())
        paths = list_targets(documents, files, rules)
        if paths != self._paths:
            self._paths, self._links = paths, {}
        for each in documents:
            own = facts[each.path]
            if each.path not in self._links or self._links[each.path][0] is not own:
                self._links[each.path] = own, link_sources(each, own, paths)
        links = {each.path: self._links[each.path][1] for each in documents}
        pictures = {path: each.picture for path, each in self._album.items() if each.picture}
        return Content(
            tuple(documents),
            {each.path: self._good[each.path].minutes for each in documents},
            {each.path: self._good[each.path].terms for each in documents},
            rules.list_paths(files),
            facts,
            ImageSet(pictures, list_shown(documents, facts, self._album, paths), links),
            len(self._readings),
            self._hits,
        )

    def _measure(self, listing: Listing) -> MeasuredImages:
        request = self._request
        return measure_pictures(
            request.content, listing.files, request.jobs, self._cache, self._code
        )

    def _stamp(self, listing: Listing) -> dict[str, Stamp]:
        folder = os.fspath(self._request.content)
        return {path: stamp(f"{folder}/{path}") for path in (*listing.sources, *listing.files)}


def list_changed(content: Path, changes: Collection[str] | None) -> set[str] | None:
    """Return absolute paths as paths of the content, without hidden files.

    None where `changes` is None or has other paths: then every file has to be looked at.
    """
    home = f"{os.path.abspath(content)}{os.sep}"  # noqa: PTH100 - text
    if changes is None or not all(path.startswith(home) for path in changes):
        return None
    paths = {path.removeprefix(home) for path in changes}
    return {path for path in paths if not path.rpartition("/")[2].startswith(".")}


def _list_errors(reading: Reading) -> list[Diagnostic]:
    notes = reading.facts.notes if reading.facts else ()
    return [each for each in (*reading.findings, *notes) if each.severity == "error"]


def _is_usable(reading: Reading) -> bool:
    return reading.document is not None and not _list_errors(reading)


def _list_facts(readings: Iterable[Reading]) -> tuple[list[Document], dict[str, Facts]]:
    whole = [(each.document, each.facts) for each in readings]
    found = [(document, facts) for document, facts in whole if document and facts]
    return [document for document, _ in found], {document.path: facts for document, facts in found}
