"""A whole edge for each test: a real build, a real store, a real socket."""

import logging
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, DummyCookieJar
from aiohttp.test_utils import BaseTestServer, TestClient
from aiohttp.typedefs import StrOrURL
from aiohttp.web import BaseRequest, BaseRunner, StreamResponse
from pytest_aiohttp import AiohttpClient
from yarl import URL

from edge_api.app import assemble
from edge_api.auth.actor import Clock, system_clock
from edge_api.auth.keys import Keys, NewKey
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.http.response import Request, assign_request_id, error_response
from edge_api.http.server import Handler, Reject, Server, listen, start_server
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, SCOPES
from edge_api.settings import Settings, read_settings
from tests.edge.engines import SQLITE_PREFIX, Opener, engines_for, open_store, placed
from tests.edge.postgresql import PostgreSQL
from tests.own_journal import TEST_CONTENT
from tests.patience import patience

SITE_URL = "http://journal.test"
SECRET_KEY = "a secret of thirty-two characters"
"""The key that a store on PostgreSQL needs; one in a file has its own made beside it."""
EMAIL_HOOK_SECRET = "whsec_" + "c2VjcmV0" * 4
NOW = "2026-06-01T00:00:00Z"
CONTENT = TEST_CONTENT


@pytest.fixture(autouse=True, scope="session")
def _log_each_line() -> None:
    """Undo what importing Pelican does to all loggers: a filter that drops repeated warnings."""
    for name in logging.getLogger().manager.loggerDict:
        logger = logging.getLogger(name)
        if name.startswith("edge_api"):
            for found in list(logger.filters):
                logger.removeFilter(found)


@pytest.fixture(autouse=True)
def _keep_loggers() -> Iterator[None]:
    """Take back what a command does to loggers: its streams are closed after the test."""
    loggers = [logging.getLogger(), logging.getLogger("edge_api.access")]
    before = [([*each.handlers], each.level, each.propagate) for each in loggers]
    yield
    for logger, (handlers, level, propagates) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagates
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def _log_in_words(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Let no line of the log show an object's address, or a call in Python's own words."""
    yield
    ours = [each for each in caplog.get_records("call") if each.name.startswith("edge_api")]
    lines = [record.getMessage() for record in ours]
    assert [line for line in lines if re.search(r" at 0x[0-9a-f]{4}|functools\.", line)] == []


def run_build(
    content: Path, output: Path, now: str = NOW, site_url: str = SITE_URL, access: str = "on"
) -> None:
    """Build a journal with the product's own command, and a form that asks for access."""
    options = {"--content": content, "--output": output, "--site-url": site_url, "--now": now}
    words = [str(word) for option in options.items() for word in option]
    command = [sys.executable, "-m", "site_build", "build", *words]
    environment = {**os.environ, "ACCESS_REQUESTS": access}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=patience(600))


@dataclass
class RunningEdge:
    """A running edge, and a client of it."""

    url: str
    service: Any
    session: ClientSession
    mcp: Any = None
    """The MCP endpoint's handler."""

    async def key(self, *scopes: str, tables: tuple[str, ...] = ()) -> str:
        """Return a new API key; without scopes, one that may do everything."""
        order = NewKey(
            "test", scopes=scopes or (*SCOPES, PUBLISH_WITH_ENQUIRIES), tables=tables or None
        )
        issued = await Keys(self.service.store, system_clock).issue(order)
        return str(issued.secret)

    async def token(self, *scopes: str, tables: tuple[str, ...] = ()) -> str:
        """Return a new access token; without scopes, one that may do everything."""
        chosen = scopes or (*SCOPES, PUBLISH_WITH_ENQUIRIES)
        order = NewKey("test", type="access_token", scopes=chosen, tables=tables or None)
        issued = await Keys(self.service.store, system_clock).issue(order)
        return str(issued.secret)

    def ask(self, method: str, path: str, key: str | None = None, **more: Any) -> Any:
        """Send one request; `path` is below the origin, redirects are not followed."""
        headers = {**({"X-API-Key": key} if key else {}), **more.pop("headers", {})}
        return self.session.request(
            method, f"{self.url}{path}", headers=headers, allow_redirects=False, **more
        )


def reject_malformed(request: Request, problem: Problem) -> StreamResponse:
    """Return the error as JSON, with `Connection: close`, as a server without an `App` does."""
    assign_request_id(request)
    return error_response(problem).closing()


class EdgeServer(BaseTestServer):
    """The product's own server, which aiohttp's test client starts and ends."""

    def __init__(self, handler: Handler, reject: Reject = reject_malformed) -> None:
        super().__init__()
        self._handler, self._reject = handler, reject
        self._running: Server | None = None

    async def start_server(self, *_: Any, **__: Any) -> None:
        """Serve on a free port, as the service does."""
        self._running = await start_server(self._handler, await listen(self.host, 0), self._reject)
        self.port = self._running.port

    async def _make_runner(self, **_: Any) -> BaseRunner:
        """Refuse: the product makes its own."""
        raise NotImplementedError

    def make_url(self, path: StrOrURL) -> URL:
        """Return the address of a path."""
        return URL(f"http://{self.host}:{self.port}{path}")

    async def close(self) -> None:
        """End as the service does."""
        if self._running is not None:
            running, self._running = self._running, None
            await running.stop()


EdgeMaker = Callable[..., AbstractAsyncContextManager[RunningEdge]]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """Return a PostgreSQL for all tests of this process, started when the first one asks."""
    server = PostgreSQL()
    try:
        yield server
    finally:
        server.remove()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what needs a store on each engine that is meant for it."""
    marks = metafunc.definition.iter_markers("parametrize")
    is_pinned = any(mark.args[0] == "engine" for mark in marks)
    if "engine" in metafunc.fixturenames and not is_pinned:
        metafunc.parametrize("engine", engines_for(metafunc.definition))


@pytest.fixture
def store_url(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return where the store of the test is: in a file, and for another run in PostgreSQL."""
    with placed(engine, request, tmp_path) as url:
        yield url


@pytest.fixture
async def open_another(store_url: str, clock: Clock) -> AsyncIterator[Opener]:
    """Return what opens one more store on the database of the test, as another process would."""
    async with AsyncExitStack() as stack:

        async def open_one() -> Store:
            opened = await open_store(store_url, clock)
            stack.push_async_callback(opened.close)
            return opened

        yield open_one


@pytest.fixture
async def store(open_another: Opener) -> Store:
    """Return an empty store; each folder of tests has a clock of its own."""
    return await open_another()


@pytest.fixture(scope="session")
def build_journal() -> Callable[..., None]:
    """Return the builder of journals, for tests with content of their own."""
    return run_build


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a BUILD_DIR with a build of the three public posts of `content/`."""
    output = tmp_path_factory.mktemp("journal") / "build"
    run_build(CONTENT, output)
    return output


@pytest.fixture
def make_settings(store_url: str, journal: Path) -> Callable[..., Settings]:
    """Return a maker of settings: no limits, a store of the test's own, the shared journal."""

    def make(**changes: str) -> Settings:
        given = {
            "SITE_URL": SITE_URL,
            "DATABASE_URL": store_url,
            **({} if store_url.startswith(SQLITE_PREFIX) else {"SECRET_KEY": SECRET_KEY}),
            "BUILD_DIR": str(journal),
            "ACCESS_REQUESTS": "on",
            "RATE_LEADS": "0",
            "RATE_LEADS_ATTEMPTS": "0",
            "RATE_AUTHENTICATED": "0",
            "RATE_FAILED_AUTH": "0",
            "RATE_TOKEN": "0",
            "EMAIL_HOOK_SECRET": EMAIL_HOOK_SECRET,
            "RATE_ANALYZE": "0",
            "RATE_SEARCH": "0",
        }
        return read_settings({**given, **changes}, dotenv=None)

    return make


@pytest.fixture
def make_edge(make_settings: Callable[..., Settings], aiohttp_client: AiohttpClient) -> EdgeMaker:
    """Return a maker of running edges, which takes settings that differ."""

    @asynccontextmanager
    async def make(
        clock: Any = system_clock, *, exclusive: bool = False, **changes: str
    ) -> AsyncIterator[RunningEdge]:
        async with assemble(make_settings(**changes), clock, exclusive=exclusive) as assembly:
            server = EdgeServer(assembly.app.handle, assembly.app.reject_malformed)
            client: TestClient[BaseRequest, None]
            client = await aiohttp_client(server, cookie_jar=DummyCookieJar())
            try:
                url = str(client.make_url(""))
                yield RunningEdge(url, assembly.service, client.session, assembly.mcp)
            finally:
                await client.close()

    return make


@pytest.fixture
async def edge(make_edge: EdgeMaker) -> AsyncIterator[RunningEdge]:
    """Return a running edge without limits."""
    async with make_edge() as running:
        yield running


async def error_of(answer: ClientResponse) -> str:
    """Return the sentence of an Error body, having checked that it is nothing more."""
    body = await answer.json()
    assert list(body) == ["error"]
    return str(body["error"])
