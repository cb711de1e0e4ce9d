"""Content and manifest that a watcher keeps in memory for its next build, and builds of previews.

A preview has the targets of a build, drafts and scheduled posts included, writes nothing, and makes
a file when it is requested. This module knows neither Pelican nor HTTP.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from site_build.build.builder import KnownContent, SiteBuild, free_memory
from site_build.build.fingerprint import Style, fingerprint_code
from site_build.build.manifest import EMPTY, Line, Manifest, identify_manifest, read_manifest
from site_build.build.revised import revise
from site_build.build.targets import (
    RecordTarget,
    Target,
    TargetContext,
    TemplateTarget,
    make_line,
)
from site_build.build.text_targets import list_full_texts, list_records, list_redirects
from site_build.content.library import ContentLibrary, list_changed
from site_build.errors import BuildError
from site_build.markup.convert import Dialect
from site_build.progress import Request
from site_build.site import Identity


class BuildMemory:
    """Content and manifest of the last build, so that the next one reads only what changed."""

    def __init__(self) -> None:
        self._library: ContentLibrary | None = None
        self._made_for: tuple[object, Dialect] | None = None
        self._manifest: tuple[tuple[int, ...], Manifest] = (), EMPTY
        self._changes: set[str] | None = None
        """Absolute paths that changed since the content was read; None if any may have changed."""
        self._is_output_checked = False
        self._plan: SiteBuild | None = None
        """The last build, until another one begins."""

    def note(self, changes: Iterable[str] | None) -> None:
        """Remember absolute paths that changed; None if any may have changed."""
        if changes is None:
            self._changes = None
        elif self._changes is not None:
            self._changes.update(changes)

    def check_sources(self) -> bool:
        """Check every source file; return whether one changed without a call of `note` for it.

        The next build checks every file of the site, too. Raises BuildError when the content
        folder cannot be read.
        """
        self._is_output_checked = False
        changes, self._changes = self._changes, None  # stays None, if the next line raises
        is_changed = self._library is not None and self._library.refresh()
        self._changes = changes
        return is_changed

    def read(self, request: Request, dialect: Dialect) -> KnownContent:
        """Return the content as it is now, and the manifest; raises BuildError."""
        changes, self._changes = self._changes, None  # stays None, if this method raises
        if self._library is None or self._made_for != (request.content, dialect):
            self._library = ContentLibrary(request, fingerprint_code(), dialect)
            self._made_for = request.content, dialect
        else:
            self._library.refresh(list_changed(request.content, changes))
        self._changes = set()
        identity, manifest = self._manifest
        is_known = identity == identify_manifest(request.previous_state)
        return KnownContent(
            self._library.collect(request),
            check=partial(self._library.check, request.now),
            manifest=manifest if is_known else read_manifest(request.previous_state),
            is_output_checked=is_known and self._is_output_checked,
        )

    def begin(self, request: Request, identity: Identity, style: Style) -> SiteBuild:
        """Return a build of the content as it is now; raises BuildError, ContentError.

        It keeps the plan of the build before if that is the last one of this memory, and only texts
        have changed since. A plan is used once, since a build that fails leaves it half changed.
        """
        plan, self._plan = self._plan, None
        known = self.read(request, style.dialect)
        is_last = plan and plan.manifest is known.manifest
        if plan and is_last and (made := revise(plan, request, identity, style, known)):
            return made
        plan = None  # frees its memory
        return SiteBuild(request, identity, style, known)

    def keep(self, build: SiteBuild) -> None:
        """Keep the plan and the manifest of a finished build."""
        self._manifest = identify_manifest(build.request.state), build.manifest
        self._is_output_checked, self._plan = True, build

    def look_ahead(self) -> "BuildMemory":
        """Return a memory with the same content for one build that does not become the last."""
        other = copy(self)
        other._plan = None  # noqa: SLF001  a copy of our own
        return other


class PreviewBuild(SiteBuild):
    """The site as it would be built; `make` makes a file when it is requested."""

    def _add_other_targets(self) -> None:
        """Do nothing: `make` finds targets that no template makes when they are requested."""

    def make_pages(self) -> Iterator[TemplateTarget]:
        """Return nothing: `make` makes each page when it is requested."""
        return iter(())

    def finish(self, folder: Path) -> None:
        """Do nothing: a preview has no index, and does not show files of plugins."""

    def make(self, path: str) -> bytes | None:
        """Make a file and return it, or None if the site has none; raises BuildError."""
        with self._cache:
            target = self._targets.get(path) or self._others.get(path)
            if target is None:
                return None
            try:
                data = target.make(self.context)
            except OSError as error:
                raise BuildError(f"{error.filename} cannot be read: {error.strerror}") from error
            free_memory()
            return data

    @cached_property
    def _others(self) -> Mapping[str, Target]:
        # If two targets have one path, the first wins: it is that of the content folder.
        lines = _Lines(self.context, list_records(self.site, self.content.minutes))
        found = [
            *self._list_other_targets(datetime.now(UTC)),
            *list_full_texts(self.site, lines, self.content.image_set, has_cards=bool(self.font)),
            *list_redirects(self.site.identity, self.content.redirects, self._targets),
        ]
        return {target.path: target for target in reversed(found)}

    def tidy(self) -> None:
        """Remove texts and pictures of earlier content from the cache, which every save adds to."""
        with self._cache:
            self._prune_cache(self._others.values())


class _Lines(dict[str, Line]):
    """Lines of the posts index by slug; each is made at its first use and kept in memory."""

    def __init__(self, context: TargetContext, targets: Iterable[RecordTarget]) -> None:
        super().__init__()
        self._context = context
        self._targets = {target.document.slug: target for target in targets}

    def __missing__(self, slug: str) -> Line:
        line = self._targets[slug].make(self._context)
        self[slug] = make_line(slug, "", line, line)
        return self[slug]
