"""What the preview shows: the last site that could be made, and what keeps it from being newer.

One thread works with it at a time; whoever only looks at `state` may do so from any other.
"""

import gc
import os
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from site_build.addresses import name_file
from site_build.bridge.plugin import Rehearser
from site_build.faults import BuildError
from site_build.making.recipe import fingerprint_code
from site_build.making.rehearsal import Earlier, Rehearsal
from site_build.markup.convert import Dialect
from site_build.post import Document, Finding
from site_build.preview.manuscripts import Manuscripts
from site_build.progress import Request
from site_build.reading.gather import Gathered

_LONGEST_MEMORY = 64
"""Pages whose last good form is kept, for the time when they cannot be made."""
_PLACED = re.compile(r"(?P<place>[^\s:]+:[0-9]+): (?P<message>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something to mend."""

    place: str
    """File, line and, where it is known, column; empty where there is no place."""
    message: str


@dataclass(frozen=True, slots=True)
class State:
    """What there is to say at one time; a new version asks browsers to load their pages again."""

    version: str
    documents: tuple[Document, ...] = ()
    """What the site shows, drafts as such."""
    errors: tuple[Finding, ...] = ()
    """What would stop a build, in the content."""
    theme: Trouble | None = None
    """What keeps the site from being made, if anything."""
    faults: Mapping[str, Trouble] = field(default_factory=dict)
    """What keeps single files from being made, by path, of those that were asked for."""
    findings: tuple[Finding, ...] = ()
    """Warnings of the last whole check, which may be a moment old."""


@dataclass(frozen=True, slots=True)
class Showing:
    """One file as it was asked for."""

    data: bytes | None
    state: State
    is_news: bool
    """Whether the state has just become another."""


class Stage:
    """The site in the making; all its methods belong to one thread.

    A change is shown at once; what it leads to elsewhere is left for a quiet moment, in which
    `gc_freeze` and `check` are called.
    """

    _rehearsal: Rehearsal | None = None
    """The last site that could be made."""

    def __init__(self, request: Request, dialect: Dialect, watched: Sequence[Path]) -> None:
        """Read the content and make the site; raises BuildError when there is no content.

        `watched` are the files and folders, apart from the content, that the site is made of.
        """
        self._request = request
        self._watched = watched
        self._session, self._number = secrets.token_hex(4), 0
        self._manuscripts = Manuscripts(request, fingerprint_code(), dialect)
        self._rehearser = Rehearser(dialect.site_url)
        self._good: dict[str, bytes] = {}
        self._shown: dict[str, bytes] = {}
        self._is_whole, self._is_tidy, self._is_checked = True, False, False
        self._gathered = self._manuscripts.gather()
        self._theme = _stamp(watched)
        self._is_tried, self._is_lost = False, False
        self.state = State(self._name_version())
        self.state = self._rehearse()
        gc.freeze()  # What was read stays; every collection would look through all of it.

    def refresh(self, changes: Collection[str] | None = None) -> bool:
        """Take in what changed; tell whether browsers should hear of it.

        `changes` are the only absolute paths that may have changed, where that is known.
        """
        before, told = self.state, self._relate(changes)
        was_lost = self._is_lost
        try:
            is_changed = self._manuscripts.refresh(told)
        except BuildError as error:
            self._is_lost = True
            self.state = replace(before, theme=read_sentence(str(error)))
            return self.state != before
        self._is_lost = False
        is_restyled = told is None and self._notice_theme()
        if is_changed or is_restyled or was_lost:
            self._is_tidy, self._is_checked = False, False
            self._take_in(is_restyled=is_restyled or was_lost)
        return self.state != before

    def _relate(self, changes: Collection[str] | None) -> set[str] | None:
        """Return changes as paths of the content, or None when it takes a look at everything."""
        home = f"{os.path.abspath(self._request.content)}{os.sep}"  # noqa: PTH100 - text
        if changes is None or not all(path.startswith(home) for path in changes):
            return None
        paths = {path.removeprefix(home) for path in changes}
        return {path for path in paths if not path.rpartition("/")[2].startswith(".")}

    def _notice_theme(self) -> bool:
        """Tell whether the theme has changed since the last time."""
        theme = _stamp(self._watched)
        if theme == self._theme:
            return False
        self._theme, self._is_tried = theme, False
        return True

    def _take_in(self, *, is_restyled: bool) -> None:
        """Show changed texts at once, where nothing else has changed; or make the site anew."""
        gathered, last = self._manuscripts.gather(), self._rehearsal
        is_text = _differ_in_text(self._gathered, gathered) and not self.state.theme
        if is_restyled or last is None or not is_text:
            self.state = self._rehearse(in_haste=True)
            self._shown.clear()
            return
        last.revise(gathered)
        self._gathered, self._is_whole = gathered, False
        self.state = self._begin(gathered, self._manuscripts.list_errors())
        self._shown.clear()

    def gc_freeze(self) -> bool:
        """Finish what was shown at once and forget what was before; tell whether pages differ."""
        before = self.state
        if not self._is_whole:
            self._complete()
        if self._rehearsal and not self._is_tidy:
            self._rehearsal.tidy()
        self._is_tidy = True
        return self.state != before

    def _complete(self) -> None:
        """Make the site anew, under the same version where nothing that was asked for differs."""
        before, shown = self.state, self._shown
        after = self._rehearse()
        if after.theme:
            self.state = after
            return
        self._shown = {}
        made = {path: self._make(path) for path in (*shown, *before.faults)}
        faults = {path: data for path, data in made.items() if isinstance(data, Trouble)}
        is_same = faults.keys() == before.faults.keys() and all(
            made[path] == data for path, data in shown.items()
        )
        version = before.version if is_same else after.version
        self.state = replace(after, version=version, faults=faults)

    def check(self) -> bool:
        """Check the whole content if it has changed; tell whether its warnings are others now."""
        if self._is_checked:
            return False
        self._is_checked = True
        found = self._manuscripts.judge(datetime.now(UTC))
        warnings = tuple(each for each in found if each.severity == "warning")
        is_new = warnings != self.state.findings
        self.state = replace(self.state, findings=warnings)
        return is_new

    def show(self, path: str) -> Showing:
        """Return a file of the site, after a look whether it has changed; None where is none.

        What cannot be made is noted in `state.faults`, and comes as it was when it last could be.
        """
        before = self.state
        if path.endswith(".html"):
            self.refresh()
        made = self._make(path)
        is_fault = isinstance(made, Trouble)
        if is_fault or path in self.state.faults:
            others = {key: each for key, each in self.state.faults.items() if key != path}
            own = {path: made} if isinstance(made, Trouble) else {}
            self.state = replace(self.state, faults={**others, **own})
        data = self._good.get(path, b"") if isinstance(made, Trouble) else made
        return Showing(data, self.state, self.state != before)

    def _make(self, path: str) -> bytes | Trouble | None:
        """Return a file made now, or what keeps it from being made; None where there is none."""
        if self._rehearsal is None:
            return self._good.get(path)
        try:
            data = self._rehearsal.make(path)
        except BuildError as error:
            return read_sentence(str(error))
        if data is not None and path.endswith(".html"):
            self._remember(path, data)
        return data

    def _remember(self, path: str, data: bytes) -> None:
        self._shown[path] = data
        self._good.pop(path, None)
        self._good[path] = data
        if len(self._good) > _LONGEST_MEMORY:
            self._good.pop(next(iter(self._good)))

    def _rehearse(self, *, in_haste: bool = False) -> State:
        """Make the site anew and return the state it is in then.

        Where that fails, the last one stays, and the state says why. In haste, posts are related as
        they were.
        """
        gathered, errors = self._manuscripts.gather(), self._manuscripts.list_errors()
        last = self._rehearsal
        handover = last.handover if last and self._is_tried else None
        related = last.related if last and in_haste else None
        earlier = Earlier(handover, related)
        self._gathered, self._is_whole = gathered, related is None
        try:
            self._rehearsal = self._rehearser.rehearse(self._request, gathered, earlier)
        except BuildError as error:
            self._is_whole = True  # What failed is tried again when something has changed.
            return replace(self.state, errors=errors, theme=read_sentence(str(error)))
        self._is_tried = True
        return self._begin(gathered, errors)

    def _begin(self, gathered: Gathered, errors: tuple[Finding, ...]) -> State:
        """Return the first state of a new version."""
        version, findings = self._name_version(), self.state.findings
        return State(version, gathered.documents, errors, findings=findings)

    def _name_version(self) -> str:
        """Return a name that no other process of the preview gives."""
        self._number += 1
        return f"{self._session}-{self._number}"


def _differ_in_text(before: Gathered, after: Gathered) -> bool:
    """Tell whether nothing but texts differs, and nothing that lists show of them."""
    if before.files != after.files or before.minutes != after.minutes:
        return False
    if len(before.documents) != len(after.documents):
        return False
    pairs = zip(before.documents, after.documents, strict=True)
    changed = [(old, new) for old, new in pairs if old is not new]
    return bool(changed) and all(
        replace(old, digest=new.digest, body_line=new.body_line, slug_at=new.slug_at) == new
        for old, new in changed
    )


def find_document(state: State, path: str) -> Document | None:
    """Return the document that a file of the site shows."""
    return next((each for each in state.documents if name_file(each.address) == path), None)


def _stamp(places: Sequence[Path]) -> dict[str, tuple[int, int, int]]:
    """Return how every file looks, so that a change shows."""
    files = (file for place in places for file in (place, *place.rglob("*")))
    found = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        # The last: permissions, too, keep a file from being read.
        found[str(file)] = status.st_mtime_ns, status.st_size, status.st_ctime_ns
    return found


def read_sentence(sentence: str) -> Trouble:
    """Return what a build's refusal says, its place apart."""
    found = _PLACED.fullmatch(sentence)
    return Trouble(_shorten(found["place"]), found["message"]) if found else Trouble("", sentence)


def read_finding(content: Path, finding: Finding) -> Trouble:
    """Return what a finding says, its path as seen from where the command runs."""
    place = f"{content / finding.path}:{finding.line}:{finding.column}"
    return Trouble(_shorten(place), finding.message)


def _shorten(place: str) -> str:
    """Return the place as seen from the working folder, where it lies below that."""
    here = f"{os.getcwd()}{os.sep}"  # noqa: PTH109 - a prefix of text
    return place.removeprefix(here)


class _Told(TypedDict):
    place: str
    message: str


class Telling(TypedDict):
    """The data of an event."""

    version: str
    errors: list[_Told]
    warnings: list[_Told]
    """About the page's own source file."""
    others: int
    """Warnings about other files."""


def tell_state(state: State, page: str, content: Path) -> Telling:
    """Return what to tell a browser that shows the file `page` of the site."""
    document = find_document(state, page)
    own = [each for each in state.findings if document and each.path == document.path]
    return Telling(
        version=state.version,
        errors=[_word(each) for each in list_troubles(state, page, content)],
        warnings=[_word(read_finding(content, each)) for each in own],
        others=len(state.findings) - len(own),
    )


def list_troubles(state: State, page: str, content: Path) -> list[Trouble]:
    """Return what has to be mended before the site, or the file `page` of it, can be made."""
    found = [state.theme, state.faults.get(page)]
    return [
        *(trouble for trouble in found if trouble),
        *(read_finding(content, finding) for finding in state.errors),
    ]


def _word(trouble: Trouble) -> _Told:
    return _Told(place=trouble.place, message=trouble.message)
