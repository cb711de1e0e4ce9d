"""The posts index: one line for each post, checked against its model before it is written.

Lines of posts that did not change are copied from the index of the build before. They go through a
file, not through memory: ten thousand posts fill a quarter of a gibibyte.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import lru_cache
from itertools import count
from pathlib import Path

from edge_api.schema.index import (
    INDEX_END,
    INDEX_FILE,
    INDEX_FORMAT,
    INDEX_SEPARATOR,
    INDEX_START,
    IndexHead,
    PostRecord,
)
from site_build.build.manifest import Line, Manifest, Stamp
from site_build.markup.sanitize import sanitize
from site_build.site import Document, Site, list_former_slugs, list_moves

_SPOOL = ".lines-"


def make_record(document: Document, markdown: str, html: str, minutes: int, url: str) -> PostRecord:
    """Return the record of a post, checked; `url` is where people read it."""
    return PostRecord.model_validate(
        {
            "slug": document.slug,
            "title": document.title,
            "description": document.description,
            "excerpt": document.excerpt,
            "publishedAt": document.published,
            "published_at": document.published,
            "updatedAt": document.updated,
            "readingMinutes": minutes,
            "tags": document.tags,
            "url": url,
            "content": markdown,
            "content_html": sanitize(html, url),
        }
    )


def make_head(site: Site, build_id: str, now: datetime) -> IndexHead:
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
        moved={f"/{former}": f"/{present}" for former, present, _ in list_moves(site)},
        is_bare=identity.addresses.has_bare_pages(),
        post_path=_name_form(identity.addresses.post),
        tag_path=_name_form(identity.addresses.tag),
        renamed={old: post.slug for post in site.posts for old in list_former_slugs(post)},
    )


def _name_form(form: str) -> str:
    """Return a form of paths as the index has it, which tells what stands where and no more."""
    numbers = count(1)
    return re.sub(
        r"\{(\w+)[^}]*\}",
        lambda found: found[0] if found[1] == "slug" else f"{{{found[1]}_{next(numbers)}}}",
        f"/{form}",
    )


class IndexFile:
    """The index of one build, in the making, beside that of the build before."""

    def __init__(self, folder: Path, before: Manifest, before_folder: Path) -> None:
        self._folder = folder
        self._before = before
        self._old = os.fspath(before_folder / INDEX_FILE)
        usable = before.index is not None and before.index.fits(self._old)
        self._lines: Mapping[str, Line] = before.lines if usable else {}

    def recall(self, slug: str, key: str) -> Line | None:
        """Return the post's line of the build before, when it was made from the same."""
        line = self._lines.get(slug)
        return line._replace(source=self._old) if line and line.key == key else None

    def spool(self, slug: str, line: bytes, key: str) -> Line:
        """Put a new line down in a file of this process."""
        path = self._folder / f"{_SPOOL}{os.getpid()}"
        with path.open("ab") as file:
            offset = file.tell()
            file.write(line)
        return make_line(slug, key, line, os.fspath(path), offset)

    def assemble(self, head: IndexHead, lines: Sequence[Line]) -> tuple[Stamp, dict[str, Line]]:
        """Write the index: the head, then the lines in their order; return where they are now."""
        partial = self._folder / f".{INDEX_FILE}"
        placed = {}
        with partial.open("wb") as target, _Sources() as sources:
            target.write(INDEX_START + head.model_dump_json().encode() + INDEX_SEPARATOR)
            offset = target.tell()
            for number, line in enumerate(lines, start=1):
                target.write(sources.read(line) + (b",\n" if number < len(lines) else b"\n"))
                placed[line.slug] = line._replace(source="", offset=offset)
                offset += line.length + len(b",\n")
            target.write(INDEX_END)
        partial.replace(self._folder / INDEX_FILE)
        found = (self._folder / INDEX_FILE).stat()
        return Stamp("", found.st_size, found.st_mtime_ns), placed

    def discard(self) -> None:
        """Remove what was put down on the way."""
        for path in self._folder.glob(f"{_SPOOL}*"):
            with suppress(FileNotFoundError):
                path.unlink()


def make_line(slug: str, key: str, line: bytes, source: str | bytes, offset: int = 0) -> Line:
    """Return what there is to know of a line that lies in `source`."""
    return Line(slug, key, hashlib.sha256(line).hexdigest(), offset, len(line), source)


@lru_cache(maxsize=2)
def read_records(lines: tuple[Line, ...]) -> tuple[PostRecord, ...]:
    """Return the records of a few lines; the forms of a feed are made one after the other."""
    with _Sources() as sources:
        return tuple(PostRecord.model_validate_json(sources.read(line)) for line in lines)


class _Sources(ExitStack):
    """The files that lines lie in, each opened once."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, int] = {}

    def read(self, line: Line) -> bytes:
        if isinstance(line.source, bytes):
            return line.source
        if line.source not in self._open:
            self._open[line.source] = os.open(line.source, os.O_RDONLY)
            self.callback(os.close, self._open[line.source])
        return os.pread(self._open[line.source], line.length, line.offset)
