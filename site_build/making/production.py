"""One build from end to end, apart from the pages themselves: content in, files and ledger out.

Pelican's generators say in between which pages there are. It knows neither Pelican nor where
builds are kept.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import count
from pathlib import Path

from jinja2 import Environment

from edge_api.schema.edge_pages import CONTACT_PAGE
from edge_api.schema.index import INDEX_FORMAT, IndexHead
from site_build import addresses
from site_build.faults import BuildError, ContentError
from site_build.incremental.cache import PLATES, Cache, Plates, make_key
from site_build.incremental.spread import spread
from site_build.incremental.tree import (
    Entry,
    Ledger,
    Recipe,
    Tree,
    list_carried,
    read_ledger,
    write_ledger,
)
from site_build.making.assets import (
    Assets,
    PlateTask,
    find_font,
    list_cards,
    list_files,
    list_pictures,
)
from site_build.making.handover import Handover, find_handover
from site_build.making.index_file import IndexFile, Piece
from site_build.making.outputs import (
    forget_records,
    list_full_texts,
    list_gone,
    list_notices,
    list_outputs,
    list_records,
    make_text,
)
from site_build.making.recipe import (
    HOUSE_THEME,
    Style,
    fingerprint_code,
    fingerprint_theme,
    is_lent,
)
from site_build.making.tasks import (
    FileTask,
    Kept,
    Result,
    Task,
    TemplateTask,
    TextTask,
    Workshop,
    group_tasks,
)
from site_build.markup.convert import Dialect
from site_build.pictures.encode import forget_picture
from site_build.post import Finding
from site_build.progress import Report, Request
from site_build.reading.gather import TEXTS, AuthorizationServer, Gathered, Text, Texts, gather
from site_build.similarity.nearest import Related, relating
from site_build.site import Identity, list_former_slugs, list_moves, publish
from site_build.views.sight import Sight

_DIGITS = 12
"""Of the digest in a build's id, hexadecimal."""

_Yield = tuple[list[Result], list[tuple[bytes, Text]], list[tuple[bytes, bytes]]]
"""What a group of tasks brings: results, texts and pictures that were made for them."""


@dataclass(slots=True)
class _Outcome:
    """What tasks have brought so far."""

    before: Mapping[str, Entry]
    entries: dict[str, Entry] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        match result:
            case Kept():
                self.entries[result] = self.before[result]
            case Piece():
                self.pieces[result.slug] = result
            case Entry():
                self.entries[result.path] = result


class Production:
    """A build under way: it reads the content, takes tasks, and finishes them all at once."""

    report: Report
    """What the build came to; there once it is finished."""
    handover: Handover
    """What the edge renders with."""

    def __init__(self, request: Request, identity: Identity, style: Style) -> None:
        """Read and check the content; raises ContentError when it must not be published.

        Raises BuildError when a template of the theme is not what the edge can show.
        """
        self.request = request
        self._cache = Cache(request.cache)
        self._before = read_ledger(request.before)
        self._leaf_size, self._policy = style.leaf_size, style.policy
        self._tasks: dict[str, Task] = {}
        self._outcome = _Outcome(self._before.entries)
        code = fingerprint_code()
        with self._cache:
            self.gathered, judge = self._gather(code, style.dialect)
            self.site = publish(identity, self.gathered.documents, request.now)
            with self._relate(code) as wait:
                self.findings = _admit(judge(), is_strict=request.strict)
                self.related = wait()
        self.theme = style.theme.resolve()
        lent = None if self.theme == HOUSE_THEME else HOUSE_THEME / "static"
        self.assets = Assets(style.theme / "static", lent)
        self.font = find_font(style.theme)
        folders = [*style.overrides, style.theme / "templates", HOUSE_THEME / "templates"]
        self.handover = self._find_handover(folders, style.budget_tiers)
        self.seen: dict[str, None] = {}
        self.texts = Texts(request.content, self._cache, code, style.dialect)
        looks = fingerprint_theme([style.theme, *style.overrides, HOUSE_THEME])
        self._workshop = self._equip(make_key(code, looks, style.settings, style.once))

    def _gather(self, code: str, dialect: Dialect) -> tuple[Gathered, AuthorizationServer]:
        return gather(self.request, self._cache, code, dialect)

    def _relate(self, code: str) -> AbstractContextManager[Callable[[], Related]]:
        posts, terms = self.site.posts, self.gathered.terms
        return relating(self._cache, code, posts, terms, self.request.jobs)

    def _find_handover(self, folders: Sequence[Path], tiers: Sequence[str]) -> Handover:
        return find_handover(folders, self.assets.locate, tiers, self.site.identity.addresses)

    def _equip(self, method: bytes) -> Workshop:
        place, before = self.request.place, self.request.before
        place.state.mkdir(parents=True, exist_ok=True)
        return Workshop(
            Tree(place.site, self._before),
            IndexFile(place.state, self._before, before),
            self.texts,
            self.gathered.gallery,
            Plates(self._cache),
            Sight(),
            {document.path: document for document in self.gathered.documents},
            self.seen,
            method.hex(),
        )

    def add(self, task: Task) -> None:
        """Take a task; raises BuildError when another output has its path already.

        A file of the content folder stands in place of one that a renderer makes.
        """
        if task.path.startswith("/") or ".." in task.path.split("/"):
            raise BuildError(
                f"{task.path} is no path within the site; mend the setting that names it"
            )
        if other := self._tasks.get(task.path):
            if isinstance(other, FileTask) and isinstance(task, TextTask):
                return
            sources = ", ".join(map(self._name_source, (other, task)))
            raise BuildError(
                f"Two outputs have the path {task.path} ({sources}); give one of them another"
            )
        self._tasks[task.path] = task

    def borrow(self, environment: Environment) -> None:
        """Take each page of a lent template from our own theme, frame and all."""
        for path, task in self._tasks.items():
            if isinstance(task, TemplateTask) and is_lent(task.template):
                template = environment.get_template(str(task.template.name))
                self._tasks[path] = replace(task, template=template)

    def _name_source(self, task: Task) -> str:
        """Return the source file of a task, or what makes it."""
        match task:
            case FileTask():
                return task.source.relative_to(self.request.content).as_posix()
            case TemplateTask():
                shown = (task.own.get(kind) for kind in ("article", "page"))
                source = next(
                    (each.source_path for each in shown if hasattr(each, "source_path")), ""
                )
                return str(source or f"the template {task.template.name}")
            case _:
                return "the build's own"

    def make_pages(self) -> Iterator[TemplateTask]:
        """Do all tasks, and return those of pages; `finish` does the rest."""
        for task in self._list_others(self.request.now):
            self.add(task)
        with self._cache:
            self._run(list(self._tasks.values()), self._outcome)
        return (task for task in self._tasks.values() if isinstance(task, TemplateTask))

    def finish(self, folder: Path) -> None:
        """Write what builds on the pages, and remember what was written.

        `folder` has the files that plugins wrote: each stands in place of the build's own.
        """
        with self._cache:
            self._make(folder)

    def _take_in(self, folder: Path) -> None:
        """Publish what plugins wrote or changed, and tell where that replaces a file."""
        own = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        for file in sorted(own):
            path, data = file.relative_to(folder).as_posix(), file.read_bytes()
            before = self._outcome.entries.get(path)
            if before and before.digest == sha256(data).hexdigest():
                continue
            self._outcome.entries[path] = self._workshop.tree.write(path, data, Recipe(""))
            if before and not path.endswith(".html"):  # Each page lies there for plugins to change.
                message = "a plugin wrote this file, which replaces the one of the build"
                self.findings += (Finding(path, 1, 1, "warning", message),)

    def _list_others(self, now: datetime) -> Iterator[Task]:
        """Yield a task for everything that no template makes, as it is at `now` (UTC)."""
        gathered = self.gathered
        yield from list_files(self.request.content, gathered.files, gathered.gallery)
        for asset in (*self.assets.published.values(), *self.assets.plain):
            yield make_text(asset.path, asset.data)
        yield from self._list_plates()
        yield from list_records(self.site, self.gathered.minutes)
        has_leaves = self.site.identity.addresses.has_leaves and self._leaf_size
        size = self._leaf_size if has_leaves else len(self.site.posts)
        yield from list_outputs(self.site, size, gathered.gallery)
        yield from list_notices(self.site.identity, self._policy, now)

    def _list_plates(self) -> Iterator[Task]:
        """Yield what is drawn; pictures first, since they take longest."""
        yield from list_pictures(self.request.content, self.gathered.gallery, self.site)
        if self.font:
            yield from list_cards(self.site, self.font)

    def _make(self, folder: Path) -> None:
        outcome = self._outcome
        pieces = [outcome.pieces[post.slug] for post in self.site.posts]
        self._run(self._find_stale(outcome), outcome)
        self._take_in(folder)
        build_id = self._name(outcome, pieces)
        self._write_index(build_id, outcome.entries, pieces)
        self._cache.keep_only(TEXTS, map(self.texts.key, self.site.posts + self.site.pages))
        plates = (task for task in self._tasks.values() if isinstance(task, PlateTask))
        self._cache.keep_only(PLATES, (plate.key for plate in plates))
        lists, before = self.site.identity.addresses, self._before.entries
        gone = list_gone(before, outcome.entries, self._places(), lists)
        self.findings = (*self.findings, *gone)
        self.report = self._report(build_id, outcome.entries)

    def _places(self) -> dict[str, tuple[int, int]]:
        """Return where each document's file says its slug."""
        return {each.path: each.slug_at for each in self.gathered.documents}

    def _find_stale(self, outcome: _Outcome) -> list[Task]:
        """Take over the full texts that are as they were, and return the others.

        After an edit these are few: they are done sooner than processes are started.
        """
        stale: list[Task] = []
        for task in list_full_texts(self.site, outcome.pieces, has_cards=bool(self.font)):
            if task.path in self._tasks:
                continue  # A setting of Pelican's puts a feed there.
            if kept := task.keep(self._workshop):
                outcome.add(kept)
            else:
                stale.append(task)
        return stale

    def _run(self, tasks: Sequence[Task], outcome: _Outcome) -> None:
        groups = group_tasks(tasks)
        self.request.observer.begin("writing", len(groups))
        for _, (results, texts, plates) in spread(self._run_group, groups, self.request.jobs):
            for result in results:
                outcome.add(result)
            if texts:
                self._cache.put(TEXTS, texts)
            if plates:
                self._cache.put(PLATES, plates)
            self.request.observer.advance()

    def _run_group(self, tasks: Sequence[Task]) -> _Yield:
        """Do the tasks of one folder; return also what the cache does not know yet."""
        results = [task.run(self._workshop) for task in tasks]
        forget_picture()
        forget_records()
        made = self._workshop.plates
        texts, self.texts.fresh = self.texts.fresh, []
        plates, made.fresh = made.fresh, []
        return results, texts, plates

    def _name(self, outcome: _Outcome, pieces: Sequence[Piece]) -> str:
        """Return the build's id: the instant, and a digest of all that it says."""
        files = sorted((entry.path, entry.digest) for entry in outcome.entries.values())
        now, identity = self.request.now, self.site.identity
        templates = sorted(self.handover.sources.items())
        lines = [piece.digest for piece in pieces]
        digest = make_key(INDEX_FORMAT, now, identity, files, lines, templates)
        return f"{now:%Y%m%dT%H%M%SZ}-{digest.hex()[:_DIGITS]}"

    def _write_index(
        self, build_id: str, entries: dict[str, Entry], pieces: Sequence[Piece]
    ) -> None:
        """Write index, templates and ledger; take over and clear away what is of before."""
        identity = self.site.identity
        head = IndexHead(
            format=INDEX_FORMAT,
            build_id=build_id,
            site_url=identity.url,
            site_title=identity.name,
            site_description=identity.description,
            built_for=self.request.now,
            count=len(pieces),
            moved={f"/{former}": f"/{present}" for former, present, _ in list_moves(self.site)},
            is_bare=identity.addresses.has_bare_pages(),
            post_path=_name_form(identity.addresses.post),
            tag_path=_name_form(identity.addresses.tag),
            renamed={old: post.slug for post in self.site.posts for old in list_former_slugs(post)},
        )
        self._hand_over(entries)
        stamp, lines = self._workshop.index.assemble(head, pieces)
        self._workshop.index.discard()
        for entry in self._carry():
            entries[entry.path] = entry
        self._workshop.tree.remove_all_but(entries)
        write_ledger(self.request.place.state, Ledger(entries, lines, stamp))

    def _hand_over(self, entries: Mapping[str, Entry]) -> None:
        """Give the edge its templates, provided that the page of the forms can be filled."""
        place = self.request.place
        if CONTACT_PAGE in entries:
            page = (place.site / CONTACT_PAGE).read_text(encoding="utf-8")
            self.handover.check_contact_page(page)
        self.handover.write(place.state)

    def _carry(self) -> Iterator[Entry]:
        """Keep the static files and pictures that pages of the build before ask for."""
        for folder in (addresses.THEME, addresses.PICTURES):
            fresh = [path for path in self._tasks if path.startswith(folder)]
            for entry in list_carried(self._before, fresh, folder):
                if self._workshop.tree.keep(entry):
                    yield entry._replace(carried=True)

    def _report(self, build_id: str, entries: dict[str, Entry]) -> Report:
        before = self._before.entries
        kept = [each for each in entries.values() if _is_kept(each, before.get(each.path))]
        now = self.request.now
        later = [each.published for each in self.gathered.documents if not each.draft]
        return Report(
            build_id=build_id,
            built_for=now,
            posts=len(self.site.posts),
            files=_count_files(entries.values()),
            size=sum(sum(entry.sizes) for entry in entries.values()),
            kept=_count_files(kept),
            sources=self.gathered.sources,
            hits=self.gathered.hits,
            next_instant=min((instant for instant in later if instant > now), default=None),
            findings=self.findings,
        )


def _admit(findings: tuple[Finding, ...], *, is_strict: bool) -> tuple[Finding, ...]:
    """Return the findings; raises ContentError for those that keep content from publication."""
    if any(is_strict or each.severity == "error" for each in findings):
        raise ContentError(findings)
    return findings


def _name_form(form: str) -> str:
    """Return a form of paths as the index has it, which tells what stands where and no more."""
    numbers = count(1)
    return re.sub(
        r"\{(\w+)[^}]*\}",
        lambda found: found[0] if found[1] == "slug" else f"{{{found[1]}_{next(numbers)}}}",
        f"/{form}",
    )


def _is_kept(entry: Entry, before: Entry | None) -> bool:
    return before is not None and before.mtimes == entry.mtimes


def _count_files(entries: Iterable[Entry]) -> int:
    return sum(entry.count_forms() for entry in entries)
