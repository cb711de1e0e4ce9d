"""Messages that no revision takes, and what HTTP itself refuses."""

import json
from typing import Any

import pytest

from edge_api.mcp.operations import MAX_DRAFT_MESSAGE_BYTES, MAX_MESSAGE_BYTES
from tests.edge.mcp.agents import LEGACY, MODERN, PATH, Agent, envelope

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def as_bytes(value: object) -> bytes:
    """Return JSON."""
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"a": NaN}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700),
        (b"[" * 60_000, -32700),
        (b"[]", -32600),
        (as_bytes([PING, PING]), -32600),
        (b"null", -32600),
        (b'"tools/list"', -32600),
        (as_bytes({}), -32600),
        (as_bytes({"jsonrpc": "2.0", "id": 1}), -32600),
        (as_bytes({"jsonrpc": "2.0", "id": 1, "result": {}}), -32600),
        (as_bytes({"jsonrpc": "2.0", "result": {}}), -32600),
        (as_bytes({**PING, "jsonrpc": "1.0"}), -32600),
        (as_bytes({**PING, "method": 5}), -32600),
        (as_bytes({**PING, "params": []}), -32600),
        (as_bytes({**PING, "id": None}), -32600),
        (as_bytes({**PING, "id": True}), -32600),
        (as_bytes({**PING, "id": 1.5}), -32600),
        (as_bytes({**PING, "id": {}}), -32600),
        (as_bytes({**PING, "id": "x" * 257}), -32600),
        (as_bytes({**PING, "id": 10**40}), -32600),
        (as_bytes({**PING, "id": 2**63}), -32600),
        (as_bytes({**PING, "id": -(2**63) - 1}), -32600),
        (as_bytes({**PING, "id": 1e19}), -32600),
    ],
)
async def test_a_body_that_is_no_message_is_refused(agent: Agent, data: bytes, code: int) -> None:
    """400 with JSON-RPC's own code and no id; the endpoint goes on answering."""
    _, headers = agent.request("tools/list", None)
    said = await agent.send(data, headers)

    assert (said.status, said.code) == (400, code)
    assert said.body["id"] is None
    assert (await agent.ask("tools/list")).status == 200


@pytest.mark.parametrize(
    "request_id", [0, -1, 1.0, -451851.0, 2**53, 2**63 - 1, -(2**63), "", "a", "x" * 256, "\u7d19"]
)
async def test_the_id_is_given_back(agent: Agent, request_id: object) -> None:
    """For any valid id, the answer has the same."""
    assert (await agent.ask("tools/list", request_id)).body["id"] == request_id


async def test_notifications_are_taken(agent: Agent) -> None:
    """A message without an id is 202, with nothing in it."""
    _, headers = agent.request("notifications/initialized", None)
    said = await agent.send(as_bytes({"jsonrpc": "2.0", "method": "notifications/x"}), headers)

    assert (said.status, said.body) == (202, {})


async def test_unknown_methods_are_refused(agent: Agent) -> None:
    """-32601, with 404 where the revision wants that."""
    said = await agent.ask("tools/destroy")

    assert (said.status, said.code) == ((200 if agent.version == LEGACY else 404), -32601)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": None}),
        ("tools/call", {"name": "search", "arguments": []}),
        ("resources/read", {}),
        ("prompts/get", {"name": "digest", "arguments": "x"}),
        ("completion/complete", {"ref": {"type": "ref/none"}, "argument": {}}),
        ("tools/list", {"cursor": 5}),
    ],
)
async def test_faulty_parameters_are_refused(
    agent: Agent, method: str, params: dict[str, Any]
) -> None:
    """-32602, and nothing of the inside is shown."""
    said = await agent.ask(method, **params)

    assert (said.status, said.code) == ((200 if agent.version == LEGACY else 400), -32602)
    assert "pydantic" not in json.dumps(said.body)


async def test_the_handshake_of_the_earlier_era(make_agent: Any) -> None:
    """Each earlier revision is agreed to; of an unknown one the newest of them is offered."""
    for asked, agreed in (
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ):
        agent = await make_agent(version=LEGACY)
        body = {
            "protocolVersion": asked,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        headers = {"Authorization": f"Bearer {agent.token}"}
        said = await agent.send(as_bytes({**PING, "method": "initialize", "params": body}), headers)
        assert said.result["protocolVersion"] == agreed
        assert said.result["serverInfo"]["name"] == "test.journal/fore-edge"
        assert "Mcp-Session-Id" not in said.headers


@pytest.mark.parametrize(
    ("headers", "meta", "status", "code"),
    [
        ({"MCP-Protocol-Version": "2027-01-01"}, envelope("2027-01-01"), 400, -32022),
        ({"MCP-Protocol-Version": "2027-01-01"}, envelope(), 400, -32020),
        ({"MCP-Protocol-Version": "x"}, envelope("x"), 400, -32022),
        ({"MCP-Protocol-Version": MODERN}, {}, 400, -32602),
        ({"Mcp-Method": "prompts/list"}, envelope(), 400, -32020),
        ({"Mcp-Method": ""}, envelope(), 400, -32020),
        ({}, {**envelope(), "io.modelcontextprotocol/protocolVersion": 5}, 400, -32020),
    ],
)
async def test_headers_and_envelope_must_agree(
    make_agent: Any, headers: dict[str, str], meta: dict[str, Any], status: int, code: int
) -> None:
    """A revision that is not known says which are; a header that says else is refused."""
    agent = await make_agent()
    body, sent = agent.request("tools/list", None)
    body["params"]["_meta"] = meta
    said = await agent.send(as_bytes(body), {**sent, **headers})

    assert (said.status, said.code) == (status, code)
    assert said.body["id"] == 1
    if code == -32022:
        supported = said.body["error"]["data"]["supported"]
        assert (supported[-1], len(supported)) == (MODERN, 5)


@pytest.mark.parametrize("version", ["2027-01-01", "x"])
@pytest.mark.parametrize("message", [PING, {"jsonrpc": "2.0", "method": "notifications/x"}])
async def test_an_unknown_revision_is_refused_by_name(
    make_agent: Any, version: str, message: dict[str, Any]
) -> None:
    """If the header alone names it, the sentence says which header, and what it may be."""
    agent = await make_agent(version=LEGACY)
    _, sent = agent.request("tools/list", None)
    said = await agent.send(as_bytes(message), {**sent, "MCP-Protocol-Version": version})

    assert (said.status, said.code) == (400, -32022)
    assert said.body["error"]["message"] == (
        f"MCP-Protocol-Version: {version} is not supported; send one of "
        "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"
    )
    data = said.body["error"]["data"]
    assert (data["requested"], len(data["supported"])) == (version, 5)


async def test_batches_are_answered_in_the_revision_that_has_them(make_agent: Any) -> None:
    """With one answer for each request, and for each message that is none; 202 without any."""
    agent = await make_agent(version="2025-03-26")
    _, sent = agent.request("tools/list", None)
    notification = {"jsonrpc": "2.0", "method": "notifications/x"}
    call = {"name": "search", "arguments": {"query": "edge"}}
    batch = [
        PING,
        notification,
        {**PING, "id": "b", "method": "tools/call", "params": call},
        {**PING, "id": 3, "method": "tools/destroy"},
        5,
    ]
    for headers in (sent, {n: v for n, v in sent.items() if n != "MCP-Protocol-Version"}):
        said = await agent.send(as_bytes(batch), headers)
        assert said.status == 200
        assert [each["id"] for each in said.body] == [PING["id"], "b", 3, None]
        assert said.body[0]["result"]["tools"]
        assert said.body[1]["result"]["structuredContent"]["results"]
        assert [each["error"]["code"] for each in said.body[2:]] == [-32601, -32600]
    assert (await agent.send(as_bytes([notification, notification]), sent)).status == 202
    assert len((await agent.send(as_bytes([PING] * 50), sent)).body) == 50


@pytest.mark.parametrize(
    ("version", "batch"),
    [
        ("2025-03-26", []),
        ("2025-03-26", [PING] * 51),
        ("2025-03-26", [PING, {**PING, "method": "initialize"}]),
        ("2024-11-05", [PING]),
        (LEGACY, [PING]),
        (MODERN, [PING]),
    ],
)
async def test_other_batches_are_refused(make_agent: Any, version: str, batch: list[Any]) -> None:
    """Empty, too long, with a handshake in it, or in another revision."""
    agent = await make_agent(version=version)
    _, sent = agent.request("tools/list", None)
    said = await agent.send(as_bytes(batch), sent)

    assert (said.status, said.code) == (400, -32600)
    assert "a batch is of revision 2025-03-26 alone, of 1 to 50" in said.body["error"]["message"]


async def test_each_message_of_a_batch_counts(make_edge: Any) -> None:
    """Each counts as a request; a batch with too many is refused whole, with what is left."""
    async with make_edge(RATE_AUTHENTICATED="5/minute") as edge:
        agent = Agent(edge, await edge.token(), "2025-03-26")
        _, sent = agent.request("tools/list", None)
        said = await agent.send(as_bytes([PING] * 3), sent)
        assert said.status == 200
        assert said.headers["RateLimit"].startswith('"authenticated";r=2;')
        refused = await agent.send(as_bytes([PING] * 3), sent)
        assert (refused.status, refused.code) == (429, -32600)
        assert int(refused.headers["Retry-After"]) > 0
        assert refused.headers["RateLimit"].startswith('"authenticated";r=0;')


async def test_names_in_headers_must_agree(make_agent: Any) -> None:
    """`Mcp-Name` repeats the tool's name, and may not be sent twice."""
    agent = await make_agent()
    body, sent = agent.request("tools/call", {"name": "search", "arguments": {"query": "a"}})
    other = await agent.send(as_bytes(body), {**sent, "Mcp-Name": "fetch"})
    twice = [*sent.items(), ("Mcp-Name", "search"), ("Content-Type", "application/json")]
    async with agent.edge.session.post(
        f"{agent.edge.url}{PATH}", data=as_bytes(body), headers=twice
    ) as answer:
        repeated = await answer.json()

    assert other.code == repeated["error"]["code"] == -32020


async def test_the_eras_have_methods_of_their_own(make_agent: Any) -> None:
    """`initialize` and `ping` ended with sessions; `server/discover` came after."""
    modern, legacy = await make_agent(), await make_agent(version=LEGACY)

    assert (await modern.ask("initialize")).status == 404
    assert (await modern.ask("ping")).status == 404
    assert (await legacy.ask("ping")).result == {}
    assert (await legacy.ask("server/discover")).code == -32601
    assert (await legacy.ask("subscriptions/listen", notifications={})).code == -32601
    assert MODERN in (await modern.ask("server/discover")).result["supportedVersions"]


async def test_results_say_how_long_they_are_fresh(make_agent: Any) -> None:
    """Only 2026-07-28 has that, and caching is private: results depend on the scopes."""
    agent = await make_agent()
    uri = "http://journal.test/journal/first-edge/"
    for method, params in (
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("prompts/list", {}),
        ("resources/read", {"uri": uri}),
        ("server/discover", {}),
    ):
        result = (await agent.ask(method, **params)).result
        assert result["ttlMs"] == 60_000, method
        assert result["cacheScope"] == "private", method
        assert result["resultType"] == "complete", method


@pytest.mark.parametrize(
    ("headers", "data", "status"),
    [
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({"Content-Type": "application/json; charset=latin-1"}, b"{}", 415),
        ({"Content-Encoding": "rot13"}, b"{}", 415),
        ({"Accept": "text/html"}, as_bytes(PING), 406),
        ({"Accept": "text/event-stream"}, as_bytes(PING), 406),
        ({"Accept": "application/json;q=0"}, as_bytes(PING), 406),
        ({}, b" " * (MAX_DRAFT_MESSAGE_BYTES + 1), 413),
    ],
)
async def test_http_refuses_by_itself(
    agent: Agent, headers: dict[str, str], data: bytes, status: int
) -> None:
    """Unsupported media types and bodies above the bound are refused in JSON-RPC."""
    _, sent = agent.request("tools/list", None)
    said = await agent.send(data, {**sent, **headers})

    assert said.status == status
    assert (said.code, said.body["id"]) == (-32600, None)
    assert said.headers["X-Request-ID"]


@pytest.mark.parametrize(
    ("scope", "most"),
    [("posts:draft", MAX_DRAFT_MESSAGE_BYTES), ("posts:read", MAX_MESSAGE_BYTES)],
)
async def test_only_who_writes_drafts_sends_long_messages(
    make_agent: Any, scope: str, most: int
) -> None:
    """The bound is that of the longest argument of the tools that the token opens."""
    agent = await make_agent("mcp", scope, version=LEGACY)
    message = as_bytes(PING)
    headers = agent.request("tools/list", None)[1]
    for size, status in ((most, 200), (most + 1, 413)):
        assert (await agent.send(message.ljust(size), headers)).status == status


async def test_any_client_that_takes_json_is_served(agent: Agent) -> None:
    """Wildcards cover JSON, and so does no preference."""
    for accept in ("*/*", "application/*", "application/json", "text/html, */*;q=0.1"):
        agent.headers["Accept"] = accept
        assert (await agent.ask("tools/list")).status == 200, accept


async def test_answers_carry_what_all_answers_carry(agent: Agent) -> None:
    """The request's id comes back, nothing is stored, and other origins may read it."""
    agent.headers["X-Request-ID"] = "my-request-1"
    said = await agent.ask("tools/list")

    assert said.headers["X-Request-ID"] == "my-request-1"
    assert said.headers["Cache-Control"] == "no-store"
    assert said.headers["Access-Control-Allow-Origin"] == "*"
    assert "Server" not in said.headers


async def test_without_a_build_it_says_so(make_edge: Any, tmp_path: Any) -> None:
    """Tools on posts say that there is none yet; the others work."""
    async with make_edge(BUILD_DIR=str(tmp_path / "none")) as edge:
        agent = Agent(edge, await edge.token(), MODERN)
        posts, leads = await agent.call("list_posts"), await agent.call("list_leads")
        listing = await agent.ask("resources/list")

    assert posts["isError"]
    assert "not built" in posts["content"][0]["text"]
    assert leads["structuredContent"]["count"] == 0
    assert listing.status == 503
