"""The operations on posts; their MCP tools have the names that chat products expect."""

import re
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from edge_api.db.types import PATTERNS, ColumnType, Timestamp, check_text, parse_integer
from edge_api.journal.builds import Build, BuildManager
from edge_api.journal.posts import CACHE_CONTROL, PostCursor, serialize_list
from edge_api.operation.model import (
    ETAG,
    AnyOperation,
    Document,
    Json,
    Operation,
    OperationRequest,
    OperationResult,
    Parameter,
    Service,
    Tool,
    cacheable,
    object_schema,
    output_schema,
)
from edge_api.schema.index import MAX_QUERY_LENGTH, SLUG_PATTERN, PostRecord, PostSummary
from edge_api.schema.paths import REST_PREFIX

PATH: Final = f"{REST_PREFIX}/posts"

_CURSOR_PATTERN: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z_"
    rf"{SLUG_PATTERN}"
)
_NO_NUL: Final = {"pattern": f"^{PATTERNS[ColumnType.TEXT]}$"}


def _check_cursor(text: str) -> str:
    if re.fullmatch(_CURSOR_PATTERN, text) is None:
        raise ValueError("is not one that an answer gave: leave it out to begin at the top")
    return text


Cursor = Annotated[
    str,
    Field(max_length=300),
    AfterValidator(_check_cursor),
    WithJsonSchema({"type": "string", "maxLength": 300, "pattern": f"^{_CURSOR_PATTERN}$"}),
]
Tag = Annotated[
    str, Field(min_length=1, max_length=200, json_schema_extra=_NO_NUL), AfterValidator(check_text)
]
AnyWords = Annotated[
    str, Field(max_length=MAX_QUERY_LENGTH, json_schema_extra=_NO_NUL), AfterValidator(check_text)
]


class ListQuery(BaseModel):
    """The parameters of a list, which choose a part of it; without any, the whole list comes."""

    limit: Annotated[int, Field(ge=1, le=1000), BeforeValidator(parse_integer)] | None = Field(
        default=None, description="How many posts at the most.", examples=[20]
    )
    cursor: Cursor | None = Field(
        default=None, description="Where to go on: as an earlier answer's `next` has it."
    )
    tag: Tag | None = Field(
        default=None, description="Only posts with this tag, whatever its case."
    )
    q: Annotated[AnyWords, Field(min_length=1)] | None = Field(
        default=None,
        description="Only posts with all these words in any form; the last may be a beginning, and "
        "words in double quotes stand side by side as typed.",
    )
    since: Timestamp | None = Field(
        default=None,
        description="Only posts published at this instant (RFC 3339) or later.",
        examples=["2026-01-01T00:00:00Z"],
    )


class PostList(BaseModel, extra="forbid"):
    """Posts, newest first, slug as tie-breaker."""

    posts: Annotated[list[PostSummary], Field(description="Newest first.")]
    count: Annotated[int, Field(ge=0, description="How many posts are in this answer.")]
    next: Annotated[str, StringConstraints(pattern="^/")] | None = Field(
        default=None, description="Path of the following part; absent behind the last."
    )


async def list_posts(
    service: Service, request: OperationRequest[ListQuery, None]
) -> OperationResult:
    """List posts: the whole list without a parameter, and a part of it with one."""
    build = service[BuildManager].build()
    query = request.query
    if not query.model_fields_set:
        return OperationResult(build.posts.full_list)
    make = partial(_list_page, build, query)
    return OperationResult(await build.cache.get(("posts", query.model_dump_json()), make))


async def get_post(service: Service, request: OperationRequest[None, None]) -> OperationResult:
    """Return one post."""
    return OperationResult(service[BuildManager].build().posts.document(request.path["slug"]))


async def _list_page(build: Build, query: ListQuery) -> Document:
    found = None
    if query.q is not None:
        found = frozenset(await build.search.find(query.q, build.head.count))
    after = PostCursor(*query.cursor.split("_", 1)) if query.cursor else None
    wanted = build.posts.select(after, query.tag, query.since, found)
    entries = wanted[: query.limit]
    following, link = None, tuple[tuple[str, str], ...]()
    if len(entries) < len(wanted):
        parameters = query.model_dump(exclude_none=True, exclude={"cursor"})
        cursor = str(entries[-1].cursor)
        following = f"{PATH}?{urlencode({**parameters, 'cursor': cursor})}"
        link = (("Link", f'<{following}>; rel="next"'),)
    body = serialize_list(entries, following)
    return Document(body, cache_control=CACHE_CONTROL, headers=link, is_cached=False)


def link_to_post(member: str) -> dict[str, Any]:
    """Return a Link Object of OpenAPI 3.1 that leads to the first post in `member` of an answer."""
    slug = f"$response.body#/{member}/0/slug"
    return {"get_post": {"operationId": "get_post", "parameters": {"slug": slug}}}


MAX_SEARCH_RESULTS: Final = 50  # the most results of one search

_POST_PROPERTIES: Final = PostRecord.model_json_schema(mode="serialization")["properties"]
_RESULT_PROPERTIES: Final = {
    "id": _POST_PROPERTIES["slug"],
    "title": _POST_PROPERTIES["title"],
    "url": _POST_PROPERTIES["url"],
}


def next_cursor(value: Json) -> str | None:
    """Return the cursor in the address of the next page, which REST's answer has as `next`."""
    address = value.get("next")
    return None if address is None else parse_qs(urlsplit(address).query)["cursor"][0]


def _with_next_cursor(value: Json) -> Json:
    rest = {name: item for name, item in value.items() if name != "next"}
    cursor = next_cursor(value)
    return rest if cursor is None else {**rest, "next_cursor": cursor}


def _as_results(value: Json) -> Json:
    results = [
        {"id": post["slug"], "title": post["title"], "url": post["url"]}
        for post in value["results"]
    ]
    suggestion = value["suggestion"]
    return {"results": results, **({"suggestion": suggestion} if suggestion else {})}


def _as_document(value: Json) -> Json:
    facts = {name: value[name] for name in ("description", "published_at")}
    return {
        "id": value["slug"],
        "title": value["title"],
        "text": value["content"],
        "url": value["url"],
        "metadata": {**facts, "updated_at": value["updatedAt"], "tags": ", ".join(value["tags"])},
    }


_LIST_SCHEMA: Final = output_schema(PostList)

SEARCH: Final = Tool(
    name="search",
    title="Search the journal",
    description="Find posts with all the words of the query, best first, at most "
    f"{MAX_SEARCH_RESULTS}; where few have them all, posts with some of them follow. The last "
    "word may be a beginning; words in double quotes stand side by side. Read a result with fetch.",
    scope="posts:read",
    arguments={"query": "q"},
    required=("q",),
    schemas={
        "q": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": "Words that posts should have.",
        }
    },
    defaults={"limit": MAX_SEARCH_RESULTS},
    to_result=_as_results,
    output=object_schema(
        {
            "results": {
                "type": "array",
                "items": object_schema(_RESULT_PROPERTIES, *_RESULT_PROPERTIES),
                "description": "Best first.",
            },
            "suggestion": {
                "type": "string",
                "description": "The query in another spelling; absent where none is likely.",
            },
        },
        "results",
    ),
)

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="list_posts",
        path=PATH,
        summary="List journal posts, newest first",
        description="Without parameters the whole list comes. Unknown parameters are ignored.",
        tag="posts",
        credential="required",
        scope="posts:read",
        cancel_on_disconnect=True,
        handler=list_posts,
        query=ListQuery,
        responses=cacheable("Posts", _LIST_SCHEMA, headers=ETAG, links=link_to_post("posts")),
        tools=(
            Tool(
                name="list_posts",
                title="List posts",
                description="List the journal's posts, newest first, without their text. Narrow "
                "the list by tag, words or date; page through it with the cursor of the answer "
                "before.",
                defaults={"limit": 20},  # an agent reads the whole answer, so it should be short
                schemas={
                    "cursor": {
                        "type": "string",
                        "description": "`next_cursor` of the answer before.",
                    }
                },
                to_result=_with_next_cursor,
                output={
                    **_LIST_SCHEMA,
                    "properties": {
                        **{
                            name: item
                            for name, item in _LIST_SCHEMA["properties"].items()
                            if name != "next"
                        },
                        "next_cursor": {
                            "type": "string",
                            "description": "Give it back as `cursor` to go on; absent at last.",
                        },
                    },
                },
            ),
        ),
    ),
    Operation(
        name="get_post",
        path=f"{PATH}/{{slug}}",
        summary="One post, with its Markdown and its HTML",
        tag="posts",
        credential="required",
        scope="posts:read",
        handler=get_post,
        parameters=(
            Parameter(
                "slug",
                "path",
                {"type": "string", "minLength": 1},
                "The post's unique key.",
                required=True,
            ),
        ),
        responses=cacheable("The post", output_schema(PostRecord), headers=ETAG),
        problems=("not_found",),
        tools=(
            Tool(
                name="fetch",
                title="Fetch a post's text",
                description="Read the whole text of one post as Markdown, by the id that search "
                "has given.",
                arguments={"id": "slug"},
                to_result=_as_document,
                output=object_schema(
                    {
                        **_RESULT_PROPERTIES,
                        "text": _POST_PROPERTIES["content"],
                        "metadata": {
                            "type": "object",
                            "additionalProperties": {"type": "string"},
                            "description": "Its description, dates and tags.",
                        },
                    },
                    "id",
                    "title",
                    "text",
                    "url",
                ),
            ),
            Tool(
                name="get_post",
                title="Read a post",
                description="Read one post by its slug: everything that is known of it, with its "
                "text both as Markdown (content) and as HTML (content_html).",
            ),
        ),
    ),
)
