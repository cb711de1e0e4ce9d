"""A real relay and a post office before it."""

from collections.abc import AsyncIterator

import pytest

from edge_api.db.query import Store
from tests.edge.mail.outbox.post_office import PostOffice, TickingClock, open_office
from tests.edge.mail.outbox.scripted_relay import Relay, relaying


@pytest.fixture
def clock() -> TickingClock:
    """Return a watch that was set to noon of 1 June 2026."""
    return TickingClock()


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    """Return a relay that takes every message, unless a test scripts it otherwise."""
    async with relaying() as running:
        yield running


@pytest.fixture
async def office(store: Store, clock: TickingClock, relay: Relay) -> PostOffice:
    """Return a post office that sends through the relay, without a pause between messages."""
    opened = open_office(store, clock, relay)
    await opened.change_state(send_delay_ms=0)
    return opened
