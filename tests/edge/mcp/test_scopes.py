"""Credentials, scopes and limits at the endpoint."""

from typing import Any

import pytest

from edge_api.auth.keys import Keys
from edge_api.auth.secrets import hash_secret
from edge_api.db.query import Filter, Update
from edge_api.db.tables import CREDENTIALS
from edge_api.mcp.tools import bind_tools
from edge_api.metrics import OPERATIONS as METRICS
from edge_api.operations import OPERATIONS, ROUTED
from edge_api.schema.credentials import CREDENTIAL_SCOPES
from tests.edge.mcp.agents import LEGACY, PATH, Agent

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

METADATA = "http://journal.test/.well-known/oauth-protected-resource/api/public/mcp"
WANTED = 'scope="mcp posts:read leads:read leads:write"'
SCOPES = {
    "list_posts": "posts:read",
    "fetch": "posts:read",
    "get_post": "posts:read",
    "search": "posts:read",
    "check_post": "posts:draft",
    "list_sources": "posts:draft",
    "get_source": "posts:draft",
    "save_draft": "posts:draft",
    "add_picture": "posts:draft",
    "publish_post": "posts:publish",
    "withdraw_post": "posts:publish",
    "create_lead": "leads:write",
    "list_leads": "leads:read",
    "analyze": "",
    "query_table": "admin:read",
    "read_stats": "stats:read",
}
"""The scope that each tool needs beside `mcp`; one needs none, like its REST twin."""


def test_each_credential_has_the_scopes_that_its_api_asks_for() -> None:
    """Documented scopes of keys are those of REST; those of tokens are those of tools."""
    asked = {each.scope for each in (*ROUTED, *METRICS) if each.audience == "rest"}
    tools = {tool.scope for tool in bind_tools(OPERATIONS).values()}

    at_desk = {"mail:send"}  # answers are written there alone
    assert set(CREDENTIAL_SCOPES["api_key"]) == asked - {None} | at_desk
    assert set(CREDENTIAL_SCOPES["access_token"]) == {"mcp", *tools} - {None}


async def test_tools_are_listed_and_called_by_scope(writer: Agent) -> None:
    """With one scope its tools are listed and no other; calling another is 403, naming it.

    Who may publish may write drafts.
    """
    for scope in set(SCOPES.values()) - {""}:
        some = Agent(writer.edge, await writer.edge.token("mcp", scope), writer.version)
        listed = [tool["name"] for tool in (await some.ask("tools/list")).result["tools"]]
        opened = {scope, "", "posts:draft" if scope == "posts:publish" else scope}
        assert listed == [name for name, needed in SCOPES.items() if needed in opened]
        for name, needed in SCOPES.items():
            said = await some.ask("tools/call", 7, name=name, arguments={})
            assert said.status == (200 if needed in opened else 403), name
            if needed not in opened:
                challenge = said.headers["WWW-Authenticate"]
                assert f'error="insufficient_scope", scope="mcp {needed}"' in challenge
                assert f'resource_metadata="{METADATA}"' in challenge
                assert said.body["id"] == 7
                assert said.code == -32600


async def test_posts_are_hidden_without_their_scope(agent: Agent) -> None:
    """Lists are empty, and reading, filling in and completing are 403."""
    some = Agent(agent.edge, await agent.edge.token("mcp", "leads:read"), agent.version)
    empty = {
        "resources/list": "resources",
        "resources/templates/list": "resourceTemplates",
        "prompts/list": "prompts",
    }
    for method, member in empty.items():
        assert (await some.ask(method)).result[member] == []
    ref = {"type": "ref/prompt", "name": "digest"}
    refused: dict[str, dict[str, Any]] = {
        "resources/read": {"uri": "http://journal.test/journal/first-edge/"},
        "prompts/get": {"name": "digest", "arguments": {}},
        "completion/complete": {"ref": ref, "argument": {"name": "tag", "value": ""}},
    }
    for method, params in refused.items():
        said = await some.ask(method, **params)
        assert said.status == 403, method
        assert 'scope="mcp posts:read"' in said.headers["WWW-Authenticate"]


async def test_without_a_credential_there_is_a_way_to_one(edge: Any) -> None:
    """401 names the metadata and the scopes to ask for, and no error, in JSON-RPC."""
    said = await Agent(edge, None, LEGACY).ask("tools/list")

    assert said.status == 401
    assert (
        said.headers["WWW-Authenticate"]
        == f'Bearer realm="mcp", {WANTED}, resource_metadata="{METADATA}"'
    )
    assert said.body["id"] is None
    assert said.code == -32600


@pytest.mark.parametrize("token", ["fe_mt_made-up", "x", "fe_sk_" + "0" * 49, "a.b.c"])
async def test_a_bad_credential_is_refused(edge: Any, token: str) -> None:
    """Every fault of it has the same message."""
    said = await Agent(edge, token, LEGACY).ask("tools/list")

    assert said.status == 401
    assert 'Bearer realm="mcp", error="invalid_token"' in said.headers["WWW-Authenticate"]


async def test_api_keys_are_refused_by_mcp(edge: Any) -> None:
    """An API key is no access token, and an access token no API key."""
    refused = await Agent(edge, await edge.key(), LEGACY).ask("tools/list")
    async with edge.ask("GET", "/api/public/v1/posts", await edge.token()) as answer:
        assert answer.status == 401

    assert refused.status == 401


async def test_the_endpoint_needs_a_scope_of_its_own(edge: Any) -> None:
    """A token without `mcp` is 403, whatever else it may do."""
    token = await edge.token()
    where = (Filter("digest", "eq", hash_secret(token)),)
    await edge.service.store.run(Update(CREDENTIALS, {"scopes": "posts:read"}, where))

    said = await Agent(edge, token, LEGACY).ask("tools/list")

    assert said.status == 403
    assert 'error="insufficient_scope", scope="mcp"' in said.headers["WWW-Authenticate"]


async def test_two_credentials_are_one_too_many(agent: Agent) -> None:
    """Two that differ are 400."""
    agent.headers["X-API-Key"] = "other"

    assert (await agent.ask("tools/list")).status == 400


async def test_revocation_counts_from_the_next_request(agent: Agent) -> None:
    """A token that was revoked opens nothing any more."""
    assert (await agent.ask("tools/list")).status == 200
    keys = Keys(agent.edge.service.store, agent.edge.service.clock)
    for row in await keys.all():
        await keys.revoke(row["id"])

    assert (await agent.ask("tools/list")).status == 401


async def test_requests_are_counted_for_each_token(make_edge: Any) -> None:
    """The limit of authenticated requests holds, says what is left, and is each token's own."""
    async with make_edge(RATE_AUTHENTICATED="2/hour") as edge:
        first, second = [Agent(edge, await edge.token(), LEGACY) for _ in range(2)]
        said = [await first.ask("tools/list") for _ in range(3)]
        other = await second.ask("tools/list")

    assert [item.status for item in said] == [200, 200, 429]
    assert said[0].headers["RateLimit"].startswith('"authenticated";r=1;')
    assert int(said[2].headers["Retry-After"]) > 0
    assert said[2].code == -32600
    assert other.status == 200


async def test_failed_attempts_are_counted_for_the_address(make_edge: Any) -> None:
    """Guessing ends in 429, which a valid token never meets."""
    async with make_edge(RATE_FAILED_AUTH="2/hour") as edge:
        guesses = [(await Agent(edge, "x", LEGACY).ask("ping")).status for _ in range(3)]
        good = await Agent(edge, await edge.token(), LEGACY).ask("ping")

    assert guesses == [401, 401, 429]
    assert good.status == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://journal.test", 200),
        ("http://localhost:6274", 200),
        ("http://127.0.0.1:9", 200),
        ("https://[::1]:1", 200),
        ("https://evil.example", 403),
        ("https://journal.test", 403),
        ("http://journal.test.evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("ftp://localhost", 403),
        ("http://[", 403),
        ("null", 403),
    ],
)
async def test_pages_of_strangers_may_not_call(agent: Agent, origin: str, status: int) -> None:
    """Our own pages and those of this machine may, others get 403 before anything is looked at."""
    agent.headers["Origin"] = origin

    said = await agent.ask("tools/list")

    assert said.status == status
    if status == 403:
        assert said.code == -32600


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT"])
async def test_other_http_methods_are_refused_with_allow(edge: Any, method: str) -> None:
    """405 with `Allow`: there is no stream to open and no session to end."""
    async with edge.ask(method, PATH) as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "POST, OPTIONS"
