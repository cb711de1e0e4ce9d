"""What a watcher keeps in memory between builds: content and manifest."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial

from site_build.build.builder import KnownContent, SiteBuild
from site_build.build.fingerprint import fingerprint_code
from site_build.build.manifest import EMPTY, Manifest, identify_manifest, read_manifest
from site_build.content.library import ContentLibrary, list_changed
from site_build.markup.convert import Dialect
from site_build.progress import Request
from site_build.site import find_next_instant


class BuildMemory:
    """What the last build read and wrote, so that the next one reads only what changed."""

    def __init__(self) -> None:
        self._library: ContentLibrary | None = None
        self._made_for: tuple[object, Dialect] | None = None
        self._manifest: tuple[tuple[int, ...], Manifest] = (), EMPTY
        self._changes: set[str] | None = None
        """Absolute paths that changed since the content was read; None: any may have."""
        self._is_output_checked = False

    def note(self, changes: Iterable[str]) -> None:
        """Remember absolute paths that changed."""
        if self._changes is not None:
            self._changes.update(changes)

    def look(self) -> bool:
        """Look at every source file; return whether one changed that nobody noted.

        The next build looks at every file of the site, too. Raises BuildError when the content
        folder cannot be read.
        """
        self._is_output_checked = False
        changes, self._changes = self._changes, None  # None stays, if this raises
        is_changed = self._library is not None and self._library.refresh()
        self._changes = changes
        return is_changed

    def read(self, request: Request, dialect: Dialect) -> KnownContent:
        """Return the content as it is now, and the manifest; raises BuildError."""
        changes, self._changes = self._changes, None  # None again, if this raises
        if self._library is None or self._made_for != (request.content, dialect):
            self._library = ContentLibrary(request, fingerprint_code(), dialect)
            self._made_for = request.content, dialect
        else:
            self._library.refresh(list_changed(request.content, changes))
        self._changes = set()
        identity, manifest = self._manifest
        is_known = identity == identify_manifest(request.before)
        return KnownContent(
            self._library.collect(),
            check=partial(self._library.check, request.now),
            manifest=manifest if is_known else read_manifest(request.before),
            is_output_checked=is_known and self._is_output_checked,
        )

    def find_next_instant(self, now: datetime) -> datetime | None:
        """Return when a post or page that was read appears after `now` (UTC), if one does."""
        return find_next_instant(self._library.collect().documents, now) if self._library else None

    def keep(self, build: SiteBuild) -> None:
        """Keep the manifest of a finished build."""
        self._manifest = identify_manifest(build.request.state), build.manifest
        self._is_output_checked = True
