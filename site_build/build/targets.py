"""Targets, each of which makes one file of the site, or a post's line of the posts index.

A target knows the sources of its file, and so whether the file of the build before can stay. Its
`make` returns bytes and writes nothing, as previews need; `run` also writes, in any process.
Lines of posts that did not change are copied from the index of the build before. Lines pass
through files, not through memory: ten thousand posts fill a quarter of a gibibyte.
"""

import hashlib
import os
import re
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from itertools import count
from pathlib import Path

from jinja2 import Template
from jinja2.exceptions import TemplateSyntaxError

from edge_api.schema.index import (
    INDEX_END,
    INDEX_FILE,
    INDEX_FORMAT,
    INDEX_SEPARATOR,
    INDEX_START,
    IndexHead,
    PostRecord,
)
from site_build import addresses
from site_build.build.manifest import Entry, Line, Manifest, OutputFolder, OutputStamp
from site_build.cache import IMAGES, Cache, make_key
from site_build.content.sources import TextReader
from site_build.errors import BuildError
from site_build.images.encode import clean
from site_build.images.responsive import ImageSet, is_picture, link_markdown
from site_build.markup.sanitize import sanitize
from site_build.site import Document, Site, list_former_slugs, list_moves
from site_build.template_objects import InputDigest, UnknownValueError

_SPOOL = ".lines-"  # the prefix of temporary files of lines


def make_head(site: Site, build_id: str, now: datetime, redirects: Mapping[str, str]) -> IndexHead:
    """Return the first line of the index of a build for the instant `now` (UTC)."""
    identity = site.identity
    return IndexHead(
        format=INDEX_FORMAT,
        build_id=build_id,
        site_url=identity.url,
        site_title=identity.name,
        site_description=identity.description,
        built_for=now,
        count=len(site.posts),
        moved={f"/{former}": f"/{present}" for former, present in redirects.items()}
        | {f"/{former}": f"/{present}" for former, present, _ in list_moves(site)},
        is_bare=identity.addresses.has_bare_pages(),
        post_path=_number_fields(identity.addresses.post),
        tag_path=identity.addresses.tag and _number_fields(identity.addresses.tag),
        renamed={old: post.slug for post in site.posts for old in list_former_slugs(post)},
    )


def _number_fields(form: str) -> str:
    """Return a form of addresses for the index: `/{slug}/{date:%Y}/` becomes `/{slug}/{date_1}/`.

    Without the numbers, two fields of a form could have one name.
    """
    numbers = count(1)
    return re.sub(
        r"\{(\w+)[^}]*\}",
        lambda found: found[0] if found[1] == "slug" else f"{{{found[1]}_{next(numbers)}}}",
        f"/{form}",
    )


class IndexFile:
    """The posts index that a build is writing, and the index of the build before."""

    def __init__(self, folder: Path, before: Manifest, before_folder: Path) -> None:
        self._folder = folder
        self._before = before
        self._old = os.fspath(before_folder / INDEX_FILE)
        usable = before.index_stamp is not None and before.index_stamp.fits(self._old)
        self._lines: Mapping[str, Line] = before.lines if usable else {}

    def recall(self, slug: str, key: str) -> Line | None:
        """Return the post's line of the build before if it has the same sources."""
        line = self._lines.get(slug)
        return line._replace(source=self._old) if line and line.key == key else None

    def spool(self, slug: str, line: bytes, key: str) -> Line:
        """Append a new line to a temporary file of this process."""
        path = self._folder / f"{_SPOOL}{os.getpid()}"
        with path.open("ab") as file:
            offset = file.tell()
            file.write(line)
        return make_line(slug, key, line, os.fspath(path), offset)

    def assemble(
        self, head: IndexHead, lines: Sequence[Line]
    ) -> tuple[OutputStamp, dict[str, Line]]:
        """Write the index: the head, then the lines in their order; return stamp and new lines."""
        partial = self._folder / f".{INDEX_FILE}"
        placed = {}
        with partial.open("wb") as target:
            target.write(INDEX_START + head.model_dump_json().encode() + INDEX_SEPARATOR)
            offset = target.tell()
            for number, (line, data) in enumerate(zip(lines, _read_lines(lines), strict=True), 1):
                target.write(data + (b",\n" if number < len(lines) else b"\n"))
                placed[line.slug] = line._replace(source="", offset=offset)
                offset += line.length + len(b",\n")
            target.write(INDEX_END)
        partial.replace(self._folder / INDEX_FILE)
        found = (self._folder / INDEX_FILE).stat()
        return OutputStamp("", found.st_size, found.st_mtime_ns), placed

    def discard(self) -> None:
        """Remove the temporary files of lines."""
        for path in self._folder.glob(f"{_SPOOL}*"):
            path.unlink(missing_ok=True)


def make_line(slug: str, key: str, line: bytes, source: str | bytes, offset: int = 0) -> Line:
    """Return the `Line` of these bytes; `source` is the file that holds them, or the bytes."""
    return Line(slug, key, hashlib.sha256(line).hexdigest(), offset, len(line), source)


@lru_cache(maxsize=2)
def read_records(lines: tuple[Line, ...]) -> tuple[PostRecord, ...]:
    """Return the records of lines; cached, since a feed's Atom and JSON need the same ones."""
    return tuple(map(PostRecord.model_validate_json, _read_lines(lines)))


def _read_lines(lines: Iterable[Line]) -> Iterator[bytes]:
    """Yield lines of the index; each file that has some of them is opened once."""
    with ExitStack() as opened:
        find = cache(lambda path: opened.enter_context(Path(path).open("rb")).fileno())
        for line in lines:
            if isinstance(line.source, bytes):
                yield line.source
            else:
                yield os.pread(find(line.source), line.length, line.offset)


@dataclass(frozen=True, slots=True)
class TargetContext:
    """Parts of a build that targets use."""

    texts: TextReader
    image_set: ImageSet
    cache: Cache
    input_digest: InputDigest
    documents: dict[str, Document]
    """Documents by path."""
    looked_up: dict[str, None]
    """Names that templates have looked up since it was cleared."""
    common_digest: str
    """Digest of code, theme and settings, a part of most keys."""
    output: OutputFolder
    index: IndexFile


Result = Entry | Line


@dataclass(frozen=True, slots=True)
class Target:
    """One file of the site, and how to make it."""

    path: str
    """Path of the file on the site; one process makes all files of a folder."""

    def find_key(self, context: TargetContext, names: str, texts: str) -> str:  # noqa: ARG002
        """Return the digest of all sources of the file; empty if it is made at every build.

        `names` and `texts` were looked up for it, one a line, as the manifest has them.
        """
        return ""

    def make(self, context: TargetContext) -> bytes:
        """Return the file."""
        raise NotImplementedError

    def recall(self, context: TargetContext) -> Result | None:
        """Return the entry of the build before if the sources and the file are unchanged."""
        before = context.output.find_former(self.path)
        if before is None or not before.key:
            return None
        is_same = before.key == self.find_key(context, before.names, before.texts)
        return before if is_same and context.output.keep(before) else None

    def run(self, context: TargetContext) -> Result:
        """Make and write the file; return its entry in the manifest."""
        return context.output.write(self.path, self.make(context), self.find_key(context, "", ""))


@dataclass(frozen=True, slots=True)
class TemplateTarget(Target):
    """A page that a template makes; its key covers the values that templates looked up for it."""

    template: Template
    shared: Mapping[str, object]
    """Values that all pages are given."""
    own: Mapping[str, object]
    """Values that only this page is given."""

    def list_values(self) -> dict[str, object]:
        """Return all values that the template is given."""
        return {**self.shared, **self.own, "output_file": self.path}

    def find_key(self, context: TargetContext, names: str, texts: str) -> str:
        """Return the key of the values looked up; empty if one of them cannot be digested."""
        documents = context.documents
        paths = texts.split("\n") if texts else []
        digests = [documents[path].digest if path in documents else "" for path in paths]
        try:
            looked_up = context.input_digest.digest(
                names, self.shared, {**self.own, "output_file": self.path}
            )
        except UnknownValueError:
            return ""
        return make_key(
            context.common_digest, self.template.name, self.path, looked_up, digests
        ).hex()

    def make(self, context: TargetContext) -> bytes:
        """Return the page, and note in the context the names and texts looked up for it."""
        context.looked_up.clear()
        context.texts.requested.clear()
        return render_page(self.template, self.list_values(), self.path).encode()

    def run(self, context: TargetContext) -> Result:
        """Make and write the page; its key is known once it is rendered."""
        data = self.make(context)
        names, texts = "\n".join(context.looked_up), "\n".join(context.texts.requested)
        key = self.find_key(context, names, texts)
        return context.output.write(self.path, data, key, names, texts)


@dataclass(frozen=True, slots=True)
class TextTarget(Target):
    """A text, or a function that makes it; without `sources` it is made every time.

    It is kept without being asked after edits of texts alone, so without `sources` it may only show
    what heads of documents say.
    """

    text: str | bytes | Callable[[], str | bytes]
    sources: Callable[[], bytes] | None = None
    """Returns the digest of all sources of the text."""

    def find_key(self, context: TargetContext, _names: str, _texts: str) -> str:
        """Return the digest of the sources."""
        return (
            make_key(context.common_digest, self.path, self.sources()).hex() if self.sources else ""
        )

    def make(self, _context: TargetContext) -> bytes:
        """Return the text."""
        data = self.text() if callable(self.text) else self.text
        return data.encode() if isinstance(data, str) else data


@dataclass(frozen=True, slots=True)
class FileTarget(Target):
    """A file of the content folder; a picture, whatever its name, loses its metadata."""

    source: Path

    def make(self, context: TargetContext) -> bytes:
        """Return the file's bytes."""
        data = self.source.read_bytes()
        is_video = data[4:8] == b"ftyp" and not is_picture(self.path)  # HEIC and AVIF begin so too
        return data if is_video else clean(data, context.image_set.pictures.get(self.path))


@dataclass(frozen=True, slots=True)
class ImageTarget(Target):
    """A picture that depends only on what its key covers, and is kept in the cache."""

    key: bytes
    build: Callable[[], bytes]
    folder: str = ""
    """Folder of the source, whose pictures one process makes, to decode each source only once.

    If it is empty, the folder of `path` counts.
    """

    def find_key(self, _context: TargetContext, _names: str, _texts: str) -> str:
        """Return the key."""
        return self.key.hex()

    def make(self, context: TargetContext) -> bytes:
        """Return the picture from the cache; make it if it is not there."""
        return context.cache.fetch(IMAGES, self.key, self.build)


RECORD = ".record"
"""Suffix that makes the path of a post's line from the path of its page."""


@dataclass(frozen=True, slots=True)
class RecordTarget(Target):
    """A post's line in the posts index, checked against its model."""

    document: Document
    minutes: int
    url: str
    """Address of the post's page."""

    def find_key(self, context: TargetContext, _names: str, _texts: str) -> str:
        """Return the digest of the post, its pictures and its address."""
        document = self.document
        pictures = context.image_set.list_digests(document.path)
        return make_key(
            context.common_digest, document.path, document.digest, self.url, pictures
        ).hex()

    def make(self, context: TargetContext) -> bytes:
        """Return the line, without its end."""
        document, image_set = self.document, context.image_set
        text = context.texts.read(document)
        html = image_set.make_responsive(  # feeds and the API get no smaller sizes
            text.conversion.html, document.address, document.path, offers_forms=False
        )
        markdown = link_markdown(text.markdown, image_set.links.get(document.path, {}))
        record = PostRecord.model_validate(
            {
                "slug": document.slug,
                "title": document.title,
                "description": document.description,
                "excerpt": document.excerpt,
                "publishedAt": document.published,
                "published_at": document.published,
                "updatedAt": document.updated,
                "readingMinutes": self.minutes,
                "tags": document.tags,
                "url": self.url,
                "content": markdown,
                "content_html": sanitize(html, self.url),
            }
        )
        return record.model_dump_json().encode()

    def recall(self, context: TargetContext) -> Result | None:
        """Return the line of the build before if its sources are unchanged."""
        return context.index.recall(self.document.slug, self.find_key(context, "", ""))

    def run(self, context: TargetContext) -> Result:
        """Make the line and append it to a temporary file."""
        line, key = self.make(context), self.find_key(context, "", "")
        return context.index.spool(self.document.slug, line, key)


def render_page(template: Template, values: Mapping[str, object], path: str) -> str:
    """Render a template; raises BuildError with the place of a fault in it."""
    try:
        return template.render(values)
    except TemplateSyntaxError as error:
        raise explain_syntax(error) from error
    except BuildError:
        raise
    except Exception as error:
        # An expression of a template may raise anything: report its line.
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"{each.filename}:{each.lineno}" for each in frames if ".html" in each.filename]
        place = lines[-1] if lines else str(template.filename)
        raise BuildError(f"{place}: {error} (for {path})") from error


def explain_syntax(error: TemplateSyntaxError) -> BuildError:
    """Return a syntax error of a template as a sentence with its place."""
    return BuildError(f"{error.filename or error.name}:{error.lineno}: {error.message}")


_PAGE_SUFFIX = re.compile(rf"(?:/?index)?\.(?:html|md)(?:{re.escape(RECORD)})?$")
"""The suffix by which the paths of a page, of its Markdown and of its line differ."""


def group_targets(targets: Iterable[Target]) -> list[list[Target]]:
    """Group targets of one page or one folder, which share inputs; each card is by itself."""
    groups: dict[str, list[Target]] = defaultdict(list)
    for target in targets:
        page = _PAGE_SUFFIX.sub("", target.path)
        source_folder = target.folder if isinstance(target, ImageTarget) else ""
        folder = source_folder or target.path.rpartition("/")[0]
        is_apart = page != target.path or f"{folder}/" == addresses.CARDS
        groups[page if is_apart else folder].append(target)
    return list(groups.values())
