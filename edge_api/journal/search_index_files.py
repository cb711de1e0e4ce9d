"""Files that keep the search index of a build for the next start and the next build.

A separate process makes the file, since a thread would delay requests:

    python -m edge_api.journal.search_index_files posts.json edge.db-search
"""

import asyncio
import fcntl
import logging
import os
import shutil
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Container, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import file_digest, sha256
from itertools import islice
from pathlib import Path
from typing import Final

from edge_api.db.errors import unavailable
from edge_api.db.fts.index import ReadTexts, Search, open_index, open_search, update_index
from edge_api.db.problems import Problem
from edge_api.journal.builds import (
    INDEX_BUFFER,
    BuildRefusal,
    IndexContents,
    digest_index,
    read_head,
    read_post_lines,
)
from edge_api.journal.posts import Posts, digest_post, extract_search_text
from edge_api.schema.index import INDEX_FILE, IndexHead, SearchHits, SearchText
from edge_api.schema.installed_code import PACKAGE, InstalledCode
from edge_api.settings import Settings

MIN_POSTS_FOR_INDEX_FILE: Final = 500
"""The least number of posts for which a file is made: a smaller index is built faster than a
process starts."""
MAX_POSTS_IN_THREAD: Final = 100
"""The most posts that differ for which a thread makes the file: a process starts more slowly."""
_DIGEST_LENGTH: Final = 32  # hexadecimal digits of a digest in a file's name: 128 bits
_READ_AHEAD: Final = 50  # the number of texts that a thread reads at a time

_log = logging.getLogger(__name__)


class IndexFiles:
    """The index files whose paths begin with `prefix`; each has the index of one build."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix.absolute()
        # Part of each checksum, since changed code may index a text differently.
        self._code_digest = InstalledCode(PACKAGE).digest.hex()

    def list_by_prefix(self, name: str = "") -> list[Path]:
        """Return all files, even damaged, that have `name` after the prefix. Raises OSError."""
        start = f"{self.prefix.name}-{name}"
        return [path for path in self.prefix.parent.iterdir() if path.name.startswith(start)]

    def find(self, name: str = "") -> Path | None:
        """Return an undamaged file whose name has `name` after the prefix. Raises OSError."""
        return next(filter(self._is_intact, self.list_by_prefix(name)), None)

    def make(self, posts_file: Path) -> None:
        """Make the file for `posts_file`; remove all others. Raises OSError, sqlite3.Error."""
        with posts_file.open("rb", INDEX_BUFFER) as lines:
            first = next(lines)
            digests = [digest_post(post) for post in read_post_lines(lines)]
        name = index_id(read_head(posts_file).build_id, digest_index(first, digests))
        self.update(name, digests, partial(_read_texts, posts_file))

    def update(
        self, name: str, digests: Sequence[bytes], read: ReadTexts, *, waits: bool = True
    ) -> Path:
        """Return the file of the posts with these digests; remove all others.

        It is made from the file of a former build and from the texts that differ. Raises OSError,
        sqlite3.Error, and BlockingIOError if it must not wait for others who make a file.
        """
        lock = os.open(self.prefix.parent, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
            path = self.find(name) or self._write(name, digests, read)
            for other in {*self.list_by_prefix()} - {path}:
                other.unlink(missing_ok=True)
            return path
        finally:
            os.close(lock)

    def _write(self, name: str, digests: Sequence[bytes], read: ReadTexts) -> Path:
        draft = self.prefix.with_name(f"{self.prefix.name}-draft")
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        if before := self.find():
            shutil.copyfile(before, draft)
        update_index(draft, digests, read)
        path = self.prefix.with_name(f"{self.prefix.name}-{name}-{self._checksum(draft, name)}")
        return draft.rename(path)

    def _is_intact(self, path: Path) -> bool:
        name, _, checksum = path.name.removeprefix(f"{self.prefix.name}-").rpartition("-")
        return checksum == self._checksum(path, name)

    def _checksum(self, path: Path, name: str) -> str:
        with path.open("rb") as file:
            start = partial(sha256, f"{self._code_digest} {name}\n".encode())
            return file_digest(file, start).hexdigest()[:_DIGEST_LENGTH]


def index_id(build_id: str, digest: str) -> str:
    """Return the id of an index, the part of its file's name between prefix and checksum."""
    return f"{build_id}-{digest[:_DIGEST_LENGTH]}"


def _read_texts(posts_file: Path, wanted: Container[bytes]) -> Iterator[SearchText]:
    """Yield the search texts of the wanted posts.

    A thread reads them ahead, while SQLite indexes the earlier ones without the interpreter's lock.
    """
    with posts_file.open("rb", INDEX_BUFFER) as lines, ThreadPoolExecutor(1) as thread:
        next(lines)
        texts = (
            extract_search_text(post)
            for post in read_post_lines(lines)
            if digest_post(post) in wanted
        )
        ahead = thread.submit(list, islice(texts, _READ_AHEAD))
        while batch := ahead.result():
            ahead = thread.submit(list, islice(texts, _READ_AHEAD))
            yield from batch


def search_prefix(settings: Settings) -> Path:
    """Return the path prefix of stored search indexes: beside the store, or the builds."""
    store = settings.database_path
    return store.with_name(f"{store.name}-search") if store else settings.build_dir / ".search"


class PendingSearch:
    """A search whose index is being built: callers wait for it, and retry a failed attempt."""

    def __init__(self, opening: Callable[[], Coroutine[None, None, Search]]) -> None:
        self._opening = opening
        self._task = asyncio.create_task(opening())

    async def find(self, words: str, limit: int) -> list[str]:
        """Search as the opened search does. Raises Problem."""
        return await (await self._wait()).find(words, limit)

    async def search(self, words: str, limit: int, offset: int = 0) -> SearchHits:
        """Search as the opened search does. Raises Problem."""
        return await (await self._wait()).search(words, limit, offset)

    async def close(self) -> None:
        """Close the index, or cancel the attempt to build it."""
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await (await self._task).close()

    async def _wait(self) -> Search:
        task = self._task
        if task.done() and not task.cancelled() and task.exception():
            task = self._task = asyncio.create_task(self._opening())
        await asyncio.wait([task])
        if task.cancelled():
            raise unavailable("This build is closed")
        return task.result()


class SearchOpener:
    """Opens the search of a build."""

    def __init__(
        self, prefix: Path | None = None, min_posts: int = MIN_POSTS_FOR_INDEX_FILE
    ) -> None:
        """Take the prefix of the files; without one, build indexes in a thread and keep none."""
        self._files = IndexFiles(prefix) if prefix else None
        self._min_posts = min_posts
        self._is_first_build = True

    async def __call__(
        self, folder: Path, reading: asyncio.Future[IndexContents]
    ) -> Search | PendingSearch:
        """Return the search of the build in `folder`. Raises BuildRefusal, Problem.

        If the index of the first build has to be made, the search is pending: the start does not
        wait for it.
        """
        files, posts_file = self._files, folder / INDEX_FILE
        is_missing = files is not None and await self._is_missing(files, posts_file)
        is_first, self._is_first_build = self._is_first_build, False
        opening = partial(self._open, posts_file, reading, is_missing=is_missing)
        if not (is_first and is_missing):
            updated = await _update_file(files, *await reading) if files and is_missing else None
            return updated or await opening()
        search = PendingSearch(opening)
        try:
            await reading
        except BaseException:
            await search.close()
            raise
        return search

    async def _open(
        self, posts_file: Path, reading: asyncio.Future[IndexContents], *, is_missing: bool
    ) -> Search:
        files, is_tried = self._files, is_missing
        if files and is_tried:
            await make_file(files, posts_file)
        head, posts = await reading
        search = None
        if files and head.count >= self._min_posts:
            name = index_id(head.build_id, posts.digest)
            search = await _open_file(files, name)
            if search is None and not is_tried:  # the file is damaged, or has other posts
                await make_file(files, posts_file)
                search = await _open_file(files, name)
        return search or await open_search(posts.texts())

    async def _is_missing(self, files: IndexFiles, posts_file: Path) -> bool:
        try:
            head = await asyncio.to_thread(read_head, posts_file)
            return head.count >= self._min_posts and not files.list_by_prefix(f"{head.build_id}-")
        except (BuildRefusal, OSError):
            return False


async def _open_file(files: IndexFiles, name: str) -> Search | None:
    with suppress(OSError, Problem):
        if path := await asyncio.to_thread(files.find, name):
            return await open_index(path)
    return None


class _TooManyPostsError(Exception):
    """More posts differ than a thread indexes."""


async def _update_file(files: IndexFiles, head: IndexHead, posts: Posts) -> Search | None:
    """Make the index file in a thread and open it; `None` if that is work for a process."""

    def read_few(wanted: Container[bytes]) -> Iterator[SearchText]:
        if sum(entry.digest in wanted for entry in posts.entries) > MAX_POSTS_IN_THREAD:
            raise _TooManyPostsError
        return posts.texts(wanted)

    name, digests = index_id(head.build_id, posts.digest), [each.digest for each in posts.entries]
    # After too many posts and after any failure, a process tries again, and logs its own failure.
    with suppress(Exception):
        path = await asyncio.to_thread(files.update, name, digests, read_few, waits=False)
        return await open_index(path)
    return None


async def make_file(files: IndexFiles, posts_file: Path) -> None:
    """Make the index file in a process of its own; log a failure."""
    command = (sys.executable, "-P", "-s", "-m", __name__, str(posts_file), str(files.prefix))
    process = None
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE,
            env={"PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE.parent), *sys.path]))},
            cwd="/",
            start_new_session=True,
        )
        assert process.stderr is not None  # noqa: S101  it is a pipe
        async with asyncio.timeout(300):  # includes the wait for the lock of other processes
            output = (await process.stderr.read()).decode(errors="replace").strip()
            if status := await process.wait():
                _log.warning(
                    "no search index is kept: status %d, %s", status, output.split("\n")[-1]
                )
    except OSError as error:  # TimeoutError is an OSError without a message
        _log.warning("no search index is kept: %s", error.strerror or "it took too long")
    finally:
        if process and process.returncode is None:
            process.kill()


def _end_with_parent() -> None:
    """End this process when its parent closes the pipe to the standard input."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.setswitchinterval(0.0002)  # seconds after which a thread yields to another one
    IndexFiles(Path(sys.argv[2])).make(Path(sys.argv[1]))
