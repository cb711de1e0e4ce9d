"""Every tool: how it is offered, what it gives, and that it is its REST twin."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from edge_api.operations import OPERATIONS
from edge_api.writing import operations as writing
from tests.edge.mcp.agents import LEGACY, Agent
from tests.edge.small_builds import make_post, point_at, write_build

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}
DRAFT = """---
title: Two winters
slug: two-winters
date: 2025-11-20T09:30:00Z
status: draft
---

The store has stood.
"""
STORED = "66e4022318579b4f4b6dc4c40ee7c374098511c7"
"""The version of the draft, as git names its bytes."""
PUBLISHED = "e51e41edb0b511ce0b22ec6df0241f1af7068d7b"
"""The same without the line of its status."""
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)
TOOLS = {
    "list_posts": {},
    "fetch": {"id": "first-edge"},
    "get_post": {"slug": "first-edge"},
    "search": {"query": "edge"},
    "check_post": {"markdown": DRAFT},
    "list_sources": {},
    "get_source": {"slug": "two-winters"},
    "save_draft": {"markdown": DRAFT, "version": STORED},
    "add_picture": {"name": "store.png", "data": PICTURE},
    "publish_post": {"slug": "two-winters", "version": STORED},
    "withdraw_post": {"slug": "two-winters", "version": PUBLISHED},
    "create_lead": LEAD,
    "list_leads": {},
    "analyze": {"text": "Binders painted on the fore-edge of a book."},
    "query_table": {"table": "leads"},
    "read_stats": {},
}
"""Each tool with arguments that do."""
WRITES = {"create_lead", "save_draft", "add_picture", "publish_post", "withdraw_post"}


async def listed(agent: Agent) -> dict[str, Any]:
    """Return the tools that an agent is offered, by name."""
    return {tool["name"]: tool for tool in (await agent.ask("tools/list")).result["tools"]}


async def test_every_tool_is_listed_in_a_lasting_order(writer: Agent) -> None:
    """The list names every declared tool, twice in the same order."""
    first, second = list(await listed(writer)), list(await listed(writer))

    assert first == second == list(TOOLS)
    assert set(first) == {tool.name for operation in OPERATIONS for tool in operation.tools}


async def test_tools_of_writing_are_listed_where_it_is_on(agent: Agent) -> None:
    """Elsewhere all others are, in the same order."""
    of_writing = {tool.name for operation in writing.OPERATIONS for tool in operation.tools}

    assert list(await listed(agent)) == [name for name in TOOLS if name not in of_writing]


async def test_tools_say_what_a_model_has_to_know(writer: Agent) -> None:
    """Each has a name in the allowed characters, a title, a description and all four hints."""
    for name, tool in (await listed(writer)).items():
        hints = {key: value for key, value in tool["annotations"].items() if key.endswith("Hint")}
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name)
        assert tool["title"]
        assert len(tool["description"]) >= 20
        assert set(hints) == {
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }
        assert hints["readOnlyHint"] == (name not in WRITES)
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"


def undescribed(schema: Any, path: str) -> Iterator[str]:
    """Yield the path of every property without a description, however deep."""
    if isinstance(schema, list):
        for each in schema:
            yield from undescribed(each, path)
    elif isinstance(schema, dict):
        for name, member in schema.get("properties", {}).items():
            if not member.get("description", "").strip():
                yield f"{path}.{name}"
            yield from undescribed(member, f"{path}.{name}")
        for key, each in schema.items():
            if key not in ("properties", "enum", "default", "examples", "required"):
                inner = list(each.values()) if key == "$defs" else each
                yield from undescribed(inner, path)


async def test_every_argument_and_every_member_of_a_result_is_described(writer: Agent) -> None:
    """All schemas are walked to their leaves; descriptions are short, since a model reads them."""
    tools = await listed(writer)
    of_writing = {tool.name for operation in writing.OPERATIONS for tool in operation.tools}
    schemas, more = (
        {
            f"{name} {kind}": tool[kind]
            for name, tool in tools.items()
            for kind in ("inputSchema", "outputSchema")
            if (name in of_writing) is where
        }
        for where in (False, True)
    )

    both = {**schemas, **more}
    assert [path for name, each in both.items() for path in undescribed(each, name)] == []
    assert len(json.dumps(schemas)) < 30_000
    assert len(json.dumps(more)) < 14_000
    assert list(undescribed({"properties": {"a": {"items": {"properties": {"b": {}}}}}}, "x")) == [
        "x.a",
        "x.a.b",
    ]


async def test_results_fit_their_schema_and_their_text(writer: Agent, tmp_path: Path) -> None:
    """Structured content is what the schema says, and the one text is the same in JSON."""
    (tmp_path / "content/posts/two-winters.md").write_text(DRAFT)
    tools = await listed(writer)
    for name, arguments in TOOLS.items():
        Draft202012Validator(tools[name]["inputSchema"]).validate(arguments)
        result = await writer.call(name, **arguments)
        (content,) = result["content"]
        assert not result.get("isError"), content
        assert content["type"] == "text"
        assert json.loads(content["text"]) == result["structuredContent"]
        checker = Draft202012Validator(
            tools[name]["outputSchema"], format_checker=Draft202012Validator.FORMAT_CHECKER
        )
        checker.validate(result["structuredContent"])


async def test_search_and_fetch_have_the_shapes_of_a_connector(agent: Agent) -> None:
    """Search gives ids, titles and addresses; fetch gives the text of such an id."""
    found = (await agent.call("search", query="edge"))["structuredContent"]
    first = found["results"][0]
    fetched = (await agent.call("fetch", id=first["id"]))["structuredContent"]

    misspelt = (await agent.call("search", query="marbeld"))["structuredContent"]

    assert set(found) == {"results"}
    assert (misspelt["suggestion"], misspelt["results"][0]["id"]) == ("marbled", "marbled-paper")
    assert set(first) == {"id", "title", "url"}
    assert set(fetched) == {"id", "title", "text", "url", "metadata"}
    assert (fetched["id"], fetched["url"]) == (first["id"], first["url"])
    assert fetched["text"].startswith("Binders painted")
    assert all(isinstance(value, str) for value in fetched["metadata"].values())


async def test_search_gives_the_best_first(make_edge: Any, tmp_path: Path) -> None:
    """A post about the words comes before a newer one that has them too, as on the page."""
    posts = [
        make_post("newer", 1, content_html="<p>A word about gilding, and much about ink.</p>"),
        make_post("older", 0, title="Gilding", content_html="<p>Gold on the edge.</p>"),
    ]
    point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0001", posts))
    async with make_edge(BUILD_DIR=str(tmp_path / "b")) as edge:
        agent = Agent(edge, await edge.token(), LEGACY)
        found = (await agent.call("search", query="gilding"))["structuredContent"]["results"]
        listed = (await agent.call("list_posts", q="gilding"))["structuredContent"]["posts"]

    assert [each["id"] for each in found] == ["older", "newer"]
    assert [each["slug"] for each in listed] == ["newer", "older"]


async def test_posts_are_those_of_rest(agent: Agent) -> None:
    """`list_posts` and `get_post` give what REST gives."""
    key = await agent.edge.key()
    async with agent.edge.ask("GET", "/api/public/v1/posts", key) as answer:
        listing = await answer.json()
    async with agent.edge.ask("GET", "/api/public/v1/posts/first-edge", key) as answer:
        post = await answer.json()

    assert (await agent.call("list_posts"))["structuredContent"] == listing
    assert (await agent.call("get_post", slug="first-edge"))["structuredContent"] == post


async def test_posts_are_paged_by_cursor(agent: Agent) -> None:
    """Pages of one post, each from where the one before ended, are the whole list."""
    whole = (await agent.call("list_posts"))["structuredContent"]["posts"]
    pages: list[Any] = []
    more: dict[str, Any] = {}
    for _ in range(len(whole)):
        part = (await agent.call("list_posts", limit=1, **more))["structuredContent"]
        pages += part["posts"]
        more = {"cursor": part.get("next_cursor")}

    assert pages == whole
    assert more == {"cursor": None}, "behind the last there is none"


async def test_lists_are_short_unless_asked(make_edge: Any, tmp_path: Path) -> None:
    """Without a limit, or with an empty one, 20 posts come, and more where more are wanted."""
    posts = [make_post(f"post-{number:03}", day=-number) for number in range(30)]
    point_at(tmp_path / "b", write_build(tmp_path / "b", "build-many", posts))
    async with make_edge(BUILD_DIR=str(tmp_path / "b")) as edge:
        agent = Agent(edge, await edge.token(), LEGACY)
        results = [await agent.call("list_posts", **given) for given in ({}, {"limit": None})]
        results.append(await agent.call("list_posts", limit=1000))

    assert [result["structuredContent"]["count"] for result in results] == [20, 20, 30]


async def test_leads_from_agents_are_marked_and_counted(agent: Agent) -> None:
    """A lead is stored with the source `mcp`, is never spam, and is first in the list."""
    spam = {**LEAD, "message": "CHEAP VIAGRA http://a.example http://b.example http://c.example"}
    created = (await agent.call("create_lead", **spam))["structuredContent"]
    rows = await agent.call(
        "query_table",
        table="leads",
        select="id,source,status,spam_score",
        filters={"id": f"eq.{created['id']}"},
    )
    leads = (await agent.call("list_leads", limit=1))["structuredContent"]

    stored = {"id": created["id"], "source": "mcp", "status": "new", "spam_score": 0}
    assert rows["structuredContent"] == {"rows": [stored], "count": 1}
    assert leads == {"leads": [created["lead"]], "count": 1}


async def test_an_idempotency_key_creates_once(agent: Agent) -> None:
    """The same key with the same lead gives the first lead again; with another it is refused."""
    first = await agent.call("create_lead", **LEAD, idempotency_key="k-1")
    second = await agent.call("create_lead", **LEAD, idempotency_key="k-1")
    third = await agent.call("create_lead", **{**LEAD, "name": "Bo"}, idempotency_key="k-1")

    assert first["structuredContent"] == second["structuredContent"]
    assert third["isError"]
    assert (await agent.call("list_leads"))["structuredContent"]["count"] == 1


async def test_line_ends_of_a_lead_become_line_feeds(agent: Agent) -> None:
    """Before the message is measured, and before it is compared with an earlier one."""
    long = "x\r\n" * 999 + "xx"
    texts = (long, long.replace("\r\n", "\n"), long.replace("\r\n", "\r"))
    sent = [
        await agent.call("create_lead", **{**LEAD, "message": text}, idempotency_key="k")
        for text in texts
    ]

    assert [each.get("isError", False) for each in sent] == [False, False, False]
    (lead,) = (await agent.call("list_leads"))["structuredContent"]["leads"]
    assert lead["message"] == texts[1]


async def test_tables_are_filtered_ordered_and_paged(agent: Agent) -> None:
    """Filters hold together, repeated ones too; order, limit and offset are those of REST."""
    for number in range(4):
        await agent.call("create_lead", **{**LEAD, "name": f"lead-{number}"})
    answer = await agent.call(
        "query_table",
        table="leads",
        select="name",
        filters={"name": ["neq.lead-0", "neq.lead-2"], "source": "eq.mcp"},
        order="name.desc",
        limit=1,
        offset=1,
    )

    assert answer["structuredContent"]["rows"] == [{"name": "lead-1"}]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("search", {}, "query: is required"),
        ("search", {"query": ""}, "query: is required"),
        ("search", {"query": ["edge"]}, "query: must be a string or an integer"),
        ("search", {"query": "edge", "page": 2}, "page: is no argument; known are query"),
        ("fetch", {"id": "none-such"}, "No post has this slug"),
        ("fetch", {"id": None}, "id: is required"),
        ("list_posts", {"limit": 0}, "limit: must be 1 or more"),
        ("list_posts", {"limit": 1.5}, "limit: must be a string or an integer"),
        ("list_posts", {"limit": True}, "limit: must be a string or an integer"),
        ("list_posts", {"cursor": "here"}, "cursor: is not one that an answer gave"),
        ("list_posts", {"since": "yesterday"}, "since: "),
        ("get_post", {"slug": {"a": 1}}, "slug: must be a string or an integer"),
        ("create_lead", {**LEAD, "email": "ann"}, "email: "),
        ("create_lead", {"name": "Ann"}, "email: is required"),
        ("create_lead", {**LEAD, "name": None}, "name: must be a string"),
        ("create_lead", {**LEAD, "name": "\u2060"}, "name: must have a visible character"),
        ("create_lead", {**LEAD, "message": "\ufdd0"}, "message: must not contain noncharacters"),
        ("create_lead", {**LEAD, "_gotcha": "x"}, "_gotcha: is no argument"),
        ("create_lead", {**LEAD, "idempotency_key": "a b"}, "idempotency_key: "),
        ("list_leads", {"limit": 201}, "limit: must be 200 or less"),
        ("query_table", {}, "table: must be one of leads, "),
        ("query_table", {"table": "credentials"}, "table: must be one of leads, "),
        ("query_table", {"table": ["leads"]}, "table: must be one of leads, "),
        ("query_table", {"table": "leads", "filters": {"secret": "eq.1"}}, "secret: "),
        ("query_table", {"table": "leads", "filters": {"id": "eq.1"}}, "id: "),
        ("query_table", {"table": "leads", "filters": {"id": {"eq": 1}}}, "filters.id: "),
        ("query_table", {"table": "leads", "filters": "id=eq.1"}, "filters: "),
        ("query_table", {"table": "leads", "order": "nothing"}, "nothing: no such column"),
        ("query_table", {"table": "leads", "limit": 1001}, "limit: must be from 1 to 1000"),
        ("query_table", {"table": "leads", "limit": 1, "filters": {"limit": "2"}}, "limit: "),
    ],
)
async def test_invalid_arguments_are_reported_to_the_model(
    agent: Agent, tool: str, arguments: dict[str, Any], message: str
) -> None:
    """The result is an error that names the argument, and nothing is done."""
    result = await agent.call(tool, **arguments)

    assert result["isError"]
    assert result["content"][0]["text"].startswith(message)
    assert "structuredContent" not in result
    assert (await agent.call("list_leads"))["structuredContent"]["count"] == 0


async def test_numbers_of_json_are_integers_where_they_are_whole(agent: Agent) -> None:
    """JSON knows one kind of number: 1.0 is 1, and a text of digits does as well."""
    for limit in (1, 1.0, "1"):
        part = (await agent.call("list_posts", limit=limit))["structuredContent"]
        assert part["count"] == 1


async def test_tables_of_a_token_are_its_bounds(make_agent: Any) -> None:
    """A token with other tables is refused with a message, and reads those it was given."""
    agent = await make_agent(tables=("suppressed_emails",))
    refused = await agent.call("query_table", table="leads")
    allowed = await agent.call("query_table", table="suppressed_emails")

    assert refused["isError"]
    assert refused["content"][0]["text"] == "Table not allowed"
    assert allowed["structuredContent"] == {"rows": [], "count": 0}


async def test_unknown_tools_are_an_error_of_the_protocol(agent: Agent) -> None:
    """A tool that does not exist is -32602, with the status that the revision wants."""
    said = await agent.ask("tools/call", name="analyse", arguments={})

    assert said.code == -32602
    assert said.status == (200 if agent.version == LEGACY else 400)


async def test_the_largest_document_of_the_schema_is_taken(make_edge: Any) -> None:
    """The largest document that a tool's schema allows fits into a message."""
    async with make_edge() as edge:
        agent = Agent(edge, await edge.token(), LEGACY)
        text = ("Binders painted it. " * 5000)[:100_000]
        report = (await agent.call("analyze", text=text))["structuredContent"]

    assert report["metrics"]["words"] == 15_000


async def test_documents_are_analysed_as_by_rest(make_edge: Any) -> None:
    """`analyze` gives what REST gives; its calls count for the credential, and not for others."""
    body = {"text": "Binders painted on the fore-edge of a book.", "keywords": 2}
    async with make_edge(RATE_ANALYZE="1/hour") as edge:
        first = Agent(edge, await edge.token(), LEGACY)
        second = Agent(edge, await edge.token("mcp"), LEGACY)
        async with edge.ask("POST", "/api/public/v1/analyze", json=body) as answer:
            report = await answer.json()

        assert (await first.call("analyze", **body))["structuredContent"] == report
        refused = await first.call("analyze", **body)
        assert refused["isError"]
        assert refused["content"][0]["text"].startswith("Too many requests")
        assert (await second.call("analyze", **body))["structuredContent"] == report
        wrong = await second.call("analyze", text="a", html="b")
        assert "exactly one of text, markdown, html, url" in wrong["content"][0]["text"]
