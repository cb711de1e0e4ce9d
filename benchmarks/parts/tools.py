"""What a call of an MCP tool costs, against the SDK's own server with the same tool.

Ours checks a token and counts the call; the peer does neither.
"""

import json
from contextlib import ExitStack
from typing import Any, Final

from benchmarks import peers
from benchmarks.ground import MCP, Edge, Ground
from benchmarks.load import Load
from benchmarks.peers import SDK
from benchmarks.race import EDGE, Race, Runner, race
from benchmarks.section import Reached, Section
from benchmarks.server import Served

MODERN: Final = "2026-07-28"
OLDER: Final = "2025-11-25"
_META: Final = "io.modelcontextprotocol/"
_TOOL: Final = "list_leads"
_LIMITS: Final = range(1, 6)
_ABOUT = (
    "`list_leads` with a `limit` of 1 to 5 at 16 connections, in both eras of the protocol; no two "
    "requests are equal. The edge checks a token and counts the call; the peer, with the very same "
    "tool, does neither."
)


def measure(ground: Ground) -> Section:
    """Measure a call in each era."""
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("tools"))
        database = ground.database("tools-peer", 10_000)
        peer = stack.enter_context(peers.sdk(ground.site(), database))
        races = [_race(edge, peer, era) for era in (MODERN, OLDER)]
    costs = [held.costs(SDK) for held in races]
    worst = max(costs, key=lambda rounds: sorted(rounds)[len(rounds) // 2])
    return Section("MCP tools", _ABOUT, races, reached={"tools": Reached(worst)})


def call_of(era: str, limit: int = 1) -> dict[str, Any]:
    """Return the message that calls the tool; the mark of a load stands for its id."""
    params: dict[str, Any] = {"name": _TOOL, "arguments": {"limit": limit}}
    if era == MODERN:
        params["_meta"] = {
            f"{_META}protocolVersion": MODERN,
            f"{_META}clientCapabilities": {},
            f"{_META}clientInfo": {"name": "bench", "version": "1"},
        }
    return {"jsonrpc": "2.0", "id": "{n}", "method": "tools/call", "params": params}


def headers_of(era: str) -> dict[str, str]:
    """Return the header fields that go with the message."""
    common = {"MCP-Protocol-Version": era, "Accept": "application/json, text/event-stream"}
    named = {"Mcp-Method": "tools/call", "Mcp-Name": _TOOL}
    return {**common, **named} if era == MODERN else common


def _race(edge: Edge, peer: Served, era: str) -> Race:
    messages = [json.dumps(call_of(era, limit)) for limit in _LIMITS]
    theirs = headers_of(era)
    ours = {**theirs, "Authorization": f"Bearer {edge.token}"}
    asked = {path: [f"{path} {message}" for message in messages] for path in (MCP, "/mcp")}
    return race(
        f"tools/call, {era}",
        [
            Runner(EDGE, edge.server, Load(edge.server.origin, asked[MCP], ours, 16)),
            Runner(SDK, peer, Load(peer.origin, asked["/mcp"], theirs, 16)),
        ],
    )
