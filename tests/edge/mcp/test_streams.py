"""Streams of events: what comes in them, how many there may be, and what ends them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, TextContent

from edge_api.auth.keys import Keys
from edge_api.health import Health
from edge_api.mcp import transport as mcp
from edge_api.mcp.transport import MAX_STREAMS_PER_CREDENTIAL, Caller, StreamLimit
from tests.edge.conftest import RunningEdge
from tests.edge.mcp.agents import ERAS, MODERN, READER, Agent, Json, next_message
from tests.edge.small_builds import make_post, point_at, write_build
from tests.judges.fixture_build import serving

pytestmark = pytest.mark.size("test")


SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
RESOURCES = {"resourcesListChanged": True}
READS = 400
"""Looks until a test that waits gives up; nothing is measured by it."""


async def come_true(holds: Callable[[], bool]) -> bool:
    """Wait until something holds; return whether it came to that."""
    for _ in range(READS):
        if holds():
            return True
        await asyncio.sleep(0.05)
    return False


def slots_of(edge: Any) -> StreamLimit:
    """Return the count of open streams of a running edge."""
    slots: StreamLimit = edge.mcp.streams
    return slots


@asynccontextmanager
async def listening(agent: Agent, **wanted: Any) -> AsyncIterator[Any]:
    """Open a subscription and read its first message, which says what was agreed to."""
    async with agent.listen(**wanted) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["X-Accel-Buffering"] == "no"
        first = await next_message(answer)
        assert first is not None
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["_meta"][SUBSCRIPTION] == 1
        answer.agreed = first["params"]["notifications"]
        yield answer


async def test_another_build_is_announced(make_edge: Any, tmp_path: Path) -> None:
    """Listeners hear that the list changed, and which of the posts they asked about."""
    first, second = make_post("first"), make_post("second", day=1)
    point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0001", [second, first]))
    async with make_edge(BUILD_DIR=str(tmp_path / "b")) as edge:
        agent = Agent(edge, await edge.token(*READER), MODERN)
        async with (
            listening(agent, **RESOURCES) as lists,
            listening(agent, resourceSubscriptions=[first["url"], second["url"]]) as posts,
        ):
            changed = {**first, "content": "Other words.", "title": "Another title"}
            folder = write_build(tmp_path / "b", "build-0002", [second, changed])
            point_at(tmp_path / "b", folder)
            of_lists, of_posts = await next_message(lists), await next_message(posts)

    assert of_lists is not None
    assert of_posts is not None
    assert of_lists["method"] == "notifications/resources/list_changed"
    assert of_lists["params"]["_meta"][SUBSCRIPTION] == 1
    assert of_posts["method"] == "notifications/resources/updated"
    assert of_posts["params"]["uri"] == first["url"]


async def test_a_post_that_is_gone_is_announced(make_edge: Any, tmp_path: Path) -> None:
    """A client that holds it reads again, and finds nothing."""
    first, second = make_post("first"), make_post("second", day=1)
    point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0001", [second, first]))
    async with make_edge(BUILD_DIR=str(tmp_path / "b")) as edge:
        agent = Agent(edge, await edge.token(*READER), MODERN)
        async with listening(agent, resourceSubscriptions=[first["url"]]) as posts:
            point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0002", [second]))
            gone = await next_message(posts)

    assert gone is not None
    assert (gone["method"], gone["params"]["uri"]) == (
        "notifications/resources/updated",
        first["url"],
    )


async def test_posts_are_not_announced_without_their_scope(make_agent: Any) -> None:
    """A token that may not read posts may listen, and is agreed nothing about them."""
    agent = await make_agent("mcp", "leads:read")
    async with listening(agent, toolsListChanged=True, **RESOURCES) as answer:
        assert answer.agreed == {"toolsListChanged": True}


async def test_a_listener_has_to_take_events(make_agent: Any) -> None:
    """A subscription's answer is a stream: whoever takes none gets 406."""
    agent = await make_agent()
    agent.headers["Accept"] = "application/json"

    refused = await agent.ask("subscriptions/listen", 5, notifications={})
    assert (refused.status, refused.body["id"]) == (406, 5)


async def test_one_token_has_its_share_of_streams(edge: Any) -> None:
    """Beyond its share a token gets 429 with a sentence; another token still has its own."""
    one, two = [Agent(edge, await edge.token(*READER), MODERN) for _ in range(2)]
    async with AsyncExitStack() as stack:
        for _ in range(MAX_STREAMS_PER_CREDENTIAL):
            await stack.enter_async_context(listening(one))
        refused = await one.ask("subscriptions/listen", 5, notifications={})
        await stack.enter_async_context(listening(two))
        others = await one.ask("tools/list")

    assert (refused.status, refused.body["id"]) == (429, 5)
    assert int(refused.headers["Retry-After"]) > 0
    assert "close one first" in refused.body["error"]["message"]
    assert others.status == 200


async def test_a_closed_stream_frees_one_place_of_its_token(edge: Any) -> None:
    """The others of its token stay open and go on counting."""
    agent = Agent(edge, await edge.token(*READER), MODERN)
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(listening(agent))
            for _ in range(MAX_STREAMS_PER_CREDENTIAL)
        ]
        streams[0].connection.transport.abort()
        assert await come_true(lambda: slots_of(edge).open_count == MAX_STREAMS_PER_CREDENTIAL - 1)
        await stack.enter_async_context(listening(agent))
        refused = await agent.ask("subscriptions/listen", 5, notifications={})

    assert refused.status == 429


async def test_all_streams_have_a_bound(edge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above it the answer is 503 with a sentence and a time to come again."""
    monkeypatch.setattr(slots_of(edge), "_limit", 1)
    one, two = [Agent(edge, await edge.token(*READER), MODERN) for _ in range(2)]
    async with listening(one):
        refused = await two.ask("subscriptions/listen", notifications={})

    assert refused.status == 503
    assert int(refused.headers["Retry-After"]) > 0
    assert "try again later" in refused.body["error"]["message"]


async def test_dropped_listeners_are_gone(edge: Any) -> None:
    """No stream, task or listener is left of 20 clients that just vanish."""
    agents = [Agent(edge, await edge.token(*READER), MODERN) for _ in range(4)]
    before = len(asyncio.all_tasks())
    async with AsyncExitStack() as stack:
        answers = [
            await stack.enter_async_context(listening(agent)) for agent in agents for _ in range(5)
        ]
        assert slots_of(edge).open_count == 20
        for answer in answers:
            answer.connection.transport.abort()
        assert await come_true(lambda: slots_of(edge).open_count == 0)
    assert await come_true(lambda: len(asyncio.all_tasks()) <= before)


async def test_revocation_ends_open_streams(edge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the ping it is looked whether the token still holds."""
    monkeypatch.setattr(mcp, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(mcp, "PING_INTERVAL_SECONDS", 0.1)
    agent = Agent(edge, await edge.token(*READER), MODERN)
    async with listening(agent) as answer:
        assert (await answer.content.readline()) in (b"\n", b": ping\n")
        keys = Keys(edge.service.store, edge.service.clock)
        for row in await keys.all():
            await keys.revoke(row["id"])
        assert await next_message(answer) is None
    assert await come_true(lambda: slots_of(edge).open_count == 0)


async def test_no_event_is_sent_to_a_revoked_credential(
    make_edge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked before each event too, however long it is until the next ping."""
    monkeypatch.setattr(mcp, "CHECK_SECONDS", 60.0)
    point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0001", [make_post("first")]))
    async with make_edge(BUILD_DIR=str(tmp_path / "b")) as edge:
        agent = Agent(edge, await edge.token(*READER), MODERN)
        async with listening(agent, **RESOURCES) as answer:
            keys = Keys(edge.service.store, edge.service.clock)
            for row in await keys.all():
                await keys.revoke(row["id"])
            point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0002"))
            assert await next_message(answer) is None


async def test_the_end_of_the_service_is_said(edge: Any) -> None:
    """At the drain of the service, listeners get their result as the last message."""
    agent = Agent(edge, await edge.token(*READER), MODERN)
    async with listening(agent) as answer:
        edge.service[Health].start_draining()
        last = await next_message(answer)
        assert last is not None
        assert last["id"] == 1
        assert last["result"]["_meta"][SUBSCRIPTION] == 1
        assert await next_message(answer) is None


async def test_a_client_that_reads_nothing_is_let_go(
    edge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream whose client takes nothing for long is broken off."""
    agent = Agent(edge, await edge.token(*READER), MODERN)
    async with listening(agent):
        # From here on, or the first message could stand behind a ping that is too long to read.
        monkeypatch.setattr(mcp, "WRITE_TIMEOUT_SECONDS", 0.2)
        monkeypatch.setattr(mcp, "CHECK_SECONDS", 0.001)
        monkeypatch.setattr(mcp, "PING_INTERVAL_SECONDS", 0.001)
        monkeypatch.setattr(mcp, "_PING", b": " + b"x" * 1_000_000 + b"\n\n")
        assert await come_true(lambda: slots_of(edge).open_count == 0)


async def step_by_step(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams
) -> CallToolResult:
    """Report progress as often as asked, and say who called."""
    for step in range((params.arguments or {}).get("steps", 0)):
        await context.session.report_progress(step + 1, 3, f"step {step + 1}")
    caller: Caller = context.request  # type: ignore[assignment]
    return CallToolResult(content=[TextContent(text=caller.actor.name)])


@pytest.fixture
async def progressing(tmp_path: Path) -> AsyncIterator[Agent]:
    """Return an agent of a server whose only tool reports progress."""
    server = Server("steps", on_call_tool=step_by_step)
    async with serving(server, tmp_path) as build, ClientSession() as session:
        yield Agent(RunningEdge(build.origin, None, session, build.mcp), build.token, MODERN)


async def plan_steps(agent: Agent, steps: int, **meta: Any) -> tuple[str, list[Json]]:
    """Return the media type of the answer to so many steps, and its messages."""
    params: Json = {"name": "go", "arguments": {"steps": steps}, "_meta": meta}
    async with agent.open("tools/call", 9, **params) as answer:
        assert answer.status == 200, await answer.text()
        kind = answer.headers["Content-Type"]
        if kind == "application/json":
            return kind, [await answer.json()]
        messages = []
        while message := await next_message(answer):
            messages.append(message)
        return kind, messages


@pytest.mark.parametrize("version", ERAS)
async def test_progress_comes_before_the_result(progressing: Agent, version: str) -> None:
    """A client that sends a token gets a stream: each step with that token, and the result last."""
    progressing.version = version
    kind, (*steps, last) = await plan_steps(progressing, 3, progressToken="p")

    assert kind == "text/event-stream"
    assert [step["params"]["progress"] for step in steps] == [1, 2, 3]
    assert {step["method"] for step in steps} == {"notifications/progress"}
    assert {step["params"]["progressToken"] for step in steps} == {"p"}
    assert last["id"] == 9
    assert last["result"]["content"][0]["text"] == "tester"


@pytest.mark.parametrize("version", ERAS)
async def test_without_progress_the_answer_is_json(progressing: Agent, version: str) -> None:
    """No token, nothing to report, or no wish for events: one message, as JSON."""
    progressing.version = version
    answers = [await plan_steps(progressing, 3), await plan_steps(progressing, 0, progressToken=1)]
    progressing.headers["Accept"] = "application/json"
    answers.append(await plan_steps(progressing, 3, progressToken=1))

    for kind, messages in answers:
        assert kind == "application/json"
        assert [message["id"] for message in messages] == [9]


async def test_progress_needs_no_free_stream(
    progressing: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all streams are taken the result comes alone: progress is a courtesy."""
    monkeypatch.setattr(slots_of(progressing.edge), "_limit", 0)
    kind, messages = await plan_steps(progressing, 3, progressToken=1)

    assert kind == "application/json"
    assert [message["id"] for message in messages] == [9]


async def test_streams_carry_what_all_answers_carry(progressing: Agent) -> None:
    """The request's id comes back, nothing is stored, other origins may read it."""
    progressing.headers["X-Request-ID"] = "my-request-2"
    params: Json = {"name": "go", "arguments": {"steps": 1}, "_meta": {"progressToken": 1}}
    async with progressing.open("tools/call", **params) as answer:
        await answer.read()

    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["X-Request-ID"] == "my-request-2"
    assert answer.headers["Cache-Control"] == "no-store, no-transform"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Server" not in answer.headers
