"""What a call of an MCP tool costs, against the SDK's own server with the same tool.

`python -m benchmarks.mcp`: processor time of the server for each request, at 16 connections, in
both eras of the protocol. Ours checks a token and counts the call; the peer does neither.
"""

import json
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.edge import PING, installation, python
from benchmarks.load import ROUNDS, SECONDS, Load, Served, free_port, run, served

SCRIPT = Path(__file__).with_name("tool_call.lua")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
TOOL, ARGUMENTS = "list_leads", {"limit": 1}


@dataclass(frozen=True, slots=True)
class Side:
    """A server, and what it is asked."""

    server: Served
    load: Load

    def cost(self) -> float:
        """Return the processor time of one request, in microseconds."""
        before = self.server.processor_seconds()
        figure = run(self.load, SECONDS)
        return (self.server.processor_seconds() - before) / figure.requests * 1e6


def main() -> None:
    """Measure and print the table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port, other = free_port(), free_port()
        ours = installation(folder, port)
        python("-m", "site_build", "build", "--site-url", f"http://127.0.0.1:{port}", **ours)
        token = _token(ours)
        edge = stack.enter_context(served(["-m", "edge_api", "serve"], port, PING, ours))
        theirs = {**installation(folder / "peer", other), "BUILD_DIR": ours["BUILD_DIR"]}
        words = ["-m", "benchmarks.peers.sdk_mcp", str(other)]
        peer = stack.enter_context(served(words, other, "/mcp", theirs))
        for era, message, headers in _eras():
            load = Load(
                f"{edge.origin}/api/public/mcp",
                {**headers, "Authorization": f"Bearer {token}"},
                SCRIPT,
                16,
                {"MCP_BODY": json.dumps(message)},
            )
            there = replace(load, url=f"{peer.origin}/mcp", headers=headers)
            _print(era, Side(edge, load), Side(peer, there))


def _eras() -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Return a call in each era, and the headers that go with it."""
    params: dict[str, Any] = {"name": TOOL, "arguments": ARGUMENTS}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    meta = {
        f"{META}protocolVersion": MODERN,
        f"{META}clientCapabilities": {},
        f"{META}clientInfo": {"name": "bench", "version": "1"},
    }
    modern = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": TOOL}
    return [
        (MODERN, {**call, "params": {**params, "_meta": meta}}, modern),
        ("2025-11-25", call, {"MCP-Protocol-Version": "2025-11-25"}),
    ]


def _print(era: str, ours: Side, theirs: Side) -> None:
    for side in (ours, theirs):
        run(side.load, 1)
    rounds = [(ours.cost(), theirs.cost()) for _ in range(ROUNDS)]
    mine, their = (median(each) for each in zip(*rounds, strict=True))
    ratio = median(our / other for our, other in rounds)
    print(
        f"tools/call, {era}, 16 clients  {mine:>6.0f} us a request   {ratio:>5.2f} x the SDK's own "
        f"server ({their:.0f} us)"
    )


def _token(environment: Mapping[str, str]) -> str:
    words = ("keys", "issue", "--name", "bench", "--type", "access_token", "--json")
    return str(json.loads(python("-m", "edge_api", *words, **environment))["key"])


if __name__ == "__main__":
    main()
