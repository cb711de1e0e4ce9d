"""Search for readers: the results as a page and as data. Both share one rate limit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import urlencode, urlsplit

import orjson
from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field

from edge_api.db.types import parse_integer
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.operations import MAX_SEARCH_RESULTS, SEARCH, AnyWords, link_to_post
from edge_api.journal.site_files import MARKDOWN_INDEX
from edge_api.operation.model import (
    ETAG,
    HTML,
    MARKDOWN,
    NEGOTIATED,
    REVALIDATE,
    AnyOperation,
    Document,
    HtmlResult,
    Operation,
    OperationRequest,
    OperationResult,
    Parameter,
    Service,
    cacheable,
    escape_markdown,
    output_schema,
)
from edge_api.operation.negotiation import prefers_markdown
from edge_api.schema import paths
from edge_api.schema.index import MAX_QUERY_LENGTH, SearchHit, Segments
from edge_api.schema.sentences import counted, sentence
from edge_api.schema.site_policy import Headers

PAGE_SIZE: Final = 10  # results on one page
MAX_PAGE: Final = 1_000_000  # the highest number of a page, beyond the end of any journal

_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]+"
)
"""Control characters, those that change the direction of text, and noncharacters."""


@dataclass(frozen=True, slots=True)
class Results:
    """One page of results."""

    template_fields: ClassVar = frozenset(
        [
            "words",
            "total",
            "page",
            "pages",
            "results",
            "suggestion",
            "summary",
            "suggested_address",
            "previous_url",
            "next_url",
        ]
    )
    words: str
    total: int
    page: int
    pages: int
    """The number of pages, at least one: a search without results has an empty page."""
    results: tuple[Mapping[str, Any], ...]
    """Posts with all the words; where they are few, posts with some of the words follow."""
    suggestion: str | None = None
    """The words in a more frequent spelling, if there is one."""

    @property
    def summary(self) -> str:
        """A sentence on the number of results."""
        if not self.words:
            return ""
        found = counted(
            "%(number)s post has these words",
            "%(number)s posts have these words, best first",
            self.total,
            number=self.total,
        )
        if not self.total:
            found = sentence("No post has all of these words")
        extra = max(0, len(self.results) - self.total) if self.total < PAGE_SIZE else 0
        if not extra:
            return sentence("%(found)s.", found=found)
        near = counted("%(number)s comes near", "%(number)s come near", extra, number=extra)
        if self.total:
            more = "%(number)s more comes near", "%(number)s more come near"
            near = counted(*more, extra, number=extra)
        return sentence("%(found)s; %(near)s.", found=found, near=near)

    @property
    def suggested_address(self) -> str:
        """The address of the results for the suggested words."""
        return f"{paths.SEARCH}?{urlencode({'q': self.suggestion})}"

    def address(self, page: int) -> str:
        """Return the address of another page of the same results."""
        given = {
            **({"q": self.words} if self.words else {}),
            **({"page": page} if page > 1 else {}),
        }
        return f"{paths.SEARCH}?{urlencode(given)}" if given else paths.SEARCH

    @property
    def previous_url(self) -> str | None:
        """The address of the page before this one."""
        return self.address(self.page - 1) if self.page > 1 else None

    @property
    def next_url(self) -> str | None:
        """The address of the page that follows."""
        return self.address(self.page + 1) if self.page < self.pages else None


async def find_results(build: Build, words: str, page: int = 1, size: int = PAGE_SIZE) -> Results:
    """Return a page of results; beyond the end, the last page. Raises Problem `unavailable`."""
    found = await build.search.search(words, size, (page - 1) * size)
    pages = max(1, -(-found.total // size))
    if page > pages:
        return await find_results(build, words, pages, size)
    results = tuple(_describe(hit, build.posts.summary(hit.slug)) for hit in found.hits)
    return Results(words, found.total, page, pages, results, found.suggestion)


def _describe(hit: SearchHit, post: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a hit, with those of its post's summary."""
    return {
        **hit._asdict(),
        "url": post["url"],
        "path": urlsplit(post["url"]).path,
        "published_at": post["published_at"],
        "published": datetime.fromisoformat(post["published_at"]),
        "minutes": post["readingMinutes"],
        "tags": post["tags"],
    }


def parse_page_number(text: str) -> int:
    """Parse the number of a page: 1 for an invalid one, and at most `MAX_PAGE`."""
    if re.fullmatch("[1-9][0-9]*", text) is None:
        return 1
    return int(text) if len(text) < len(str(MAX_PAGE)) else MAX_PAGE


_MAX_TITLE_LENGTH: Final = 60
_MAX_LINK_LENGTH: Final = 2000
"""The most characters of an address in a `Link` header: clients read no header above 8 KiB."""
_LLMS_TXT: Final = "/llms.txt"


class SearchQuery(BaseModel):
    """The parameters of a search; without words nothing is found."""

    q: AnyWords = Field(
        default="",
        description="Posts with all these words; the last may be a beginning, and words in double "
        "quotes stand side by side. Where fewer than ten posts have them all, posts with some of "
        "them follow.",
        examples=["edge"],
    )
    limit: Annotated[int, Field(ge=1, le=MAX_SEARCH_RESULTS), BeforeValidator(parse_integer)] = (
        Field(default=PAGE_SIZE, description="How many posts at the most.")
    )


class Piece(BaseModel, extra="forbid"):
    """A piece of a text."""

    text: str
    match: Annotated[bool, Field(description="Whether it is a word that was looked for.")]


class SearchResult(BaseModel, extra="forbid"):
    """A post that was found."""

    slug: str
    title: Annotated[str, Field(description="Plain text.")]
    title_parts: Annotated[list[Piece], Field(description="The title in pieces.")]
    snippet: Annotated[list[Piece], Field(description="Where the words stand, as plain text.")]
    url: Annotated[str, Field(description="Where a person reads the post.")]
    published_at: AwareDatetime
    reading_minutes: Annotated[int, Field(ge=1)]
    tags: list[str]


class SearchAnswer(BaseModel, extra="forbid"):
    """Posts with all the words, best first: in the title, then as typed, then in other forms."""

    query: Annotated[str, Field(description="What was looked for.")]
    count: Annotated[int, Field(ge=0, description="How many posts have all the words.")]
    suggestion: Annotated[
        str | None,
        Field(
            description="The words in another spelling, where hardly any post has the given one."
        ),
    ]
    results: Annotated[
        list[SearchResult],
        Field(
            description="The best of them. Where they are fewer than ten, posts that come nearest "
            "follow, so that there may be more results than `count`."
        ),
    ]


async def show_search(service: Service, request: OperationRequest[None, None]) -> OperationResult:
    """Show a page of results, or only the form without a query."""
    given = dict(request.pairs)
    words = _UNPRINTABLE.sub(" ", given.get("q", "")[:MAX_QUERY_LENGTH]).strip()
    page = parse_page_number(given.get("page", ""))
    is_markdown = prefers_markdown(request.headers.get("Accept", ""))
    build = service[BuildManager].build()
    make = partial(_make_page, service, build, words, page, is_markdown=is_markdown)
    return HtmlResult(await build.cache.get(("search page", words, page, is_markdown), make))


async def _make_page(
    service: Service, build: Build, words: str, page: int, *, is_markdown: bool
) -> Document:
    results = await find_results(build, words, page)
    if is_markdown:
        return _document(
            format_results(results, service.settings.site_url).encode(), MARKDOWN, NEGOTIATED
        )
    body = await service.pages.render(
        "search", page_title(words), words=words, results=results, page_size=PAGE_SIZE
    )
    return _document(body, HTML, REVALIDATE, _links(build, results))


def _links(build: Build, results: Results) -> Headers:
    links = []
    if len(address := results.address(results.page)) <= _MAX_LINK_LENGTH:
        links.append(f'<{address}>; rel="alternate"; type="text/markdown"')
    if _LLMS_TXT in build.files:
        links.append(f'<{_LLMS_TXT}>; rel="describedby"; type="text/plain"')
    return (("Link", ", ".join(links)),) if links else ()


def _document(body: bytes, media_type: str, cache_control: str, links: Headers = ()) -> Document:
    headers = (("X-Robots-Tag", "noindex"), *links)
    return Document(body, media_type, cache_control, headers, is_cached=False, varies=("Accept",))


def page_title(words: str) -> str:
    """Return the title of the page of results; long search words are truncated."""
    if not words:
        return sentence("Search")
    is_long = len(words) > _MAX_TITLE_LENGTH
    shown = f"{words[: _MAX_TITLE_LENGTH - 1]}\u2026" if is_long else words
    return sentence("Search: %(words)s", words=shown)


async def search_posts(
    service: Service, request: OperationRequest[SearchQuery, None]
) -> OperationResult:
    """Return the best results as data."""
    query = request.query
    build = service[BuildManager].build()
    make = partial(_make_answer, build, query)
    return OperationResult(await build.cache.get(("search", query.q, query.limit), make))


async def _make_answer(build: Build, query: SearchQuery) -> Document:
    results = await find_results(build, query.q, size=query.limit)
    answer = {
        "query": results.words,
        "count": results.total,
        "suggestion": results.suggestion,
        "results": [
            {
                "slug": result["slug"],
                "title": "".join(segment.text for segment in result["title"]),
                "title_parts": _pieces(result["title"]),
                "snippet": _pieces(result["snippet"]),
                "url": result["url"],
                "published_at": result["published_at"],
                "reading_minutes": result["minutes"],
                "tags": result["tags"],
            }
            for result in results.results
        ],
    }
    return Document(orjson.dumps(answer), cache_control=REVALIDATE, is_cached=False)


def _pieces(segments: Segments) -> list[dict[str, Any]]:
    return [{"text": text, "match": is_match} for text, is_match in segments]


_EXAMPLE: Final = {
    "query": "edge",
    "count": 1,
    "suggestion": None,
    "results": [
        {
            "slug": "the-first-edge",
            "title": "The first edge",
            "title_parts": [
                {"text": "The first ", "match": False},
                {"text": "edge", "match": True},
            ],
            "snippet": [
                {"text": "Binders painted the fore-", "match": False},
                {"text": "edge", "match": True},
                {"text": " of a book.", "match": False},
            ],
            "url": "https://journal.example/journal/the-first-edge/",
            "published_at": "2026-01-05T09:00:00Z",
            "reading_minutes": 1,
            "tags": ["bindings"],
        }
    ],
}
_ANY_TEXT: Final = {"type": "string"}

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="show_search",
        path=paths.SEARCH,
        summary="Search the journal, as a page for readers",
        description="Any words are taken. With `Accept: text/markdown` the page comes as Markdown.",
        tag="search",
        limit="search",
        cancel_on_disconnect=True,
        error_format="page",
        handler=show_search,
        parameters=(
            Parameter("q", "query", _ANY_TEXT, "The words that posts should have.", example="a"),
            Parameter("page", "query", _ANY_TEXT, "Which page of the results, from 1 on."),
        ),
        responses=cacheable(
            "The results",
            _ANY_TEXT,
            headers=ETAG,
            media_types=(HTML.partition(";")[0], MARKDOWN.partition(";")[0]),
        ),
        problems=("unavailable",),
    ),
    Operation(
        name="search_posts",
        path=paths.SEARCH_DATA,
        summary="Search the journal, best results first",
        description="Open without a credential: it shows what is public, and where the words stand "
        "in it. Posts that have all the words in their title come first, and words as typed before "
        "their other forms. A query in a script without spaces finds any part of a text.",
        tag="search",
        limit="search",
        cancel_on_disconnect=True,
        handler=search_posts,
        query=SearchQuery,
        responses=cacheable(
            "The best results",
            output_schema(SearchAnswer),
            example=_EXAMPLE,
            headers=ETAG,
            links=link_to_post("results"),
        ),
        problems=("unavailable",),
        tools=(SEARCH,),
    ),
)


def format_results(results: Results, site_url: str) -> str:
    """Format the results as Markdown; addresses begin with `site_url`."""
    title = f"# Search: {escape_markdown(results.words)}" if results.words else "# Search"
    links = [("Earlier results", results.previous_url), ("More results", results.next_url)]
    onward = [f"[{label}]({site_url}{address})" for label, address in links if address]
    listed = "\n".join(map(_result_line, results.results))
    other = f"[{escape_markdown(results.suggestion or '')}]({site_url}{results.suggested_address})"
    suggestion = f"Did you mean {other}?" if results.suggestion else ""
    parts = (title, _summary_line(results, site_url), suggestion, listed, *onward)
    return "\n\n".join(filter(None, parts)) + "\n"


def _summary_line(results: Results, site_url: str) -> str:
    if not results.words:
        return f"Give words in the address: `{site_url}/search?q=words`."
    if not results.total:
        return f"{results.summary} [Every tag]({site_url}/tags/) is listed."
    page_label = f" Page {results.page} of {results.pages}." if results.pages > 1 else ""
    return f"{results.summary}{page_label}"


def _result_line(result: Mapping[str, Any]) -> str:
    title = "".join(segment.text for segment in result["title"])
    pieces = (
        f"**{escape_markdown(text)}**" if match else escape_markdown(text)
        for text, match in result["snippet"]
    )
    address, day = f"{result['url']}{MARKDOWN_INDEX}", f"{result['published']:%Y-%m-%d}"
    return f"- [{escape_markdown(title)}]({address}) ({day}): {''.join(pieces)}"
