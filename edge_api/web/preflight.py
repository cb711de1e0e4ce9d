"""What is answered to `OPTIONS`: the methods there are, and whether scripts from elsewhere may ask.

What stands at the path is not known here.
"""

from typing import Final

from edge_api.web.headers import API_HEADERS, PAGE_HEADERS
from edge_api.web.wire import Wire

_ALLOWED_HEADERS: Final = (
    "Authorization, X-API-Key, Content-Type, Idempotency-Key, Prefer, Accept, X-Request-ID, "
    "If-None-Match, Range, If-Range, Cache-Control, "
    "Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"
)
_SECONDS: Final = 86400
"""How long a browser may remember that it may ask; browsers cap it themselves."""


def preflight(allow: str) -> Wire:
    """Return the answer to `OPTIONS`: any origin may ask, without cookies (Fetch, 3.2)."""
    headers = [
        ("Allow", allow),
        ("Access-Control-Allow-Methods", allow),
        ("Access-Control-Allow-Headers", _ALLOWED_HEADERS),
        ("Access-Control-Max-Age", str(_SECONDS)),
        *API_HEADERS,
    ]
    return Wire(204, headers)


def options(allow: str) -> Wire:
    """Return the answer to `OPTIONS` where no other origin's script has any business."""
    return Wire(204, [("Allow", allow), *PAGE_HEADERS])
