"""The search index of a build, kept in a file for the next start and the next build.

A process of its own makes it, since a thread would keep requests waiting:

    python -m edge_api.journal.kept_search posts.json edge.db-search
"""

import asyncio
import fcntl
import logging
import os
import shutil
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Container, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import file_digest, sha256
from itertools import islice
from pathlib import Path
from typing import Final

from edge_api.db.fts.index import Search, open_existing, open_search, renew_search
from edge_api.db.problems import Problem
from edge_api.journal.builds import BuildContents, BuildRefusal, digested, list_posts, read_head
from edge_api.journal.posts import read_text
from edge_api.schema.index import INDEX_FILE, SearchHits, SearchText
from edge_api.schema.installed_code import PACKAGE, InstalledCode

MIN_POSTS_FOR_INDEX_FILE: Final = 500
"""Posts: the index of fewer is made sooner than a process starts."""
MAKE_SECONDS: Final = 300.0
"""What a process may take, with its turn behind those of other edges."""
_DIGITS: Final = 32  # of a digest in a name: 128 bits
_AHEAD: Final = 50  # texts that are read at a time
_SWITCH_SECONDS: Final = 0.0002
"""How long one thread of the process may keep the other from the interpreter."""

_log = logging.getLogger(__name__)


class IndexFiles:
    """The files whose paths begin with `prefix`, each the index of one build."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix.absolute()
        # What a text becomes in an index may change with the code.
        self._code = InstalledCode(PACKAGE).digest.hex()

    def list(self, name: str = "") -> list[Path]:
        """Return the files whose names go on with `name`, damaged ones too. Raises OSError."""
        start = f"{self.prefix.name}-{name}"
        return [path for path in self.prefix.parent.iterdir() if path.name.startswith(start)]

    def find(self, name: str = "") -> Path | None:
        """Return an undamaged file whose name goes on with `name`. Raises OSError."""
        return next(filter(self._is_whole, self.list(name)), None)

    def make(self, index: Path) -> None:
        """Make the file of the posts in `index`; remove others. Raises OSError, sqlite3.Error."""
        turn = os.open(self.prefix.parent, os.O_RDONLY)
        try:
            fcntl.flock(turn, fcntl.LOCK_EX)
            self._make(index)
        finally:
            os.close(turn)

    def _make(self, index: Path) -> None:
        digest = sha256()
        with index.open("rb") as file:
            lines = digested(file, digest)
            next(lines)
            marks = [_mark(post) for post in list_posts(lines)]
        name = name_of(read_head(index).build_id, digest.hexdigest())
        others = self.list()
        if self.find(name):
            return
        draft = self.prefix.with_name(f"{self.prefix.name}-draft")
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        if before := self.find():
            shutil.copyfile(before, draft)
        renew_search(draft, marks, partial(_read_texts, index))
        path = self.prefix.with_name(f"{self.prefix.name}-{name}-{self._seal(draft, name)}")
        draft.rename(path)
        for other in {*others} - {path}:
            other.unlink(missing_ok=True)

    def _is_whole(self, path: Path) -> bool:
        name, _, seal = path.name.removeprefix(f"{self.prefix.name}-").rpartition("-")
        return seal == self._seal(path, name)

    def _seal(self, path: Path, name: str) -> str:
        with path.open("rb") as file:
            start = partial(sha256, f"{self._code} {name}\n".encode())
            return file_digest(file, start).hexdigest()[:_DIGITS]


def name_of(build_id: str, digest: str) -> str:
    """Return how the name of a build's file goes on behind the prefix."""
    return f"{build_id}-{digest[:_DIGITS]}"


def _mark(post: bytes) -> bytes:
    return sha256(post).digest()[: _DIGITS // 2]


def _read_texts(index: Path, wanted: Container[bytes]) -> Iterator[SearchText]:
    """Yield texts that a thread reads ahead: SQLite, which takes them, needs no interpreter."""
    with index.open("rb") as lines, ThreadPoolExecutor(1) as thread:
        next(lines)
        texts = (read_text(post) for post in list_posts(lines) if _mark(post) in wanted)
        ahead = thread.submit(_take, texts)
        while batch := ahead.result():
            ahead = thread.submit(_take, texts)
            yield from batch


def _take(texts: Iterator[SearchText]) -> list[SearchText]:
    return list(islice(texts, _AHEAD))


class PendingSearch:
    """A search whose index is being made: whoever asks waits. What failed is tried again."""

    def __init__(self, opening: Callable[[], Coroutine[None, None, Search]]) -> None:
        self._opening = opening
        self._task = asyncio.create_task(opening())

    async def find(self, words: str, limit: int) -> list[str]:
        """Return what the search finds. Raises Problem."""
        return await (await self._wait()).find(words, limit)

    async def search(self, words: str, limit: int, offset: int = 0) -> SearchHits:
        """Return what the search finds. Raises Problem."""
        return await (await self._wait()).search(words, limit, offset)

    async def close(self) -> None:
        """Let go of the index, or of the attempt to make it."""
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await (await self._task).close()

    async def _wait(self) -> Search:
        if self._task.done() and self._task.exception():
            self._task = asyncio.create_task(self._opening())
        return await asyncio.shield(self._task)


class SearchOpener:
    """Opens the search of a build."""

    def __init__(
        self, prefix: Path | None = None, kept_from: int = MIN_POSTS_FOR_INDEX_FILE
    ) -> None:
        """Without a prefix nothing is kept: each index is made in a thread, in a nameless file."""
        self._files = IndexFiles(prefix) if prefix else None
        self._kept_from = kept_from
        self._is_first = True

    async def __call__(
        self, folder: Path, reading: asyncio.Future[BuildContents]
    ) -> Search | PendingSearch:
        """Return the search of the build in `folder`. Raises BuildRefusal, Problem.

        Of the first build, whose index has to be made, it may be pending: a start should not wait.
        """
        files, index = self._files, folder / INDEX_FILE
        is_missing = files is not None and await self._is_missing(files, index)
        is_first, self._is_first = self._is_first, False
        opening = partial(self._open, index, reading, is_missing=is_missing)
        if not (is_first and is_missing):
            return await opening()
        search = PendingSearch(opening)
        try:
            await reading
        except BaseException:
            await search.close()
            raise
        return search

    async def _open(
        self, index: Path, reading: asyncio.Future[BuildContents], *, is_missing: bool
    ) -> Search:
        files, is_tried = self._files, is_missing
        if files and is_tried:
            await _make(files, index)
        head, posts, _ = await reading
        search = None
        if files and head.count >= self._kept_from:
            name = name_of(head.build_id, posts.digest)
            search = await _open(files, name)
            if search is None and not is_tried:  # what is there is damaged, or of other posts
                await _make(files, index)
                search = await _open(files, name)
        return search or await open_search(posts.texts())

    async def _is_missing(self, files: IndexFiles, index: Path) -> bool:
        try:
            head = await asyncio.to_thread(read_head, index)
            return head.count >= self._kept_from and not files.list(f"{head.build_id}-")
        except (BuildRefusal, OSError):
            return False


async def _open(files: IndexFiles, name: str) -> Search | None:
    with suppress(OSError, Problem):
        if path := await asyncio.to_thread(files.find, name):
            return await open_existing(path)
    return None


async def _make(files: IndexFiles, index: Path) -> None:
    command = (sys.executable, "-P", "-s", "-m", __name__, str(index), str(files.prefix))
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
        assert process.stderr is not None  # noqa: S101  it was asked for
        async with asyncio.timeout(MAKE_SECONDS):
            output = (await process.stderr.read()).decode(errors="replace").strip()
            if status := await process.wait():
                reason = output.split("\n")[-1]
                _log.warning("no search index is kept: status %d, %s", status, reason)
    except OSError as error:  # TimeoutError is one of them
        _log.warning("no search index is kept: %r", error)
    finally:
        if process and process.returncode is None:
            process.kill()


def _end_with_parent() -> None:
    """End the process when its parent closes the other end of the standard input."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.setswitchinterval(_SWITCH_SECONDS)
    IndexFiles(Path(sys.argv[2])).make(Path(sys.argv[1]))
