"""Posts of the journal on what a document is about, as the journal's own search finds them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from edge_api.domain.analysis.keywords import Keyword
from edge_api.domain.edition import Edition

TWIN: Final = "index.md"
"""The name of a page's Markdown, beside it."""
TERMS: Final = 8
"""Keywords that are searched for, the best of the document's."""
DEPTH: Final = 20
"""Posts of each search that count; the first for one, the last for a twentieth."""


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
