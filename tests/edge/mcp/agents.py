"""Talking to the MCP endpoint by hand, in either era, so that a test can say each byte."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from aiohttp import ClientResponse
from mcp.shared.inbound import encode_header_value

PATH = "/api/public/mcp"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
ERAS = (LEGACY, MODERN)
READER = ("mcp", "posts:read")
NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_META = "io.modelcontextprotocol/"
Json = dict[str, Any]


def envelope(version: str = MODERN) -> Json:
    """Return what each request of the later era says of itself."""
    return {
        f"{_META}protocolVersion": version,
        f"{_META}clientCapabilities": {},
        f"{_META}clientInfo": {"name": "test", "version": "1"},
    }


@dataclass(frozen=True)
class Answer:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    body: Any
    """An object; of a batch, a list of them."""

    @property
    def result(self) -> Json:
        """The result, having checked that it is one."""
        assert self.status == 200, self.body
        result: Json = self.body["result"]
        return result

    @property
    def code(self) -> int:
        """The code of the error, having checked that it is one."""
        error = self.body["error"]
        assert set(error) <= {"code", "message", "data"}
        assert error["message"]
        return int(error["code"])


@dataclass
class Agent:
    """A client of a running edge, of one era, with one token."""

    edge: Any
    token: str | None
    version: str
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, method: str, params: Json | None, request_id: Any = 1) -> tuple[Json, Json]:
        """Return the body and the headers of a request."""
        given = dict(params or {})
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.version,
        }
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.version == MODERN:
            given["_meta"] = {**envelope(), **given.get("_meta", {})}
            headers["Mcp-Method"] = method
            if method in NAMES and NAMES[method] in given:
                headers["Mcp-Name"] = encode_header_value(str(given[NAMES[method]]))
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": given}
        return body, {**headers, **self.headers}

    async def ask(self, method: str, request_id: Any = 1, **params: Any) -> Answer:
        """Send a request and return the answer."""
        body, headers = self.request(method, params, request_id)
        return await self.send(json.dumps(body).encode(), headers)

    async def call(self, tool: str, **arguments: Any) -> Json:
        """Call a tool and return the result, structured or not."""
        said = await self.ask("tools/call", name=tool, arguments=arguments)
        return said.result

    async def send(self, data: bytes, headers: Mapping[str, str]) -> Answer:
        """Send bytes."""
        sent = {"Content-Type": "application/json", **headers}
        async with self.edge.ask("POST", PATH, data=BytesIO(data), headers=sent) as answer:
            text = await answer.text()
            return Answer(answer.status, answer.headers, json.loads(text) if text else {})

    def open(self, method: str, request_id: Any = 1, **params: Any) -> Any:
        """Send a request whose answer is read by the caller."""
        body, headers = self.request(method, params, request_id)
        return self.edge.ask("POST", PATH, json=body, headers=headers)

    def listen(self, **wanted: Any) -> Any:
        """Open a subscription."""
        return self.open("subscriptions/listen", notifications=wanted)


async def next_message(answer: ClientResponse) -> Json | None:
    """Return the next message of a stream of events, or nothing at its end."""
    while line := await answer.content.readline():
        if line.startswith(b"data: "):
            message: Json = json.loads(line.removeprefix(b"data: "))
            return message
    return None
