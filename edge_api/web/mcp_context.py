"""The way back from a handler of an MCP server to its client, while it works on one request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import ProgressToken, RequestId

from edge_api.web.mcp_stream import Event, Outbox


@dataclass
class RequestContext:
    """What the SDK calls a `DispatchContext`.

    A server cannot ask anything of a client here: without a session, the answer had no way back.
    """

    transport: TransportContext
    request_id: RequestId
    message_metadata: ServerMessageMetadata
    progress_token: ProgressToken | None
    outbox: Outbox | None
    """Takes what is said before the answer; `None` where the answer is no stream."""
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,  # noqa: ARG002  the SDK's shape
        opts: CallOptions | None = None,  # noqa: ARG002  likewise
    ) -> dict[str, Any]:
        """Refuse to ask the client. Raises NoBackChannelError."""
        raise NoBackChannelError(method)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002  the SDK's shape
    ) -> None:
        """Tell the client something, if its request has a stream."""
        if self.outbox is not None:
            given = {} if params is None else {"params": dict(params)}
            await self.outbox.put(Event({"jsonrpc": "2.0", "method": method, **given}))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far its request is, if it asked to be told."""
        if self.progress_token is None:
            return
        members = {"progress": progress, "total": total, "message": message}
        known = {name: value for name, value in members.items() if value is not None}
        params = {"progressToken": self.progress_token, **known}
        await self.notify("notifications/progress", params)
