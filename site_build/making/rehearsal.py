"""A build that writes nothing: it takes every task, and makes a file when somebody asks for it.

It shows what a build would show, drafts and scheduled posts included. It knows neither Pelican nor
who asks.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from edge_api.schema.index import PostRecord
from site_build import addresses
from site_build.faults import BuildError
from site_build.incremental.cache import PLATES, Plates
from site_build.incremental.tree import EMPTY, Entry, Recipe, Tree
from site_build.making.assets import PlateTask
from site_build.making.handover import Handover
from site_build.making.index_file import IndexFile, Piece, make_piece, write_line
from site_build.making.outputs import forget_records, list_full_texts, list_records
from site_build.making.production import Production
from site_build.making.recipe import Style
from site_build.making.tasks import RecordTask, Task, TemplateTask, Workshop
from site_build.markup.convert import Dialect
from site_build.pictures.encode import forget_picture
from site_build.post import Document
from site_build.progress import Request
from site_build.reading.gather import TEXTS, AuthorizationServer, Gathered
from site_build.similarity.nearest import Related
from site_build.site import Identity, publish
from site_build.views.content import Article, Page
from site_build.views.sight import Sight

_MADE_OF_RECORDS = (".json", ".txt", ".xml")
"""Suffixes of files that may hold whole posts."""


class Glass(Tree):
    """Stands in for the folder that a build writes into, and writes nothing to the disk.

    It shows the bytes of the file that was made last, until the next is made.
    """

    def __init__(self) -> None:
        super().__init__(Path(), EMPTY)
        self.data = b""

    def write(self, path: str, data: bytes, recipe: Recipe) -> Entry:
        """Hold `data`."""
        self.data = data
        digest = hashlib.sha256(data).hexdigest()
        return Entry(path, recipe.key, digest, [len(data)], [0], recipe.names, recipe.texts)


class Slate(IndexFile):
    """Stands in for the posts index that a build writes: each line is handed back in memory.

    So previews that share a folder have no file in common but the cache.
    """

    def __init__(self) -> None:
        super().__init__(Path(), EMPTY, Path())

    def spool(self, record: PostRecord, key: str) -> Piece:
        """Return the line of a post, which is written nowhere."""
        line = write_line(record)
        return make_piece(record.slug, key, line, line)


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier rehearsal has found out and the next may take as it is."""

    handover: Handover | None = None
    """Templates that were tried already."""
    related: Related | None = None
    """Posts like each other; to find them takes longer than all the rest."""


class Rehearsal(Production):
    """The site as it would be built with every document public."""

    def __init__(
        self,
        request: Request,
        identity: Identity,
        style: Style,
        gathered: Gathered,
        earlier: Earlier,
    ) -> None:
        """Take what was read and checked already.

        Raises BuildError when a template of the theme is not what the edge can show.
        """
        self._given, self._earlier, self._glass = gathered, earlier, Glass()
        super().__init__(request, identity, style)

    def _gather(self, _code: str, _dialect: Dialect) -> tuple[Gathered, AuthorizationServer]:
        return _publish(self._given), lambda: ()  # findings are found and shown elsewhere

    def _relate(self, code: str) -> AbstractContextManager[Callable[[], Related]]:
        related = self._earlier.related
        if related is None:
            return super()._relate(code)
        return nullcontext(partial(self._keep_there, related))

    def _keep_there(self, related: Related) -> Related:
        """Return what is still there of posts like each other."""
        paths = [post.path for post in self.site.posts]
        there = frozenset(paths)
        known = {path: related.get(path, ()) for path in paths}
        return {
            path: tuple(each for each in found if each in there) for path, found in known.items()
        }

    def _find_handover(self, folders: Sequence[Path], tiers: Sequence[str]) -> Handover:
        return self._earlier.handover or super()._find_handover(folders, tiers)

    def revise(self, gathered: Gathered) -> None:
        """Take documents whose texts alone are others, at once: no list has to be made anew.

        What a theme shows elsewhere of a text, such as posts like it, stays as it was.
        """
        self.gathered = _publish(gathered)
        for document in self.gathered.documents:
            if self._documents[document.path] is not document:
                self._documents[document.path] = document
                self._revise_page(document)
        self.site = publish(self.site.identity, self.gathered.documents, self.request.now)
        for made_of_texts in ("_others", "_lines"):
            self.__dict__.pop(made_of_texts, None)

    def _revise_page(self, document: Document) -> None:
        task = self._tasks[addresses.name_file(document.address)]
        if isinstance(task, TemplateTask):
            for value in task.own.values():
                if isinstance(value, Article | Page) and value.source_path == document.path:
                    value.document = document

    def _equip(self, method: bytes) -> Workshop:
        self._documents = {document.path: document for document in self.gathered.documents}
        return Workshop(
            self._glass,
            Slate(),
            self.texts,
            self.gathered.gallery,
            Plates(self._cache),
            Sight(),
            self._documents,
            self.seen,
            method.hex(),
        )

    def make_pages(self) -> Iterator[TemplateTask]:
        """Make nothing; pages are known now, and other files are looked for when asked for."""
        return iter(())

    def finish(self, folder: Path) -> None:
        """Make nothing; what plugins write is not shown."""

    def make(self, path: str) -> bytes | None:
        """Return a file of the site, made now, or None when there is no such file.

        Raises BuildError when it cannot be made.
        """
        with self._cache:
            task = self._tasks.get(path) or self._others.get(path) or self._find_full_text(path)
            if task is None:
                return None
            return self._perform(task)

    @cached_property
    def _others(self) -> Mapping[str, Task]:
        """Files that no template makes."""
        # The first of a path is that of the content folder.
        found = list(self._list_others(datetime.now(UTC)))
        return {task.path: task for task in reversed(found)}

    def _perform(self, task: Task) -> bytes:
        try:
            task.run(self._workshop)
        except OSError as error:
            raise BuildError(f"{error.filename} cannot be read: {error.strerror}") from error
        forget_picture()
        forget_records()
        if self.texts.fresh:
            self._cache.put(TEXTS, self.texts.fresh)
            self.texts.fresh = []
        if self._workshop.plates.fresh:
            self._cache.put(PLATES, self._workshop.plates.fresh)
            self._workshop.plates.fresh.clear()
        return self._glass.data

    def tidy(self) -> None:
        """Forget texts and pictures of earlier content: the cache should not grow by every save."""
        with self._cache:
            self._cache.keep_only(TEXTS, map(self.texts.key, self.site.posts + self.site.pages))
            plates = (task for task in self._others.values() if isinstance(task, PlateTask))
            self._cache.keep_only(PLATES, (plate.key for plate in plates))

    def _find_full_text(self, path: str) -> Task | None:
        """Return the task of a file that holds whole posts, whose lines nobody has made yet."""
        if not path.endswith(_MADE_OF_RECORDS):
            return None
        forms = (addresses.FEED, addresses.FEED_JSON)
        tags = [
            tag
            for tag in self.site.tags
            if path in {addresses.locate_feed(tag.address, form) for form in forms}
        ]
        tasks = list_full_texts(
            replace(self.site, tags=tuple(tags)), self._lines, has_cards=bool(self.font)
        )
        return next((task for task in tasks if task.path == path), None)

    @cached_property
    def _lines(self) -> Mapping[str, Piece]:
        """The line of each post, made when it is asked for."""
        return _Lines(self._workshop, list_records(self.site, self.gathered.minutes))


class _Lines(Mapping[str, Piece]):
    """Lines of the posts index by slug, each made once and on demand."""

    def __init__(self, workshop: Workshop, tasks: Iterable[RecordTask]) -> None:
        self._workshop = workshop
        self._tasks = {task.document.slug: task for task in tasks}
        self._made: dict[str, Piece] = {}

    def __getitem__(self, slug: str) -> Piece:
        if slug not in self._made:
            self._made[slug] = self._tasks[slug].run(self._workshop)
        return self._made[slug]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)


def _publish(gathered: Gathered) -> Gathered:
    """Return the same with drafts as posts like all others."""
    documents = gathered.documents
    public = (replace(each, draft=False) if each.draft else each for each in documents)
    return replace(gathered, documents=tuple(public))
