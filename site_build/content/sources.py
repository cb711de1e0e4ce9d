"""Lists the content folder, reads its files, and returns a text when a page needs it.

A picture is unpacked once, to check that it can be; after that the cache knows its digest. Builds
get documents without their texts, which `TextReader` reads when a page needs them.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from edge_api.schema.reading_time import reading_minutes
from site_build.addresses import MARKDOWN_SUFFIXES, SourceRules
from site_build.cache import Cache, make_key
from site_build.checks.analyse import analyse
from site_build.checks.facts import Facts
from site_build.content.document import LARGEST_FILE, guess_publication, read_document
from site_build.errors import BuildError, Diagnostic, Held, find_fix
from site_build.images.responsive import LARGEST_PICTURE, ImageSet, Measured, is_picture, measure
from site_build.markup.convert import Conversion, Dialect
from site_build.parallel import map_unordered
from site_build.progress import Request
from site_build.related import NO_TERMS, Terms, count_terms
from site_build.site import UNDATED, Document

_ANY_MARKDOWN_SUFFIXES = frozenset({*MARKDOWN_SUFFIXES, ".mkdn", ".mdwn"})
_UNBUILT_SUFFIXES = _ANY_MARKDOWN_SUFFIXES | {".rst", ".html", ".htm"}
"""Suffixes, in lower case, of texts that other programs build and this one does not."""

Stamp = tuple[int, int, int, int]
"""Time of the last change of a file, its size, its inode, and the last change of its status."""
GONE: Stamp = (0, 0, 0, 0)
"""The stamp of a missing file, and of all that is no regular file."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a content folder; paths are relative to it, with `/`, and sorted."""

    sources: tuple[str, ...]
    """Markdown files."""
    files: tuple[str, ...]
    """Files that are published as they are."""
    findings: tuple[Diagnostic, ...]
    has_links: bool
    """Whether a file is a symbolic link, whose text can change under another path."""


LONGEST_NAME = 220
"""Most bytes of a published file's name: disks allow 255, and forms of a picture add to it."""


def list_folder(content: Path, rules: SourceRules) -> Listing:
    """Return the files in a folder, without dot files; raises BuildError if it cannot be read."""
    sources, files, findings, has_links = [], [], [], False
    try:
        os.scandir(content).close()
    except OSError as error:
        raise BuildError(
            f"the content folder {content} cannot be read: {error.strerror}; {find_fix(error)}"
        ) from error
    for path, fault, is_link in _walk(content):
        has_links |= is_link
        if fault:
            findings.append(Diagnostic(show_path(path), 1, 1, "error", fault))
        elif path.endswith(MARKDOWN_SUFFIXES):
            if rules.is_source(path):
                sources.append(path)
        elif rules.is_static(path):
            files.append(path)
            if (length := len(os.fsencode(Path(path).name))) > LONGEST_NAME:
                files.pop()
                message = f"the file's name has {length} bytes; shorten it to {LONGEST_NAME}"
                findings.append(Diagnostic(show_path(path), 1, 1, "error", message))
        elif (suffix := Path(path).suffix.lower()) in _UNBUILT_SUFFIXES and rules.is_source(path):
            fix = "give it" if suffix in _ANY_MARKDOWN_SUFFIXES else "write it in Markdown, with"
            message = f"the file is not built; {fix} the suffix .md"
            findings.append(Diagnostic(show_path(path), 1, 1, "warning", message))
    return Listing(tuple(sorted(sources)), tuple(sorted(files)), tuple(sorted(findings)), has_links)


def read_bytes(folder: Path, path: str, largest: int = LARGEST_FILE) -> bytes:
    """Return a file's bytes, at most one more than `largest`. Raises OSError."""
    with open(f"{folder}/{path}", "rb") as file:  # noqa: PTH123  a Path costs as much as the file
        return file.read(largest + 1)


def digest_file(folder: Path, path: str, largest: int = LARGEST_FILE) -> str:
    """Return the SHA-256 of what `read_bytes` returns; empty if the file cannot be read."""
    try:
        return hashlib.sha256(read_bytes(folder, path, largest)).hexdigest()
    except OSError:
        return ""


def stamp(path: str | Path, *, follows: bool = True) -> Stamp:
    """Return a file's stamp: the inode shows a replacement, the last value new permissions.

    Returns GONE for all but a regular file, or a link to one if it `follows` links.
    """
    try:
        found = os.stat(path, follow_symlinks=follows)  # noqa: PTH116 - a Path costs more
    except OSError:
        return GONE
    if not S_ISREG(found.st_mode):
        return GONE
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


def explain_refusal(path: str, refusal: OSError) -> Diagnostic:
    """Return the finding for a file that cannot be read."""
    return Diagnostic(
        show_path(path),
        1,
        1,
        "error",
        f"the file cannot be read ({refusal.strerror}); {find_fix(refusal)}",
    )


def show_path(path: str) -> str:
    """Return `path` as it can be printed anywhere."""
    if path.isprintable():
        return path
    text = path.encode("utf-8", "backslashreplace").decode()
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def _walk(folder: Path) -> Iterator[tuple[str, str | None, bool]]:
    """Yield the path of every file, a fault of the file or None, and whether it is a link."""
    home = folder.resolve()
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(folder / inside) as found:
                entries = [entry for entry in found if not entry.name.startswith(".")]
        except OSError as refusal:
            yield (
                inside,
                f"the folder cannot be read ({refusal.strerror}); {find_fix(refusal)}",
                False,
            )
            continue
        for entry in entries:
            path, wrong = f"{inside}{entry.name}", _find_fault(entry, home)
            if not wrong and entry.is_dir(follow_symlinks=False):
                waiting.append(f"{path}/")
            else:
                yield path, wrong, entry.is_symlink()


def _find_fault(entry: os.DirEntry[str], home: Path) -> str | None:
    if show_path(entry.name) != entry.name:
        return "the name holds signs that are no text; rename it"
    if entry.is_symlink():
        try:
            target = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError):
            return "broken symbolic link; put the file itself here"
        if not target.is_relative_to(home):
            return "the link leads out of the content folder; put the file itself here"
        if target.is_dir():
            return "a linked folder is not followed; put its files here"
    if entry.is_file() and not os.access(entry.path, os.R_OK, effective_ids=True):
        return "the file cannot be read (Permission denied); fix its permissions"
    return None if entry.is_file() or entry.is_dir() else "this is no plain file; take it away"


_MEASURES = "measure"


def measure_pictures(
    content: Path, files: Sequence[str], jobs: int, cache: Cache, code: str
) -> dict[str, Measured]:
    """Return the measures of pictures by path; `code`, the program's digest, is in cache keys."""
    paths = [path for path in files if is_picture(path)]
    keys = {
        path: make_key(code, path, digest_file(content, path, LARGEST_PICTURE)) for path in paths
    }
    known = cache.recall(_MEASURES, keys, Measured)
    unknown = [path for path in paths if path not in known]
    fresh = {
        unknown[at]: each for at, each in map_unordered(partial(_measure, content), unknown, jobs)
    }
    cache.put(_MEASURES, [(keys[path], each) for path, each in fresh.items() if each.is_read])
    cache.keep_only(_MEASURES, keys.values())
    return {path: known.get(path) or fresh[path] for path in paths}


def _measure(content: Path, path: str) -> Measured:
    try:
        return measure(path, read_bytes(content, path, LARGEST_PICTURE))
    except OSError as refusal:
        return Measured(
            None, f"cannot be read ({refusal.strerror}); {find_fix(refusal)}", is_read=False
        )


TEXTS = "text"
"""The stage of texts in the cache."""
_READINGS = "reading"


class Reading(NamedTuple):
    """The result of reading one source file, as the cache keeps it; its document has no text.

    It is a tuple, as are its parts, since the cache reads tuples several times as fast.
    """

    document: Document | None
    """None if errors prevent one."""
    facts: Facts | None
    findings: tuple[Diagnostic, ...]
    digest: str = ""
    """SHA-256 of the bytes that were read, hexadecimal; empty if the file could not be read."""
    minutes: int = 0
    """Whole minutes that the text takes to read."""
    terms: Terms = NO_TERMS
    likely_date: datetime | None = UNDATED
    """Likely date (UTC) of publication of a file without a document; None if it is withdrawn."""

    @property
    def is_draft(self) -> bool:
        """Whether the author keeps the file from readers."""
        return self.document.draft if self.document else self.likely_date is None


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a document, as written and as HTML."""

    markdown: str
    conversion: Conversion


class TextReader:
    """Source files and their texts, read through the cache."""

    def __init__(self, request: Request, cache: Cache, code: str, dialect: Dialect) -> None:
        self._content, self._kept = request.content, request.kept_sources
        self._cache, self._code = cache, code
        self.dialect = dialect
        self.requested: dict[str, None] = {}
        """Paths of the requested documents, in order; callers clear it before they request any."""

    def key(self, document: Document) -> bytes:
        """Return the key of the document's text in the cache."""
        converter = self.dialect._replace(rules=SourceRules())  # these rules change no text
        return make_key(self._code, converter, document.path, document.digest)

    def examine_all(self, paths: Sequence[str], request: Request) -> tuple[dict[str, Reading], int]:
        """Return readings in the order of `paths`, and the number of those from the cache."""
        reader = make_key(self._code, self.dialect._replace(site_url=""))
        keys = {path: make_key(reader, path, digest_file(self._content, path)) for path in paths}
        known = self._cache.recall(_READINGS, keys, Reading)
        unknown = [path for path in paths if path not in known]
        readings = dict(known)
        request.observer.begin("reading", len(unknown))
        for index, reading in map_unordered(self.examine, unknown, request.jobs):
            readings[unknown[index]] = reading
            request.observer.advance()
        fresh = ((path, readings[path]) for path in unknown)
        self._cache.put(
            _READINGS,
            [(make_key(reader, path, each.digest), each) for path, each in fresh if each.digest],
        )
        self._cache.keep_only(
            _READINGS, (make_key(reader, path, each.digest) for path, each in readings.items())
        )
        return {path: readings[path] for path in paths}, len(known)

    def examine(self, path: str, kept: str = "") -> Reading:
        """Read and examine one file; its text goes into the cache, from which pages take it.

        `kept` is the digest of a kept source that is read in place of the file.
        """
        try:
            folder, name = (self._kept, kept) if kept and self._kept else (self._content, path)
            raw = read_bytes(folder, name)
        except OSError as refusal:
            return Reading(None, None, (explain_refusal(path, refusal),))
        document, findings = read_document(path, raw, self.dialect.rules)
        if document is None:
            return Reading(
                None,
                None,
                tuple(findings),
                hashlib.sha256(raw).hexdigest(),
                likely_date=guess_publication(raw, self.dialect.rules),
            )
        facts, conversion = analyse(document, self.dialect)
        if conversion:
            self._cache.put(
                TEXTS, [(self.key(document), DocumentText(document.markdown, conversion))]
            )
        return Reading(
            replace(document, markdown=""),
            facts,
            tuple(findings),
            document.digest,
            reading_minutes(document.markdown),
            count_terms(document),
        )

    def read(self, document: Document) -> DocumentText:
        """Return the document's text; raises BuildError when its file is no longer as checked."""
        self.requested[document.path] = None
        return self._cache.fetch(TEXTS, self.key(document), partial(self._convert, document))

    def _convert(self, document: Document) -> DocumentText:
        path = document.path
        try:
            kept = self._kept / document.digest if self._kept else None
            file = kept if kept and kept.exists() else self._content / path
            whole, _ = read_document(path, file.read_bytes(), self.dialect.rules)
        except OSError as error:
            raise BuildError(f"{path}: {explain_refusal(path, error).message}") from error
        if whole is None or whole.digest != document.digest:
            raise BuildError(f"{path} was changed while the site was being built; build again")
        _, conversion = analyse(whole, self.dialect)
        if conversion is None:
            raise BuildError(f"{path} cannot be converted; `check` tells why")
        return DocumentText(whole.markdown, conversion)


@dataclass(frozen=True, slots=True)
class Content:
    """The content that a build shows."""

    documents: tuple[Document, ...]
    """Documents without their texts, sorted by path; drafts are included."""
    minutes: dict[str, int]
    """Reading time by path."""
    terms: dict[str, Terms]
    """Terms of each document for finding related posts, by path."""
    files: Mapping[str, str]
    """Paths on the site of files that are published as they are, by path of the source."""
    facts: Mapping[str, Facts]
    """Facts about each document for checks, by path."""
    image_set: ImageSet
    source_count: int
    """Number of source files."""
    cache_hits: int
    """Number of source files that were in the cache."""
    held: tuple[Held, ...]
    """Files with faults."""
    former: Mapping[str, Path]
    """Files of the previous build that replace faulty ones, by the path of the faulty one."""
    redirects: Mapping[str, str] = field(default_factory=dict)
    """Paths of the site by former paths, which may have a query; all without a leading slash."""
