"""Messages that somebody has meddled with, thousands of them, against a running edge."""

import asyncio
import gc
import json
import random
from collections import Counter
from typing import Any

import psutil
import pytest

from tests.edge.mcp.agents import ERAS, Agent, Answer, Json
from tests.sizes import scaled

MESSAGES = scaled(test=500, ci=5000)
"""In each era."""
AT_ONCE = 16
INTERNAL = -32603
"""A fault of ours, which the protocol tells with status 200."""
GROWTH = 1.05
"""The factor by which the process may be larger after the messages than before."""
SEED = 20260728

SOUND: tuple[tuple[str, Json], ...] = (
    ("tools/list", {}),
    ("tools/call", {"name": "search", "arguments": {"query": "edge"}}),
    ("tools/call", {"name": "list_posts", "arguments": {"limit": 2, "tag": "paper"}}),
    ("tools/call", {"name": "fetch", "arguments": {"id": "first-edge"}}),
    (
        "tools/call",
        {
            "name": "query_table",
            "arguments": {"table": "leads", "filters": {"name": "like.*a*"}, "order": "name.asc"},
        },
    ),
    ("resources/list", {}),
    ("resources/read", {"uri": "http://journal.test/journal/first-edge/"}),
    ("prompts/get", {"name": "digest", "arguments": {"tag": "paper"}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "digest"}, "argument": {"name": "tag", "value": ""}},
    ),
)
STRANGE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**18,
    10**30,
    "",
    "x" * 5000,
    "\u0000",
    "\U0001f4d6",
    [],
    [[]],
    {},
    {"a": {"b": []}},
    "../../etc/passwd",
    "' OR 1=1 --",
    "{slug}",
    "http://[",
    "NaN",
)


def meddle(rng: random.Random, value: Any) -> Any:
    """Return a value with one place in it changed, left out, doubled or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(list(value))
        rest = {key: item for key, item in value.items() if key != name}
        match rng.randrange(4):
            case 0:
                return rest
            case 1:
                return {**rest, name + "x": value[name]}
            case _:
                return {**value, name: meddle(rng, value[name])}
    if isinstance(value, list) and value:
        return value * rng.randrange(3)
    return rng.choice(STRANGE)


def meddle_with_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes cut, doubled, or with some of them changed."""
    place = rng.randrange(len(data))
    match rng.randrange(3):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + data
        case _:
            return data[:place] + rng.randbytes(3) + data[place + 3 :]


def make_message(rng: random.Random, agent: Agent) -> tuple[bytes, dict[str, str]]:
    """Return a message that was sound, and the headers that it comes with."""
    method, params = rng.choice(SOUND)
    for _ in range(rng.randrange(3)):
        name = rng.choice([*params, "cursor"])
        params = {**params, name: meddle(rng, params.get(name))}
    body, headers = agent.request(method, params, rng.randrange(1000))
    if rng.random() < 0.3:
        body = meddle(rng, body)
    if rng.random() < 0.1:
        headers.pop(rng.choice([name for name in headers if name != "Authorization"]))
    data = json.dumps(body).encode()
    return (meddle_with_bytes(rng, data) if rng.random() < 0.2 else data), headers


async def send_many(agent: Agent, count: int, seed: int) -> Counter[int]:
    """Send so many messages, some at once; return how often each status came."""
    rng, seen = random.Random(seed), Counter[int]()  # noqa: S311  nothing is secret here
    messages = (make_message(rng, agent) for _ in range(count))

    async def send() -> None:
        for data, headers in messages:
            said = await agent.send(data, headers)
            seen[said.status] += 1
            check(data, said)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(send())
    return seen


def check(data: bytes, said: Answer) -> None:
    """Fail for an answer that is no answer of JSON-RPC, or that tells of a fault of ours."""
    for body in said.body if isinstance(said.body, list) else [said.body]:
        outcome = "result" if "result" in body else "error"
        assert said.status == 202 or set(body) == {"jsonrpc", "id", outcome}, (data, said)
        assert body.get("error", {}).get("code") != INTERNAL, (data, said)


def memory() -> int:
    """Return the bytes that this process, which serves, keeps in memory."""
    gc.collect()
    return int(psutil.Process().memory_info().rss)


@pytest.mark.size("test", grows=True)
@pytest.mark.parametrize("version", ERAS)
async def test_no_message_harms_the_process(edge: Any, version: str) -> None:
    """No 5xx, no hang, no task left behind, no growth; sound requests are answered as before."""
    agent = Agent(edge, await edge.token(), version)
    await send_many(agent, MESSAGES // 4, SEED)  # so that caches are filled
    tasks, before = len(asyncio.all_tasks()), memory()

    seen = await send_many(agent, MESSAGES, SEED + 1)

    assert [status for status in seen if status >= 500] == []
    assert {200, 400} <= set(seen)
    assert memory() <= before * GROWTH
    assert len(asyncio.all_tasks()) <= tasks + AT_ONCE  # a connection opened anew is a task too
    assert edge.mcp.streams.open_count == 0
    assert (await agent.call("search", query="edge"))["structuredContent"]["results"]
