"""The aiohttp application: every declared operation on its path, the site on all others.

One handler a path knows all methods of it, so that a wrong one gets 405 and `OPTIONS` is answered
everywhere alike. No middleware: each would cost every request.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from aiohttp import web

from edge_api.api.operation import Operation
from edge_api.api.service import Service
from edge_api.schema.problems import Problem
from edge_api.web.cache import SizedCache
from edge_api.web.callers import Callers
from edge_api.web.documents import DocumentAnswers
from edge_api.web.endpoint import Endpoint
from edge_api.web.errors import error_answer, fault_answer
from edge_api.web.headers import API_HEADERS, Headers, transport
from edge_api.web.site import Site
from edge_api.web.trace import mark
from edge_api.web.wire import EXTRA_HEADERS, Wire, header_lines, send

Application = web.Application
"""What is served; the wiring passes it on and needs to know no more."""

API_PREFIX = "/api/"
_ALLOWED_HEADERS = (
    "Authorization, X-API-Key, Content-Type, Idempotency-Key, Prefer, Accept, X-Request-ID, "
    "Mcp-Protocol-Version, Mcp-Session-Id, Last-Event-ID"
)
_PREFLIGHT_SECONDS = 86400
"""How long a browser may remember that it may ask; browsers cap it themselves."""


class Resource:
    """All methods of one path."""

    def __init__(self, endpoints: Mapping[str, Endpoint], always: Headers) -> None:
        """Take an endpoint a method, and the headers that stand in every answer."""
        self._endpoints = endpoints
        self._always = header_lines(always)
        self._administrative = any(item.operation.administrative for item in endpoints.values())
        heads = ["HEAD"] if "GET" in endpoints else []
        self._allow = ", ".join([*endpoints, *heads, "OPTIONS"])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, whatever happens."""
        mark(request)
        request[EXTRA_HEADERS] = self._always
        try:
            wire = await self._answer(request)
        except Problem as problem:
            wire = error_answer(problem, administrative=self._administrative)
        except Exception as fault:  # noqa: BLE001  the last place that can answer
            wire = fault_answer(fault)
        return send(wire, request)

    async def _answer(self, request: web.Request) -> Wire:
        method = "GET" if request.method == "HEAD" else request.method
        endpoint = self._endpoints.get(method)
        if endpoint is not None:
            return await endpoint.answer(request, request.match_info)
        if request.method == "OPTIONS":
            return preflight(self._allow)
        raise Problem("method_not_allowed", headers={"Allow": self._allow})


class Elsewhere:
    """Every path on which no operation stands."""

    def __init__(self, site: Site, always: Headers) -> None:
        """Take the site, which says itself what stands in each of its answers, and that."""
        self._site = site
        self._always = header_lines(always)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer with a file of the site; below `/api/`, with 404."""
        mark(request)
        try:
            return await self._answer(request)
        except Problem as problem:
            wire = error_answer(problem)
        except Exception as fault:  # noqa: BLE001  the last place that can answer
            wire = fault_answer(fault)
        request[EXTRA_HEADERS] = self._always
        return send(wire, request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path.startswith(API_PREFIX):
            raise Problem("not_found", "No such endpoint: see /api/public/v1/")
        return await self._site.answer(request)


def preflight(allow: str) -> Wire:
    """Return the answer to `OPTIONS`: any origin may ask, without cookies (Fetch, 3.2)."""
    headers = [
        ("Allow", allow),
        ("Access-Control-Allow-Methods", allow),
        ("Access-Control-Allow-Headers", _ALLOWED_HEADERS),
        ("Access-Control-Max-Age", str(_PREFLIGHT_SECONDS)),
        *API_HEADERS,
    ]
    return Wire(204, headers)


async def hide_server(_request: web.Request, response: web.StreamResponse) -> None:
    """Take out the header that names the software, where aiohttp itself writes the head."""
    response.headers.popall("Server", None)


def make_app(service: Service, operations: Sequence[Operation], site: Site) -> web.Application:
    """Return the application that serves `operations` and `site`."""
    documents, callers = DocumentAnswers(SizedCache()), Callers(service)
    always = transport(service.settings.site_url)
    by_path: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for operation in operations:
        endpoint = Endpoint(operation, service, documents, callers)
        by_path[operation.path][operation.method] = endpoint
    app = web.Application()
    app.on_response_prepare.append(hide_server)
    for path, endpoints in by_path.items():
        app.router.add_route("*", path, Resource(endpoints, always).handle)
    app.router.add_route("*", "/{path:.*}", Elsewhere(site, always).handle)
    return app
