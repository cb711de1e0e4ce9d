"""A receiver of webhooks on this machine, and an edge's dispatcher that tells it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from edge_api.auth.rate_limits import Limiter
from edge_api.auth.tokens import SecretBox
from edge_api.db.internal_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.query import Order, Read, Store
from edge_api.db.table import Row, Table
from edge_api.journal.builds import BuildManager
from edge_api.journal.search_index_files import SearchOpener
from edge_api.leads.input import LeadInput, read_form
from edge_api.leads.service import Leads, Sender
from edge_api.settings import read_settings
from edge_api.webhooks.dispatcher import WebhookDispatcher, WebhookSender
from edge_api.webhooks.endpoints import KEY_PURPOSE, Endpoints
from tests.edge.domain.conftest import MovableClock
from tests.edge.small_builds import SITE_URL

SECRET = b"s" * 32

is_loopback = attrgetter("is_loopback")

_OPENED: list[BuildManager] = []
"""The builds that edges of the present test follow: each holds connections to a search index."""


def follow_builds(folder: Path, site_url: str = SITE_URL) -> BuildManager:
    """Return the builds of an edge, which are closed when the test ends."""
    _OPENED.append(BuildManager(folder, site_url, SearchOpener()))
    return _OPENED[-1]


@pytest.fixture(autouse=True)
async def _close_builds() -> AsyncIterator[None]:
    yield
    while _OPENED:
        await _OPENED.pop().close()


@dataclass
class Received:
    """One request, as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The id of the message."""
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """A server that records the events it gets, and answers as the test wants."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    arrivals: asyncio.Queue[Received] = field(default_factory=asyncio.Queue)
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    before_answer: Callable[[], Awaitable[None]] | None = None

    async def handle(self, request: web.Request) -> web.Response:
        """Take one request."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.received.append(Received(headers, await request.read()))
        self.arrivals.put_nowait(self.received[-1])
        if self.before_answer is not None:
            await self.before_answer()
        return web.Response(status=self.status, headers=self.headers)

    async def arrival(self) -> Received:
        """Return what comes next, within a minute."""
        return await asyncio.wait_for(self.arrivals.get(), 60)

    @property
    def ids(self) -> list[str]:
        """The ids of all that came, in order."""
        return [each.id for each in self.received]


ReceiverMaker = Callable[[], Awaitable[Receiver]]


@pytest.fixture
def make_receiver(aiohttp_server: AiohttpServer) -> ReceiverMaker:
    """Return a maker of receivers."""

    async def make() -> Receiver:
        receiver = Receiver()
        app = web.Application()
        app.router.add_post("/{path:.*}", receiver.handle)
        server = await aiohttp_server(app, shutdown_timeout=0)
        receiver.url = str(server.make_url("/hook"))
        return receiver

    return make


@pytest.fixture
async def receiver(make_receiver: ReceiverMaker) -> Receiver:
    """Return a receiver."""
    return await make_receiver()


@dataclass
class Office:
    """A store, and who tells others of its leads."""

    store: Store
    clock: MovableClock
    endpoints: Endpoints
    dispatcher: WebhookDispatcher
    leads: Leads

    async def lead(self, message: str = "Hello", **more: str) -> Row:
        """Store a lead as the API does; return its published members."""
        created = await self.leads.create(read_lead(message, **more), Sender(None, "192.0.2.1"))
        return created.row

    async def deliveries(self) -> list[Row]:
        """Return what waits or was given up, oldest first."""
        return await self.rows(WEBHOOK_DELIVERIES)

    async def endpoint(self) -> Row:
        """Return the only endpoint."""
        (row,) = await self.rows(WEBHOOK_ENDPOINTS)
        return row

    async def rows(self, table: Table) -> list[Row]:
        """Return every row."""
        (result,) = await self.store.run(Read(table, order=(Order("id"),)))
        return result.rows


def read_lead(message: str, **more: str) -> LeadInput:
    """Return a lead; `more` are further members of the form."""
    form = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": message}
    return read_form({**form, **more})


def make_office(store: Any, clock: MovableClock, teller: WebhookSender | None = None) -> Office:
    """Return who tells others of the leads in a store; without a teller, this machine alone."""
    messenger = teller or WebhookSender(is_loopback, is_loopback)
    wrapping = SecretBox(SECRET, KEY_PURPOSE)
    dispatcher = WebhookDispatcher(store, clock, wrapping, messenger)
    limiter = Limiter(read_settings({"RATE_LEADS": "0"}, dotenv=None))
    leads = Leads(store, clock, limiter, SECRET, (dispatcher,))
    endpoints = Endpoints(store, clock, wrapping, lambda: messenger)
    return Office(store, clock, endpoints, dispatcher, leads)


@pytest.fixture
def clock() -> MovableClock:
    """Return a clock at noon of 1 June 2026."""
    return MovableClock()


@pytest.fixture
def office(store: Store, clock: MovableClock) -> Office:
    """Return who tells this machine of the leads in the store."""
    return make_office(store, clock)
