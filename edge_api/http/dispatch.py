"""From a path to what answers it: every declared operation, and the site on all other paths.

One resource a path knows all methods of it, so that a wrong one gets 405 and `OPTIONS` is answered
everywhere alike. It stands on aiohttp's server without aiohttp's application, whose router,
signals and middlewares would cost each request more than its answer does.
"""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from yarl import URL

from edge_api.db.problems import Problem
from edge_api.db.versioned_cache import SizedCache
from edge_api.health import Health
from edge_api.http.conditional import DocumentAnswers
from edge_api.http.endpoint import Endpoint, options, preflight
from edge_api.http.errors import error_answer, problem_of
from edge_api.http.forms import error_page
from edge_api.http.headers import transport
from edge_api.http.request import Callers, Request, mark, whole_list
from edge_api.http.response import PreparedResponse, header_lines, send, tell_limits
from edge_api.http.site import Site
from edge_api.operation.model import Operation
from edge_api.operation.service import Pages, Service

API_PREFIX = "/api/"
_LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
_MISDIRECTED: Final = "Use localhost, 127.0.0.1 or [::1] as the host: SITE_URL names no other"

Method = Callable[[Request, Mapping[str, str]], Awaitable[PreparedResponse]]
"""What answers one method of a path."""
Target = TypeVar("Target")

_VARIABLE: Final = re.compile(r"\\{(\w+)\\}")
_REMEMBERED_MOST: Final = 4096
_REMEMBERED_LONGEST: Final = 256
"""Characters: a path comes from anybody, and none that is remembered may cost much."""


class Handler(Protocol):
    """All methods of one path."""

    async def handle(self, request: Request, path: Mapping[str, str]) -> web.StreamResponse:
        """Answer one request, whatever happens."""


class Resource:
    """All methods of one path, each of them an operation."""

    def __init__(self, endpoints: Mapping[str, Endpoint], pages: Pages) -> None:
        """Take an endpoint a method."""
        self._pages = pages
        self._dialect = next(iter(endpoints.values())).operation.error_format
        self._methods: dict[str, Method] = {
            name: endpoint.answer for name, endpoint in endpoints.items()
        }
        if "GET" in endpoints:
            self._methods["HEAD"] = endpoints["GET"].answer
        self._methods["OPTIONS"] = self._offer
        self._allow = ", ".join(self._methods)

    async def handle(self, request: Request, path: Mapping[str, str]) -> web.StreamResponse:
        """Answer one request, whatever happens."""
        try:
            response = await self._methods.get(request.method, self._refuse)(request, path)
        except Problem as problem:
            response = await self._tell(problem, request)
        except Exception as fault:  # noqa: BLE001  the last place that can answer
            response = await self._tell(problem_of(fault), request)
        return send(response, request)

    async def _tell(self, problem: Problem, request: Request) -> PreparedResponse:
        problem.headers = tell_limits(request, problem.headers)
        if self._dialect == "page":
            accepted = whole_list(request.headers, "Accept") or ""
            return await error_page(self._pages, problem, accepted)
        return error_answer(problem, self._dialect)

    async def _offer(self, _request: Request, _path: Mapping[str, str]) -> PreparedResponse:
        return options(self._allow) if self._dialect == "page" else preflight(self._allow)

    async def _refuse(self, _request: Request, _path: Mapping[str, str]) -> PreparedResponse:
        raise Problem("method_not_allowed", headers={"Allow": self._allow})


class Elsewhere:
    """Every path on which no operation stands."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def handle(self, request: Request) -> web.StreamResponse:
        """Answer with a file of the site; below `/api/`, with 404."""
        try:
            return await self._answer(request)
        except Problem as problem:
            response = error_answer(problem)
        except Exception as fault:  # noqa: BLE001  the last place that can answer
            response = error_answer(problem_of(fault))
        return send(response, request)

    def _answer(self, request: Request) -> Awaitable[web.StreamResponse]:
        if f"{request.path}/".startswith(API_PREFIX):
            raise Problem("not_found", "No such endpoint: see /api/public/v1/")
        if not request.path.startswith("/"):
            raise Problem("not_found", "There is nothing at this target")
        return self._site.answer(request)


class App:
    """Answers every request."""

    def __init__(
        self,
        service: Service,
        operations: Sequence[Operation],
        site: Site,
        handlers: Mapping[str, Handler] = MappingProxyType({}),
    ) -> None:
        """Take what is declared, and the site for all other paths.

        `handlers` answer in place of the operations on their paths.
        """
        documents, callers = DocumentAnswers(SizedCache()), Callers(service)
        self._health = service[Health]
        self._always = transport(service.settings.site_url)
        self._always_lines = header_lines(self._always)
        origin = urlsplit(service.settings.site_url)
        is_loopback = service.settings.is_loopback
        self._hosts = {*_LOOPBACK_HOSTS, _host_of(origin.netloc)} if is_loopback else None
        by_path: dict[str, dict[str, Endpoint]] = defaultdict(dict)
        for operation in operations:
            endpoint = Endpoint(operation, service, documents, callers)
            by_path[operation.path][operation.method] = endpoint
        resources: dict[str, Handler] = {
            path: Resource(endpoints, service.pages) for path, endpoints in by_path.items()
        }
        self._routes = Routes({**resources, **handlers})
        self._elsewhere = Elsewhere(site)

    def handle(self, request: Request) -> Awaitable[web.StreamResponse]:
        """Answer one request, whatever happens.

        It awaits nothing itself: each coroutine on the way to an answer costs a request something.
        """
        mark(request)
        request.always, request.extra_lines = self._always, self._always_lines
        request.is_last = self._health.draining
        if self._hosts is not None:
            hosts = map(_host_of, request.headers.getall(hdrs.HOST, ()))
            if not self._hosts.issuperset(hosts):
                return self._misdirected(request)
        found = self._routes.find(request.rel_url)
        if found is None:
            return self._elsewhere.handle(request)
        return found.target.handle(request, found.variables)

    async def _misdirected(self, request: Request) -> web.StreamResponse:
        """Refuse a foreign host name, whose pages must not read answers (DNS rebinding).

        For a public site its proxy decides which hosts are served.
        """
        return send(error_answer(Problem("misdirected", _MISDIRECTED)), request)


class Match(NamedTuple, Generic[Target]):
    """What stands on a path, and what its variable parts are."""

    target: Target
    variables: Mapping[str, str]
    """Decoded, by name."""


class Routes(Generic[Target]):
    """Targets by their paths, which have variable parts in braces: `/posts/{slug}`.

    A path with variable parts is worked out once and then remembered, so that the next request for
    it costs one look into a table.
    """

    def __init__(self, targets: Mapping[str, Target]) -> None:
        none: Mapping[str, str] = MappingProxyType({})
        self._fixed = {
            path: Match(target, none) for path, target in targets.items() if "{" not in path
        }
        self._patterns = [
            (re.compile(_VARIABLE.sub(r"(?P<\1>[^/]+)", re.escape(path))), target)
            for path, target in targets.items()
            if "{" in path
        ]
        self._remembered: dict[str, Match[Target] | None] = dict(self._fixed)

    def find(self, url: URL) -> Match[Target] | None:
        """Return what stands on the path of `url`."""
        path = url.raw_path
        if path in self._remembered:
            return self._remembered[path]
        return self._search(path, url.path_safe)

    def _search(self, path: str, decoded: str) -> Match[Target] | None:
        found = self._fixed.get(decoded) or self._match(decoded)
        if len(path) <= _REMEMBERED_LONGEST:
            self._remember(path, found)
        return found

    def _match(self, decoded: str) -> Match[Target] | None:
        for pattern, target in self._patterns:
            if found := pattern.fullmatch(decoded):
                variables = {name: _decode(part) for name, part in found.groupdict().items()}
                return Match(target, MappingProxyType(variables))
        return None

    def _remember(self, path: str, found: Match[Target] | None) -> None:
        if len(self._remembered) >= _REMEMBERED_MOST:
            self._remembered = dict(self._fixed)
        self._remembered[path] = found


def _decode(part: str) -> str:
    """Undo what `path_safe` leaves encoded, so that an encoded slash separates nothing."""
    return part.replace("%2F", "/").replace("%25", "%")


@lru_cache(64)
def _host_of(authority: str) -> str:
    """Return the host of an authority, in small letters, without the port."""
    return re.sub(r":[0-9]*\Z", "", authority).lower()
