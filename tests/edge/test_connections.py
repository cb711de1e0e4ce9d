"""Connections that bring no request: they are closed in time, and take no room from others."""

import asyncio
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from edge_api.http import server as server_module
from edge_api.http.response import PreparedResponse, Request, assign_request_id
from edge_api.http.server import ConnectionProtocol, Server
from tests.edge.conftest import reject_malformed
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.edge.raw_http import connect
from tests.edge.small_builds import make_post, point_at, write_build
from tests.patience import patience

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

PING = b"GET /api/public/ping HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = b"GET /api/public/ping HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
SLOW_LEAD = (
    b"POST /api/public/v1/leads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{"
)
LEAD = SLOW_LEAD.replace(b"1000", b"2") + b"}"
LIMITED = """
import resource, sys
from edge_api.__main__ import main
from edge_api.http import server

server.HEAD_TIMEOUT_SECONDS = 4.0
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
sys.exit(main(["serve"]))
"""
"""An edge with fewer descriptors, which cuts slow heads off sooner."""
HELD = 400
MESSAGE = "connections were closed to keep descriptors free"


@pytest.fixture
async def hasty_edge(make_edge: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a running edge that waits for a head for a moment only."""
    monkeypatch.setattr(server_module, "HEAD_TIMEOUT_SECONDS", 0.4)
    async with make_edge() as running:
        yield running


@pytest.mark.parametrize("begin", [b"", b"G", HALF, PING + HALF], ids=["0", "1", "half", "second"])
async def test_a_head_that_does_not_come_is_cut_off(hasty_edge: Any, begin: bytes) -> None:
    """After any part of it; on a kept connection as on a new one."""
    async with connect(hasty_edge.url) as client:
        if begin.startswith(PING):
            assert await client.is_reusable()
            begin = begin.removeprefix(PING)
        client.writer.write(begin)
        assert await client.is_closed()


async def test_a_head_that_drips_in_is_cut_off(hasty_edge: Any) -> None:
    """Each byte that comes gives it no more time."""
    async with connect(hasty_edge.url) as client:
        client.writer.write(HALF)

        async def drip() -> None:
            for _ in range(600):
                client.writer.write(b"x")
                await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        assert await client.is_closed()
        assert not dripping.done()
        dripping.cancel()


@pytest.mark.parametrize("last", [PING, LEAD, PING * 2, PING + HALF + b"\r\n\r\n"])
async def test_an_idle_connection_keeps_its_own_time(hasty_edge: Any, last: bytes) -> None:
    """One that has brought whole requests is kept while others, which bring none, come and go."""
    async with connect(hasty_edge.url) as idle:
        idle.writer.write(last)
        for _ in range(last.count(b"HTTP/1.1")):
            await idle.answer()
        for _ in range(3):
            async with connect(hasty_edge.url) as slow:
                slow.writer.write(HALF)
                assert await slow.is_closed()
        assert await idle.is_reusable()


@pytest.mark.size("ci")
async def test_a_request_under_way_is_not_cut_off(hasty_edge: Any) -> None:
    """Its head has come; its body has a time limit of its own, and gets an answer after that."""
    async with connect(hasty_edge.url) as client:
        assert (await client.ask(SLOW_LEAD)).status == 408


@pytest.mark.size("ci")
async def test_a_connection_too_many_takes_the_place_of_one_that_asks_for_nothing(
    make_edge: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The oldest incomplete head goes first, then what is idle; what is answered stays."""
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(server_module, "max_connections", lambda: 3)
    async with make_edge() as running, connect(running.url) as busy, connect(running.url) as idle:
        busy.writer.write(SLOW_LEAD)
        assert await idle.is_reusable()
        async with connect(running.url) as slow:
            slow.writer.write(HALF)
            await asyncio.sleep(0.1)
            async with connect(running.url) as asking:
                assert await asking.is_reusable()
                assert await slow.is_closed()
                async with connect(running.url) as another:
                    assert await another.is_reusable()
                    assert await idle.is_closed()
        assert (await busy.answer()).status == 408
        for _ in range(100):
            if caplog.records:
                break
            await asyncio.sleep(0.05)

    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"2 {MESSAGE}")


BIG = 16 * 1024 * 1024
"""Bytes of an answer, more than the system takes for a client that reads nothing."""


class BigServer:
    """A server that answers `/big` with a big body and anything else with a small one."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = f"http://127.0.0.1:{server.port}"
        self._stack = ExitStack()

    async def connect(self) -> socket.socket:
        """Connect and send nothing."""
        client = self._stack.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(0)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", self.server.port))
        return client

    async def ask_for_much(self) -> socket.socket:
        """Ask for the big answer and read nothing; return when as much as possible was sent."""
        client, loop = await self.connect(), asyncio.get_running_loop()
        await loop.sock_sendall(client, PING.replace(b"/api/public/ping", b"/big"))
        await asyncio.sleep(0.2)
        return client

    async def close(self) -> None:
        """Close the clients and the server."""
        self._stack.close()
        await self.server.stop()


@pytest.fixture
async def big_server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BigServer]:
    """Return a server for three connections, which looks at them ten times a second."""
    monkeypatch.setattr(server_module, "max_connections", lambda: 3)
    monkeypatch.setattr(server_module, "HEAD_TIMEOUT_SECONDS", 0.4)
    headers = [("X-Content-Type-Options", "nosniff")]
    small, big = PreparedResponse(200, headers, b"x"), PreparedResponse(200, headers, bytes(BIG))

    async def handler(request: Request) -> PreparedResponse:
        assign_request_id(request)
        return big if request.path == "/big" else small

    serving = BigServer(
        await server_module.start_server(
            handler, await server_module.listen("127.0.0.1", 0), reject_malformed
        )
    )
    try:
        yield serving
    finally:
        await serving.close()


async def read_to_end(client: socket.socket, pause: float = 0.0) -> int:
    """Return how many bytes come until the end of a connection, or of the big answer."""
    count = 0
    with suppress(ConnectionError):
        while count < BIG:
            piece = await asyncio.get_running_loop().sock_recv(client, 1024 * 1024)
            if not piece:
                break
            count += len(piece)
            await asyncio.sleep(pause)
    return count


async def test_clients_that_read_nothing_shut_nobody_out(big_server: BigServer) -> None:
    """They hold every place, and the first of them loses its own to the newcomer."""
    held = [await big_server.ask_for_much() for _ in range(3)]
    for _ in range(5):
        async with connect(big_server.url) as newcomer:
            assert await newcomer.is_reusable()

    counts = [await read_to_end(client) for client in held]
    assert counts[0] < BIG


async def test_the_last_connection_is_answered(
    big_server: BigServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is accepted in the very turn in which the service stops, and asks a little later."""
    monkeypatch.setattr(server_module, "DRAIN_SECONDS", 0.0)
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    ending.set()
    accepted = big_server.server.runner.server
    assert accepted is not None
    client = await big_server.connect()
    for _ in range(1000):
        if accepted.connections:
            break
        await asyncio.sleep(0)

    serving = server_module.serve_until(ending, [big_server.server], lambda: None)
    stopping = asyncio.create_task(serving)
    await asyncio.sleep(0.03)
    await loop.sock_sendall(client, PING)
    assert (await loop.sock_recv(client, 1024)).startswith(b"HTTP/1.1 200 ")
    await stopping


async def test_a_connection_that_begins_holds_no_stop_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is accepted in the very turn in which aiohttp closes all is closed with them."""

    async def handler(_: Request) -> PreparedResponse:
        raise AssertionError("nothing is asked")

    sockets = await server_module.listen("127.0.0.1", 0)
    server = BigServer(await server_module.start_server(handler, sockets, reject_malformed))
    accepted = server.server.runner.server
    assert accepted is not None
    begin = ConnectionProtocol.connection_made

    def begin_and_close(self: ConnectionProtocol, transport: asyncio.BaseTransport) -> None:
        begin(self, transport)
        accepted.pre_shutdown()

    monkeypatch.setattr(ConnectionProtocol, "connection_made", begin_and_close)
    await server.connect()
    for _ in range(1000):
        if accepted.connections:
            break
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)  # its task has begun
    async with asyncio.timeout(server_module.GRACE_SECONDS / 2):
        await accepted.shutdown(server_module.GRACE_SECONDS)
    await server.close()


async def test_an_answer_that_nobody_reads_is_broken_off(
    big_server: BigServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow reader gets the whole of it, though that takes longer."""
    monkeypatch.setattr(server_module, "SEND_TIMEOUT_SECONDS", 1.0)
    deaf, slow = [await big_server.ask_for_much() for _ in range(2)]
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024 * 1024)
    assert await read_to_end(slow, 0.1) >= BIG
    assert await read_to_end(deaf) < BIG


@contextmanager
def limited(folder: Path, soft: int, hard: int) -> Iterator[ServedEdge]:
    """Serve with so many descriptors; the log is in the folder."""
    port = free_port()
    builds, url = folder / "build", f"http://127.0.0.1:{port}"
    point_at(builds, write_build(builds, posts=[make_post("a")], site_url=url))
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{folder}/var/edge.db",
        "BUILD_DIR": str(builds),
    }
    environment = Installation(folder, settings).environment
    program = [sys.executable, "-c", LIMITED.format(soft=soft, hard=hard)]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            program, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            yield ServedEdge(process, port, process.stdout.readline())
        finally:
            process.kill()


def is_closed(connection: socket.socket) -> bool:
    """Return whether the edge has closed a connection, without waiting."""
    connection.settimeout(0)
    with suppress(BlockingIOError):
        try:
            return connection.recv(1) == b""
        except ConnectionError:
            return True
    return False


@pytest.mark.size("ci")
def test_connections_that_are_held_open_shut_nobody_out(tmp_path: Path) -> None:
    """More of them than there are descriptors: a request is answered, each time."""
    with limited(tmp_path, 256, 256) as edge, ExitStack() as stack:
        held = []
        for _ in range(HELD):
            held.append(
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", edge.port), timeout=patience(5))
                )
            )
            with suppress(ConnectionError):
                held[-1].sendall(HALF)
        paths = ["/", "/api/public/ping", "/api/public/v1/readiness", "/api/public/v1/leads"]
        statuses = [edge.get(paths[number % 4])[0] for number in range(40)]
        assert statuses == [200 if number % 4 < 3 else 401 for number in range(40)]

        deadline = time.monotonic() + patience()
        while not all(map(is_closed, held)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert edge.get("/api/public/v1/readiness")[0] == 200
        edge.process.send_signal(signal.SIGTERM)
        assert edge.process.wait(30) == 0

    lines = [line for line in (tmp_path / "log").read_text().splitlines() if " INFO " not in line]
    assert len(lines) == 1
    assert MESSAGE in lines[0]


def test_the_soft_limit_of_descriptors_is_raised(tmp_path: Path) -> None:
    """To the hard one, which the system gives to a service: 400 connections are nothing then."""
    with limited(tmp_path, 128, 2048) as edge, ExitStack() as stack:
        for _ in range(HELD):
            held = socket.create_connection(("127.0.0.1", edge.port), timeout=patience(5))
            stack.enter_context(held).sendall(PING)
            assert held.recv(12) == b"HTTP/1.1 200"
    lines = [line for line in (tmp_path / "log").read_text().splitlines() if " INFO " not in line]
    assert lines == []
