"""What makes one file of the site each: a template, a renderer, a file that is copied.

A task knows from what its file is made and so whether the one of the build before still fits. It
may run in any process of the build.
"""

import re
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jinja2 import Template
from jinja2.exceptions import TemplateSyntaxError

from site_build import addresses
from site_build.faults import BuildError
from site_build.incremental.cache import Plates, make_key
from site_build.incremental.tree import Entry, Recipe, Tree
from site_build.making.index_file import IndexFile, Piece, make_record
from site_build.pictures.encode import clean
from site_build.pictures.measure import is_picture
from site_build.pictures.responsive import Gallery, link_markdown
from site_build.post import Document
from site_build.reading.gather import Texts
from site_build.views.sight import Sight, UnknownValueError


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every task works with."""

    tree: Tree
    index: IndexFile
    texts: Texts
    gallery: Gallery
    plates: Plates
    sight: Sight
    documents: Mapping[str, Document]
    """By path."""
    seen: dict[str, None]
    """Names that templates have looked up since it was cleared."""
    method: str
    """Digest of how files are made: code, theme and settings."""


class Kept(str):
    """The path of a file that is as the ledger of the build before has it."""

    __slots__ = ()


Result = Entry | Piece | Kept


class Task(Protocol):
    """Makes one file, or takes it over from the build before."""

    @property
    def path(self) -> str:
        """Where the file goes, or the page that it is about; one process does all of a folder."""

    def run(self, workshop: Workshop) -> Result:
        """Do it, and return what the ledger has to know."""


@dataclass(frozen=True, slots=True)
class TemplateTask:
    """A page that a template makes."""

    path: str
    template: Template
    shared: Mapping[str, object]
    """What all pages are given."""
    own: Mapping[str, object]
    """What this page is given besides."""

    def run(self, workshop: Workshop) -> Entry | Kept:
        """Render the page unless what its templates looked at is as it was."""
        values = {**self.shared, **self.own, "output_file": self.path}
        before = workshop.tree.recall(self.path)
        if before:
            key = self._digest(workshop, values, before.names, before.texts)
            if key and key == before.key and workshop.tree.keep(before):
                return Kept(self.path)
        workshop.seen.clear()
        workshop.texts.asked.clear()
        data = render_page(self.template, values, self.path).encode()
        names, texts = "\n".join(workshop.seen), "\n".join(workshop.texts.asked)
        recipe = Recipe(self._digest(workshop, values, names, texts), names, texts)
        return workshop.tree.write(self.path, data, recipe)

    def _digest(
        self, workshop: Workshop, values: Mapping[str, object], names: str, texts: str
    ) -> str:
        """Return the key for what was looked at; an empty one, never reused, if it defies telling.

        `names` and `texts` are lines, as the ledger has them.
        """
        documents = workshop.documents
        paths = texts.split("\n") if texts else []
        digests = [documents[path].digest if path in documents else "" for path in paths]
        try:
            seen = workshop.sight.digest(names.split("\n"), values)
        except UnknownValueError:
            return ""
        return make_key(workshop.method, self.template.name, self.path, seen, digests).hex()


@dataclass(frozen=True, slots=True)
class TextTask:
    """A file that a renderer makes; without `sources` it is made every time."""

    path: str
    render: Callable[[Texts], str | bytes]
    sources: bytes | None = None
    """Digest of all that it is made from."""

    def run(self, workshop: Workshop) -> Entry | Kept:
        """Render the file unless its sources are as they were."""
        if kept := self.keep(workshop):
            return kept
        data = self.render(workshop.texts)
        data = data.encode() if isinstance(data, str) else data
        return workshop.tree.write(self.path, data, Recipe(self._make_key(workshop)))

    def keep(self, workshop: Workshop) -> Kept | None:
        """Take the file over from the build before, where its sources are as they were."""
        key, before = self._make_key(workshop), workshop.tree.recall(self.path)
        is_same = bool(key) and before is not None and before.key == key
        return Kept(self.path) if before and is_same and workshop.tree.keep(before) else None

    def _make_key(self, workshop: Workshop) -> str:
        return make_key(workshop.method, self.path, self.sources).hex() if self.sources else ""


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file of the content folder; of a picture, whatever its name, the metadata is left out."""

    path: str
    source: Path

    def run(self, workshop: Workshop) -> Entry:
        """Write the file unless it is there already."""
        data = self.source.read_bytes()
        if is_picture(self.path) or data[4:8] != b"ftyp":  # as films also begin
            data = clean(data, workshop.gallery.pictures.get(self.path))
        return workshop.tree.write(self.path, data, Recipe(""))


RECORD = ".record"
"""Ends the path of the task of a post's line: that of its page comes before."""


@dataclass(frozen=True, slots=True)
class RecordTask:
    """A post's line in the posts index."""

    path: str
    document: Document
    minutes: int
    url: str

    def run(self, workshop: Workshop) -> Piece:
        """Make the line unless the post is as it was."""
        document = self.document
        pictures = workshop.gallery.list_digests(document.path)
        causes = (workshop.method, document.path, document.digest, self.url, pictures)
        sources = make_key(*causes).hex()
        if before := workshop.index.recall(self.document.slug, sources):
            return before
        text = workshop.texts.read(document)
        gallery = workshop.gallery
        html = gallery.add_sizes(text.conversion.html, document.address, document.path)
        markdown = link_markdown(text.markdown, gallery.links.get(document.path, {}))
        record = make_record(document, markdown, html, self.minutes, self.url)
        return workshop.index.spool(record, sources)


def render_page(template: Template, values: Mapping[str, object], path: str) -> str:
    """Return what a template makes; raises BuildError with the place of a fault in it."""
    try:
        return template.render(values)
    except TemplateSyntaxError as error:
        raise explain_syntax(error) from error
    except BuildError:
        raise
    except Exception as error:
        # Whatever a template's expression trips over, its author can only be told where.
        raise BuildError(f"{_find_place(error, template)}: {error} (for {path})") from error


def explain_syntax(error: TemplateSyntaxError) -> BuildError:
    """Return a template's fault as a sentence with its place."""
    return BuildError(f"{error.filename or error.name}:{error.lineno}: {error.message}")


def _find_place(error: Exception, template: Template) -> str:
    """Return the innermost line of a template that led to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno}" for frame in frames if ".html" in frame.filename]
    return places[-1] if places else str(template.filename)


_PAGE = re.compile(rf"(?:/?index)?\.(?:html|md)(?:{re.escape(RECORD)})?$")
"""What follows the name of a page in the paths of all that is made of it."""
_CARDS = addresses.CARDS.rstrip("/")


def group_tasks(tasks: Iterable[Task]) -> list[list[Task]]:
    """Put the tasks of one page together, and of a folder: they ask for one text or one picture.

    Cards have nothing in common, and are spread.
    """
    groups: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        page = _PAGE.sub("", task.path)
        folder = task.path.rpartition("/")[0]
        is_apart = page != task.path or folder == _CARDS
        groups[page if is_apart else folder].append(task)
    return list(groups.values())
