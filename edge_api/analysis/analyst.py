"""Fetches a document by its address, and has a worker analyse it.

Nothing that is submitted is stored or logged.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote, urlsplit

import orjson
from pydantic import Field

from edge_api.analysis.document import WELL_KNOWN_PATHS, Discovery, DocumentFormat
from edge_api.analysis.metrics import Keyword
from edge_api.analysis.pool import WorkerPool
from edge_api.analysis.report import Job
from edge_api.db.problems import Problem
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.site_files import HOME, INDEX_HTML, MARKDOWN_INDEX, SiteFile
from edge_api.schema.index import SITE_FOLDER

MAX_DOCUMENT_BYTES: Final = 2 * 1024 * 1024  # bytes at an address, decoded

_FORMATS: Final[Mapping[str, DocumentFormat]] = {"html": "html", "md": "markdown", "txt": "text"}
_PORTS: Final = {"http": 80, "https": 443}
_RETRY: Final = {"Retry-After": "5"}


Fetch = Callable[[str], Awaitable[Job]]
"""Returns the document at an address. Raises Problem `forbidden` and `fetch_failed`."""


class DocumentFetcher:
    """Fetches pages of this site from the current build, and by `web` those of others."""

    def __init__(
        self, builds: BuildManager, documents: Mapping[str, str], web: Fetch | None
    ) -> None:
        """`documents` are those that the service makes itself, by path."""
        self._builds = builds
        self._documents = documents
        self._web = web

    async def __call__(self, url: str) -> Job:
        """Return the document at an address. Raises Problem `forbidden` and `fetch_failed`."""
        if _origin(url) == _origin(self._builds.site_url):
            return await self._fetch_own(url)
        if self._web is None:
            message = "url: only pages of this site are read; send the document itself"
            raise Problem("forbidden", message)
        return await self._web(url)

    async def _fetch_own(self, url: str) -> Job:
        build = self._builds.build()
        path = _find(build, unquote(urlsplit(url).path) or HOME)
        file = build.files.get(path)
        kind = _FORMATS.get(file.name.rpartition(".")[2]) if file else None
        if file is None or kind is None:
            raise Problem("fetch_failed", "url: this site has no page at this address")
        text = await asyncio.to_thread(_read, build, file, MAX_DOCUMENT_BYTES)
        address = f"{self._builds.site_url}{quote(path)}"
        found = await asyncio.to_thread(self._discover, build)
        return Job(kind, text, address, discovery=found)

    def _discover(self, build: Build) -> Discovery:
        files = build.files
        return {
            path: _read(build, files[path]) if path in files else self._documents.get(path)
            for path in WELL_KNOWN_PATHS
        }


def too_large() -> Problem:
    """Return the problem of a document that is too large."""
    size = MAX_DOCUMENT_BYTES // 1024 // 1024
    return Problem("fetch_failed", f"url: the document is larger than {size} MiB")


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Return the origin (RFC 6454, section 4); `None` if there is none, or a user is named."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return None if "@" in parts.netloc else (parts.scheme, parts.hostname or "", port)


def _find(build: Build, path: str) -> str:
    """Return the path of the file, after redirects."""
    path = build.head.moved.get(path, path)
    folder = path.removesuffix(INDEX_HTML) if path.endswith(f"/{INDEX_HTML}") else f"{path}/"
    return folder if path not in build.files and folder in build.files else path


def _read(build: Build, file: SiteFile, limit: float = inf) -> str:
    """Return the text of a file of at most `limit` bytes.

    Raises Problem `unavailable` if it is gone, `fetch_failed` if it is larger.
    """
    path = build.folder / SITE_FOLDER / file.name
    try:
        if path.stat().st_size > limit:
            raise too_large()
        return path.read_text("utf-8", "replace")
    except OSError:
        raise Problem("unavailable", "This file cannot be read now", headers=_RETRY) from None


Json = dict[str, Any]

_log = logging.getLogger(__name__)
SEARCH_TERMS: Final = 8  # keywords whose posts are searched for
SEARCH_DEPTH: Final = 20  # posts of each search that count, from 1 down to a twentieth


class Analyst:
    """Analyses documents with a pool of workers; without `fetch` it reads no addresses."""

    def __init__(self, pool: WorkerPool, builds: BuildManager, fetch: Fetch | None) -> None:
        self.pool = pool
        self._builds = builds
        self._fetch = fetch

    async def analyze(
        self, job: Job | str, language: str | None, keywords: int, limit: int
    ) -> Json:
        """Return the report on a document, or on that at an address, with `limit` related posts.

        Raises Problem `unavailable` if the workers are busy or the document takes too long, and for
        an address `forbidden` and `fetch_failed`.
        """
        if isinstance(job, str):
            if self._fetch is None:
                message = "url: no addresses are read here; send the document itself"
                raise Problem("forbidden", message)
            job = await self._fetch(job)
        terms = max(keywords, SEARCH_TERMS)
        report = await self._report(replace(job, language=language, terms=terms))
        found = [Keyword(**each) for each in report["keywords"]]
        build, related = self._builds.current, list[RelatedEntry]()
        if build is not None:
            related = await find_related(build, found, limit, report["input"]["url"])
        return {
            **report,
            "keywords": report["keywords"][:keywords],
            "related": [asdict(post) for post in related],
        }

    async def _report(self, job: Job) -> Json:
        answer: Json = orjson.loads(await self.pool.run(orjson.dumps(job)))
        if "fault" in answer:
            _log.error("a document could not be analysed: %s", answer["fault"])
            raise Problem("unavailable", "The document cannot be analysed", headers=_RETRY)
        report: Json = answer["report"]
        return report


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

    Each keyword's search ranks posts; the ranks are summed by the keyword's weight (Borda's count),
    and equals are ordered by slug. Raises Problem `unavailable`.
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
    page = _page(url) if url else None
    return [post for post in posts if _page(post.url) != page][:limit]


def _page(url: str) -> str:
    """Return the address of a page, also for that of its Markdown."""
    return unquote(url).removesuffix(MARKDOWN_INDEX)
