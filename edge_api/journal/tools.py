"""The operations on posts as MCP tools; `search` and `fetch` are what chat products expect."""

from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from edge_api.operation.model import Json, Tool
from edge_api.schema.index import PostRecord

LISTED: Final = 20
"""Posts of one answer, where nobody says how many: an agent reads all that it is given."""
FOUND: Final = 50
"""Results of one search."""

_POST: Final = PostRecord.model_json_schema(mode="serialization")["properties"]
_BRIEF: Final = {"id": _POST["slug"], "title": _POST["title"], "url": _POST["url"]}
_RESULT: Final = {"type": "object", "properties": _BRIEF, "required": list(_BRIEF)}


def next_cursor(value: Json) -> str | None:
    """Return where a list goes on, of which REST gives the whole address."""
    address = value.get("next")
    return None if address is None else parse_qs(urlsplit(address).query)["cursor"][0]


def _list_as_pages(value: Json) -> Json:
    rest = {name: item for name, item in value.items() if name != "next"}
    cursor = next_cursor(value)
    return rest if cursor is None else {**rest, "next_cursor": cursor}


def _as_results(value: Json) -> Json:
    found: list[dict[str, Any]] = value["results"]
    results = [{"id": post["slug"], "title": post["title"], "url": post["url"]} for post in found]
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


def list_tool(schema: Json) -> Tool:
    """Return the tool `list_posts`; `schema` is that of the list which REST answers."""
    members = {name: item for name, item in schema["properties"].items() if name != "next"}
    cursor = {"type": "string", "description": "Give it back as `cursor` to go on; absent at last."}
    return Tool(
        name="list_posts",
        title="List posts",
        description="List the journal's posts, newest first, without their text. Narrow the list "
        "by tag, words or date; page through it with the cursor of the answer before.",
        defaults={"limit": LISTED},
        schemas={
            "cursor": {"type": "string", "description": "`next_cursor` of the answer before."}
        },
        present=_list_as_pages,
        output={**schema, "properties": {**members, "next_cursor": cursor}},
    )


SEARCH: Final = Tool(
    name="search",
    title="Search the journal",
    description=f"Find posts with all the words of the query, best first, at most {FOUND}; where "
    "few have them all, posts with some of them follow. The last word may be a beginning; words in "
    "double quotes stand side by side. Read a result with fetch.",
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
    defaults={"limit": FOUND},
    present=_as_results,
    output={
        "type": "object",
        "properties": {
            "results": {"type": "array", "items": _RESULT},
            "suggestion": {
                "type": "string",
                "description": "The query in another spelling; absent where none is likely.",
            },
        },
        "required": ["results"],
    },
)

GET: Final = Tool(
    name="get_post",
    title="Read a post",
    description="Read one post by its slug: everything that is known of it, with its text both as "
    "Markdown (content) and as HTML (content_html).",
)

FETCH: Final = Tool(
    name="fetch",
    title="Fetch a post's text",
    description="Read the whole text of one post as Markdown, by the id that search has given.",
    arguments={"id": "slug"},
    present=_as_document,
    output={
        "type": "object",
        "properties": {
            **_BRIEF,
            "text": _POST["content"],
            "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["id", "title", "text", "url"],
    },
)
