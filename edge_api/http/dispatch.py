"""Routing: from a request to the operation or the file that answers it.

It uses aiohttp's server without its application, whose router, signals and middlewares would cost
each request more than its answer does.
"""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from yarl import URL

from edge_api.db.problems import Code, Problem
from edge_api.db.versioned_cache import SizedCache
from edge_api.health import Health
from edge_api.http.admission import UNAUTHENTICATED, Admission, Admitted
from edge_api.http.conditional import DocumentAnswers
from edge_api.http.endpoint import Endpoint, options, preflight
from edge_api.http.errors import error_page, error_response, report_internal_error
from edge_api.http.headers import transport
from edge_api.http.request import Request, joined_header, mark
from edge_api.http.response import PreparedResponse, header_lines, move_limit_headers, send
from edge_api.http.site import Site
from edge_api.operation.model import AnyOperation, ErrorFormat
from edge_api.operation.service import Service

API_PREFIX = "/api/"
_LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")

RouteHandler = Callable[[Request, Mapping[str, str], Admitted], Awaitable[web.StreamResponse]]
"""Takes the variable parts of the path beside the request. Raises Problem."""
Target = TypeVar("Target")

_VARIABLE: Final = re.compile(r"\\{(\w+)\\}")
_REMEMBERED_MOST: Final = 4096
_REMEMBERED_LONGEST: Final = 256
"""Characters: a path comes from anybody, and none that is remembered may cost much."""


@dataclass(frozen=True, slots=True)
class Route:
    """What answers one method of a path."""

    name: str
    """Of the operation; in metrics and in the access log."""
    answer: RouteHandler
    error_format: ErrorFormat = "plain"
    operation: AnyOperation | None = None
    """What the sender is checked for; `None`: anybody may ask."""


class Observer(Protocol):
    """Is notified of each request once its response is made."""

    def __call__(
        self, request: Request, route: str, response: web.StreamResponse, seconds: float, /
    ) -> None:
        """Note one request."""


class Resource:
    """All methods of one path, each of them a route."""

    def __init__(self, routes: Mapping[str, Route], site: Route) -> None:
        """Take a route a method; a page whose form is taken here is read from the site."""
        first = next(iter(routes.values()))
        self._is_page = first.operation is not None and first.operation.is_page
        self._methods = dict(routes)
        if first.error_format == "form":
            get = routes.get("GET", site)
            self._methods = {"GET": get, "HEAD": get, **routes}
        elif "GET" in routes:
            self._methods["HEAD"] = routes["GET"]
        self._methods["OPTIONS"] = Route("options", self._offer)
        self._allow = ", ".join(self._methods)
        self._refusal = Route("method_not_allowed", self._refuse, first.error_format)

    def find(self, method: str) -> Route:
        """Return what answers a method; for one that is not there, what refuses it."""
        return self._methods.get(method, self._refusal)

    async def _offer(self, *_: Any) -> PreparedResponse:
        return options(self._allow) if self._is_page else preflight(self._allow)

    async def _refuse(self, *_: Any) -> PreparedResponse:
        raise Problem("method_not_allowed", headers={"Allow": self._allow})


class App:
    """The application: every request passes `handle`, what cannot be parsed `refuse`."""

    def __init__(
        self,
        service: Service,
        operations: Sequence[AnyOperation],
        site: Site,
        answers: Mapping[str, RouteHandler] = MappingProxyType({}),
        observers: Sequence[Observer] = (),
    ) -> None:
        """Take `answers` in place of the handlers of the operations of these names."""
        documents = DocumentAnswers(SizedCache())
        self.admission = Admission(service)
        self._pages = service.pages
        self._health = service[Health]
        self._observers = observers
        self._always = transport(service.settings.site_url)
        self._always_lines = header_lines(self._always)
        origin = urlsplit(service.settings.site_url)
        is_loopback = service.settings.is_loopback
        self._hosts = {*_LOOPBACK_HOSTS, _host_of(origin.netloc)} if is_loopback else None
        self._site = Route("site", site.answer)
        by_path: dict[str, dict[str, Route]] = defaultdict(dict)
        for each in operations:
            answer = answers.get(each.name) or Endpoint(each, service, documents).answer
            route = Route(each.name, answer, each.error_format, each)
            by_path[each.path][each.method] = route
        self._routes = Routes(
            {path: Resource(routes, self._site) for path, routes in by_path.items()}
        )

    async def handle(self, request: Request) -> web.StreamResponse:
        """Answer one request, whatever happens."""
        begun = perf_counter()
        mark(request)
        request.always, request.extra_lines = self._always, self._always_lines
        request.is_last = self._health.draining
        route, variables = self._find(request)
        try:
            admitted = UNAUTHENTICATED
            if route.operation is not None:
                admitted = await self.admission.admit(route.operation, request)
            response = await route.answer(request, variables, admitted)
        except Problem as problem:
            response = await self._explain(problem, route, request)
        except Exception as fault:  # noqa: BLE001  the last place that can answer
            response = await self._explain(report_internal_error(fault), route, request)
        if isinstance(response, PreparedResponse):
            response = send(response, request)
        for observe in self._observers:
            observe(request, route.name, response, perf_counter() - begun)
        return response

    def refuse(self, request: Request, problem: Problem) -> PreparedResponse:
        """Answer what never became a request, and close the connection."""
        mark(request)
        response = error_response(problem).closing()
        for observe in self._observers:
            observe(request, "malformed", response, 0.0)
        return response

    def _find(self, request: Request) -> tuple[Route, Mapping[str, str]]:
        if self._hosts is not None:
            hosts = map(_host_of, request.headers.getall(hdrs.HOST, ()))
            if not self._hosts.issuperset(hosts):
                return _MISDIRECTED, _NO_VARIABLES
        found = self._routes.find(request.rel_url)
        if found is not None:
            return found.target.find(request.method), found.variables
        if f"{request.path}/".startswith(API_PREFIX):
            return _NO_ENDPOINT, _NO_VARIABLES
        return (self._site if request.path.startswith("/") else _NO_TARGET), _NO_VARIABLES

    async def _explain(self, problem: Problem, route: Route, request: Request) -> PreparedResponse:
        problem.headers = move_limit_headers(request, problem.headers)
        if route.error_format == "page":
            accepted = joined_header(request.headers, "Accept") or ""
            return await error_page(self._pages, problem, accepted)
        return error_response(problem, route.error_format)


def _refusing(name: str, code: Code, message: str) -> Route:
    async def refuse(*_: Any) -> PreparedResponse:
        raise Problem(code, message)

    return Route(name, refuse)


_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
_MISDIRECTED: Final = _refusing(
    "misdirected",
    "misdirected",
    "Use localhost, 127.0.0.1 or [::1] as the host: SITE_URL names no other",
)
"""For a foreign host name, whose pages must not read answers (DNS rebinding)."""
_NO_ENDPOINT: Final = _refusing("none", "not_found", "No such endpoint: see /api/public/v1/")
_NO_TARGET: Final = _refusing("none", "not_found", "There is nothing at this target")


class Match(NamedTuple, Generic[Target]):
    """The target of a path, and the values of its variable parts."""

    target: Target
    variables: Mapping[str, str]
    """Decoded, by name."""


class Routes(Generic[Target]):
    """Targets by their paths, with variable parts in braces (`/posts/{slug}`); results are kept."""

    def __init__(self, targets: Mapping[str, Target]) -> None:
        fixed = {path: target for path, target in targets.items() if "{" not in path}
        self._fixed = {path: Match(target, _NO_VARIABLES) for path, target in fixed.items()}
        self._patterns = [
            (re.compile(_VARIABLE.sub(r"(?P<\1>[^/]+)", re.escape(path))), target)
            for path, target in targets.items()
            if path not in fixed
        ]
        self._remembered: dict[str, Match[Target] | None] = dict(self._fixed)

    def find(self, url: URL) -> Match[Target] | None:
        """Return the target of the path of `url`."""
        path = url.raw_path
        if path in self._remembered:
            return self._remembered[path]
        decoded = url.path_safe
        found = self._fixed.get(decoded) or self._match(decoded)
        if len(path) <= _REMEMBERED_LONGEST:
            if len(self._remembered) >= _REMEMBERED_MOST:
                self._remembered = dict(self._fixed)
            self._remembered[path] = found
        return found

    def _match(self, decoded: str) -> Match[Target] | None:
        for pattern, target in self._patterns:
            if found := pattern.fullmatch(decoded):
                variables = {name: _decode(part) for name, part in found.groupdict().items()}
                return Match(target, MappingProxyType(variables))
        return None


def _decode(part: str) -> str:
    """Undo what `path_safe` leaves encoded, so that an encoded slash separates nothing."""
    return part.replace("%2F", "/").replace("%25", "%")


@lru_cache(64)
def _host_of(authority: str) -> str:
    return re.sub(r":[0-9]*\Z", "", authority).lower()
