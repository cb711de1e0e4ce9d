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
from typing import NamedTuple

from site_build.addresses import name_file
from site_build.build.builder import KnownContent
from site_build.build.fingerprint import fingerprint_code
from site_build.build.memory import PreviewBuild
from site_build.content.library import ContentLibrary, list_changed
from site_build.content.sources import Stamp, stamp
from site_build.errors import BuildError, Diagnostic
from site_build.markup.convert import Dialect
from site_build.pelican_plugin.plugin import build_preview
from site_build.progress import Request
from site_build.site import Document

_LONGEST_MEMORY = 64
"""Pages whose last good form is kept, for the time when they cannot be made."""


class Problem(NamedTuple):
    """Something to fix, as browsers and the terminal show it."""

    place: str
    """File, line and, where it is known, column; empty where there is no place."""
    message: str


@dataclass(frozen=True, slots=True)
class State:
    """What there is to say at one time; a new version asks browsers to load their pages again."""

    version: str
    documents: tuple[Document, ...] = ()
    """What the site shows, drafts as such."""
    errors: tuple[Diagnostic, ...] = ()
    """What would stop a build, in the content."""
    theme: Problem | None = None
    """What keeps the site from being made, if anything."""
    faults: Mapping[str, Problem] = field(default_factory=dict)
    """What keeps single files from being made, by path, of those that were asked for."""
    findings: tuple[Diagnostic, ...] = ()
    """Warnings of the last whole check, which may be a moment old."""


class PreviewSession:
    """The site in the making; all its methods belong to one thread.

    A change is shown at once; what it leads to elsewhere is left for a quiet moment, in which
    `settle` and `check` are called.
    """

    _build: PreviewBuild | None = None

    def __init__(self, request: Request, dialect: Dialect, watched: Sequence[Path]) -> None:
        """Read the content and make the site; raises BuildError when there is no content.

        `watched` are the files and folders, apart from the content, that the site is made of.
        """
        self._request = request
        self._watched = watched
        self._session, self._number = secrets.token_hex(4), 0
        self._library = ContentLibrary(request, fingerprint_code(), dialect)
        self._site_url = dialect.site_url
        self._good: dict[str, bytes] = {}
        self._is_whole, self._is_tidy, self._is_checked = True, False, False
        self._theme = _stamp(watched)
        self._is_lost = False
        self.state = State(self._name_version())
        self.state = self._make_anew()
        gc.freeze()  # What was read stays; every collection would look through all of it.

    def refresh(self, changes: Collection[str] | None = None) -> None:
        """Take in what changed: only files at these absolute paths, where they are known."""
        was_lost, told = self._is_lost, list_changed(self._request.content, changes)
        try:
            is_changed = self._library.refresh(told)
        except BuildError as error:
            self._is_lost = True
            self.state = replace(self.state, theme=read_sentence(str(error)))
            return
        self._is_lost = False
        before, self._theme = self._theme, _stamp(self._watched) if told is None else self._theme
        if is_changed or before != self._theme or was_lost:
            self._is_tidy, self._is_checked = False, False
            self.state = self._make_anew(in_haste=True)

    def settle(self) -> None:
        """Finish what was shown at once, and forget what was before."""
        if not self._is_whole:
            self._complete()
        if self._build and not self._is_tidy:
            self._build.tidy()
        self._is_tidy = True

    def _complete(self) -> None:
        """Relate posts anew, under the same version where that leaves them related as they were."""
        before, last = self.state, self._build
        after = self._make_anew()
        made = {path: self._make(path) for path in before.faults}
        after = replace(after, faults={p: e for p, e in made.items() if isinstance(e, Problem)})
        is_same = last and self._build and last.related == self._build.related
        if is_same and (after.theme, after.faults) == (before.theme, before.faults):
            after = replace(after, version=before.version)
        self.state = after

    def check(self) -> None:
        """Check the whole content if it has changed."""
        if self._is_checked:
            return
        self._is_checked = True
        found = self._library.check(datetime.now(UTC))
        warnings = tuple(each for each in found if each.severity == "warning")
        if warnings != self.state.findings:
            self.state = replace(self.state, findings=warnings)

    def show(self, path: str) -> tuple[bytes | None, State]:
        """Return a file of the site, None where is none, and the state that it is of.

        Whether the site has changed is looked at before.
        What cannot be made is noted in `state.faults`, and comes as it was when it last could be.
        """
        if path.endswith(".html"):
            self.refresh()
        made = self._make(path)
        faults = {key: each for key, each in self.state.faults.items() if key != path}
        if isinstance(made, Problem):
            faults[path], made = made, self._good.get(path, b"")
        if faults != self.state.faults:
            self.state = replace(self.state, faults=faults)
        return made, self.state

    def _make(self, path: str) -> bytes | Problem | None:
        """Return a file made now, or what keeps it from being made; None where there is none."""
        if self._build is None:
            return self._good.get(path)
        try:
            data = self._build.make(path)
        except BuildError as error:
            return read_sentence(str(error))
        if data is not None and path.endswith(".html"):
            self._good.pop(path, None)
            self._good[path] = data
            if len(self._good) > _LONGEST_MEMORY:
                self._good.pop(next(iter(self._good)))
        return data

    def _make_anew(self, *, in_haste: bool = False) -> State:
        """Make the site anew and return the state it is in then.

        Where that fails, the last one stays, and the state says why. In haste, posts are related as
        they were.
        """
        content, errors = self._library.collect(), self._library.list_errors()
        last = self._build
        related = last.related if last and in_haste else None
        self._is_whole = related is None
        try:
            public = tuple(replace(e, draft=False) if e.draft else e for e in content.documents)
            known = KnownContent(replace(content, documents=public), related)
            self._build = build_preview(self._request, self._site_url, known)
        except BuildError as error:
            self._is_whole = True  # What failed is tried again when something has changed.
            return replace(self.state, errors=errors, theme=read_sentence(str(error)))
        return State(self._name_version(), content.documents, errors, findings=self.state.findings)

    def _name_version(self) -> str:
        """Return a name that no other process of the preview gives."""
        self._number += 1
        return f"{self._session}-{self._number}"


def _stamp(places: Sequence[Path]) -> dict[Path, Stamp]:
    """Return how every file looks, so that a change shows."""
    return {file: stamp(file) for place in places for file in (place, *place.rglob("*"))}


def read_sentence(sentence: str) -> Problem:
    """Return what a build's refusal says, its place apart."""
    found = re.fullmatch(r"(?P<place>[^\s:]+:[0-9]+): (?P<message>.+)", sentence, re.DOTALL)
    return Problem(_shorten(found["place"]), found["message"]) if found else Problem("", sentence)


def read_finding(content: Path, finding: Diagnostic) -> Problem:
    """Return what a finding says, its path as seen from where the command runs."""
    place = f"{content / finding.path}:{finding.line}:{finding.column}"
    return Problem(_shorten(place), finding.message)


def _shorten(place: str) -> str:
    """Return the place as seen from the working folder, where it lies below that."""
    return place.removeprefix(f"{os.getcwd()}{os.sep}")  # noqa: PTH109 - a prefix of text


def describe_state(state: State, page: str, content: Path) -> dict[str, object]:
    """Return the data of the event for a browser that shows the file `page` of the site.

    Its warnings are those about the page's own source file; others are counted.
    """
    source = next((e.path for e in state.documents if name_file(e.address) == page), None)
    own = [each for each in state.findings if each.path == source]
    return {
        "version": state.version,
        "errors": [each._asdict() for each in list_problems(state, page, content)],
        "warnings": [read_finding(content, each)._asdict() for each in own],
        "others": len(state.findings) - len(own),
    }


def list_problems(state: State, page: str, content: Path) -> list[Problem]:
    """Return what has to be fixed before the site, or the file `page` of it, can be made."""
    found = [each for each in (state.theme, state.faults.get(page)) if each]
    return [*found, *(read_finding(content, each) for each in state.errors)]
