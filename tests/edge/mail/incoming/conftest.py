"""A mailbox for each test on a real IMAP server, and edges that read it without pauses."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from edge_api.auth.actor import Clock, system_clock
from tests.edge.conftest import EdgeMaker
from tests.edge.mail.imap_server import ImapServer, serving_imap

_numbers = count(1)
Reader = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def clock() -> Clock:
    """Return the clock of edges and stores."""
    return system_clock


@pytest.fixture(scope="session")
def imap_server() -> Iterator[ImapServer]:
    """Return a server for all tests of this process."""
    with serving_imap() as server:
        yield server


@dataclass(frozen=True)
class Folder:
    """A folder on the server that only one test uses."""

    server: ImapServer
    name: str

    def put(self, *messages: bytes) -> None:
        """Add messages, as a delivery does."""
        self.server.put(*messages, folder=self.name)

    def flags(self) -> list[str]:
        """Return the flags of all messages, in order."""
        return [*self.server.flags(self.name)]

    def url(self, scheme: str = "imaps", **more: str) -> str:
        """Return the value of `MAILBOX_URL`."""
        return self.server.url(scheme, f"/{quote(self.name)}", **more)


@pytest.fixture
def folder(imap_server: ImapServer) -> Folder:
    """Return an empty folder."""
    name = f"replies {next(_numbers)}"
    with imap_server.opened() as client:
        client.create(f'"{name}"')
    return Folder(imap_server, name)


@pytest.fixture
def reading(
    make_edge: EdgeMaker,
    folder: Folder,
    monkeypatch: pytest.MonkeyPatch,
) -> Reader:
    """Return a maker of edges that read the folder of the test again and again."""
    monkeypatch.setenv("SSL_CERT_FILE", str(folder.server.certificate))
    monkeypatch.setattr("edge_api.app.POLL_SECONDS", 0.05)
    monkeypatch.setattr("edge_api.mail.incoming.PAUSE", timedelta(milliseconds=20))
    monkeypatch.setattr("edge_api.mail.incoming.PAUSE_AFTER_FAULT", timedelta(milliseconds=100))

    @asynccontextmanager
    async def make(**changes: str) -> AsyncIterator[Any]:
        async with make_edge(exclusive=True, **{"MAILBOX_URL": folder.url(), **changes}) as edge:
            yield edge

    return make
