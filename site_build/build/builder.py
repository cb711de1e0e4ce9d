"""One build from end to end, apart from the pages themselves: content in, files and a manifest out.

In between, Pelican's generators add the pages. This module knows neither Pelican nor the place of
builds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import orjson
from jinja2 import Environment

from edge_api.schema.index import HELD_FILE, INDEX_FORMAT, NEWSLETTER_FILE
from edge_api.schema.page_templates import ACCESS_FORM, CONTACT_PAGE
from site_build import addresses
from site_build.build.assets import (
    Assets,
    find_font,
    find_withheld,
    list_cards,
    list_edge_pictures,
    list_files,
    list_pictures,
)
from site_build.build.edge_templates import find_edge_templates
from site_build.build.fingerprint import (
    HOUSE_THEME,
    Style,
    fingerprint_code,
    fingerprint_theme,
    is_fallback_template,
)
from site_build.build.manifest import (
    EMPTY,
    Entry,
    Line,
    Manifest,
    OutputFolder,
    list_retained,
    write_manifest,
)
from site_build.build.targets import (
    FileTarget,
    ImageTarget,
    IndexFile,
    Result,
    Target,
    TargetContext,
    TemplateTarget,
    TextTarget,
    group_targets,
    make_head,
    read_records,
)
from site_build.build.text_targets import (
    choose_redirects,
    find_gone_pages,
    list_full_texts,
    list_notices,
    list_outputs,
    list_records,
    list_redirects,
    note_newsletter,
)
from site_build.cache import IMAGES, Cache, make_key
from site_build.content.kept import KEPT_FILE, KeptSources, keep_sources, read_kept
from site_build.content.sources import TEXTS, Content, TextReader
from site_build.errors import BuildError, ContentError, Diagnostic
from site_build.images.encode import free_pictures
from site_build.parallel import map_unordered
from site_build.progress import Report, Request
from site_build.related import Related, find_related_in_background
from site_build.site import Identity, Site, find_next_instant, select_public
from site_build.template_objects import InputDigest, Neighbour

_FEW_FILES = 100  # fewer files than this are written sooner than processes start


def digest_style(style: Style) -> str:
    """Return the digest of code, theme and settings."""
    folders = [style.theme, *style.overrides, HOUSE_THEME]
    return make_key(
        fingerprint_code(), fingerprint_theme(folders), style.settings, style.rebuild_key
    ).hex()


def free_memory() -> None:
    """Release the last picture and the posts of the last feed."""
    free_pictures()
    read_records.cache_clear()


@dataclass(frozen=True, slots=True)
class KnownContent:
    """Content that a preview or a watcher has read already, so that a build need not."""

    content: Content
    related: Related | None = None
    """Related posts, if they are known; finding them takes longer than the rest of a build."""
    check: Callable[[], tuple[Diagnostic, ...]] = tuple
    """Returns the findings about the content; a preview finds them by itself."""
    manifest: Manifest = EMPTY
    """Manifest of the build before."""
    is_output_checked: bool = False
    """Whether the files of that build are known to be as its manifest says."""


class SiteBuild:
    """A build under way: `add` collects targets, `make_pages` and `finish` make their files.

    `finish` sets `report` and `manifest`.
    """

    def __init__(
        self, request: Request, identity: Identity, style: Style, known: KnownContent
    ) -> None:
        """Check the content; raises BuildError, and for findings ContentError if `strict`."""
        self._cache, self.style = Cache(request.cache), style
        self._targets: dict[str, Target] = {}
        self.neighbours: Mapping[str, Neighbour] = {}
        """What a link to each post shows, by the post's path."""
        self.add_frames: Callable[[SiteBuild], None]
        """Makes the frames of a build's edge templates; the generator of outputs sets it."""
        self.is_revisable: bool
        """Whether the next build may keep the plan of this one; `make_pages` sets it."""
        with self._cache:
            self._begin(
                request, select_public(identity, known.content.documents, request.now), known
            )

    def _begin(self, request: Request, site: Site, known: KnownContent) -> None:
        """Check the content and prepare its targets; raises BuildError and ContentError."""
        self.request, self.site, self.content = request, site, known.content
        self._before, self._is_output_checked = known.manifest, known.is_output_checked
        self._entries: dict[str, Entry] = {}
        self._lines: dict[str, Line] = {}
        related = known.related
        finding: AbstractContextManager[Callable[[], Related]] = (
            find_related_in_background(
                self._cache, fingerprint_code(), site.posts, self.content.terms, request.jobs
            )
            if related is None
            else nullcontext(lambda: related)
        )
        with finding as wait:
            self.findings: tuple[Diagnostic, ...] = known.check()
            named = {each.path for each in self.findings if each.severity == "error"}
            self._held = tuple(e for e in self.content.held if e.finding.severity == "error")
            self.findings += tuple(e.finding for e in self._held if e.path not in named)
            if request.strict and self.findings:
                raise ContentError(self.findings)
            self._kept: KeptSources = (
                keep_sources(
                    request.kept_sources,
                    request.content,
                    site.documents,
                    read_kept(request.previous_state),
                )
                if request.kept_sources
                else {}
            )
            self._prepare()
            self.related = wait()

    def _prepare(self) -> None:
        """Prepare all that does not depend on related posts; raises BuildError."""
        request, style, site = self.request, self.style, self.site
        self.theme = style.theme.resolve()
        default_static = None if self.theme == HOUSE_THEME else HOUSE_THEME / "static"
        self.assets = Assets(style.theme / "static", default_static)
        self.font = find_font(style.theme)
        folders = [*style.overrides, style.theme / "templates", HOUSE_THEME / "templates"]
        self.edge_templates = find_edge_templates(
            folders, self.assets.locate, style.budget_tiers, site.identity.addresses
        )
        if not style.policy.has_access_form:
            self.edge_templates.sources.pop(ACCESS_FORM.template, None)
        self.is_default_theme = self.theme == HOUSE_THEME and not style.overrides
        self.withheld = find_withheld(self.content, site, request, style)
        self.looked_up: dict[str, None] = {}
        self.texts = TextReader(request, self._cache, fingerprint_code(), style.dialect)
        self._output = OutputFolder(
            request.site_folder, self._before, is_checked=self._is_output_checked
        )
        self._index = IndexFile(request.state, self._before, request.previous_state)
        self.context = TargetContext(
            self.texts,
            self.content.image_set,
            self._cache,
            InputDigest(),
            {document.path: document for document in self.content.documents},
            self.looked_up,
            digest_style(style),
            self._output,
            self._index,
        )
        self._add_other_targets()

    def add(self, target: Target) -> None:
        """Add a target unless a content file has its path; raises BuildError for another clash."""
        if target.path.startswith("/") or ".." in target.path.split("/"):
            raise BuildError(
                f"{target.path} is no path within the site; fix the setting that names it"
            )
        if other := self._targets.get(target.path):
            if isinstance(other, FileTarget) and isinstance(target, TextTarget):
                return
            raise BuildError(
                f"Two outputs have the path {target.path} ({self._name_source(other)}, "
                f"{self._name_source(target)}); give one of them another"
            )
        self._targets[target.path] = target

    def _add_other_targets(self) -> None:
        """Add the targets that no template makes, and reuse the files that are unchanged."""
        for target in self._list_other_targets(self.request.now):
            self.add(target)
        self._stale = self._reuse_unchanged(self._targets.values())
        self._other_count = len(self._targets)

    def use_fallback_templates(self, environment: Environment) -> None:
        """Use the default theme alone, with its frame, for pages whose template the theme lacks."""
        for path, target in self._targets.items():
            if isinstance(target, TemplateTarget) and is_fallback_template(target.template):
                template = environment.get_template(str(target.template.name))
                self._targets[path] = replace(target, template=template)

    def _name_source(self, target: Target) -> str:
        """Return the source file of a target, or what makes it."""
        match target:
            case FileTarget():
                return target.source.relative_to(self.request.content).as_posix()
            case TemplateTarget():
                shown = (target.own.get(kind) for kind in ("article", "page"))
                named = (each.source_path for each in shown if hasattr(each, "source_path"))
                return str(next(named, "") or f"the template {target.template.name}")
            case _:
                return "the build's own"

    def find_unknown_names(self) -> None:
        """Warn of unknown names in templates of any but the default theme; raises BuildError."""
        found = self._targets.values() if not self.is_default_theme else ()
        pages = {e.template.name: e for e in found if isinstance(e, TemplateTarget)}
        with self._cache:
            for page in pages.values():
                page.make(self.context)
        self.findings += tuple(
            Diagnostic(
                file, line, 1, "warning", f"{about}, so nothing is shown; give it a `default`"
            )
            for file, line, about in sorted(self.edge_templates.unknown)
        )

    def make_pages(self) -> Iterator[TemplateTarget]:
        """Make the files of all targets, and return the targets of pages."""
        pages = list(self._targets.values())[self._other_count :]
        # Another theme is asked for unknown names anew, and a feed of Pelican's shows any text.
        self.is_revisable = self.is_default_theme and all(
            isinstance(each, TemplateTarget) for each in pages
        )
        self.find_unknown_names()
        with self._cache:
            self._run([*self._reuse_unchanged(pages), *self._stale])
        return (target for target in pages if isinstance(target, TemplateTarget))

    def finish(self, folder: Path) -> None:
        """Write feeds, index and manifest; files of plugins, in `folder`, replace the build's."""
        lines = [self._lines[post.slug] for post in self.site.posts]
        with self._cache:
            images, has_cards = self.content.image_set, bool(self.font)
            full = list_full_texts(self.site, self._lines, images, has_cards=has_cards)
            # Pelican may write a feed of its own to such a path, if its settings say so.
            self._run(self._reuse_unchanged(e for e in full if e.path not in self._targets))
            self._add_plugin_files(folder)
            self._redirects = choose_redirects(self.content.redirects, self._entries)
            if self._redirects:
                self._run([*list_redirects(self.site.identity, self._redirects, self._entries)])
            entries, now = self._entries.values(), self.request.now
            # The build's id: the instant, and a digest of all its output.
            digest = make_key(
                INDEX_FORMAT,
                now,
                self.site.identity,
                sorted((entry.path, entry.digest) for entry in entries),
                [line.digest for line in lines],
                sorted(self.edge_templates.sources.items()),
            )
            build_id = f"{now:%Y%m%dT%H%M%SZ}-{digest.hex()[:12]}"
            self._write_index(build_id, lines)
            self._prune_cache(self._targets.values(), slack=2 * len(lines))
        self.findings += tuple(
            find_gone_pages(
                self._before.entries,
                self._entries,
                {each.path: each.slug_at for each in self.content.documents},
                self.site.identity.addresses,
            )
        )
        self.report = Report(
            build_id=build_id,
            built_for=now,
            posts=len(lines),
            files=sum(len(entry.mtimes) - entry.mtimes.count(0) for entry in entries),
            size=sum(map(sum, (entry.sizes for entry in entries))),
            sources=self.content.source_count,
            hits=self.content.cache_hits,
            next_instant=find_next_instant(self.content.documents, now),
            findings=self.findings,
            held=self._held,
        )

    def _prune_cache(self, targets: Iterable[Target], slack: int = 0) -> None:
        """Keep only this site's texts in the cache, and the pictures of these targets."""
        self._cache.keep_only(TEXTS, map(self.texts.key, self.site.documents), slack)
        images = (each.key for each in targets if isinstance(each, ImageTarget))
        self._cache.keep_only(IMAGES, images, slack)

    def _add_plugin_files(self, folder: Path) -> None:
        """Publish what plugins wrote or changed; warn where that replaces a file."""
        for file in sorted(e for e in folder.rglob("*") if e.is_file() and not e.is_symlink()):
            path, data = file.relative_to(folder).as_posix(), file.read_bytes()
            before = self._entries.get(path)
            if before and before.digest == sha256(data).hexdigest():
                continue
            self._entries[path] = self._output.write(path, data)
            if before and not path.endswith(".html"):  # Pages are there for plugins to change.
                message = "a plugin wrote this file, which replaces the one of the build"
                self.findings += (Diagnostic(path, 1, 1, "warning", message),)

    def _list_other_targets(self, now: datetime) -> Iterator[Target]:
        """Yield a target for everything that no template makes, as of `now` (UTC)."""
        folder, content, site = self.request.content, self.content, self.site
        yield from list_files(folder, content, self.withheld)
        for asset in (*self.assets.published.values(), *self.assets.unhashed):
            yield TextTarget(asset.path, asset.data)
        # Pictures come first, since they take longest.
        yield from list_pictures(folder, content, site)
        yield from list_cards(folder, content, site, self.font) if self.font else ()
        yield from list_edge_pictures(folder, content, site)
        yield from list_records(site, content.minutes)
        size = (site.identity.addresses.has_leaves and self.style.page_size) or len(site.posts)
        yield from list_outputs(site, size, content.image_set, self.texts)
        yield from list_notices(site, self.style.policy, now)

    def _note(self, result: Result) -> None:
        if isinstance(result, Line):
            self._lines[result.slug] = result
        else:
            self._entries[result.path] = result

    def _reuse_unchanged(self, targets: Iterable[Target]) -> list[Target]:
        """Note files that are unchanged since the build before; return the targets of the others.

        After an edit, the others are few.
        """
        stale = []
        for target in targets:
            if kept := target.recall(self.context):
                self._note(kept)
            else:
                stale.append(target)
        return stale

    def _run(self, targets: Sequence[Target]) -> None:
        groups = group_targets(targets)
        self.request.observer.begin("writing", len(groups))
        are_few = len(targets) < _FEW_FILES and not any(isinstance(e, ImageTarget) for e in targets)
        jobs = 1 if are_few else self.request.jobs
        for _, results in map_unordered(self._run_group, groups, jobs):
            for result in results:
                self._note(result)
            self.request.observer.advance()

    def _run_group(self, targets: Sequence[Target]) -> list[Result]:
        """Make the files of one folder."""
        results = [target.run(self.context) for target in targets]
        free_memory()
        return results

    def _write_index(self, build_id: str, lines: Sequence[Line]) -> None:
        """Write index, manifest and templates for the edge; remove files of earlier builds."""
        request = self.request
        if CONTACT_PAGE in self._entries:
            self.edge_templates.check_contact_page(
                (request.site_folder / CONTACT_PAGE).read_text(encoding="utf-8")
            )
        unknown = [
            f"{place}:{line}: {about}" for place, line, about in sorted(self.edge_templates.unknown)
        ]
        self.edge_templates.write(request.state, unknown, self.site.identity)
        held = [
            f"{found.path}:{found.line}: {found.message}"
            + "; readers see the former version until it is fixed" * is_shown
            for _, is_shown, found in self._held
        ]
        (request.state / KEPT_FILE).write_bytes(orjson.dumps(self._kept))
        (request.state / HELD_FILE).write_bytes(orjson.dumps(held))
        notes = note_newsletter(self.site, self.content.minutes, self.context)
        if any(dict(notes).values()):
            (request.state / NEWSLETTER_FILE).write_text(notes.model_dump_json(), encoding="utf-8")
        stamp, placed = self._index.assemble(
            make_head(self.site, build_id, request.now, self._redirects), lines
        )
        self._index.discard()
        withheld = {form.path for _, form in self.content.image_set.list_forms((), *self.withheld)}
        # Static files and pictures that pages of the build before use are kept.
        for folder in (addresses.THEME, addresses.PICTURES):
            fresh = [path for path in self._targets if path.startswith(folder)]
            for entry in list_retained(self._before, fresh, folder):
                if entry.path not in withheld and self._output.keep(entry):
                    self._entries[entry.path] = entry._replace(retained=True)
        self._output.remove_all_but(self._entries)
        self.manifest = Manifest(self._entries, placed, stamp)
        write_manifest(request.state, self.manifest, self._before, request.previous_state)
