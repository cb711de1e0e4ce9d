"""The edition of the journal that is served now, and how the next one takes its place.

An edition is one build: its posts, its search and its site, opened together and swapped in
together. One that cannot be served changes nothing; what is wrong with it is remembered.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from edge_api.domain.index_file import BuildRefusal, read_index
from edge_api.domain.posts import Posts
from edge_api.domain.site_files import SiteFile, list_site
from edge_api.schema.index import CURRENT_LINK, INDEX_FILE, SITE_FOLDER, IndexHead, PostRecord
from edge_api.schema.problems import Problem

RETIREMENT_SECONDS: Final = 30.0
"""How long an edition that was replaced stays open, for the requests that still read in it."""

_log = logging.getLogger(__name__)


class Search(Protocol):
    """Finds the posts of one edition by their words."""

    async def find(self, words: str, limit: int) -> list[str]:
        """Return the slugs of at most `limit` posts, best first; no text is an error."""

    async def close(self) -> None:
        """Let go of the index."""


OpenSearch = Callable[[Iterable[PostRecord]], Awaitable[Search]]


@dataclass(frozen=True, slots=True, eq=False)
class Edition:
    """One build, open."""

    head: IndexHead
    posts: Posts
    search: Search
    folder: Path
    """The folder of the build; `site/` in it is public."""
    files: Mapping[str, SiteFile]
    """Every public file by the path at which it answers."""

    @property
    def build_id(self) -> str:
        """The id that site and index share."""
        return self.head.build_id

    @property
    def site_url(self) -> str:
        """The origin that the build was made for."""
        return self.head.site_url

    @property
    def count(self) -> int:
        """How many posts there are."""
        return len(self.posts.entries)

    @property
    def newest_slug(self) -> str | None:
        """The slug of the newest post."""
        return self.posts.entries[0].place.slug if self.posts.entries else None


Signature = tuple[str, int, int]
"""What tells one state of `current` from the next: its target, and the index's time and size."""


class Shelf:
    """Holds the current edition and follows `BUILD_DIR/current`."""

    def __init__(self, build_dir: Path, site_url: str, open_search: OpenSearch) -> None:
        self._link = build_dir / CURRENT_LINK
        self._open_search = open_search
        self._seen: Signature | None = None
        self._retired: list[tuple[float, Edition]] = []
        self.site_url = site_url
        self.current: Edition | None = None
        self.trouble = ""
        """Why the newest build is not served; empty when it is. It names no path."""

    def edition(self) -> Edition:
        """Return the current edition. Raises Problem `unavailable` while there is none."""
        if self.current is None:
            headers = {"Retry-After": "5"}
            raise Problem("unavailable", "The journal is not built yet", headers=headers)
        return self.current

    async def refresh(self) -> None:
        """Look whether another build is current, and take it in whole if it can be served."""
        await self._close_retired(RETIREMENT_SECONDS)
        signature = self._signature()
        if signature is None:
            self.trouble = "there is no build: run python -m site_build build"
            return
        if signature != self._seen:
            self._seen = signature
            await self._take(self._link.parent / signature[0])

    async def close(self) -> None:
        """Let go of every edition."""
        self._retire(None)
        await self._close_retired(0)

    def _signature(self) -> Signature | None:
        try:
            target = self._link.readlink()
            index = (self._link.parent / target / INDEX_FILE).stat()
        except OSError:
            return None
        return str(target), index.st_mtime_ns, index.st_size

    async def _take(self, folder: Path) -> None:
        try:
            edition = await self._open(folder)
        except (BuildRefusal, Problem) as refusal:
            self.trouble = f"the newest build is not served: {refusal}"
            _log.error("%s", self.trouble)
            return
        self._retire(edition)
        self.trouble = ""
        _log.info("serving build %s with %d posts", edition.build_id, edition.count)

    async def _open(self, folder: Path) -> Edition:
        """Open a build, off the event loop. Raises BuildRefusal, Problem."""
        head, posts = await asyncio.to_thread(read_index, folder / INDEX_FILE)
        try:
            files = await asyncio.to_thread(list_site, folder / SITE_FOLDER)
        except OSError as error:
            raise BuildRefusal(f"its site cannot be read: {error.strerror}") from None
        if not files:
            raise BuildRefusal("its site is empty: build again")
        return Edition(head, posts, await self._open_search(posts.records()), folder, files)

    def _retire(self, successor: Edition | None) -> None:
        """Swap the edition, in one assignment: nobody sees half of two."""
        replaced, self.current = self.current, successor
        if replaced is not None:
            self._retired.append((asyncio.get_running_loop().time(), replaced))

    async def _close_retired(self, after: float) -> None:
        now = asyncio.get_running_loop().time()
        due = [edition for since, edition in self._retired if now - since >= after]
        self._retired = [entry for entry in self._retired if entry[1] not in due]
        for edition in due:
            await edition.search.close()
