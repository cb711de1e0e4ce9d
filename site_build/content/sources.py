"""The content library: source files read and checked, and a text when a page needs it.

It opens files, starts processes and prints nothing. What builds are given is light: documents
without their texts, which `Texts` reads when a page needs them.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from edge_api.schema.reading import reading_minutes
from site_build.addresses import SourceRules
from site_build.cache import Cache, make_key
from site_build.checks.analyse import analyse
from site_build.checks.facts import Facts
from site_build.content.document import read_document
from site_build.content.folder import (
    Listing,
    digest_file,
    explain_refusal,
    list_content,
    read_bytes,
)
from site_build.errors import BuildError, Diagnostic
from site_build.images.responsive import ImageSet
from site_build.markup.convert import HOUSE, Conversion, Dialect
from site_build.parallel import map_unordered
from site_build.progress import Request
from site_build.related import NO_TERMS, Terms, count_terms
from site_build.site import Document

TEXTS = "text"
_INSPECTIONS = "inspection"
_REMEMBERED = 4
"""Texts kept in memory: a post's page, alternate and record are made one after the other."""


class Inspection(NamedTuple):
    """What one source file gives by itself."""

    document: Document | None
    """None where errors forbid one."""
    facts: Facts | None
    findings: tuple[Diagnostic, ...]
    conversion: Conversion | None = None
    """The text as HTML, where it was asked for and the text can be converted at all."""
    digest: str = ""
    """SHA-256 of the bytes that were read, hexadecimal; empty where the disk gave none."""


def inspect(
    folder: Path, path: str, dialect: Dialect = HOUSE, *, convert_too: bool = False
) -> Inspection:
    """Read and examine one source file; `convert_too` keeps its HTML."""
    try:
        raw = read_bytes(folder, path)
    except OSError as refusal:
        return Inspection(None, None, (explain_refusal(path, refusal),))
    document, findings = read_document(path, raw, dialect.rules)
    if document is None:
        return Inspection(None, None, tuple(findings), digest=sha256(raw).hexdigest())
    studied = analyse(document, dialect, convert_too=convert_too)
    found = tuple(findings)
    return Inspection(document, studied.facts, found, studied.conversion, document.digest)


@dataclass(frozen=True, slots=True)
class Text:
    """What a document says, as written and as HTML."""

    markdown: str
    conversion: Conversion


def _make_text_key(code: str, dialect: Dialect, document: Document) -> bytes:
    """Return the key for the text of a document on one site, as the program `code` makes it."""
    # Where pages stand changes no text.
    return make_key(code, dialect._replace(rules=SourceRules()), document.path, document.digest)


class Texts:
    """Texts by document, through the cache; `fresh` holds what the cache did not know."""

    def __init__(self, content: Path, cache: Cache, code: str, dialect: Dialect) -> None:
        self._content = content
        self._cache = cache
        self._code = code
        self._dialect = dialect
        self._remembered: OrderedDict[bytes, Text] = OrderedDict()
        self.fresh: list[tuple[bytes, Text]] = []
        self.asked: dict[str, None] = {}
        """Paths of the documents asked for, in order; whoever looks into it clears it before."""

    def key(self, document: Document) -> bytes:
        """Return the key under which the document's text is kept."""
        return _make_text_key(self._code, self._dialect, document)

    def read(self, document: Document) -> Text:
        """Return the document's text; raises BuildError when its file is no longer as checked."""
        self.asked[document.path] = None
        key = self.key(document)
        text = self._remembered.get(key) or self._cache.get(TEXTS, key)
        if not isinstance(text, Text):
            text = self._convert(document)
            self.fresh.append((key, text))
        self._remembered[key] = text
        self._remembered.move_to_end(key)
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return text

    def _convert(self, document: Document) -> Text:
        path = document.path
        try:
            raw = (self._content / path).read_bytes()
            whole, _ = read_document(path, raw, self._dialect.rules)
        except OSError as error:
            raise BuildError(f"{path}: {explain_refusal(path, error).message}") from error
        if whole is None or whole.digest != document.digest:
            raise BuildError(f"{path} was changed while the site was being built; build again")
        conversion = analyse(whole, self._dialect, convert_too=True).conversion
        if conversion is None:
            raise BuildError(f"{path} cannot be converted; `check` tells why")
        return Text(whole.markdown, conversion)


class Reading(NamedTuple):
    """What the cache keeps of one source file; the document carries no text.

    A tuple, like what it holds of each file: they are read from the cache several times as fast.
    """

    inspection: Inspection
    minutes: int
    """Whole minutes that the text takes to read."""
    terms: Terms


@dataclass(frozen=True, slots=True)
class Content:
    """The content folder, read."""

    documents: tuple[Document, ...]
    """By path, without their texts, drafts among them."""
    minutes: dict[str, int]
    """Reading time by path."""
    terms: dict[str, Terms]
    """What each document is about, by path."""
    files: Mapping[str, str]
    """What is published as it is: the path on the site by that of the source."""
    image_set: ImageSet
    sources: int
    hits: int
    """Source files that the cache knew."""


def list_folder(content: Path, rules: SourceRules) -> Listing:
    """Return what is in the content folder; raises BuildError when it cannot be read."""
    try:
        return list_content(content, rules)
    except OSError as error:
        sentence = f"the content folder {content} cannot be read: {error.strerror}"
        raise BuildError(sentence) from error


def read_sources(
    request: Request, paths: tuple[str, ...], cache: Cache, code: str, dialect: Dialect
) -> tuple[dict[str, Reading], int]:
    """Return what each source file says, in the order of `paths`, and how many the cache knew."""
    content, observer = request.content, request.observer
    reader = make_key(code, dialect._replace(site_url=""))
    keys = {path: make_key(reader, path, digest_file(content, path)) for path in paths}
    known = cache.recall(_INSPECTIONS, keys, Reading)
    unknown = [path for path in paths if path not in known]
    readings = dict(known)
    fresh = []
    observer.begin("reading", len(unknown))
    read = partial(read_source, content, dialect)
    for index, (reading, text) in map_unordered(read, unknown, request.jobs):
        readings[unknown[index]] = reading
        if digest := reading.inspection.digest:
            fresh.append((make_key(reader, unknown[index], digest), reading))
        keep_text(cache, code, dialect, reading, text)
        observer.advance()
    cache.put(_INSPECTIONS, fresh)
    kept = (make_key(reader, path, each.inspection.digest) for path, each in readings.items())
    cache.keep_only(_INSPECTIONS, kept)
    return {path: readings[path] for path in paths}, len(known)


def keep_text(
    cache: Cache, code: str, dialect: Dialect, reading: Reading, text: Text | None
) -> None:
    """Put a text that came with a reading into the cache, where pages look for it."""
    if text and reading.inspection.document:
        key = _make_text_key(code, dialect, reading.inspection.document)
        cache.put(TEXTS, [(key, text)])


def read_source(content: Path, dialect: Dialect, path: str) -> tuple[Reading, Text | None]:
    """Read one file; return also its text, where the check came by it."""
    inspection = inspect(content, path, dialect, convert_too=True)
    document, conversion = inspection.document, inspection.conversion
    if document is None:
        return Reading(inspection, 0, NO_TERMS), None
    light = inspection._replace(document=replace(document, markdown=""), conversion=None)
    minutes = reading_minutes(document.markdown)
    reading = Reading(light, minutes, count_terms(document))
    return reading, Text(document.markdown, conversion) if conversion else None
