"""A request, and what its answer has to carry beside what it says."""

from aiohttp import web
from aiohttp.web_request import BaseRequest


class Request(BaseRequest):
    """aiohttp's request; attributes take the place of its mapping, which costs more."""

    request_id = ""
    """The id that the answer repeats."""
    extra_lines = b""
    """Header lines that belong to this answer alone."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """Leave the software unnamed where aiohttp itself writes the head."""
        response.headers.popall("Server", None)
