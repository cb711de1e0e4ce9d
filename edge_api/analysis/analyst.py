"""Takes an order, finds its document by its address, and has a worker analyse it.

Nothing of what is submitted is kept or logged.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote, urlsplit

import orjson

from edge_api.analysis.document import Kind
from edge_api.analysis.facts import PLACES, Discovery
from edge_api.analysis.metrics import Keyword
from edge_api.analysis.pool import Pool
from edge_api.analysis.report import Job
from edge_api.db.problems import Problem
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.site_files import HOME, INDEX, TWIN, SiteFile
from edge_api.schema.index import SITE_FOLDER

DOCUMENT_MOST: Final = 2 * 1024 * 1024
"""Bytes of a document that is read at an address, decoded."""

_ENDINGS: Final[Mapping[str, Kind]] = {"html": "html", "md": "markdown", "txt": "text"}
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Visit:
    """What was found at an address."""

    url: str
    """Where it stands, after redirects, however its address was spelled."""
    kind: Kind
    text: str
    discovery: Discovery


class Visitor(Protocol):
    """Reads documents where they stand."""

    async def visit(self, url: str) -> Visit:
        """Return what stands at an address, and what its origin says of itself.

        Raises Problem `forbidden` for what may not be read, and `fetch_failed`.
        """


class OwnSite:
    """The pages of this site, from the build that is served."""

    def __init__(self, builds: BuildManager, documents: Mapping[str, str]) -> None:
        """Take the documents that the service makes itself, by their path."""
        self._shelf = builds
        self._documents = documents

    def holds(self, url: str) -> bool:
        """Tell whether an address is one of this site's."""
        return _origin(url) == _origin(self._shelf.site_url)

    async def visit(self, url: str) -> Visit:
        """Return what stands at an address of this site. Raises Problem `fetch_failed`."""
        build = self._shelf.build()
        path = _find(build, unquote(urlsplit(url).path) or HOME)
        file = build.files.get(path)
        kind = _ENDINGS.get(file.name.rpartition(".")[2]) if file else None
        if file is None or kind is None:
            raise Problem("fetch_failed", "url: no page of this site stands there")
        text = await asyncio.to_thread(_read, build, file, DOCUMENT_MOST)
        place = f"{self._shelf.site_url}{quote(path)}"
        return Visit(place, kind, text, await asyncio.to_thread(self._discover, build))

    def _discover(self, build: Build) -> Discovery:
        return {place: self._at(build, place) for place in PLACES}

    def _at(self, build: Build, place: str) -> str | None:
        file = build.files.get(place)
        return self._documents.get(place) if file is None else _read(build, file)


class Doors:
    """Who visits which address: this site's own, a visitor to others, or nobody."""

    def __init__(self, own: OwnSite | None, elsewhere: Visitor | None) -> None:
        self._own = own
        self._elsewhere = elsewhere

    async def visit(self, url: str) -> Visit:
        """Return what stands at an address. Raises Problem `forbidden` and `fetch_failed`."""
        if self._own is None:
            raise Problem("forbidden", "url: no addresses are read here; send the document itself")
        if self._own.holds(url):
            return await self._own.visit(url)
        if self._elsewhere is None:
            sentence = "url: only pages of this site are read; send the document itself"
            raise Problem("forbidden", sentence)
        return await self._elsewhere.visit(url)


def too_large() -> Problem:
    """Return the problem of a document that is too large."""
    size = DOCUMENT_MOST // 1024 // 1024
    return Problem("fetch_failed", f"url: what stands there is larger than {size} MiB")


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Return what makes an origin (RFC 6454, section 4); `None` of what has none, or a user."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return None if "@" in parts.netloc else (parts.scheme, parts.hostname or "", port)


def _find(build: Build, path: str) -> str:
    """Return the path at which a file answers, or at which the one it is sent on to does."""
    path = build.head.moved.get(path, path)
    folder = path.removesuffix(INDEX) if path.endswith(f"/{INDEX}") else f"{path}/"
    return folder if path not in build.files and folder in build.files else path


def _read(build: Build, file: SiteFile, most: float = inf) -> str:
    """Return the text of a file of at most so many bytes.

    Raises Problem `unavailable` where it is gone, `fetch_failed` where it is larger.
    """
    path = build.folder / SITE_FOLDER / file.name
    try:
        if path.stat().st_size > most:
            raise too_large()
        return path.read_text("utf-8", "replace")
    except OSError:
        headers = {"Retry-After": "5"}
        raise Problem("unavailable", "This file cannot be read now", headers=headers) from None


RETRY_SECONDS: Final = 5

Json = dict[str, Any]

_log = logging.getLogger(__name__)
TERMS: Final = 8
"""Keywords that are searched for, the best of the document's."""
DEPTH: Final = 20
"""Posts of each search that count; the first for one, the last for a twentieth."""


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants to have analysed."""

    kind: Kind | None
    """`None` where `content` is an address."""
    content: str
    language: str | None
    keywords: int
    """How many to name."""
    related: int
    """How many posts to name."""


class Analyst:
    """Analyses documents, and lets go of its workers at the end."""

    def __init__(self, pool: Pool, builds: BuildManager, visitor: Visitor) -> None:
        self.pool = pool
        self._shelf = builds
        self._visitor = visitor

    async def analyze(self, order: Order) -> Json:
        """Return the report on a document.

        Raises Problem `unavailable` when the workers are busy or the document takes too long, and
        for an address `forbidden` and `fetch_failed`.
        """
        report = await self._report(await self._job(order))
        keywords = [Keyword(**each) for each in report["keywords"]]
        related = await self._related(order, keywords, report["input"]["url"])
        return {**report, "keywords": report["keywords"][: order.keywords], "related": related}

    async def close(self) -> None:
        """End the workers."""
        await self.pool.close()

    async def _job(self, order: Order) -> Job:
        terms = max(order.keywords, TERMS)
        if order.kind is not None:
            return Job(order.kind, order.content, None, order.language, terms)
        found = await self._visitor.visit(order.content)
        return Job(found.kind, found.text, found.url, order.language, terms, found.discovery)

    async def _report(self, job: Job) -> Json:
        """Return what a worker says of a document; of a failure, only its kind is logged."""
        answer: Json = orjson.loads(await self.pool.run(orjson.dumps(job)))
        if "fault" in answer:
            _log.error("a document could not be analysed: %s", answer["fault"])
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise Problem("unavailable", "The document cannot be analysed", headers=headers)
        report: Json = answer["report"]
        return report

    async def _related(self, order: Order, keywords: list[Keyword], url: str | None) -> list[Json]:
        build = self._shelf.current
        if build is None:  # nothing is related where there is no journal yet
            return []
        found = await find_related(build, keywords, order.related, url)
        return [asdict(post) for post in found]


@dataclass(frozen=True, slots=True)
class RelatedPost:
    """A post, and how well it fits."""

    slug: str
    title: str
    url: str
    score: float
    """0 to 1; 1 where every search finds it first."""


async def find_related(
    build: Build, keywords: Sequence[Keyword], most: int, url: str | None = None
) -> list[RelatedPost]:
    """Return the posts that fit best, but for the one whose page or Markdown is at `url`.

    Each keyword's search ranks posts, and the ranks are added up by the weight of the keyword
    (Borda's count); of equals the slug decides. Raises Problem `unavailable`.
    """
    terms = keywords[:TERMS] if most else ()
    scores: defaultdict[str, float] = defaultdict(float)
    for keyword in terms:
        found = await build.search.find(f'"{keyword.term}"', DEPTH)
        for rank, slug in enumerate(found):
            scores[slug] += keyword.score * (DEPTH - rank) / DEPTH
    total = sum(keyword.score for keyword in terms)
    ranked = sorted(scores, key=lambda slug: (-scores[slug], slug))[: most + 1]
    posts = [_present(build.posts.summary(slug), scores[slug] / total) for slug in ranked]
    page = _page(url) if url else None
    return [post for post in posts if _page(post.url) != page][:most]


def _page(url: str) -> str:
    """Return the address of the page that stands at an address or has its Markdown there."""
    return unquote(url).removesuffix(TWIN)


def _present(summary: dict[str, Any], score: float) -> RelatedPost:
    return RelatedPost(summary["slug"], summary["title"], summary["url"], round(score, 2))
