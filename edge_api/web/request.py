"""A request, and what its answer has to carry beside what it says."""

from collections.abc import Mapping
from types import MappingProxyType

from aiohttp import web
from aiohttp.web_request import BaseRequest

from edge_api.schema.site_policy import Headers


class Request(BaseRequest):
    """aiohttp's request; attributes take the place of its mapping, which costs more."""

    request_id = ""
    """The id that the answer repeats."""
    is_last = False
    """Whether the connection is to end with the answer, since the service is about to."""
    ends_with_client = False
    """Whether what answers it stops when its client goes away."""
    always: Headers = ()
    """Headers that the origin gives to each of its answers."""
    limits: Mapping[str, str] = MappingProxyType({})
    """The rate-limit fields of its answer."""
    extra_lines = b""
    """Those as lines, and what belongs to this answer alone."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """Leave the software unnamed where aiohttp itself writes the head."""
        response.headers.popall("Server", None)
