"""The edge's MCP handler beside the SDK's own transport, both before one and the same server."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from tests.judges import fixture_build, sdk_transport
from tests.judges.fixtures.server import fixture_server
from tests.judges.messages import (
    ERAS,
    LEGACY,
    MESSAGES,
    MODERN,
    NO_MESSAGES,
    Message,
    request,
)
from tests.judges.product import MCP_PATH

pytestmark = pytest.mark.size("test")

Answer = tuple[int, Any]
"""A status, and the JSON of the body."""
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}

# What the SDK takes and the edge refuses, each with the edge's own error.
_ON_PURPOSE: Mapping[str, tuple[Message, int]] = {
    # An id that JSON readers elsewhere would round, or that nobody could have meant.
    "an id beyond 64 bits": (request(MODERN, "tools/list", id=2**80), -32600),
    "the same, older": (request(LEGACY, "ping", id=2**80), -32600),
    # JSON-RPC has no such ids for requests; the SDK takes these for notifications and says nothing.
    "an id of null": (request(LEGACY, "ping", id=None), -32600),
    "an id with a fraction": (request(LEGACY, "ping", id=1.5), -32600),
    "an id in a list": (request(LEGACY, "ping", id=[1]), -32600),
    # No JSON (RFC 8259, section 6), though Python's reader takes it.
    "a number that is none": (request(LEGACY, "ping", {"x": float("nan")}), -32700),
    # An answer, where only the edge's requests could have had one: it makes none.
    "an answer": (
        request(LEGACY, "ping").with_body(b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        -32600,
    ),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Both servers, and a client of them."""

    session: ClientSession
    ours: fixture_build.FixtureBuild
    theirs: str

    async def answers(self, message: Message) -> tuple[Answer, Answer]:
        """Return our answer, and the SDK's."""
        return await self._ask(self.ours.origin, message), await self._ask(self.theirs, message)

    async def _ask(self, origin: str, message: Message) -> Answer:
        authorization = {"Authorization": f"Bearer {self.ours.token}"}
        headers = {**_HEADERS, **authorization, **message.headers}
        url = f"{origin}{MCP_PATH}"
        async with self.session.post(url, data=message.body, headers=headers) as answer:
            body = await answer.read()
            return answer.status, json.loads(body) if body else None


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[Pair]:
    """Serve one server in both ways."""
    server = fixture_server()
    async with (
        fixture_build.serving(server, folder) as ours,
        sdk_transport.serving(server) as theirs,
        ClientSession() as session,
    ):
        yield Pair(session, ours, theirs)


def error_of(said: Answer) -> tuple[int, Any, Any]:
    """Return status, id and code of an error."""
    status, body = said
    return status, body["id"], body["error"]["code"]


_UNKNOWN_VERSION = f"{LEGACY}, version 1999-01-01"
"""For this the SDK blames the envelope, which the message does not have; we name the header."""


async def test_messages_get_the_same_answers(tmp_path: Path) -> None:
    """Every message, good or bad, of either era gets the status and the JSON that the SDK gives."""
    async with both(tmp_path) as pair:
        answers = {name: await pair.answers(message) for name, message in MESSAGES.items()}

    ours, theirs = answers.pop(_UNKNOWN_VERSION)
    assert (error_of(ours)[::2], error_of(theirs)[::2]) == ((400, -32022), (400, -32602))
    for _, body in answers["2026-07-28, an unknown revision"]:  # the SDK knows one era alone here
        assert body["error"]["data"].pop("supported")[-1] == MODERN
    different = {name: said for name, said in answers.items() if said[0] != said[1]}
    assert not different, json.dumps(different, indent=1)
    assert {status for (status, _), _ in answers.values()} == {200, 202, 400, 404}


async def test_a_body_that_is_no_message_is_refused_alike(tmp_path: Path) -> None:
    """A body that is no message gets the SDK's status, and the code that JSON-RPC has for it."""
    async with both(tmp_path) as pair:
        for name, body in NO_MESSAGES.items():
            for era in ERAS:
                message = request(era, "ping").with_body(body)
                ours, theirs = map(error_of, await pair.answers(message))

                # Of an older one the SDK says -32602 where JSON-RPC has -32600 for no request.
                unified = (*theirs[:2], {-32602: -32600}.get(theirs[2], theirs[2]))
                assert ours == (theirs if era == MODERN else unified), f"{era}, {name}"
                assert ours[0] == 400


async def test_the_edge_is_stricter_only_where_it_means_to_be(tmp_path: Path) -> None:
    """Messages that the SDK takes and the edge does not are on a list, and get an error."""
    async with both(tmp_path) as pair:
        for name, (message, code) in _ON_PURPOSE.items():
            ours, theirs = await pair.answers(message)

            assert error_of(ours) == (400, None, code), name
            assert theirs[0] in (200, 202), f"{name}: the SDK refuses it as well now"
