"""The content folder held in memory: only files that changed are read again.

A file with a fault never holds up the others: its version in the previous build is shown, or none.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path

from site_build.cache import Cache
from site_build.checks.analyse import analyse
from site_build.checks.cross import CrossCheck, find_displaced, find_repeated_slugs
from site_build.checks.facts import (
    Facts,
    check_pictures,
    link_sources,
    list_shown_pictures,
    map_link_targets,
)
from site_build.content.document import read_document
from site_build.content.kept import KeptSources, read_kept
from site_build.content.redirects import REDIRECTS, check_redirects, read_redirects
from site_build.content.sources import (
    GONE,
    Content,
    Listing,
    Reading,
    Stamp,
    TextReader,
    list_folder,
    measure_pictures,
    stamp,
)
from site_build.errors import Diagnostic, Held
from site_build.images.responsive import ImageSet, Measured, MeasuredImages, is_picture, measure
from site_build.markup.convert import Dialect
from site_build.progress import Request
from site_build.site import Document


class _Choice:
    """The version of each file that is shown: the current one, the previous build's, or none."""

    def __init__(
        self,
        readings: Mapping[str, Reading],
        kept: KeptSources,
        recall: Callable[[str], Reading | None],
        now: datetime | None,
    ) -> None:
        """`kept` has the previous build's sources, and `recall` reads one of them.

        Without `now` (UTC), drafts are shown.
        """
        self.shown = {**readings}
        """The readings that are shown, by path."""
        self.errors: dict[str, Diagnostic] = {}
        """The first error of each file that has one."""
        self._readings, self._kept, self._recall, self._now = readings, kept, recall, now

    def refuse(self, error: Diagnostic) -> None:
        """Show the former version of a file, or nothing if that was refused too."""
        path = error.path
        self.shown.pop(path, None)
        if path not in self.errors:
            self.errors[path] = error
            self.shown |= self._list_former(path)

    def drop_alias(self, error: Diagnostic) -> None:
        """Show a file without the alias that an error is about."""
        self.errors.setdefault(error.path, error)
        reading = self.shown[error.path]
        if document := reading.document:
            kept = tuple(e for e in document.aliases if (e.line, e.column) != error[1:3])
            self.shown[error.path] = reading._replace(document=replace(document, aliases=kept))

    def is_changed(self, path: str) -> bool:
        """Return whether a file is shown in another version than in the previous build."""
        return path in self.shown and self._kept.get(path) != self.shown[path].digest

    def list_held(self, files: Mapping[str, object]) -> Iterator[Held]:
        """Yield every file with an error; `files` has files that are shown in a former version."""
        for path, error in sorted(self.errors.items()):
            is_draft = path in self._readings and self._readings[path].is_draft
            finding = error._replace(severity="warning") if is_draft else error
            yield Held(path, path in files or bool(_list_inside(path, self.shown)), finding)

    def _list_former(self, path: str) -> dict[str, Reading]:
        """Return former versions that readers may see, of a file or of all files in a folder."""
        reading = self._readings.get(path)
        if reading and self._now:
            appears = reading.document.published if reading.document else reading.likely_date
            if reading.is_draft or (appears and appears > self._now):
                return {}
        former = {name: self._recall(name) for name in _list_inside(path, self._kept)}
        return {name: each for name, each in former.items() if each}


def _list_inside(path: str, names: Iterable[str]) -> list[str]:
    """Return those of `names` that are `path`, or in the folder `path`."""
    return [name for name in names if f"{name}/".startswith(f"{path.rstrip('/')}/")]


class ContentLibrary:
    """Every source file as it is now, and its last version without errors."""

    def __init__(self, request: Request, code: str, dialect: Dialect) -> None:
        """Read the folder; raises BuildError when it cannot be read.

        `code` is the fingerprint of the program, `dialect` the site's settings for Markdown.
        """
        self._request = request
        self._code, self._dialect = code, dialect
        self._cache, self._cross = Cache(request.cache), CrossCheck(dialect.rules)
        self._texts = TextReader(request, self._cache, code, dialect)
        self._listing = list_folder(request.content, dialect.rules)
        self._stamps = self._stamp(self._listing)
        with self._cache:
            self._readings, self._hits = self._texts.examine_all(self._listing.sources, request)
            self._measured = self._measure(self._listing)
        self._stamps |= self._list_unread()
        self._former: dict[str, Reading] = {}
        """Former readings by path: those that a preview showed last, or those of kept sources."""
        self._addresses: Mapping[str, str] = {}
        """Addresses of source files, with which `_links` were found."""
        self._links: dict[str, tuple[Facts, Mapping[str, str]]] = {}
        """Facts of each document by path, and the addresses of its links to source files."""

    @property
    def count(self) -> int:
        """Number of source files."""
        return len(self._readings)

    def refresh(self, paths: Collection[str] | None = None) -> bool:
        """Read what changed since the last time; return whether anything did.

        `paths` are the only ones that may have changed, if these are known. Raises BuildError, and
        keeps what was read before, if the folder cannot be read.
        """
        if paths is not None and not self._listing.has_links and self._stamps.keys() >= set(paths):
            folder = os.fspath(self._request.content)
            stamps = self._stamps | {
                path: stamp(f"{folder}/{path}", follows=False) for path in paths
            }
            if GONE not in stamps.values():
                return self._read_changed(self._listing, stamps)
        listing = list_folder(self._request.content, self._dialect.rules)
        return self._read_changed(listing, self._stamp(listing))

    def _read_changed(self, listing: Listing, stamps: dict[str, Stamp]) -> bool:
        """Read the files whose stamps differ from the last ones; return whether any did."""
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
                self._measured = self._measure(listing)
        self._readings = {path: fresh.get(path) or self._readings[path] for path in listing.sources}
        stamps |= self._list_unread()
        is_changed = (listing, stamps) != (self._listing, self._stamps)
        self._listing, self._stamps = listing, stamps
        return is_changed

    def _list_unread(self) -> dict[str, Stamp]:
        """Return stamps that match nothing, so that files which could not be read are retried."""
        sources = (path for path, each in self._readings.items() if not each.digest)
        pictures = (path for path, each in self._measured.items() if not each.is_read)
        return dict.fromkeys((*sources, *pictures), GONE)

    def replace_source(self, path: str, digest: str) -> None:
        """Show a kept source in place of what the folder has at a path."""
        with self._cache:
            self._readings[path] = self._texts.examine(path, digest)

    def list_errors(self) -> tuple[Diagnostic, ...]:
        """Return the errors that keep files from being shown as they are, sorted by place."""
        usable = (
            each.document
            for each in self._readings.values()
            if each.document and not _list_errors(each)
        )
        return tuple(sorted([*self._list_faults(), *find_repeated_slugs(usable)]))

    def _list_faults(self) -> list[Diagnostic]:
        """Return errors within single files; conflicts between files are not among them."""
        return [
            *(each for each in self._listing.findings if each.severity == "error"),
            *chain.from_iterable(map(_list_errors, self._readings.values())),
        ]

    def check(self, now: datetime) -> tuple[Diagnostic, ...]:
        """Return every finding about the content as readers would see it at `now` (UTC).

        They are about single files and about conflicts between files, sorted by place. In drafts,
        errors become warnings.
        """
        files = self._listing.files
        documents, facts = _list_facts(self._readings)
        findings = [
            *self._listing.findings,
            *(finding for each in self._readings.values() for finding in each.findings),
        ]
        unread, paths = self._readings.keys() - facts, self._dialect.rules.list_paths(files)
        findings += self._cross.check(documents, facts, files, now, unread)
        findings += check_pictures(documents, facts, self._measured, paths)
        findings += check_redirects(self._request.content, documents, files, self._dialect.rules)
        drafts = {path for path, each in self._readings.items() if each.is_draft}
        return tuple(
            sorted(e._replace(severity="warning") if e.path in drafts else e for e in findings)
        )

    def examine(
        self, path: str, raw: bytes, now: datetime, more: Sequence[str] = ()
    ) -> tuple[Document | None, tuple[Diagnostic, ...]]:
        """Return the document of a text, and findings about it as if it were in the folder.

        It is checked against all others as readers would see them at `now` (UTC). `more` are paths
        of files that would be published with it.
        """
        document, findings = read_document(path, raw, self._dialect.rules)
        if document is None:
            return None, tuple(findings)
        own, _ = analyse(document, self._dialect)
        readings = {**self._readings, path: Reading(document, own, tuple(findings))}
        documents, facts = _list_facts(readings)
        files, check = (*self._listing.files, *more), CrossCheck(self._dialect.rules)
        findings += check.check(documents, facts, files, now, only=path)
        paths = self._dialect.rules.list_paths(files)
        findings += check_pictures([document], facts, self._measured, paths)
        return document, tuple(sorted(each for each in findings if each.path == path))

    def collect(self, request: Request | None = None) -> Content:
        """Return what can be shown; for a file with faults, its version in the previous build.

        `request` names that build; without one, as in a preview, the last result counts.
        """
        rules = self._dialect.rules
        kept = (
            read_kept(request.previous_state)
            if request
            else {path: each.digest for path, each in self._former.items()}
        )
        choice = _Choice(
            self._readings, kept, partial(self._recall, kept), request.now if request else None
        )
        for error in {each.path: each for each in reversed(self._list_faults())}.values():
            choice.refuse(error)
        former = self._take_former(choice, request.site_folder) if request else {}
        while wrong := self._find_wrong(choice, kept):
            for error in wrong.values():
                choice.refuse(error)
        if not request:
            self._former = choice.shown
        files = tuple(sorted({*self._listing.files, *former}))
        measured = {**self._measured, **{path: each for path, (_, each) in former.items() if each}}
        documents, facts = _list_facts(choice.shown)
        addresses = map_link_targets(documents, files, rules)
        if addresses != self._addresses:
            self._addresses, self._links = addresses, {}
        for document in documents:
            own = facts[document.path]
            if document.path not in self._links or self._links[document.path][0] is not own:
                self._links[document.path] = own, link_sources(document, own, addresses)
        pictures = {path: each.picture for path, each in measured.items() if each.picture}
        # Settings name a picture by its file, pages by its address.
        pictures |= {addresses[path]: each for path, each in pictures.items()}
        return Content(
            tuple(documents),
            {path: each.minutes for path, each in choice.shown.items()},
            {path: each.terms for path, each in choice.shown.items()},
            rules.list_paths(files),
            facts,
            ImageSet(
                pictures,
                list_shown_pictures(documents, facts, measured, addresses),
                {each.path: self._links[each.path][1] for each in documents},
            ),
            len(self._readings),
            self._hits,
            tuple(choice.list_held(former)),
            {path: file for path, (file, _) in former.items()},
            {old: new for old, (_, new) in read_redirects(self._request.content)[0].items()},
        )

    def _recall(self, kept: KeptSources, path: str) -> Reading | None:
        """Return the reading of a kept source, or None if it is missing or has errors."""
        digest, reading = kept[path], self._former.get(path)
        if reading is None or reading.digest != digest:
            with self._cache:
                reading = self._former[path] = self._texts.examine(path, digest)
        return reading if reading.digest == digest and not _list_errors(reading) else None

    def _take_former(self, choice: _Choice, site: Path) -> dict[str, tuple[Path, Measured | None]]:
        """Return files of the previous build that replace faulty ones, with measures of pictures.

        New or changed texts are refused if they show a faulty picture without a replacement.
        """
        rules, former = self._dialect.rules, dict[str, tuple[Path, Measured | None]]()
        lost = {path: each for path, each in self._measured.items() if each.fault}
        faulty = tuple(path for path in (*choice.errors, *lost) if rules.is_static(path))
        for path, public in rules.list_paths(faulty).items():
            if (file := site.absolute() / public).is_file():
                measured = measure(path, file.read_bytes()) if is_picture(path) else None
                if not (measured and measured.fault):
                    former[path] = file, measured
        documents, facts = _list_facts(choice.shown)
        open_ones = [each for each in documents if not each.draft] if lost else []
        paths = map_link_targets(open_ones, self._listing.files, rules)
        shown = list_shown_pictures(open_ones, facts, lost, paths)
        for path, picture in [(at, each) for at, found in shown.items() for each in found]:
            place = picture if picture in former else path
            fault = lost[picture].fault
            error = Diagnostic(place, 1, 1, "error", f"the picture {picture} {fault}")
            if place == path and choice.is_changed(path):
                choice.refuse(error)
            choice.errors.setdefault(place, error)
        return former

    def _find_wrong(self, choice: _Choice, kept: KeptSources) -> dict[str, Diagnostic]:
        """Return conflicts between shown texts, by path of the text that has to give way.

        If no text has to, the aliases that conflict are dropped instead.
        """
        documents, _ = _list_facts(choice.shown)
        conflicts = self._cross.find_conflicts(documents, self._listing.files)
        losers = find_displaced(documents, kept) if conflicts else set()
        errors = [each for each in conflicts if each.severity == "error"]
        wrong = {each.path: each for each in conflicts if each.path in losers} or {
            each.path: each for each in errors if choice.is_changed(each.path)
        }
        for each in errors if not wrong else ():
            choice.drop_alias(each)
        return wrong

    def _measure(self, listing: Listing) -> MeasuredImages:
        return measure_pictures(
            self._request.content, listing.files, self._request.jobs, self._cache, self._code
        )

    def _stamp(self, listing: Listing) -> dict[str, Stamp]:
        folder = os.fspath(self._request.content)
        found = {
            path: stamp(f"{folder}/{path}")
            for path in (*listing.sources, *listing.files, REDIRECTS)
        }
        # Missing redirects have no stamp, so that the folder is listed again when they appear.
        return {path: each for path, each in found.items() if path != REDIRECTS or each != GONE}


def list_changed(content: Path, changes: Collection[str] | None) -> set[str] | None:
    """Return absolute paths as paths of the content, without hidden files.

    None if `changes` is None or has other paths: then every file has to be checked.
    """
    home = f"{os.path.abspath(content)}{os.sep}"  # noqa: PTH100 - only text
    if changes is None or not all(path.startswith(home) for path in changes):
        return None
    return {
        path.removeprefix(home) for path in changes if not path.rpartition("/")[2].startswith(".")
    }


def _list_errors(reading: Reading) -> list[Diagnostic]:
    notes = reading.facts.notes if reading.facts else ()
    return [each for each in (*reading.findings, *notes) if each.severity == "error"]


def _list_facts(readings: Mapping[str, Reading]) -> tuple[list[Document], dict[str, Facts]]:
    whole = [(readings[path].document, readings[path].facts) for path in sorted(readings)]
    found = [(document, facts) for document, facts in whole if document and facts]
    return [document for document, _ in found], {document.path: facts for document, facts in found}
