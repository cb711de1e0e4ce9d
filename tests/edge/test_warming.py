"""Modules that agents need are loaded at the first request of one, and not before."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from edge_api.analysis import analyst
from edge_api.analysis.analyst import Analyst, WorkerPool
from tests.edge.edge_process import until
from tests.sizes import in_ci

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

OTHERS = (
    "/",
    "/llms.txt",
    "/journal/",
    "/feed.xml",
    "/search?q=edge",
    "/docs/",
    "/robots.txt",
    "/api/public/ping",
    "/api/public/v1/",
    "/api/public/v1/openapi.json",
    "/none/",
)
"""Paths that readers, feed readers and load balancers request."""
RESOURCE = "/.well-known/oauth-protected-resource"


@pytest.fixture
async def served(make_edge: Any) -> AsyncIterator[Any]:
    """Return an edge as `serve` has it: what dispatches, and warms."""
    async with make_edge(exclusive=True) as edge:
        yield edge


def warmed(edge: Any) -> tuple[bool, bool]:
    """Return whether the MCP server is loaded, and whether a process waits for documents."""
    return edge.mcp.handler is not None, bool(edge.service[Analyst].pool.pids)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/auth.md"),
        ("POST", "/api/public/oauth/token"),
        *in_ci(
            ("HEAD", "/auth.md"),
            ("GET", "/api/public/mcp/server-card"),
            ("GET", "/.well-known/mcp/server-card.json"),
            ("GET", "/.well-known/ai-catalog.json"),
            ("GET", "/.well-known/oauth-authorization-server"),
            ("GET", RESOURCE),
            ("GET", f"{RESOURCE}/api/public/v1"),
            ("GET", f"{RESOURCE}/api/public/mcp"),
            ("POST", "/api/public/access-requests/claim"),
        ),
    ],
)
async def test_the_first_agent_request_warms_the_edge(served: Any, method: str, path: str) -> None:
    """For any answer: both are ready before the agent calls."""
    assert warmed(served) == (False, False)
    async with served.ask(method, path) as answer:
        assert answer.status < 500

    await until(lambda: warmed(served) == (True, True))


async def test_other_requests_do_not_warm_the_edge(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that no agent visits does without the memory that both take."""
    begun = []

    async def begin() -> None:
        begun.append(1)

    monkeypatch.setattr(served.mcp, "prepare", begin)
    for path in OTHERS:
        async with served.ask("GET", path) as answer:
            await answer.read()
    assert not begun

    async with served.ask("GET", "/auth.md"):
        await until(lambda: bool(begun))


async def test_the_first_calls_find_what_was_warmed(served: Any) -> None:
    """They load no second server, and the process that was started is kept."""
    async with served.ask("GET", "/auth.md"):
        await until(lambda: warmed(served) == (True, True))
    handler, pids = served.mcp.handler, served.service[Analyst].pool.pids
    headers = {"Authorization": f"Bearer {await served.token()}"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with served.ask("POST", "/api/public/mcp", json=message, headers=headers) as answer:
        assert (await answer.json())["result"]["tools"]
    async with served.ask("POST", "/api/public/v1/analyze", json={"text": "Edges."}) as answer:
        assert answer.status == 200

    assert served.mcp.handler is handler
    assert served.service[Analyst].pool.pids >= pids


async def test_a_warming_that_fails_is_logged(
    served: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for it, so nobody else would say so; the first call tries it again."""
    attempts = []

    async def fail() -> None:
        attempts.append(1)
        raise OSError("no room")

    monkeypatch.setattr(served.service[Analyst].pool, "warm", fail)
    async with served.ask("GET", "/auth.md"):
        await until(lambda: bool(attempts and caplog.records))
    assert "what agents need cannot be loaded" in caplog.text


async def test_a_pool_is_warmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process is started, however often, and a job that waited for it gets it."""
    # A process takes longer to start on a loaded machine than a job waits for one.
    monkeypatch.setattr(analyst, "WAIT_SECONDS", analyst.STARTUP_TIMEOUT_SECONDS)
    pool = WorkerPool(size=1, seconds=2 * analyst.STARTUP_TIMEOUT_SECONDS)
    try:
        job = b'{"kind": "text", "text": "Once upon a time."}'
        *_, answer = await asyncio.gather(pool.warm(), pool.warm(), pool.run(job))
        assert b"report" in answer
        assert len(pool.pids) == 1
        await pool.warm()
        assert len(pool.pids) == 1
    finally:
        await pool.close()
    await pool.warm()
    assert pool.pids == set()


async def test_a_worker_that_cannot_start_is_no_fault() -> None:
    """The first document gets an error; a process that ended is not kept."""
    pool = WorkerPool(command=("/none/such",))
    try:
        await pool.warm()
        assert pool.pids == set()
    finally:
        await pool.close()
