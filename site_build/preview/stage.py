"""What the preview shows: the last site that could be made, and what keeps it from being newer.

One thread works with it at a time; whoever only looks at `state` may do so from any other.
"""

import gc
import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from site_build.addresses import name_file
from site_build.bridge.rehearse import Rehearser
from site_build.checks.ground import locate
from site_build.faults import BuildError
from site_build.making.recipe import fingerprint_code
from site_build.making.rehearsal import Rehearsal
from site_build.post import Document, Finding
from site_build.preview.manuscripts import Manuscripts
from site_build.preview.trouble import Trouble, read_sentence
from site_build.reading.gather import Gathered
from site_build.request import Request

_LONGEST_MEMORY = 64
"""Pages whose last good form is kept, for the time when they cannot be made."""


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
    faults: dict[str, Trouble] = field(default_factory=dict)
    """What keeps single files from being made, by path; filled as they are asked for."""
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
    """The site in the making; all its methods belong to one thread."""

    def __init__(self, request: Request, site_url: str, watched: Sequence[Path]) -> None:
        """Read the content and make the site; raises BuildError when there is no content.

        `watched` are the files and folders, apart from the content, that the site is made of.
        """
        self._request = request
        self._watched = watched
        self._session, self._number = secrets.token_hex(4), 0
        self._manuscripts = Manuscripts(request, fingerprint_code(), site_url)
        self._rehearser = Rehearser(site_url)
        self._good: dict[str, bytes] = {}
        self._shown: dict[str, bytes] = {}
        self._is_settled = True
        self._gathered = self._manuscripts.gather()
        self._theme = _stamp(watched)
        self._is_tried = False
        self.state = State(self._name_version())
        self._rehearsal = self._rehearse(None)
        gc.freeze()  # What was read stays; every collection would look through all of it.

    def refresh(self, changes: Collection[str] | None = None) -> bool:
        """Take in what changed; tell whether browsers should hear of it.

        `changes` are the only absolute paths that may have changed, where that is known.
        """
        before = self.state
        told = self._relate(changes)
        try:
            is_changed = self._manuscripts.refresh(told)
        except BuildError as error:
            self.state = replace(before, theme=read_sentence(str(error)))
            return self.state != before
        is_restyled = told is None and self._notice_theme()
        if is_restyled or before.theme:  # Whatever stopped it may be over by now.
            self._rehearsal = self._rehearse(self._rehearsal)
        elif is_changed:
            self._take_content()
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

    def _take_content(self) -> None:
        """Show changed texts at once, where nothing else has changed; or make the site anew."""
        gathered = self._manuscripts.gather()
        last = self._rehearsal
        if last is None or not _differ_in_text(self._gathered, gathered):
            self._rehearsal = self._rehearse(last)
            return
        last.revise(gathered)
        self._gathered, self._is_settled = gathered, False
        self._name_state(gathered, self._manuscripts.list_errors())

    def settle(self) -> bool:
        """Make the site anew after texts were shown at once; tell whether shown pages differ."""
        if self._is_settled:
            return False
        before, shown = self.state, dict(self._shown)
        self._rehearsal = self._rehearse(self._rehearsal)
        if all(self._make(path) == data for path, data in shown.items()) and not self.state.theme:
            self.state = replace(self.state, version=before.version, faults=before.faults)
        return self.state != before

    def check(self) -> bool:
        """Check the whole content; tell whether its warnings are others than before."""
        found = self._manuscripts.judge(datetime.now(UTC))
        warnings = tuple(each for each in found if each.severity == "warning")
        is_new = warnings != self.state.findings
        self.state = replace(self.state, findings=warnings)
        return is_new

    def show(self, path: str) -> Showing:
        """Return a file of the site, after a look whether it has changed; None where is none.

        What cannot be made is noted in `state.faults`, and comes as it was when it last could be.
        """
        is_news = self.refresh() if path.endswith(".html") else False
        return Showing(self._make(path), self.state, is_news)

    def _make(self, path: str) -> bytes | None:
        if self._rehearsal is None:
            return self._good.get(path)
        try:
            data = self._rehearsal.make(path)
        except BuildError as error:
            self.state.faults[path] = read_sentence(str(error))
            return self._good.get(path, b"")
        if data is not None and path.endswith(".html"):
            self._shown[path] = data
            self._good.pop(path, None)
            self._good[path] = data
            if len(self._good) > _LONGEST_MEMORY:
                self._good.pop(next(iter(self._good)))
        return data

    def _rehearse(self, last: Rehearsal | None) -> Rehearsal | None:
        """Return the site made anew; where that fails, the last one, and the state says why."""
        gathered, errors = self._manuscripts.gather(), self._manuscripts.list_errors()
        handover = last.handover if last and self._is_tried else None
        self._gathered, self._is_settled = gathered, True
        try:
            rehearsal = self._rehearser.rehearse(self._request, gathered, handover)
        except BuildError as error:
            self.state = replace(self.state, errors=errors, theme=read_sentence(str(error)))
            return last
        self._is_tried = True
        self._name_state(gathered, errors)
        return rehearsal

    def _name_state(self, gathered: Gathered, errors: tuple[Finding, ...]) -> None:
        """Begin a new version."""
        self._shown.clear()
        self.state = State(
            self._name_version(), gathered.documents, errors, findings=self.state.findings
        )

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
    return next((each for each in state.documents if name_file(locate(each)) == path), None)


def _stamp(places: Sequence[Path]) -> dict[str, tuple[int, int]]:
    """Return how every file looks, so that a change shows."""
    files = (file for place in places for file in (place, *place.rglob("*")))
    found = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        found[str(file)] = status.st_mtime_ns, status.st_size
    return found
