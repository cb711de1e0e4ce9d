"""Takes an order, has its document analysed by a worker, and adds what the journal has on it.

Nothing of what is submitted is kept or logged.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import unquote

import orjson

from edge_api.domain.analysis.document import Kind
from edge_api.domain.analysis.keywords import Keyword
from edge_api.domain.analysis.pool import Pool
from edge_api.domain.analysis.report import Job
from edge_api.domain.analysis.visits import Visitor
from edge_api.domain.edition import Edition, Shelf
from edge_api.schema.problems import Problem

RETRY_SECONDS: Final = 5

Json = dict[str, Any]

_log = logging.getLogger(__name__)
TWIN: Final = "index.md"
"""The name of a page's Markdown, beside it."""
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

    def __init__(self, pool: Pool, shelf: Shelf, visitor: Visitor) -> None:
        self.pool = pool
        self._shelf = shelf
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
        edition = self._shelf.current
        if edition is None:  # nothing is related where there is no journal yet
            return []
        found = await find_related(edition, keywords, order.related, url)
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
    edition: Edition, keywords: Sequence[Keyword], most: int, url: str | None = None
) -> list[RelatedPost]:
    """Return the posts that fit best, but for the one whose page or Markdown is at `url`.

    Each keyword's search ranks posts, and the ranks are added up by the weight of the keyword
    (Borda's count); of equals the slug decides. Raises Problem `unavailable`.
    """
    terms = keywords[:TERMS] if most else ()
    scores: defaultdict[str, float] = defaultdict(float)
    for keyword in terms:
        found = await edition.search.find(f'"{keyword.term}"', DEPTH)
        for rank, slug in enumerate(found):
            scores[slug] += keyword.score * (DEPTH - rank) / DEPTH
    total = sum(keyword.score for keyword in terms)
    ranked = sorted(scores, key=lambda slug: (-scores[slug], slug))[: most + 1]
    posts = [_present(edition.posts.summary(slug), scores[slug] / total) for slug in ranked]
    page = _page(url) if url else None
    return [post for post in posts if _page(post.url) != page][:most]


def _page(url: str) -> str:
    """Return the address of the page that stands at an address or has its Markdown there."""
    return unquote(url).removesuffix(TWIN)


def _present(summary: dict[str, Any], score: float) -> RelatedPost:
    return RelatedPost(summary["slug"], summary["title"], summary["url"], round(score, 2))
