"""Messages to an MCP endpoint, good and bad, in both eras, for servers that have the fixtures."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
ERAS = (MODERN, LEGACY)
CAPABILITIES: Json = {"sampling": {}, "elicitation": {}, "roots": {}}
ENVELOPE: Json = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
}
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that has to be in a header as well."""


@dataclass(frozen=True, slots=True)
class Message:
    """A body, and the headers that go with it."""

    headers: Json
    body: bytes

    def with_headers(self, **changes: str | None) -> "Message":
        """Return the same with other headers (`_` for `-`); None leaves one out."""
        changed = {name.replace("_", "-"): value for name, value in changes.items()}
        kept = {name: value for name, value in self.headers.items() if name not in changed}
        given = {name: value for name, value in changed.items() if value is not None}
        return Message({**kept, **given}, self.body)

    def with_body(self, body: bytes) -> "Message":
        """Return the same with another body."""
        return Message(self.headers, body)


def request(era: str, method: str, params: Json | None = None, **members: Any) -> Message:
    """Return a request of a revision; `members` replace or extend those of its object."""
    headers = {"MCP-Protocol-Version": era}
    given = dict(params or {})
    if era == MODERN:
        given.setdefault("_meta", ENVELOPE)
        headers["Mcp-Method"] = method
        name = given.get(_NAMED.get(method, ""))
        headers |= {} if name is None else {"Mcp-Name": str(name)}
    whole = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given, **members}
    return Message(headers, json.dumps(whole).encode())


def handshake(version: str) -> Message:
    """Return the first message of an older client that wants a revision."""
    client = {"name": "tester", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return request(LEGACY, "initialize", params).with_headers(MCP_Protocol_Version=None)


def _calls() -> Iterator[tuple[str, Json]]:
    """Return methods and parameters that mean the same in both eras."""
    for listed in ("tools", "prompts", "resources", "resources/templates"):
        yield f"{listed}/list", {}
    for tool in ("simple_text", "image_content", "audio_content", "multiple_content_types"):
        yield "tools/call", {"name": f"test_{tool}", "arguments": {}}
    for tool in ("test_error_handling", "test_missing_capability", "test_unknown"):
        yield "tools/call", {"name": tool}
    for tool in ("test_sampling", "test_elicitation", "test_input_required_result_elicitation"):
        yield "tools/call", {"name": tool, "arguments": {"prompt": "a", "message": "b"}}
    yield "tools/call", {}
    yield "tools/call", {"name": 5}
    yield "tools/call", {"name": "test_simple_text", "arguments": [1]}
    for uri in ("static-text", "static-binary", "template/7/data", "nothing"):
        yield "resources/read", {"uri": f"test://{uri}"}
    yield "resources/read", {}
    for method in ("resources/subscribe", "resources/unsubscribe"):
        yield method, {"uri": "test://watched-resource"}
    yield "prompts/get", {"name": "test_simple_prompt"}
    yield "prompts/get", {"name": "test_prompt_with_image"}
    for arguments in ({"arg1": "a", "arg2": "b"}, {"arg1": "a"}, {"arg1": 1, "arg2": "b"}):
        yield "prompts/get", {"name": "test_prompt_with_arguments", "arguments": arguments}
    reference = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    yield "completion/complete", {"ref": reference, "argument": {"name": "arg1", "value": "par"}}
    yield "completion/complete", {"ref": {"type": "ref/none"}, "argument": {}}
    for level in ("info", "loud"):
        yield "logging/setLevel", {"level": level}
    for method in ("ping", "server/discover", "no/such", ""):
        yield method, {}


def _in_both_eras() -> Iterator[tuple[str, Message]]:
    for era in ERAS:
        for method, params in _calls():
            yield f"{era} {method} {json.dumps(params)}", request(era, method, params)
        for number in (0, -3, 2**53, "", "a b", "ö"):
            yield f"{era} id {number!r}", request(era, "tools/list", id=number)
        yield f"{era} another member", request(era, "tools/list", more=1)
        yield f"{era} two ids", request(era, "ping").with_body(_TWO_IDS)
        yield f"{era} a cursor", request(era, "tools/list", {"cursor": "x"})
        for method in ("notifications/initialized", "notifications/cancelled", "notifications/no"):
            body = json.dumps({"jsonrpc": "2.0", "method": method}).encode()
            yield f"{era} {method}", request(era, method).with_body(body)


def _modern() -> Iterator[tuple[str, Message]]:
    listing = request(MODERN, "tools/list")
    call = request(MODERN, "tools/call", {"name": "test_simple_text"})
    region = {"name": "test_x_mcp_header", "arguments": {"region": "eu"}}
    regional = request(MODERN, "tools/call", region)
    yield "a header for an argument", regional.with_headers(Mcp_Param_Region="eu")
    yield "an encoded header", regional.with_headers(Mcp_Param_Region="=?base64?ZXU=?=")
    yield "a header that is no base64", regional.with_headers(Mcp_Param_Region="=?base64?Z!?=")
    yield "another header than the argument", regional.with_headers(Mcp_Param_Region="us")
    yield "no header for an argument", regional
    yield "no method in the headers", listing.with_headers(Mcp_Method=None)
    yield "another method in the headers", listing.with_headers(Mcp_Method="ping")
    yield "no name in the headers", call.with_headers(Mcp_Name=None)
    yield "another name in the headers", call.with_headers(Mcp_Name="test_image_content")
    encoded = "=?base64?dGVzdF9zaW1wbGVfdGV4dA==?="
    yield "an encoded name in the headers", call.with_headers(Mcp_Name=encoded)
    yield "a body of this era, a header of none", listing.with_headers(MCP_Protocol_Version=None)
    yield (
        "a body of this era, a header of the other",
        listing.with_headers(MCP_Protocol_Version=LEGACY),
    )
    yield "only JSON is taken", listing.with_headers(Accept="application/json")
    yield "a handshake", request(MODERN, "initialize")
    for name, meta in _envelopes():
        yield name, request(MODERN, "tools/list", {"_meta": meta})
    unknown = request(MODERN, "tools/list", {"_meta": {**ENVELOPE, _VERSION: "2099-01-01"}})
    yield "an unknown revision", unknown.with_headers(MCP_Protocol_Version="2099-01-01")
    accepted = {"confirm": {"action": "accept", "content": {"ok": True}}}
    asking = {"name": "test_input_required_result_request_state", "inputResponses": accepted}
    yield "a made-up state", request(MODERN, "tools/call", {**asking, "requestState": "x"})


def _envelopes() -> Iterator[tuple[str, Any]]:
    yield "an envelope that is a number", 5
    yield "an empty envelope", {}
    for member in ENVELOPE:
        rest = {name: value for name, value in ENVELOPE.items() if name != member}
        yield f"no {member}", rest
        yield f"{member} a number", {**rest, member: 5}
    yield "a body of the other era", {**ENVELOPE, _VERSION: LEGACY}


def _legacy() -> Iterator[tuple[str, Message]]:
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN, "1999-01-01", ""):
        yield f"a handshake for {version or 'nothing'}", handshake(version)
    empty = request(LEGACY, "initialize").with_headers(MCP_Protocol_Version=None)
    yield "an empty handshake", empty
    listing = request(LEGACY, "tools/list")
    for named in (None, "2025-03-26", "1999-01-01"):
        yield f"version {named}", listing.with_headers(MCP_Protocol_Version=named)
    for accepted in ("application/json", "*/*"):
        yield f"{accepted} is taken", listing.with_headers(Accept=accepted)


_VERSION = "io.modelcontextprotocol/protocolVersion"
_TWO_IDS = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}'
MESSAGES: Mapping[str, Message] = {
    **dict(_in_both_eras()),
    **{f"{MODERN}, {name}": message for name, message in _modern()},
    **{f"{LEGACY}, {name}": message for name, message in _legacy()},
}
"""Messages that both have to answer alike."""

NO_MESSAGES: Mapping[str, bytes] = {
    "nothing": b"",
    "half an object": b"{",
    "no UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    "a text": b'"ping"',
    "null": b"null",
    "too deep": b"[" * 20_000 + b"]" * 20_000,
    "a number too long": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"9" * 5000,
    "another version of JSON-RPC": b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    "a method that is a number": b'{"jsonrpc":"2.0","id":1,"method":5}',
    "parameters in a list": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
}
"""Bodies that are no message: the same is refused, each in its own words."""
