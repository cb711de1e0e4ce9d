"""The current build of the journal: its posts, search and site, replaced together by the next.

A build that cannot be served changes nothing; its error is remembered.
"""

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import orjson
from pydantic import ValidationError

from edge_api.db.caches import SingleFlightCache
from edge_api.db.problems import Problem, format_validation_error
from edge_api.journal.posts import Entry, Posts, make_entry
from edge_api.journal.site_files import HOME, SiteFile, list_site
from edge_api.operation.model import Document
from edge_api.schema.environment import BUILD
from edge_api.schema.index import (
    CURRENT_LINK,
    INDEX_END,
    INDEX_FILE,
    INDEX_FORMAT,
    INDEX_SEPARATOR,
    INDEX_START,
    PREVIOUS_LINK,
    SITE_FOLDER,
    IndexHead,
    PostRecord,
    SearchHits,
)
from edge_api.schema.page_templates import read_notes


class BuildRefusal(Exception):  # noqa: N818  a refusal is an answer, not a fault of the code
    """A build that cannot be served; the message is for operators and readiness."""


INDEX_BUFFER: Final = 1 << 20
"""Bytes that are read at a time: six times as fast as with the default."""


def read_head(path: Path) -> IndexHead:
    """Read only the head of the index at `path`. Raises BuildRefusal."""
    try:
        with path.open("rb") as lines:
            return _read_head(lines.readline())
    except OSError as error:
        raise _unreadable(error) from None


def read_index(path: Path, previous: Iterable[Entry] = ()) -> tuple[IndexHead, Posts]:
    """Read the head and the posts of the index at `path`. Raises BuildRefusal.

    A post whose line has the same bytes is taken from `previous`: it is neither parsed nor digested
    again, and two builds share its memory.
    """
    known = {entry.document.body: entry for entry in previous}
    try:
        with path.open("rb", INDEX_BUFFER) as lines:
            first = next(lines, b"")
            head = _read_head(first)
            posts = enumerate(read_post_lines(lines), start=2)
            entries = tuple(
                known.get(post) or make_entry(_read_record(number, post), post)
                for number, post in posts
            )
    except OSError as error:
        raise _unreadable(error) from None
    if len(entries) != head.count:
        raise BuildRefusal(
            f"the posts index announces {head.count} posts and holds {len(entries)}: build again"
        )
    if not all(first.cursor.is_before(second.cursor) for first, second in pairwise(entries)):
        raise BuildRefusal("the posts of the index are out of order: build again")
    digest = digest_index(first, [entry.digest for entry in entries])
    return head, Posts(entries, head.renamed, digest)


def digest_index(first: bytes, digests: Iterable[bytes]) -> str:
    """Return the digest of an index: of its first line and of the digests of its posts.

    Each of these has 16 bytes.
    """
    return sha256(first + b"".join(digests)).hexdigest()


def read_post_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the JSON of each post after the head. Raises BuildRefusal for a truncated file."""
    for line in lines:
        if line == INDEX_END:
            return
        yield line.rstrip(b",\n")
    raise BuildRefusal("the posts index ends too early: build again")


def _read_head(line: bytes) -> IndexHead:
    try:
        text = line.removeprefix(INDEX_START).removesuffix(INDEX_SEPARATOR)
        head = orjson.loads(text)
        number = head.get("format") if isinstance(head, dict) else None
        if isinstance(number, int) and number != INDEX_FORMAT:
            raise BuildRefusal(
                f"the posts index has format {number} and this version reads format "
                f"{INDEX_FORMAT}: use site build and edge of one version"
            )
        return IndexHead.model_validate_json(text)
    except (orjson.JSONDecodeError, ValidationError):
        raise _damaged(1) from None


def _read_record(number: int, post: bytes) -> PostRecord:
    try:
        record = PostRecord.model_validate_json(post)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the line"
        raise _damaged(number, f" ({where} {format_validation_error(first)})") from None
    if record.published_at != record.publishedAt:
        raise _damaged(number, " (its two times of publication differ)")
    return record


def _unreadable(error: OSError) -> BuildRefusal:
    return BuildRefusal(f"the posts index cannot be read: {error.strerror}")


def _damaged(number: int, how: str = "") -> BuildRefusal:
    return BuildRefusal(f"the posts index is damaged in line {number}{how}: build again")


RETRY_SECONDS: Final = 30.0
"""The pause before a build that could not be opened is tried again: the disk may be full."""

NO_BUILD: Final = f"there is no build: run {BUILD} build"
NOT_FETCHED: Final = "no build has been fetched from BUILD_URL yet"
LOST: Final = f"the current build is gone, and the one before it is served: run {BUILD} build"

_log = logging.getLogger(__name__)


class PostSearch(Protocol):
    """Searches the posts of one build."""

    async def find(self, words: str, limit: int) -> list[str]:
        """Return the slugs of at most `limit` posts, best first. Any text is a valid query."""

    async def search(self, words: str, limit: int, offset: int = 0) -> SearchHits:
        """Return the number of posts with all words, and at most `limit` results, best first."""

    async def close(self) -> None:
        """Close the index."""


IndexContents = tuple[IndexHead, Posts]
SearchFactory = Callable[[Path, asyncio.Future[IndexContents]], Awaitable[PostSearch]]
"""Opens the search of the build in a folder while its index is being read."""


@lru_cache(maxsize=2)
def read_zone(build: Path) -> tzinfo:
    """Return the time zone of a build's journal; UTC if it names none that is known."""
    with suppress(OSError, KeyError, ValueError, TypeError):
        return ZoneInfo(read_notes(build)["timezone"])
    return UTC


@dataclass(frozen=True, slots=True, eq=False)
class BuiltSite:
    """The site of a build, without its index: it is served alone if the index cannot be read."""

    folder: Path
    """The folder of the build, without symbolic links; `site/` in it is public."""
    files: Mapping[str, SiteFile]
    """Every public file by its URL path."""
    moved: Mapping[str, str] = field(default_factory=dict)
    """Current paths of pages by their former ones, which may have a query."""
    newest_slug: str | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class Build(BuiltSite):
    """A build that is loaded, with its posts and its search."""

    head: IndexHead
    posts: Posts
    search: PostSearch
    cache: SingleFlightCache[Document] = field(
        default_factory=lambda: SingleFlightCache(lambda document: len(document.body))
    )
    """Cached pages of the list and search results of this build."""


_FileState = tuple[int, ...]
_BuildState = tuple[Path, _FileState, _FileState]
"""The target of `current` and the state of its files; a new or repaired build has another one."""


class BuildManager:
    """Serves the current build and follows `BUILD_DIR/current`."""

    def __init__(
        self,
        build_dir: Path,
        site_url: str,
        open_search: SearchFactory,
        retry_seconds: float = RETRY_SECONDS,
        no_build: str = NO_BUILD,
    ) -> None:
        """Take the error to report while there is no build."""
        self._retry_seconds = retry_seconds
        self._link = build_dir / CURRENT_LINK
        self._open_search = open_search
        self._seen_state: _BuildState | None = None
        self._retry_at = 0.0
        self._retired: list[tuple[weakref.ref[Build], PostSearch]] = []
        self._refresh_lock = asyncio.Lock()
        self.site_url = site_url
        self.current: Build | None = None
        self._unindexed: BuiltSite | None = None
        self.error = self._no_build = no_build
        """The error of the newest build, without a path; empty if it is served."""

    def build(self) -> Build:
        """Return the current build. Raises Problem `unavailable` while there is none."""
        if self.current is None:
            message = (
                "The journal's index cannot be read"
                if self._unindexed
                else "The journal is not built yet"
            )
            raise Problem("unavailable", message, headers={"Retry-After": "5"})
        return self.current

    def site(self) -> BuiltSite:
        """Return the site of the current build, even if its index cannot be read.

        Raises Problem `unavailable` while there is none.
        """
        return self.current or self._unindexed or self.build()

    async def refresh(self) -> None:
        """Check for a new current build, and serve it once it is loaded completely."""
        async with self._refresh_lock:
            # Close the search of each replaced build that no request uses any more.
            unused = [search for build, search in self._retired if build() is None]
            self._retired = [entry for entry in self._retired if entry[1] not in unused]
            for search in unused:
                await search.close()
            seen, is_lost = await asyncio.to_thread(self._read_current)
            is_waiting = asyncio.get_running_loop().time() < self._retry_at
            if seen == self._seen_state and is_waiting and not is_lost:
                return
            self._seen_state, self._retry_at = seen, float("inf")
            error, trace = await self._load(seen[0]) if seen else (self._no_build, None)
            if self.current is None or (await asyncio.to_thread(self._read_current))[1]:
                error = await self._fall_back(error)
            if error and error != self.error:
                _log.error("%s", error, exc_info=trace)
            self.error = error

    async def close(self) -> None:
        """Close every build, in use or not, once none is being loaded."""
        async with self._refresh_lock:
            self._swap(None)
            for _, search in self._retired:
                await search.close()
            self._retired = []

    def _read_current(self) -> tuple[_BuildState | None, bool]:
        """Return the state of `current`, and whether the pages of the served build are gone."""
        is_lost = self.current and not (self.current.folder / SITE_FOLDER).is_dir()
        return _read_state(self._link), bool(is_lost)

    async def _fall_back(self, error: str) -> str:
        """Serve the previous build, since the current one is gone or cannot be opened.

        Without a previous build, serve only the site of the current one. Return the error to
        report.
        """
        previous = await asyncio.to_thread(_read_state, self._link.with_name(PREVIOUS_LINK))
        try:
            self._swap(await self._open(previous[0]) if previous else None)
        except Exception:  # noqa: BLE001  as in `_load`
            self._swap(None)
        site = None
        if self._seen_state and self.current is None:
            folder = self._seen_state[0]
            with suppress(BuildRefusal):
                site = BuiltSite(folder, await asyncio.to_thread(_list_files, folder, is_bare=True))
                error += "; its pages are served meanwhile, but nothing that needs the index"
        self._unindexed = site
        return LOST if self.current and not self._seen_state else error

    async def _load(self, folder: Path) -> tuple[str, Exception | None]:
        """Serve the build in a folder; return the error to report, and the exception to log."""
        try:
            build = await self._open(folder)
        except Exception as error:  # noqa: BLE001  The refresh loop must survive any error.
            self._retry_at = asyncio.get_running_loop().time() + self._retry_seconds
            is_expected = isinstance(error, BuildRefusal | Problem)
            reason = str(error) if is_expected else "it could not be opened; the log says more"
            return f"the newest build is not served: {reason}", None if is_expected else error
        self._swap(build)
        self._unindexed, head = None, build.head
        _log.info("serving build %s, posts: %d", head.build_id, head.count)
        other = (
            f"the build was made for {head.site_url}, and the settings name {self.site_url}: set "
            f"the same PORT or SITE_URL here (in .env), or build it for that one: {BUILD} build"
        )
        return "" if head.site_url == self.site_url else other, None

    async def _open(self, folder: Path) -> Build:
        """Open a build; its search is opened while its files are listed."""
        entries, known = (
            (self.current.posts.entries, self.current.files) if self.current else ((), {})
        )
        reading = asyncio.ensure_future(asyncio.to_thread(read_index, folder / INDEX_FILE, entries))
        opening = asyncio.ensure_future(self._open_search(folder, reading))
        try:
            head, posts = await reading
            files = await asyncio.to_thread(_list_pages, folder, head, posts, known)
            search = await opening
        except BaseException as error:
            # A failed build still waits for its search, to close it; a cancelled one cancels it.
            if isinstance(error, asyncio.CancelledError):
                opening.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await (await opening).close()
            raise
        newest = posts.entries[0].cursor.slug if posts.entries else None
        return Build(folder, files, head.moved, newest, head=head, posts=posts, search=search)

    def _swap(self, successor: Build | None) -> None:
        """Replace the build in one assignment, so that no request sees parts of two builds."""
        replaced, self.current = self.current, successor
        if replaced is not None:
            self._retired.append((weakref.ref(replaced), replaced.search))


def _list_pages(
    folder: Path, head: IndexHead, posts: Posts, known: Mapping[str, SiteFile]
) -> Mapping[str, SiteFile]:
    files = _list_files(folder, known, is_bare=head.is_bare)
    if not files.keys() >= {entry.path for entry in posts.entries}:
        raise BuildRefusal(_PAGES_MISSING)
    # Omit the pages at former addresses, which are for servers that cannot redirect.
    return {path: file for path, file in files.items() if path not in head.moved}


_PAGES_MISSING: Final = "pages of its site are missing: build again"


def _list_files(
    folder: Path, known: Mapping[str, SiteFile] = MappingProxyType({}), *, is_bare: bool
) -> Mapping[str, SiteFile]:
    try:
        files = list_site(folder / SITE_FOLDER, known, is_bare=is_bare)
    except OSError as error:
        raise BuildRefusal(f"its site cannot be read: {error.strerror}") from None
    if HOME not in files:
        raise BuildRefusal(_PAGES_MISSING if files else "its site is empty: build again")
    return files


def _read_state(link: Path) -> _BuildState | None:
    try:
        folder = link.resolve(strict=True)
    except OSError:
        return None
    return folder, _file_state(folder / INDEX_FILE), _file_state(folder / SITE_FOLDER)


def _file_state(path: Path) -> _FileState:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size
