"""The session of a preview: the last site that could be built, and the errors since then.

Only one thread at a time may call its methods; any thread may read `state`.
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
"""The most pages whose last good version is kept, to be shown while they cannot be made."""


class Problem(NamedTuple):
    """Something to fix, as browsers and the terminal show it."""

    place: str
    """File, line and, if it is known, column; empty without a place."""
    message: str


@dataclass(frozen=True, slots=True)
class State:
    """The site's documents and problems at one time; a new version makes browsers reload pages."""

    version: str
    documents: tuple[Document, ...] = ()
    """Documents of the site, drafts included."""
    errors: tuple[Diagnostic, ...] = ()
    """Errors of the content, which would stop a build."""
    site_problem: Problem | None = None
    """The problem that keeps the whole site from being made."""
    file_problems: Mapping[str, Problem] = field(default_factory=dict)
    """Problems that keep requested files from being made, by the path of the file."""
    findings: tuple[Diagnostic, ...] = ()
    """Warnings of the last check, which may be older than the last change."""


class PreviewSession:
    """A preview of the site; one thread at a time may call its methods.

    A change is shown at once. Its effects on other pages, and warnings, are deferred until
    `do_deferred_work` and `check` are called, after a second without a change.
    """

    _build: PreviewBuild | None = None

    def __init__(self, request: Request, dialect: Dialect, watched: Sequence[Path]) -> None:
        """Read the content and build the site; raises BuildError if there is no content.

        `watched` are the other files and folders that the site depends on.
        """
        self._request = request
        self._watched = watched
        self._session_id, self._number = secrets.token_hex(4), 0
        self._library = ContentLibrary(request, fingerprint_code(), dialect)
        self._site_url = dialect.site_url
        self._last_good: dict[str, bytes] = {}
        self._has_current_related, self._is_cache_pruned, self._is_checked = True, False, False
        self._stamps = _stamp(watched)
        self._refresh_failed = False
        self.state = State(self._name_version())
        self.state = self._remake()
        gc.freeze()  # The content stays in memory, so the garbage collector need not search it.

    def refresh(self, changes: Collection[str] | None = None) -> None:
        """Read the files at these absolute paths anew, or all that changed if None is given."""
        had_failed, paths = self._refresh_failed, list_changed(self._request.content, changes)
        try:
            is_changed = self._library.refresh(paths)
        except BuildError as error:
            self._refresh_failed = True
            self.state = replace(self.state, site_problem=read_error_message(str(error)))
            return
        self._refresh_failed = False
        before, self._stamps = (
            self._stamps,
            _stamp(self._watched) if paths is None else self._stamps,
        )
        if is_changed or before != self._stamps or had_failed:
            self._is_cache_pruned, self._is_checked = False, False
            self.state = self._remake(keep_related=True)

    def do_deferred_work(self) -> None:
        """After a change, find related posts anew and remove earlier content from the cache."""
        if not self._has_current_related:
            before, last = self.state, self._build
            after = self._remake()
            made = {path: self._make(path) for path in before.file_problems}
            after = replace(
                after, file_problems={p: e for p, e in made.items() if isinstance(e, Problem)}
            )
            # The version stays if the related posts are the same, so that browsers do not reload.
            is_same = last and self._build and last.related == self._build.related
            if is_same and (after.site_problem, after.file_problems) == (
                before.site_problem,
                before.file_problems,
            ):
                after = replace(after, version=before.version)
            self.state = after
        if self._build and not self._is_cache_pruned:
            self._build.tidy()
        self._is_cache_pruned = True

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
        `state.file_problems`, and its last good version is returned.
        """
        if path.endswith(".html"):
            self.refresh()
        made = self._make(path)
        file_problems = {key: each for key, each in self.state.file_problems.items() if key != path}
        if isinstance(made, Problem):
            file_problems[path], made = made, self._last_good.get(path, b"")
        if file_problems != self.state.file_problems:
            self.state = replace(self.state, file_problems=file_problems)
        return made, self.state

    def _make(self, path: str) -> bytes | Problem | None:
        """Return a file made now, or the problem that stops it; None if the site has none."""
        if self._build is None:
            return self._last_good.get(path)
        try:
            data = self._build.make(path)
        except BuildError as error:
            return read_error_message(str(error))
        if data is not None and path.endswith(".html"):
            self._last_good.pop(path, None)
            self._last_good[path] = data
            if len(self._last_good) > _MOST_PAGES:
                self._last_good.pop(next(iter(self._last_good)))
        return data

    def _remake(self, *, keep_related: bool = False) -> State:
        """Build the site anew and return its state.

        If that fails, the last site stays, and the state has the reason. With `keep_related`, which
        saves time, related posts stay those of the last site.
        """
        content, errors = self._library.collect(), self._library.list_errors()
        last = self._build
        related = last.related if last and keep_related else None
        self._has_current_related = related is None
        try:
            public = tuple(replace(e, draft=False) if e.draft else e for e in content.documents)
            known = KnownContent(replace(content, documents=public), related)
            self._build = build_preview(self._request, self._site_url, known)
        except BuildError as error:
            # There is no page that related posts could be found for later.
            self._has_current_related = True
            return replace(self.state, errors=errors, site_problem=read_error_message(str(error)))
        return State(self._name_version(), content.documents, errors, findings=self.state.findings)

    def _name_version(self) -> str:
        """Return a new version, which no other process of the preview uses."""
        self._number += 1
        return f"{self._session_id}-{self._number}"


def _stamp(places: Sequence[Path]) -> dict[Path, Stamp]:
    """Return the stamp of every file in these places, to notice changes."""
    return {file: stamp(file) for place in places for file in (place, *place.rglob("*"))}


def read_error_message(message: str) -> Problem:
    """Return the message of a BuildError as a problem, divided into place and message."""
    found = re.fullmatch(r"(?P<place>[^\s:]+:[0-9]+): (?P<message>.+)", message, re.DOTALL)
    return Problem(_shorten(found["place"]), found["message"]) if found else Problem("", message)


def convert_finding(content: Path, finding: Diagnostic) -> Problem:
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
        "warnings": [convert_finding(content, each)._asdict() for each in own],
        "others": len(state.findings) - len(own),
    }


def list_problems(state: State, page: str, content: Path) -> list[Problem]:
    """Return the problems that keep the site, or the file `page` of it, from being made."""
    found = [each for each in (state.site_problem, state.file_problems.get(page)) if each]
    return [*found, *(convert_finding(content, each) for each in state.errors)]
