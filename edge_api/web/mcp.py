"""The MCP endpoint as HTTP sees it: who may ask, and with what. What is said is not known here.

The SDK, which takes long to load and much room, is loaded with the first message that is let in.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Protocol

from aiohttp import web

from edge_api.api.mcp.operations import BODY
from edge_api.api.preferences import media_weight
from edge_api.api.reply import JSON
from edge_api.schema.problems import Problem
from edge_api.web.body import check_media_type, read_bytes
from edge_api.web.documents import compress
from edge_api.web.errors import error_answer
from edge_api.web.fields import whole_list
from edge_api.web.mcp_caller import Admit, Caller, Slots, check_origin
from edge_api.web.mcp_stream import Conversation
from edge_api.web.preflight import preflight
from edge_api.web.request import Request
from edge_api.web.wire import Wire, send, tell_limits

__all__ = ["Admit", "Caller", "Exchange", "McpEndpoint", "load_exchange"]

ALLOW: Final = "POST, OPTIONS"

_log = logging.getLogger(__name__)


class Exchange(Protocol):
    """Answers messages; `web.mcp_exchange` has the only one there is."""

    async def answer(
        self, request: Request, raw: bytes, caller: Caller, conversation: Conversation
    ) -> web.StreamResponse:
        """Return the answer to one message, or to a batch of them."""


Load = Callable[[], Exchange]
"""Loads the SDK, which takes half a second, and returns what answers."""


class McpEndpoint:
    """All methods of the endpoint's path.

    `load` is called once, in a thread; `site_url` is the origin whose pages may call.
    """

    def __init__(
        self,
        admit: Admit,
        load: Load,
        *,
        site_url: str,
        is_draining: Callable[[], bool],
    ) -> None:
        self.slots = Slots()
        self._admit = admit
        self._load = load
        self._site_url = site_url
        self._is_draining = is_draining
        self._exchange: Exchange | None = None
        self._turn = asyncio.Lock()

    async def handle(
        self,
        request: Request,
        path: Mapping[str, str],  # noqa: ARG002  it has no variable part
    ) -> web.StreamResponse:
        """Answer one request, whatever happens."""
        try:
            answer = await self._answer(request)
        except Problem as problem:
            problem.headers = tell_limits(request, problem.headers)
            answer = error_answer(problem, "jsonrpc")
        except Exception:  # noqa: BLE001  the last place that can answer
            _log.exception("internal error")
            answer = error_answer(Problem("internal"), "jsonrpc")
        if not isinstance(answer, Wire):
            return answer
        return send(await compress(answer, request), request)

    async def _answer(self, request: Request) -> web.StreamResponse:
        if request.method == "OPTIONS":
            return preflight(ALLOW)
        if request.method != "POST":
            raise Problem("method_not_allowed", headers={"Allow": ALLOW})
        check_origin(request, self._site_url)
        caller = await self._admit(request)
        check_media_type(request, BODY)
        _check_accept(request)
        raw = await read_bytes(request, BODY.most)
        exchange = self._exchange or await self._loaded()
        conversation = Conversation(request, caller, self.slots, self._is_draining)
        return await exchange.answer(request, raw, caller, conversation)

    async def _loaded(self) -> Exchange:
        async with self._turn:
            if self._exchange is None:
                self._exchange = await asyncio.to_thread(self._load)
            return self._exchange


def _check_accept(request: Request) -> None:
    """Raise Problem `not_acceptable` where the client would not take JSON."""
    if media_weight(whole_list(request.headers, "Accept") or "*/*", JSON) == 0:
        raise Problem("not_acceptable", f"Accept {JSON}, and text/event-stream beside it")


def load_exchange(make_server: str, *parts: Any) -> Exchange:
    """Load the SDK and return what answers for one of our servers.

    `make_server` is a module with a function of that name, which takes `parts`.
    """
    server = import_module(make_server).make_server(*parts)
    exchange: Exchange = import_module("edge_api.web.mcp_exchange").Exchange(server)
    return exchange
