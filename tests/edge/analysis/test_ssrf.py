"""Nobody is led to an address that is not public, however it is spelled or hidden.

Shown by a resolver and by servers of the test's own, which count who connects.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote

import pytest

from edge_api.analysis.fetch import WebDocumentFetcher
from edge_api.db.problems import Problem
from edge_api.net.ssrf_guard import Address, SsrfGuard, is_public
from tests.edge.analysis.spellings import BRACKETED, HOSTS, NAMES, NUMBERS, SCHEMES, WITH_USER

pytestmark = pytest.mark.one_engine

AGENT = "test/1.0"
OPEN = "127.0.0.2"
"""The one address of this machine that a test may let the visitor go to."""


class Server:
    """Counts connections, and sends whoever comes on to where the path says."""

    def __init__(self) -> None:
        self.connections = 0
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        self.connections += 1
        path = (await reader.readline()).split()[1].decode()
        while (await reader.readline()).strip():
            pass
        status, head = "404 Not Found", ""
        if path.startswith("/to/"):
            status, head = "302 Found", f"Location: {path.removeprefix('/to/')}\r\n"
        answer = f"HTTP/1.1 {status}\r\n{head}Content-Length: 0\r\nConnection: close\r\n\r\n"
        writer.write(answer.encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def closed() -> AsyncIterator[Server]:
    """Return a server on this machine's own addresses, to which nobody may come."""
    server = Server()
    running = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.port = running.sockets[0].getsockname()[1]
    second = await asyncio.start_server(server.answer, "::1", server.port) if _has_six() else None
    yield server
    for each in filter(None, (running, second)):
        each.close()
        await each.wait_closed()


@pytest.fixture
async def opened(closed: Server) -> AsyncIterator[Server]:
    """Return a server on another address with the same port, which leads on."""
    server = Server()
    running = await asyncio.start_server(server.answer, OPEN, closed.port)
    server.port = closed.port
    yield server
    running.close()
    await running.wait_closed()


def _has_six() -> bool:
    with socket.socket(socket.AF_INET6) as probe:
        return probe.connect_ex(("::1", 9)) != 99


class Resolver:
    """Says what the table says, the table of this one test first, and nothing of other names."""

    def __init__(self, **names: Sequence[str]) -> None:
        self.names: dict[str, Sequence[str]] = {**{k.lower(): v for k, v in NAMES.items()}, **names}
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> Sequence[str]:
        """Return the addresses of a host."""
        self.asked.append(host)
        if host not in self.names:
            raise OSError(-2, "unknown")
        return self.names[host]


def make(
    port: int, resolve: Any, allowed: Callable[[Address], bool] = is_public
) -> WebDocumentFetcher:
    """Return a visitor for whom the server's port is an ordinary one."""
    return WebDocumentFetcher(
        AGENT, SsrfGuard(allowed, resolve=resolve), frozenset({80, 443, port})
    )


async def refusal(visitor: WebDocumentFetcher, url: str) -> Problem:
    """Return the problem that a visit ends with."""
    with pytest.raises(Problem) as caught:
        await visitor(url)
    return caught.value


def test_there_are_enough_spellings() -> None:
    """Sixty and more, each another one."""
    assert len(set(HOSTS)) == len(HOSTS) >= 60


@pytest.mark.parametrize("host", HOSTS)
async def test_an_address_is_refused(closed: Server, host: str) -> None:
    """It is refused in every spelling, before a connection is made."""
    problem = await refusal(make(closed.port, Resolver()), f"http://{host}:{closed.port}/x")

    assert problem.code in ("forbidden", "fetch_failed")
    assert problem.message.startswith("url: ")
    assert closed.connections == 0


@pytest.mark.parametrize("host", HOSTS)
async def test_a_redirect_is_looked_at_as_well(closed: Server, opened: Server, host: str) -> None:
    """A server that may be visited cannot lead on to one that may not."""
    resolver = Resolver(**{"open.test": (OPEN,)})
    visitor = make(closed.port, resolver, lambda it: str(it) == OPEN or is_public(it))
    target = quote(f"http://{host}:{closed.port}/x", safe=":/@[]%")
    problem = await refusal(visitor, f"http://open.test:{closed.port}/to/{target}")

    assert problem.code in ("forbidden", "fetch_failed")
    assert opened.connections >= 2, "robots.txt, and the page that leads on"
    assert closed.connections == 0


@pytest.mark.parametrize("url", SCHEMES)
async def test_other_schemes_are_refused(url: str) -> None:
    """There is nothing but http and https."""
    assert (await refusal(make(80, Resolver()), url)).code == "forbidden"


@pytest.mark.parametrize("port", [22, 25, 6379, 8080, 1])
async def test_other_ports_are_refused(port: int) -> None:
    """Mail servers and databases are not spoken to, wherever they are."""
    visitor = WebDocumentFetcher(AGENT, SsrfGuard(resolve=Resolver(**{"open.test": ("8.8.8.8",)})))

    assert "ports 80 and 443" in (await refusal(visitor, f"http://open.test:{port}/")).message


async def test_a_name_that_resolves_differently_is_refused(closed: Server, opened: Server) -> None:
    """Each connection goes to an address that was checked for it, and to no other."""
    turns = iter([(OPEN,), ("127.0.0.1",), ("127.0.0.1",)])

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return next(turns)

    visitor = make(closed.port, resolve, lambda it: it == ip_address(OPEN))
    problem = await refusal(visitor, f"http://rebinding.test:{closed.port}/")

    assert problem.code == "forbidden"
    assert (opened.connections, closed.connections) == (1, 0)


async def test_a_name_is_resolved_once_for_a_connection(closed: Server, opened: Server) -> None:
    """So that there is no second answer to be taken in by."""
    resolver = Resolver(**{"open.test": (OPEN,)})
    visitor = make(closed.port, resolver, lambda it: it == ip_address(OPEN))
    problem = await refusal(visitor, f"http://open.test:{closed.port}/x")

    assert problem.message == "url: its server answers 404"
    assert len(resolver.asked) == opened.connections == 2


async def test_the_operation_refuses_private_addresses(make_edge: Any) -> None:
    """Over HTTP, with the door open to everybody's addresses, it is 403."""
    async with make_edge(ANALYZE_FETCH="on") as edge:
        for host in (*NUMBERS, *BRACKETED, "localhost", *WITH_USER):
            body = {"url": f"http://{host}/"}
            async with edge.ask("POST", "/api/public/v1/analyze", json=body) as answer:
                assert answer.status == 403, host
