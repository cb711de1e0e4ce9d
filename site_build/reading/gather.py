"""Reads the content folder: documents without their texts, and a text when a page needs it.

What it returns is light: documents without their
texts, which `site_build.reading.gather` reads when a page needs them.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from edge_api.schema.reading import reading_minutes
from site_build.addresses import SourceRules
from site_build.checks.examine import study
from site_build.checks.ground import judge_pictures, link_sources, list_shown, list_targets
from site_build.faults import BuildError
from site_build.incremental.cache import Cache, make_key
from site_build.incremental.spread import spread
from site_build.markup.convert import Conversion, Dialect
from site_build.pictures.measure import Album
from site_build.pictures.responsive import Gallery
from site_build.post import Document, Finding
from site_build.progress import Request
from site_build.reading.check import Facts, Inspection, cross_check, inspect
from site_build.reading.document import read_document
from site_build.reading.folder import Listing, digest_file, list_content, measure_pictures
from site_build.similarity.nearest import NO_TERMS, Terms, count_terms

TEXTS = "text"
_REMEMBERED = 4
"""Texts kept in memory: a post's page, twin and record are made one after the other."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a document says, as written and as HTML."""

    markdown: str
    conversion: Conversion


def make_text_key(code: str, dialect: Dialect, document: Document) -> bytes:
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
        return make_text_key(self._code, self._dialect, document)

    def read(self, document: Document) -> Text:
        """Return the document's text.

        Raises BuildError when the file is no longer the one that was checked.
        """
        self.asked[document.path] = None
        key = self.key(document)
        text = self._remembered.get(key) or self._find(key, document)
        self._remembered[key] = text
        self._remembered.move_to_end(key)
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return text

    def _find(self, key: bytes, document: Document) -> Text:
        kept = self._cache.get(TEXTS, key)
        if isinstance(kept, Text):
            return kept
        text = self._convert(document)
        self.fresh.append((key, text))
        return text

    def _convert(self, document: Document) -> Text:
        whole = self._load(document)
        studied = study(whole, self._dialect, convert_too=True)
        if studied.conversion is None:
            raise BuildError(f"{document.path} cannot be converted; `check` tells why")
        return Text(whole.markdown, studied.conversion)

    def _load(self, document: Document) -> Document:
        try:
            raw = (self._content / document.path).read_bytes()
            whole, _ = read_document(document.path, raw, self._dialect.rules)
        except OSError as error:
            raise BuildError(
                f"{document.path} cannot be read any more: {error.strerror}"
            ) from error
        if whole is None or whole.digest != document.digest:
            raise BuildError(
                f"{document.path} was changed while the site was being built; build again"
            )
        return whole


def drop_text(document: Document) -> Document:
    """Return the document without its text, as builds hold it in memory."""
    return replace(document, markdown="")


_INSPECTIONS = "inspection"


class Reading(NamedTuple):
    """What the cache keeps of one source file; the document carries no text.

    A tuple, like what it holds of each file: they are read from the cache several times as fast.
    """

    inspection: Inspection
    digest: str
    """SHA-256 of the bytes that were read, hexadecimal."""
    minutes: int
    """Whole minutes that the text takes to read."""
    terms: Terms
    """What the text is about."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The content folder, read."""

    documents: tuple[Document, ...]
    """By path, without their texts, drafts among them."""
    minutes: dict[str, int]
    """Reading time by path."""
    terms: dict[str, Terms]
    """What each document is about, by path."""
    files: Mapping[str, str]
    """What is published as it is: the path on the site by that of the source."""
    gallery: Gallery
    sources: int
    hits: int
    """Source files that the cache knew."""


AuthorizationServer = Callable[[], tuple[Finding, ...]]
"""Finds all that is wrong in a content folder, sorted by place, once it is called."""


def gather(
    request: Request, cache: Cache, code: str, dialect: Dialect
) -> tuple[Gathered, AuthorizationServer]:
    """Return all that is in the content folder; `code` says which program reads it.

    Texts that the check has converted on its way are put into the cache for the build.

    Raises BuildError when the folder cannot be read.
    """
    listing = list_folder(request.content, dialect.rules)
    readings, hits = read_sources(request, listing.sources, cache, code, dialect)
    album = measure_pictures(request.content, listing.files, request.jobs, cache, code)

    def find() -> tuple[Finding, ...]:
        judged = judge(readings, listing.files, album, request.now, dialect.rules)
        return tuple(sorted([*listing.findings, *judged]))

    return hold(readings, listing.files, album, hits, dialect.rules), find


def hold(
    readings: Mapping[str, Reading],
    files: tuple[str, ...],
    album: Album,
    hits: int,
    rules: SourceRules,
) -> Gathered:
    """Return what a build is given; of the `readings`, the cache knew `hits`."""
    whole = [each for each in readings.values() if each.inspection.document]
    documents = [each.inspection.document for each in whole if each.inspection.document]
    paths = [document.path for document in documents]
    return Gathered(
        tuple(documents),
        {path: reading.minutes for path, reading in zip(paths, whole, strict=True)},
        {path: reading.terms for path, reading in zip(paths, whole, strict=True)},
        rules.list_paths(files),
        _hang(readings, files, album, rules),
        len(readings),
        hits,
    )


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
    """Return what each source file says, by path in the order of `paths`.

    The second value is how many of them the cache knew; it is given the others.
    """
    content, observer = request.content, request.observer
    reader = make_key(code, dialect._replace(site_url=""))
    known, unknown = _recall(content, paths, cache, reader)
    readings = dict(known)
    fresh = []
    observer.begin("reading", len(unknown))
    read = partial(read_source, content, dialect)
    for index, (reading, text) in spread(read, unknown, request.jobs):
        readings[unknown[index]] = reading
        if reading.digest:
            fresh.append((make_key(reader, unknown[index], reading.digest), reading))
        keep_text(cache, code, dialect, reading, text)
        observer.advance()
    cache.put(_INSPECTIONS, fresh)
    cache.keep_only(
        _INSPECTIONS, (make_key(reader, path, reading.digest) for path, reading in readings.items())
    )
    return {path: readings[path] for path in paths}, len(known)


def keep_text(
    cache: Cache, code: str, dialect: Dialect, reading: Reading, text: Text | None
) -> None:
    """Put a text that came with a reading into the cache, where pages look for it."""
    if text and reading.inspection.document:
        key = make_text_key(code, dialect, reading.inspection.document)
        cache.put(TEXTS, [(key, text)])


def _recall(
    content: Path, paths: tuple[str, ...], cache: Cache, reader: bytes
) -> tuple[dict[str, Reading], list[str]]:
    """Part the files that the cache knows, as they are now, from those it does not."""
    keys = {path: make_key(reader, path, digest_file(content, path)) for path in paths}
    known = cache.recall(_INSPECTIONS, keys, Reading)
    return known, [path for path in paths if path not in known]


def read_source(content: Path, dialect: Dialect, path: str) -> tuple[Reading, Text | None]:
    """Read one file; return also its text, where the check came by it."""
    inspection = inspect(content, path, dialect, convert_too=True)
    document, conversion = inspection.document, inspection.conversion
    if document is None:
        return Reading(inspection, digest_file(content, path), 0, NO_TERMS), None
    light = inspection._replace(document=drop_text(document), conversion=None)
    minutes = reading_minutes(document.markdown)
    reading = Reading(light, document.digest, minutes, count_terms(document))
    return reading, Text(document.markdown, conversion) if conversion else None


def judge(
    readings: Mapping[str, Reading],
    files: tuple[str, ...],
    album: Album,
    now: datetime,
    rules: SourceRules,
) -> list[Finding]:
    """Return the findings about each file, and those that only all files together show."""
    found = [finding for reading in readings.values() for finding in reading.inspection.findings]
    documents, facts = _list_facts(readings)
    complete = len(documents) == len(readings)
    crossed = cross_check(documents, facts, files, now, rules, complete=complete)
    return [*found, *crossed, *judge_pictures(documents, facts, album, rules.list_paths(files))]


def _hang(
    readings: Mapping[str, Reading], files: tuple[str, ...], album: Album, rules: SourceRules
) -> Gallery:
    """Return the pictures that can be shown, and who shows them."""
    pictures = {path: each.picture for path, each in album.items() if each.picture}
    documents, facts = _list_facts(readings)
    paths = list_targets(documents, files, rules)
    links = {each.path: link_sources(each, facts[each.path], paths) for each in documents}
    return Gallery(pictures, list_shown(documents, facts, album, paths), links)


def _list_facts(readings: Mapping[str, Reading]) -> tuple[list[Document], dict[str, Facts]]:
    whole = [reading.inspection for reading in readings.values()]
    documents = [each.document for each in whole if each.document and each.facts]
    facts = {each.document.path: each.facts for each in whole if each.document and each.facts}
    return documents, facts
