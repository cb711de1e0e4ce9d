"""Routing: from a request to the operation or the file that answers it.

It uses aiohttp's server without its application, whose router, signals and middlewares would cost
each request more than its answer does.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from yarl import URL

from edge_api.db.caches import SizedCache
from edge_api.db.problems import Code, Problem
from edge_api.health import Health
from edge_api.http.endpoint import (
    UNAUTHENTICATED,
    Admission,
    Admitted,
    DocumentResponses,
    Endpoint,
    options_response,
    preflight_response,
)
from edge_api.http.response import (
    PRIVATE_HEADERS,
    STRICT_TRANSPORT,
    PreparedResponse,
    Request,
    assign_request_id,
    error_page,
    error_response,
    header_lines,
    joined_header,
    move_limit_headers,
    report_internal_error,
)
from edge_api.operation.model import NO_STORE, NOINDEX, AnyOperation, ErrorFormat, Service
from edge_api.operation.negotiation import prefers_json
from edge_api.schema.paths import DESK

FOREIGN_REQUESTS_FOR_WARNING: Final = 20
"""If the first requests, this many, all name another host than SITE_URL, a warning is logged."""
_log = logging.getLogger(__name__)

RouteHandler = Callable[[Request, Mapping[str, str], Admitted], Awaitable[web.StreamResponse]]
"""Takes the request, the variable parts of its path, and its sender. Raises Problem."""
Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Route:
    """The handler of one method of a path, and what it needs."""

    name: str
    """The operation's name, for metrics and the access log."""
    handler: RouteHandler
    error_format: ErrorFormat = "plain"
    operation: AnyOperation | None = None
    """The operation that the sender must be allowed to call; `None`: no check."""


Observer = Callable[[Request, str, web.StreamResponse, float], None]
"""Called with each request, its route, its response and its duration in seconds."""


class Resource:
    """All methods of one path, each of them a route."""

    def __init__(self, routes: Mapping[str, Route], site: Route) -> None:
        """Take routes by method; `site` answers GET for a page whose form is sent by POST."""
        first = next(iter(routes.values()))
        self._is_page = first.operation is not None and first.operation.is_page
        self._methods = dict(routes)
        if first.error_format == "form":
            get = routes.get("GET", site)
            self._methods = {"GET": get, "HEAD": get, **routes}
        elif "GET" in routes:
            self._methods["HEAD"] = routes["GET"]
        self._methods["OPTIONS"] = Route("options", self._answer_options)
        self._allow = ", ".join(self._methods)
        self._not_allowed = Route("method_not_allowed", self._reject_method, first.error_format)

    def find(self, method: str) -> Route:
        """Return the route of a method, or for an unknown method a route that answers 405."""
        return self._methods.get(method, self._not_allowed)

    async def _answer_options(self, *_: Any) -> PreparedResponse:
        return options_response(self._allow) if self._is_page else preflight_response(self._allow)

    async def _reject_method(self, *_: Any) -> PreparedResponse:
        raise Problem("method_not_allowed", headers={"Allow": self._allow})


class App:
    """The application: requests go to `handle`, malformed messages to `reject_malformed`."""

    def __init__(
        self,
        service: Service,
        operations: Sequence[AnyOperation],
        site: RouteHandler,
        handlers: Mapping[str, RouteHandler] = MappingProxyType({}),
        observers: Sequence[Observer] = (),
    ) -> None:
        """Take `site` for all other paths; `handlers` replace those of operations, by name."""
        documents = DocumentResponses(SizedCache())
        self.admission = Admission(service)
        self._pages = service.pages
        self._health = service[Health]
        self._observers = observers
        is_https = service.settings.site_url.startswith("https://")
        self._headers = (STRICT_TRANSPORT,) if is_https else ()
        self._header_lines = header_lines(self._headers)
        self._site_host = _host_of(urlsplit(service.settings.site_url).netloc)
        self._foreign_requests = 0
        self._is_loopback = service.settings.is_loopback
        self._hosts = {"localhost", "127.0.0.1", "[::1]", self._site_host}
        named = "localhost, 127.0.0.1 or [::1]" if self._is_loopback else self._site_host
        self._misdirected = _failing_route(
            "misdirected", "misdirected", f"Use {named} as the host: SITE_URL names no other"
        )
        self._site = Route("site", site)
        by_path: dict[str, dict[str, Route]] = defaultdict(dict)
        for each in operations:
            handler = handlers.get(each.name) or Endpoint(each, service, documents).answer
            by_path[each.path][each.method] = Route(each.name, handler, each.error_format, each)
        self._desk = Route("desk", self._redirect_desk, "page") if DESK in by_path else self._site
        self._routes = Routes(
            {path: Resource(routes, self._site) for path, routes in by_path.items()}
        )

    async def handle(self, request: Request) -> web.StreamResponse:
        """Answer a request; if anything fails, with the problem."""
        started = perf_counter()
        assign_request_id(request)
        request.origin_headers, request.extra_header_lines = (self._headers, self._header_lines)
        request.closes_connection = self._health.draining
        route, variables = self._find(request)
        # Load balancers and Prometheus use an IP address for readiness and metrics: not counted.
        if self._foreign_requests < FOREIGN_REQUESTS_FOR_WARNING and route.name not in (
            "readiness",
            "metrics",
        ):
            self._count_host(request.headers.get(hdrs.HOST, ""))
        try:
            admitted = UNAUTHENTICATED
            if route.operation is not None:
                admitted = await self.admission.admit(route.operation, request)
            response = await route.handler(request, variables, admitted)
        except Problem as problem:
            response = await self._on_error(problem, route, request)
        except Exception as error:  # noqa: BLE001  the last place that can answer
            response = await self._on_error(report_internal_error(error), route, request)
        is_open = request.version.minor and request.keep_alive and not request.closes_connection
        if not is_open and isinstance(response, PreparedResponse):
            response = response.closing()
        for observe in self._observers:
            observe(request, route.name, response, perf_counter() - started)
        return response

    def _count_host(self, host: str) -> None:
        """Log once if requests name other hosts than SITE_URL; stop at the first that names it."""
        is_known = _host_of(host) in (self._hosts if self._is_loopback else (self._site_host,))
        self._foreign_requests += FOREIGN_REQUESTS_FOR_WARNING + 1 if is_known else 1
        if self._foreign_requests == FOREIGN_REQUESTS_FOR_WARNING:
            self._health.warnings["host"] = "requests name another host than that of SITE_URL"
            _log.warning(
                "%d requests named the host %r and not that of SITE_URL, %s: set SITE_URL to the "
                "address that readers use and build again, or let the proxy pass their Host on",
                FOREIGN_REQUESTS_FOR_WARNING,
                host[:100],
                self._site_host,
            )

    def reject_malformed(self, request: Request, problem: Problem) -> PreparedResponse:
        """Answer a message that could not be parsed, and close the connection."""
        assign_request_id(request)
        response = error_response(problem).closing()
        for observe in self._observers:
            observe(request, "malformed", response, 0.0)
        return response

    def _find(self, request: Request) -> tuple[Route, Mapping[str, str]]:
        if request.target_host:
            hosts: Sequence[str] = [request.target_host]
        elif self._is_loopback:  # no page of another site may read answers (DNS rebinding)
            hosts = request.headers.getall(hdrs.HOST, ())
        else:  # the proxy checks the host
            hosts = ()
        if not self._hosts.issuperset(map(_host_of, hosts)):
            return self._misdirected, _NO_VARIABLES
        found = self._routes.find(request.rel_url)
        if found is not None:
            resource, variables = found
            return resource.find(request.method), variables
        path = f"{request.path}/"
        if path.startswith(("/api/", DESK)):
            return (self._desk if path.startswith(DESK) else _NO_ENDPOINT), _NO_VARIABLES
        if request.method == hdrs.METH_CONNECT:
            return _CONNECT, _NO_VARIABLES
        # OPTIONS for an absolute target without a path is about the server (RFC 9112, 3.2.4).
        is_server = request.path == "*" or (
            not request.path and request.method == hdrs.METH_OPTIONS
        )
        return (_SERVER_OPTIONS if is_server else self._site), _NO_VARIABLES

    async def _redirect_desk(self, request: Request, *_: Any) -> PreparedResponse:
        """Redirect to the same address with a slash, or raise Problem `not_found`."""
        path = f"{request.rel_url.raw_path}/"
        to = request.rel_url.with_path(path, encoded=True, keep_query=True)
        if request.method in ("GET", "HEAD") and self._routes.find(to):
            headers = (("Location", to.raw_path_qs), ("Cache-Control", NO_STORE), *PRIVATE_HEADERS)
            return PreparedResponse(301, headers)
        raise Problem("not_found", "There is no page at this address", headers=NOINDEX)

    async def _on_error(self, problem: Problem, route: Route, request: Request) -> PreparedResponse:
        problem.headers = move_limit_headers(request, problem.headers)
        accepted = joined_header(request.headers, "Accept") or ""
        is_person = route.error_format == "form" and not prefers_json(accepted)
        if route.error_format == "page" or is_person:
            return await error_page(self._pages, problem, accepted)
        return error_response(problem, route.error_format)


def _failing_route(name: str, code: Code, message: str) -> Route:
    async def refuse(*_: Any) -> PreparedResponse:
        raise Problem(code, message)

    return Route(name, refuse)


_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
_NO_ENDPOINT: Final = _failing_route("none", "not_found", "No such endpoint: see /api/public/v1/")
_CONNECT: Final = _failing_route("none", "not_implemented", "")


async def _answer_server_options(*_: Any) -> PreparedResponse:
    return options_response("GET, HEAD, POST, PATCH, DELETE, OPTIONS")


_SERVER_OPTIONS: Final = Route("options", _answer_server_options)
"""The answer to `OPTIONS *` (RFC 9110, section 9.3.7)."""


class Routes(Generic[Target]):
    """Targets by path, with variable parts in braces (`/posts/{slug}`)."""

    def __init__(self, targets: Mapping[str, Target]) -> None:
        self._fixed = {path: target for path, target in targets.items() if "{" not in path}
        self._patterns = [
            (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))), target)
            for path, target in targets.items()
            if path not in self._fixed
        ]

    def find(self, url: URL) -> tuple[Target, Mapping[str, str]] | None:
        """Return the target of the path of `url`, and its variable parts, decoded, by name."""
        path = url.path_safe
        if path in self._fixed:
            return self._fixed[path], _NO_VARIABLES
        for pattern, target in self._patterns:
            if found := pattern.fullmatch(path):
                # `path_safe` leaves these two encoded, so that an encoded slash separates nothing.
                return target, {
                    key: part.replace("%2F", "/").replace("%25", "%")
                    for key, part in found.groupdict().items()
                }
        return None


def _host_of(authority: str) -> str:
    return re.sub(r":[0-9]*\Z", "", authority).lower()
