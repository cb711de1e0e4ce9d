"""What a watcher keeps in memory for its next build (content, manifest, plan), and previews.

A preview has the targets of a build, drafts and scheduled posts included, writes nothing, and makes
a file when it is requested. This module knows neither Pelican nor HTTP.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from edge_api.schema.index import INDEX_FILE
from site_build.addresses import SECURITY
from site_build.build.assets import find_withheld
from site_build.build.builder import KnownContent, SiteBuild, digest_style, free_memory
from site_build.build.fingerprint import Style, fingerprint_code
from site_build.build.manifest import (
    EMPTY,
    Line,
    Manifest,
    OutputFolder,
    identify_manifest,
    read_manifest,
)
from site_build.build.targets import (
    FileTarget,
    IndexFile,
    RecordTarget,
    Target,
    TargetContext,
    TemplateTarget,
    make_line,
)
from site_build.build.text_targets import (
    list_full_texts,
    list_notices,
    list_records,
    list_redirects,
    make_alternate,
)
from site_build.content.library import ContentLibrary, list_changed
from site_build.errors import BuildError
from site_build.markup.convert import Dialect
from site_build.progress import Request
from site_build.related import choose_related
from site_build.site import Identity, Site, select_public
from site_build.template_objects import Article, InputDigest, Page


@dataclass(eq=False)
class BuildMemory:
    """Content, manifest and plan of the last build, so that the next one reads only what changed.

    A build that does not become the last one gets a copy without the plan.
    """

    plan: SiteBuild | None = None
    """The last build, until another one begins."""
    _library: ContentLibrary | None = None
    _made_for: tuple[object, Dialect] | None = None
    _manifest: tuple[tuple[int, ...], Manifest] = (), EMPTY
    _changes: set[str] | None = None
    """Absolute paths that changed since the content was read; None if any may have changed."""
    _is_output_checked: bool = False

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
        plan, self.plan = self.plan, None
        known = self.read(request, style.dialect)
        is_last = plan and plan.manifest is known.manifest
        if plan and is_last and (made := keep_plan(plan, request, identity, style, known)):
            return made
        plan = None  # frees its memory
        return SiteBuild(request, identity, style, known)

    def keep(self, build: SiteBuild) -> None:
        """Keep the plan and the manifest of a finished build."""
        self._manifest = identify_manifest(build.request.state), build.manifest
        self._is_output_checked, self.plan = True, build


def keep_plan(
    plan: SiteBuild, request: Request, identity: Identity, style: Style, known: KnownContent
) -> SiteBuild | None:
    """Return a build that keeps the plan, or None if more than texts has changed since.

    The plan is that of the build whose manifest is `known`; it must not be used again. Raises
    BuildError, and for findings ContentError if `strict`.
    """
    old, new, due = plan.content, known.content, plan.report.next_instant
    if not (
        plan.is_revisable
        # The text of the settings only tells which files are withheld, which is compared below.
        and replace(plan.style, settings_text=style.settings_text) == style
        and identity == plan.site.identity
        and digest_style(style) == plan.context.common_digest
        and (request.content, request.cache, request.kept_sources)
        == (plan.request.content, plan.request.cache, plan.request.kept_sources)
        and plan.request.now <= request.now
        and (due is None or request.now < due)
        and not (old.held or new.held)
        # Equal documents may have different texts.
        and (old.documents, old.files, old.redirects) == (new.documents, new.files, new.redirects)
        and old.image_set.pictures == new.image_set.pictures
        and old.image_set.shown == new.image_set.shown
    ):
        return None
    site = select_public(identity, new.documents, request.now)
    stamp, folder = known.manifest.index_stamp, OutputFolder(request.site_folder, known.manifest)
    if (
        plan.withheld != find_withheld(new, site, request, style)
        or not (stamp and stamp.fits(f"{request.previous_state / INDEX_FILE}"))
        # `keep` checks that a file is as the manifest says; the plan keeps no other file.
        or not (known.is_output_checked or all(map(folder.keep, known.manifest.entries.values())))
    ):
        return None
    return RevisedBuild(plan, request, site, known)


class RevisedBuild(SiteBuild):
    """A build after edits of texts alone, which keeps the plan of the build before.

    The plan is that build itself, with its targets and what templates see. Only targets that can
    show an edited text, or a value that came of it, are asked whether they have changed.
    """

    def __init__(self, plan: SiteBuild, request: Request, site: Site, known: KnownContent) -> None:
        """Check the content; raises BuildError and ContentError."""
        vars(self).update(vars(plan))
        self._edited = {
            new.path: new
            for old, new in zip(plan.content.documents, known.content.documents, strict=True)
            if new.digest != old.digest
        }
        self._former_related = plan.related
        with self._cache:
            self._begin(request, site, known)

    def _prepare(self) -> None:
        """Replace the targets of edited texts, and those of files that each build reads."""
        request, content, site = self.request, self.content, self.site
        self._output = OutputFolder(request.site_folder, self._before, is_checked=True)
        self._index = IndexFile(request.state, self._before, request.previous_state)
        self.context = replace(
            self.context,
            image_set=content.image_set,
            documents={each.path: each for each in content.documents},
            output=self._output,
            index=self._index,
        )
        old = os.fspath(request.previous_state / INDEX_FILE)
        self._lines = {slug: e._replace(source=old) for slug, e in self._before.lines.items()}
        edited = [each for each in site.documents if each.path in self._edited]
        fresh = [
            *list_records(site, content.minutes, (e for e in site.posts if e.path in self._edited)),
            *(make_alternate(site, each, content.image_set, self.texts) for each in edited),
            # Of the other files without a key, only this one shows more than heads of documents.
            *(e for e in list_notices(site, self.style.policy, request.now) if e.path == SECURITY),
        ]
        stale = [
            # A file of the content folder has precedence.
            *(each for each in fresh if type(self._targets[each.path]) is type(each)),
            *(each for each in self._targets.values() if isinstance(each, FileTarget)),
        ]
        self._targets |= {each.path: each for each in stale}
        former = self._before.entries
        self._entries = {path: former[path] for path in self._targets if path in former}
        self._run(self._reuse_unchanged(stale))
        self._pages = [e for e in self._targets.values() if isinstance(e, TemplateTarget)]
        # Pages of one kind look up the same names; what they share may hold documents.
        self._kinds = {
            each.path: (former[each.path].names, id(each.shared), tuple(each.own))
            for each in self._pages
            if former[each.path].key
        }
        self._shared = self._renew_shared_digests()

    def _renew_shared_digests(self) -> dict[object, bytes]:
        """Return the digests of what pages share, by kind; the context gets a new InputDigest."""
        # A digest of values remembers long lists as they were.
        self.context = replace(self.context, input_digest=InputDigest())
        pages = {self._kinds[e.path]: e for e in self._pages if e.path in self._kinds}
        digest = self.context.input_digest.digest_shared
        return {kind: digest(kind[0], each.shared, each.own) for kind, each in pages.items()}

    def finish(self, folder: Path) -> None:
        """Make the pages that the edits can have changed, and finish the build."""
        views = {
            page.path: view
            for page in self._pages
            if isinstance(view := page.own.get("article", page.own.get("page")), Article | Page)
        }
        changed, edited = self._revise_views(views), self._edited.keys()
        self.add_frames(self)
        shared, former = self._renew_shared_digests(), self._before.entries
        asked = [
            page
            for page in self._pages
            if page.path not in self._kinds
            or not edited.isdisjoint(former[page.path].texts.split("\n"))
            or page.path in changed
            or (changed and page.path not in views)  # a list shows many documents
            or self._shared[self._kinds[page.path]] != shared[self._kinds[page.path]]
        ]
        with self._cache:
            self._run(self._reuse_unchanged(asked))
        # The next build makes these anew.
        del self._pages, self._kinds, self._shared, self._edited, self._former_related
        super().finish(folder)

    def _revise_views(self, views: Mapping[str, Article | Page]) -> set[str]:
        """Give edited texts and other related posts to what templates see of documents.

        `views` are by the paths of their pages. Returns the paths of those that show something else
        besides the text.
        """
        changed, former, related = set(), self._former_related, self.related
        places = {post.path: place for place, post in enumerate(self.site.posts)}
        for page, view in views.items():
            path = view.source_path
            view.image_set = self.content.image_set  # only the last one stays in memory
            if path in self._edited or former.get(path) != related.get(path):
                shown = None
                if path in places:
                    near = choose_related(self.site, places[path], related.get(path, ()))
                    shown = tuple(self.neighbours[each] for each in near)
                if view.revise(
                    self._edited.get(path, view.document), self.content.minutes[path], shown
                ):
                    changed.add(page)
        return changed


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
