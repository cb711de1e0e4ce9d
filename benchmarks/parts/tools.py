"""What a call of an MCP tool costs, against the SDK's own server with the same tool.

Ours checks a token and counts the call; the peer does neither.
"""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks import peers
from benchmarks.ground import Edge, Ground
from benchmarks.load import Load
from benchmarks.peers import SDK
from benchmarks.race import EDGE, Race, Runner, race
from benchmarks.section import Reached, Section
from benchmarks.server import Served

SCRIPT: Final = Path(__file__).resolve().parent.parent / "tool_call.lua"
MODERN: Final = "2026-07-28"
OLDER: Final = "2025-11-25"
_META: Final = "io.modelcontextprotocol/"
_PARAMS: Final[Mapping[str, Any]] = {"name": "list_leads", "arguments": {"limit": 1}}
_ABOUT = (
    "`list_leads` with `limit` 1 at 16 connections, in both eras of the protocol. The edge checks "
    "a token and counts the call; the peer, with the very same tool, does neither."
)


def measure(ground: Ground) -> Section:
    """Measure a call in each era."""
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("tools"))
        database = ground.database("tools-peer", 10_000)
        peer = stack.enter_context(peers.sdk(ground.site(), database))
        races = [_race(edge, peer, *era) for era in _eras()]
    costs = [held.costs(SDK) for held in races]
    worst = max(costs, key=lambda rounds: sorted(rounds)[len(rounds) // 2])
    return Section("MCP tools", _ABOUT, races, reached={"tools": Reached(worst)})


def call_of(era: str) -> dict[str, Any]:
    """Return the message that calls the tool."""
    params = dict(_PARAMS)
    if era == MODERN:
        params["_meta"] = {
            f"{_META}protocolVersion": MODERN,
            f"{_META}clientCapabilities": {},
            f"{_META}clientInfo": {"name": "bench", "version": "1"},
        }
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def headers_of(era: str) -> dict[str, str]:
    """Return the header fields that go with the message."""
    version = {"MCP-Protocol-Version": era}
    named = {"Mcp-Method": "tools/call", "Mcp-Name": str(_PARAMS["name"])}
    return {**version, **named} if era == MODERN else version


def _eras() -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    return [(era, call_of(era), headers_of(era)) for era in (MODERN, OLDER)]


def _race(
    edge: Edge, peer: Served, era: str, message: dict[str, Any], headers: dict[str, str]
) -> Race:
    body = {"MCP_BODY": json.dumps(message)}
    ours = {**headers, "Authorization": f"Bearer {edge.token}"}
    door = f"{edge.server.origin}/api/public/mcp"
    return race(
        f"tools/call, {era}",
        [
            Runner(EDGE, edge.server, Load(door, ours, SCRIPT, 16, body)),
            Runner(SDK, peer, Load(f"{peer.origin}/mcp", headers, SCRIPT, 16, body)),
        ],
    )
