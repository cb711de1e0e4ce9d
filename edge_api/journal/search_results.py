"""The page of search results: each result with its post."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from edge_api.journal.builds import Build
from edge_api.schema.index import MAX_QUERY_LENGTH, SearchHit, Segments
from edge_api.schema.paths import SEARCH

PAGE_SIZE: Final = 10
"""Results on one page."""
MAX_PAGE: Final = 1_000_000
"""The highest number of a page, beyond the end of any journal."""

_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]+"
)
"""Control characters, those that change the direction of text, and noncharacters."""


@dataclass(frozen=True, slots=True)
class Result:
    """A post that matches."""

    slug: str
    title: Segments
    snippet: Segments
    url: str
    published_at: str
    """As in lists of posts."""
    minutes: int
    tags: tuple[str, ...]

    @property
    def published(self) -> datetime:
        """The instant of publication."""
        return datetime.fromisoformat(self.published_at)

    @property
    def path(self) -> str:
        """The address of the post from the root."""
        return urlsplit(self.url).path


@dataclass(frozen=True, slots=True)
class Results:
    """One page of results."""

    words: str
    total: int
    page: int
    pages: int
    """At least one, which may be empty."""
    results: tuple[Result, ...]
    """Those with all the words; where they are few, followed by the nearest ones."""
    suggestion: str | None = None
    """The words in a more frequent spelling."""

    @property
    def summary(self) -> str:
        """A sentence on the number of results."""
        if not self.words:
            return ""
        some = "1 post has" if self.total == 1 else f"{self.total:,} posts have"
        best = ", best first" if self.total > 1 else ""
        all_words = f"{some} these words{best}" if self.total else "No post has all of these words"
        near = max(0, len(self.results) - self.total) if self.total < PAGE_SIZE else 0
        verb = "comes" if near == 1 else "come"
        more = f"; {near}{' more' if self.total else ''} {verb} near" if near else ""
        return f"{all_words}{more}."

    @property
    def suggested_address(self) -> str:
        """The address of the results for the suggested words."""
        return f"{SEARCH}?{urlencode({'q': self.suggestion})}"

    def address(self, page: int) -> str:
        """Return the address of another page of the same results."""
        number = {"page": page} if page > 1 else {}
        return f"{SEARCH}?{urlencode({'q': self.words, **number})}" if self.words else SEARCH

    @property
    def previous_url(self) -> str | None:
        """The address of the page before this one."""
        return self.address(self.page - 1) if self.page > 1 else None

    @property
    def next_url(self) -> str | None:
        """The address of the page that follows."""
        return self.address(self.page + 1) if self.page < self.pages else None


async def find_results(build: Build, words: str, page: int = 1, size: int = PAGE_SIZE) -> Results:
    """Return a page of results, or the last one there is. Raises Problem `unavailable`."""
    found = await build.search.search(words, size, (page - 1) * size)
    pages = max(1, -(-found.total // size))
    if page > pages:
        return await find_results(build, words, pages, size)
    results = (_make_result(hit, build.posts.summary(hit.slug)) for hit in found.hits)
    return Results(words, found.total, page, pages, tuple(results), found.suggestion)


def _make_result(hit: SearchHit, summary: Mapping[str, Any]) -> Result:
    return Result(
        slug=hit.slug,
        title=hit.title,
        snippet=hit.snippet,
        url=summary["url"],
        published_at=summary["published_at"],
        minutes=summary["readingMinutes"],
        tags=tuple(summary["tags"]),
    )


def clean_words(text: str) -> str:
    """Return the searchable part of any text."""
    return _UNPRINTABLE.sub(" ", text[:MAX_QUERY_LENGTH]).strip()


def read_page(text: str) -> int:
    """Return the number of a page; 1 for an invalid one, and at most `MAX_PAGE`."""
    if re.fullmatch("[1-9][0-9]*", text) is None:
        return 1
    return int(text) if len(text) < len(str(MAX_PAGE)) else MAX_PAGE
