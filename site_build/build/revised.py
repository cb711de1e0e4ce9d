"""A build after edits of texts alone, which keeps the plan of the build before.

The plan is the build itself, with its targets and what templates see. Only targets that can show an
edited text, or a value that came of it, are asked whether they have changed. Whatever else changes,
such as a title, a date, a picture, a setting or the theme, needs a whole build.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from edge_api.schema.index import INDEX_FILE
from site_build.addresses import SECURITY
from site_build.build.assets import find_withheld
from site_build.build.builder import KnownContent, SiteBuild, digest_style
from site_build.build.fingerprint import Style
from site_build.build.manifest import OutputFolder
from site_build.build.targets import FileTarget, IndexFile, TemplateTarget
from site_build.build.text_targets import list_notices, list_records, make_alternate
from site_build.progress import Request
from site_build.related import choose_related
from site_build.site import Document, Identity, Site, select_public
from site_build.template_objects import Article, InputDigest, Page


def revise(
    plan: SiteBuild, request: Request, identity: Identity, style: Style, known: KnownContent
) -> SiteBuild | None:
    """Return a build that keeps the plan, or None if more than texts has changed since.

    The plan is that of the build whose manifest is `known`; it must not be used again. Raises
    BuildError, and for findings ContentError if `strict`.
    """
    old, new, before, due = plan.content, known.content, plan.request, plan.report.next_instant
    same = [replace(style, settings_text="") for style in (plan.style, style)]
    pairs = [*zip(old.documents, new.documents, strict=False)]
    if not (
        plan.is_revisable
        and same[0] == same[1]
        and identity == plan.site.identity
        and digest_style(style) == plan.context.common_digest
        and (request.content, request.cache, request.kept_sources)
        == (before.content, before.cache, before.kept_sources)
        and before.now <= request.now
        and (due is None or request.now < due)
        and not (old.held or new.held)
        and len(old.documents) == len(new.documents)
        and all(e is other or e == replace(other, digest=e.digest) for e, other in pairs)
        and (old.files, old.redirects) == (new.files, new.redirects)
        and old.image_set.pictures == new.image_set.pictures
        and old.image_set.shown == new.image_set.shown
    ):
        return None
    site = select_public(identity, new.documents, request.now)
    stamp, folder = known.manifest.index_stamp, OutputFolder(request.site_folder, known.manifest)
    if (
        plan.withheld != find_withheld(new, site, request, style)
        or not (stamp and stamp.fits(f"{request.previous_state / INDEX_FILE}"))
        or not (known.is_output_checked or all(map(folder.keep, known.manifest.entries.values())))
    ):
        return None
    edited = {document.path: document for former, document in pairs if former is not document}
    return RevisedBuild(plan, edited, request, site, known)


class RevisedBuild(SiteBuild):
    """A build that keeps the targets of another one, whose object it takes over."""

    def __init__(
        self,
        plan: SiteBuild,
        edited: dict[str, Document],
        request: Request,
        site: Site,
        known: KnownContent,
    ) -> None:
        """Check the content; `edited` has the documents with another text, by path."""
        vars(self).update(vars(plan))
        self._edited, self._former_related = edited, plan.related
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
        self._lines = self._index.list_former()
        edited = [each for each in site.documents if each.path in self._edited]
        posts = [each for each in edited if each.kind == "post" and not each.hidden]
        fresh = [
            *list_records(site, content.minutes, posts),
            *(make_alternate(site, each, content.image_set, self.texts) for each in edited),
            # Of the other files without a key, only this one shows more than heads of documents.
            *(e for e in list_notices(site, self.style.policy, request.now) if e.path == SECURITY),
        ]
        self._stale = [
            *(each for each in fresh if type(self._targets[each.path]) is type(each)),
            *(each for each in self._targets.values() if isinstance(each, FileTarget)),
        ]
        self._targets |= {each.path: each for each in self._stale}

    def make_pages(self) -> Iterator[TemplateTarget]:
        """Make the files that an edit can have changed; there are no plugins to see them."""
        self.add_frames()
        self.find_unknown_names()
        pages = [each for each in self._targets.values() if isinstance(each, TemplateTarget)]
        digests = InputDigest()
        before = [self._digest_shared(page, digests) for page in pages]
        changed = self._revise_views(pages)
        digests = InputDigest()  # the other one remembers long lists as they were
        self.context = replace(self.context, input_digest=digests)
        asked = [
            page
            for page, digest in zip(pages, before, strict=True)
            if self._is_affected(page, changed) or digest != self._digest_shared(page, digests)
        ]
        old = self._before.entries
        self._entries = {path: old[path] for path in self._targets if path in old}
        with self._cache:
            self._run(self._reuse_unchanged([*self._stale, *asked]))
        return iter(())

    def _digest_shared(self, page: TemplateTarget, digests: InputDigest) -> bytes:
        """Return the digest of the values that a page looks up and shares with others."""
        entry = self._before.entries[page.path]
        return digests.digest_shared(entry.names, page.shared, page.own) if entry.key else b""

    def _is_affected(self, page: TemplateTarget, changed: set[str]) -> bool:
        """Return whether a page shows an edited text, or may show one of the `changed` documents.

        A list is given many documents, so that any of them counts.
        """
        entry = self._before.entries[page.path]
        shown = {view.source_path for view in _list_views(page)}
        return (
            not entry.key
            or not self._edited.keys().isdisjoint(entry.texts.split("\n"))
            or bool(changed and not (shown and changed.isdisjoint(shown)))
        )

    def _revise_views(self, pages: list[TemplateTarget]) -> set[str]:
        """Give edited texts and other related posts to what templates see of documents.

        Returns the paths of documents of which they see something else than the text.
        """
        changed, former, related = set(), self._former_related, self.related
        places = {post.path: place for place, post in enumerate(self.site.posts)}
        for view in chain.from_iterable(map(_list_views, pages)):
            path = view.source_path
            if path in self._edited or former.get(path) != related.get(path):
                found = related.get(path, ())
                near = choose_related(self.site, places[path], found) if path in places else ()
                if view.revise(
                    self._edited.get(path, view.document),
                    self.content.image_set,
                    self.content.minutes[path],
                    tuple(self.neighbours[each] for each in near),
                ):
                    changed.add(path)
        return changed


def _list_views(page: TemplateTarget) -> list[Article | Page]:
    """Return the documents that have the page."""
    found = (page.own.get("article"), page.own.get("page"))
    return [each for each in found if isinstance(each, Article | Page)]
