"""A proxy on loopback that adds a bearer token to every request.

The conformance suite tests servers, and cannot send a credential. Everything else passes unchanged,
streams as they come.
"""

from collections.abc import AsyncIterator
from contextlib import suppress

from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, web

# Headers that speak of one connection alone (RFC 9110, section 7.6.1), and the framing of a body.
_OF_A_CONNECTION = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length"}
)
_UNASKED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp's client would add where the request has none."""


class BearerProxy:
    """Passes requests on to one origin, with a token."""

    def __init__(self, session: ClientSession, origin: str, token: str | None) -> None:
        """Take the origin (scheme, host and port) and the token to add, if there is one."""
        self._session = session
        self._origin = origin
        self._token = token

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer as the origin does."""
        headers = _passing(request)
        if self._token is not None:
            kept = [each for each in headers if each[0].lower() != "authorization"]
            headers = [*kept, ("Authorization", f"Bearer {self._token}")]
        async with self._session.request(
            request.method,
            f"{self._origin}{request.path_qs}",
            headers=headers,
            data=await request.read() or None,
            allow_redirects=False,
        ) as answer:
            return await _passed_on(answer, request)


_PROXY = web.AppKey("proxy", BearerProxy)


def _passing(message: web.BaseRequest | ClientResponse) -> list[tuple[str, str]]:
    """Return the headers that concern both ends."""
    both = message.headers.items()
    return [(name, value) for name, value in both if name.lower() not in _OF_A_CONNECTION]


async def _passed_on(answer: ClientResponse, request: web.BaseRequest) -> web.StreamResponse:
    """Send the answer, each piece as soon as it is there, until nobody reads it any more."""
    response = web.StreamResponse(status=answer.status)
    response.headers.extend(_passing(answer))
    with suppress(ConnectionResetError):
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
    return response


def make_bearer_proxy(origin: str, token: str | None) -> web.Application:
    """Return a proxy before an origin; without a token everything passes unchanged."""

    async def hold_session(app: web.Application) -> AsyncIterator[None]:
        async with ClientSession(
            timeout=ClientTimeout(total=None),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_UNASKED,
        ) as session:
            app[_PROXY] = BearerProxy(session, origin, token)
            yield

    async def handle(request: web.Request) -> web.StreamResponse:
        return await request.app[_PROXY].handle(request)

    app = web.Application()
    app.cleanup_ctx.append(hold_session)
    app.router.add_route("*", "/{path:.*}", handle)
    return app
