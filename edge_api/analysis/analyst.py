"""Fetches a document by its address, and analyses it in a worker process, which can be killed.

A few jobs run and a few wait at a time; further callers are refused. Jobs and answers are lines of
bytes. Nothing that is submitted is stored or logged.
"""

import asyncio
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Annotated, Final
from urllib.parse import quote, unquote, urlsplit

import orjson
from pydantic import Field

from edge_api.analysis import report as worker
from edge_api.analysis.document import WELL_KNOWN_PATHS, DocumentFormat
from edge_api.analysis.metrics import Keyword
from edge_api.analysis.report import WORK_SECONDS, Job, Json
from edge_api.db.problems import Problem
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.site_files import HOME, INDEX_HTML, MARKDOWN_INDEX, SiteFile
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.installed_code import PACKAGE

MAX_DOCUMENT_BYTES: Final = 2 * 1024 * 1024  # bytes of a document that is fetched by its address

_FORMATS: Final[Mapping[str, DocumentFormat]] = {"html": "html", "md": "markdown", "txt": "text"}


Fetch = Callable[[str], Awaitable[Job]]
"""Returns the document at an address. Raises Problem `forbidden` and `fetch_failed`."""


class DocumentFetcher:
    """Fetches pages of this site from the current build, and pages of other sites by `web`."""

    def __init__(
        self, builds: BuildManager, documents: Mapping[str, str], web: Fetch | None
    ) -> None:
        """`documents` are the well-known files that the service makes itself, by path."""
        self._builds = builds
        self._documents = documents
        self._web = web

    async def __call__(self, url: str) -> Job:
        """Return the document at an address. Raises Problem `forbidden` and `fetch_failed`."""
        if read_origin(url) != read_origin(self._builds.site_url):
            if self._web is None:
                raise Problem(
                    "forbidden", "url: only pages of this site are read; send the document itself"
                )
            return await self._web(url)
        build = self._builds.build()
        path = _resolve_path(build, unquote(urlsplit(url).path) or HOME)
        file = build.files.get(path)
        kind = _FORMATS.get(file.name.rpartition(".")[2]) if file else None
        if file is None or kind is None:
            raise Problem("fetch_failed", "url: this site has no page at this address")
        text = await asyncio.to_thread(_read, build, file, MAX_DOCUMENT_BYTES)
        found = {
            each: await asyncio.to_thread(_read, build, build.files[each])
            if each in build.files
            else self._documents.get(each)
            for each in WELL_KNOWN_PATHS
        }
        return Job(kind, text, f"{self._builds.site_url}{quote(path)}", discovery=found)


def too_large() -> Problem:
    """Return the problem of a document that is too large."""
    size = MAX_DOCUMENT_BYTES // 1024 // 1024
    return Problem("fetch_failed", f"url: the document is larger than {size} MiB")


def unavailable(message: str) -> Problem:
    """Return a problem that asks the caller to try again in five seconds."""
    return Problem("unavailable", message, headers={"Retry-After": "5"})


def read_origin(url: str) -> tuple[str, str, int | None] | None:
    """Return the origin (RFC 6454, section 4); `None` if there is none, or a user is named."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return None if "@" in parts.netloc else (parts.scheme, parts.hostname or "", port)


def _resolve_path(build: Build, path: str) -> str:
    """Return the path of a page in the build, after redirects and without `index.html`."""
    path = build.head.moved.get(path, path)
    folder = path.removesuffix(INDEX_HTML) if path.endswith(f"/{INDEX_HTML}") else f"{path}/"
    return folder if path not in build.files and folder in build.files else path


def _read(build: Build, file: SiteFile, limit: float = inf) -> str:
    """Return the text of a file of at most `limit` bytes.

    Raises Problem `unavailable` if it cannot be read, `fetch_failed` if it is larger.
    """
    path = build.folder / SITE_FOLDER / file.name
    try:
        if path.stat().st_size > limit:
            raise too_large()
        return path.read_text("utf-8", "replace")
    except OSError:
        raise unavailable("This file cannot be read now") from None


STARTUP_TIMEOUT_SECONDS: Final = 15.0  # the time for a worker to be ready

WORKER_COMMAND: Final = (sys.executable, "-P", "-s", "-m", worker.__name__)


class JobNotReceivedError(Exception):
    """A process ended before it received its job, so the job is not the cause."""


async def _receive(process: Process) -> bytes:
    """Return a worker's next message. Raises EOFError if it has ended, or sends too much."""
    assert process.stdout is not None  # noqa: S101  it is a pipe
    try:
        return (await process.stdout.readuntil()).removesuffix(b"\n")
    except asyncio.LimitOverrunError:
        raise EOFError from None


def _kill_nowait(process: Process) -> None:
    """Kill a worker without waiting for it; a pending `_receive` raises EOFError."""
    with suppress(ProcessLookupError):
        process.kill()


WAIT_SECONDS: Final = 2.0  # the longest wait for a free worker


class WorkerPool:
    """Runs jobs in at most `size` worker processes, which start when jobs need them."""

    def __init__(
        self,
        size: int = 2,
        queue: int = 8,
        seconds: float = WORK_SECONDS,
        command: tuple[str, ...] = WORKER_COMMAND,
    ) -> None:
        """Let at most `queue` jobs wait; each must be done in `seconds`, a worker's start apart."""
        self._slots = asyncio.Semaphore(size)
        self._queue = queue
        self._seconds = seconds
        self._command = command
        self._waiting = 0
        self._workers: set[Process] = set()
        self._idle: list[Process] = []
        self._is_closed = False

    @property
    def pids(self) -> set[int]:
        """The process ids of the running workers."""
        return {each.pid for each in self._workers}

    async def run(self, job: bytes) -> bytes:
        """Return a worker's answer to a job; neither contains a line break.

        Raises Problem `unavailable` for a full queue, or a job that takes too much time or memory.
        """
        if self._is_closed or (self._slots.locked() and self._waiting >= self._queue):
            raise unavailable("Too many documents are being analyzed: try again in a moment")
        now = asyncio.get_running_loop().time
        deadline = now() + self._seconds
        self._waiting += 1
        try:
            async with asyncio.timeout(min(self._seconds, WAIT_SECONDS)):
                await self._slots.acquire()
        except TimeoutError:
            raise unavailable("Other documents take their time: try again in a moment") from None
        finally:
            self._waiting -= 1
        try:
            return await self._work(job, deadline - now())
        finally:
            self._slots.release()

    async def warm(self) -> None:
        """Start a worker if none is running, so that the first job does not wait for it."""
        async with self._slots:
            if not self._workers:
                with suppress(JobNotReceivedError):  # the first job reports it
                    self._idle.append(await self._start())

    async def close(self) -> None:
        """End every worker; running jobs end with Problem `unavailable`."""
        self._is_closed = True
        ending, self._workers, self._idle = self._workers, set(), []
        for each in ending:
            _kill_nowait(each)
        await asyncio.gather(*(each.wait() for each in ending))

    async def _work(self, job: bytes, seconds: float) -> bytes:
        """Run a job in an idle worker, or in a new one if those ended before they got the job."""
        try:
            while self._idle:
                with suppress(JobNotReceivedError):
                    return await self._request(self._idle.pop(), job, seconds)
            return await self._request(await self._start(), job, seconds)
        except JobNotReceivedError:
            raise unavailable("Documents cannot be analyzed now") from None
        except (TimeoutError, EOFError):
            raise unavailable(
                "The document takes more time or memory than there is for one"
            ) from None

    async def _request(self, process: Process, job: bytes, seconds: float) -> bytes:
        """Return a worker's answer. Raises TimeoutError, JobNotReceivedError or EOFError."""
        assert process.stdin is not None  # noqa: S101  it is a pipe
        now = asyncio.get_running_loop().time
        start, is_reusable = now(), False
        try:
            async with asyncio.timeout(seconds):
                try:
                    process.stdin.write(job + b"\n")
                    await process.stdin.drain()
                    await _receive(process)  # the acknowledgement
                except (EOFError, OSError):
                    raise JobNotReceivedError from None
                answer = await _receive(process)
            # A worker that took longer than a second may occupy much memory: replace it.
            is_reusable = now() - start < 1 and not self._is_closed
        finally:
            if is_reusable:
                self._idle.append(process)
            else:
                await self._kill(process)
        return answer

    async def _start(self) -> Process:
        """Start a worker without the edge's environment. Raises JobNotReceivedError."""
        if self._is_closed:
            raise JobNotReceivedError
        modules = os.pathsep.join(filter(None, [str(PACKAGE.parent), *sys.path]))
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                limit=4 * 1024 * 1024,  # bytes of an answer
                env={"PYTHONPATH": modules},
                cwd="/",
                start_new_session=True,  # Control-C reaches the edge only, which ends its workers
            )
        except OSError:
            raise JobNotReceivedError from None
        is_ready = False
        self._workers.add(process)
        if self._is_closed:  # the pool was closed while the worker was starting
            _kill_nowait(process)
        try:
            async with asyncio.timeout(STARTUP_TIMEOUT_SECONDS):
                await _receive(process)
            is_ready = True
        except (TimeoutError, EOFError):
            raise JobNotReceivedError from None
        finally:
            if not is_ready:
                await self._kill(process)
        return process

    async def _kill(self, process: Process) -> None:
        """Kill a worker and wait for its end."""
        _kill_nowait(process)
        await process.communicate()
        self._workers.discard(process)


_log = logging.getLogger(__name__)
SEARCH_TERMS: Final = 8  # keywords whose posts are searched for
SEARCH_DEPTH: Final = 20  # posts that count of each search, with weights from 1 down to 1/20


class Analyst:
    """Analyses documents with a pool of workers; without `fetch` it reads no addresses."""

    def __init__(self, pool: WorkerPool, builds: BuildManager, fetch: Fetch | None) -> None:
        self.pool = pool
        self._builds = builds
        self._fetch = fetch

    async def analyze(
        self, job: Job | str, language: str | None, keywords: int, limit: int
    ) -> Json:
        """Return the report on a document with related posts; `job` may be its address.

        Raises Problem `unavailable` if the workers are busy or the document takes too long, and for
        an address `forbidden` and `fetch_failed`.
        """
        if isinstance(job, str):
            if self._fetch is None:
                raise Problem(
                    "forbidden", "url: no addresses are read here; send the document itself"
                )
            job = await self._fetch(job)
        job = replace(job, language=language, terms=max(keywords, SEARCH_TERMS))
        answer: Json = orjson.loads(await self.pool.run(orjson.dumps(job)))
        if "fault" in answer:
            _log.error("a document could not be analyzed: %s", answer["fault"])
            raise unavailable("The document cannot be analyzed")
        report = answer["report"]
        found = [Keyword(**each) for each in report["keywords"]]
        build, related = self._builds.current, list[RelatedEntry]()
        if build is not None:
            related = await find_related(build, found, limit, report["input"]["url"])
        return {
            **report,
            "keywords": report["keywords"][:keywords],
            "related": [asdict(post) for post in related],
        }


@dataclass(frozen=True, slots=True)
class RelatedEntry:
    """A post of this journal."""

    slug: Annotated[str, Field(description="Its slug.")]
    title: Annotated[str, Field(description="Its title.")]
    url: Annotated[str, Field(description="Its address.")]
    score: Annotated[float, Field(ge=0, le=1, description="1 if every search finds it first.")]


async def find_related(
    build: Build, keywords: Sequence[Keyword], limit: int, url: str | None = None
) -> list[RelatedEntry]:
    """Return the most related posts, without the one whose page or Markdown is at `url`.

    A search for each keyword ranks posts. A post's score is the sum of its ranks, weighted by the
    keywords' scores (a Borda count); posts with equal scores are ordered by slug. Raises Problem
    `unavailable`.
    """
    terms = keywords[:SEARCH_TERMS] if limit else ()
    scores: defaultdict[str, float] = defaultdict(float)
    for keyword in terms:
        hits = await build.search.find(f'"{keyword.term}"', SEARCH_DEPTH)
        for rank, slug in enumerate(hits):
            scores[slug] += keyword.score * (SEARCH_DEPTH - rank) / SEARCH_DEPTH
    total = sum(keyword.score for keyword in terms)
    ranked = sorted(scores, key=lambda slug: (-scores[slug], slug))[: limit + 1]
    found = [(build.posts.summary(slug), round(scores[slug] / total, 2)) for slug in ranked]
    posts = [RelatedEntry(post["slug"], post["title"], post["url"], score) for post, score in found]
    page = _page_url(url) if url else None
    return [post for post in posts if _page_url(post.url) != page][:limit]


def _page_url(url: str) -> str:
    """Return the address of a page, given that or the address of its Markdown."""
    return unquote(url).removesuffix(MARKDOWN_INDEX)
