"""The session of a preview: the last site that could be made, and errors that stop a newer one.

One thread at a time works with it; any other may read `state`.
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

_MOST_PAGES = 64
"""The most pages whose last good form is kept, to be shown while they cannot be made."""


class Problem(NamedTuple):
    """Something to fix, as browsers and the terminal show it."""

    place: str
    """File, line and, if it is known, column; empty without a place."""
    message: str


@dataclass(frozen=True, slots=True)
class State:
    """The site's documents and problems at one time; browsers reload pages at a new version."""

    version: str
    documents: tuple[Document, ...] = ()
    """Documents of the site, drafts included."""
    errors: tuple[Diagnostic, ...] = ()
    """Errors of the content, which would stop a build."""
    theme: Problem | None = None
    """The problem that keeps the whole site from being made."""
    faults: Mapping[str, Problem] = field(default_factory=dict)
    """Problems that keep files from being made, by path, of files that were requested."""
    findings: tuple[Diagnostic, ...] = ()
    """Warnings of the last check, which may be a moment old."""


class PreviewSession:
    """A preview of the site; all its methods belong to one thread.

    A change is shown at once; its effects on other pages follow in a quiet moment, in which
    `settle` and `check` are called.
    """

    _build: PreviewBuild | None = None

    def __init__(self, request: Request, dialect: Dialect, watched: Sequence[Path]) -> None:
        """Read the content and make the site; raises BuildError when there is no content.

        `watched` are the other files and folders that the site is made of.
        """
        self._request = request
        self._watched = watched
        self._session, self._number = secrets.token_hex(4), 0
        self._library = ContentLibrary(request, fingerprint_code(), dialect)
        self._site_url = dialect.site_url
        self._last_good: dict[str, bytes] = {}
        self._is_related, self._is_tidy, self._is_checked = True, False, False
        self._stamps = _stamp(watched)
        self._is_unread = False
        self.state = State(self._name_version())
        self.state = self._make_anew()
        gc.freeze()  # The content stays in memory, so the garbage collector need not search it.

    def refresh(self, changes: Collection[str] | None = None) -> None:
        """Read the files at these absolute paths anew, or all that changed if None is given."""
        was_unread, paths = self._is_unread, list_changed(self._request.content, changes)
        try:
            is_changed = self._library.refresh(paths)
        except BuildError as error:
            self._is_unread = True
            self.state = replace(self.state, theme=read_sentence(str(error)))
            return
        self._is_unread = False
        before, self._stamps = (
            self._stamps,
            _stamp(self._watched) if paths is None else self._stamps,
        )
        if is_changed or before != self._stamps or was_unread:
            self._is_tidy, self._is_checked = False, False
            self.state = self._make_anew(in_haste=True)

    def settle(self) -> None:
        """After a change, find related posts anew and remove earlier content from the cache."""
        if not self._is_related:
            before, last = self.state, self._build
            after = self._make_anew()
            made = {path: self._make(path) for path in before.faults}
            after = replace(after, faults={p: e for p, e in made.items() if isinstance(e, Problem)})
            # The version stays if the related posts are the same, so that browsers do not reload.
            is_same = last and self._build and last.related == self._build.related
            if is_same and (after.theme, after.faults) == (before.theme, before.faults):
                after = replace(after, version=before.version)
            self.state = after
        if self._build and not self._is_tidy:
            self._build.tidy()
        self._is_tidy = True

    def check(self) -> None:
        """Check all content, unless it has been checked since its last change."""
        if self._is_checked:
            return
        self._is_checked = True
        found = self._library.check(datetime.now(UTC))
        warnings = tuple(each for each in found if each.severity == "warning")
        if warnings != self.state.findings:
            self.state = replace(self.state, findings=warnings)

    def show(self, path: str) -> tuple[bytes | None, State]:
        """Return a file of the site, or None if the site has none, and the state of the site.

        Before a page is made, the site is refreshed. A file that cannot be made is noted in
        `state.faults`, and its last good form is returned.
        """
        if path.endswith(".html"):
            self.refresh()
        made = self._make(path)
        faults = {key: each for key, each in self.state.faults.items() if key != path}
        if isinstance(made, Problem):
            faults[path], made = made, self._last_good.get(path, b"")
        if faults != self.state.faults:
            self.state = replace(self.state, faults=faults)
        return made, self.state

    def _make(self, path: str) -> bytes | Problem | None:
        """Return a file made now, or the problem that stops it; None if the site has none."""
        if self._build is None:
            return self._last_good.get(path)
        try:
            data = self._build.make(path)
        except BuildError as error:
            return read_sentence(str(error))
        if data is not None and path.endswith(".html"):
            self._last_good.pop(path, None)
            self._last_good[path] = data
            if len(self._last_good) > _MOST_PAGES:
                self._last_good.pop(next(iter(self._last_good)))
        return data

    def _make_anew(self, *, in_haste: bool = False) -> State:
        """Make the site anew and return its state.

        If that fails, the last site stays, and the state has the reason. In haste, related posts
        stay those of the last site.
        """
        content, errors = self._library.collect(), self._library.list_errors()
        last = self._build
        related = last.related if last and in_haste else None
        self._is_related = related is None
        try:
            public = tuple(replace(e, draft=False) if e.draft else e for e in content.documents)
            known = KnownContent(replace(content, documents=public), related)
            self._build = build_preview(self._request, self._site_url, known)
        except BuildError as error:
            self._is_related = True  # The next attempt follows the next change.
            return replace(self.state, errors=errors, theme=read_sentence(str(error)))
        return State(self._name_version(), content.documents, errors, findings=self.state.findings)

    def _name_version(self) -> str:
        """Return a new version, which no other process of the preview uses."""
        self._number += 1
        return f"{self._session}-{self._number}"


def _stamp(places: Sequence[Path]) -> dict[Path, Stamp]:
    """Return the stamp of every file in these places, to notice changes."""
    return {file: stamp(file) for place in places for file in (place, *place.rglob("*"))}


def read_sentence(sentence: str) -> Problem:
    """Return the problem that a BuildError's message states, with its place split off."""
    found = re.fullmatch(r"(?P<place>[^\s:]+:[0-9]+): (?P<message>.+)", sentence, re.DOTALL)
    return Problem(_shorten(found["place"]), found["message"]) if found else Problem("", sentence)


def read_finding(content: Path, finding: Diagnostic) -> Problem:
    """Return a finding as a problem, with a path relative to the working folder."""
    return Problem(
        _shorten(f"{content / finding.path}:{finding.line}:{finding.column}"), finding.message
    )


def _shorten(place: str) -> str:
    """Return the place relative to the working folder, if it is below that."""
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
    """Return the problems that keep the site, or the file `page` of it, from being made."""
    found = [each for each in (state.theme, state.faults.get(page)) if each]
    return [*found, *(read_finding(content, each) for each in state.errors)]
