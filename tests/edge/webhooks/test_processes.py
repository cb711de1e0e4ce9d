"""Webhooks of an edge as its user runs it: told within seconds, and again after kill -9."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from edge_api.auth.actor import system_clock
from edge_api.db.internal_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.query import Filter, Read, Update
from edge_api.db.sqlite.engine import open_store
from tests.edge.edge_process import PATIENCE, Installation, ServedEdge, free_port
from tests.edge.webhooks.listener import Listener, listening

pytestmark = pytest.mark.size("test")

LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "Hello"}


@pytest.fixture
def installation(tmp_path: Path, journal: Path) -> Installation:
    """Return a folder with a store of its own, and an endpoint on this machine."""
    settings = {
        "PORT": str(free_port()),
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(journal),
        "RATE_LEADS": "0",
    }
    return Installation(tmp_path, settings)


@pytest.fixture
def listener(installation: Installation) -> Iterator[Listener]:
    """Return a listener that is told of new leads."""
    with listening() as made:
        assert installation.run("webhooks", "add", made.url)[0] == 0
        yield made


def create_lead(edge: ServedEdge) -> None:
    """Store a lead."""
    headers = {"Content-Type": "application/json"}
    status, _, _ = edge.post("/api/public/v1/leads", json.dumps(LEAD).encode(), headers)
    assert status == 201


def warning(edge: ServedEdge) -> str:
    """Return what readiness says of webhooks."""
    _, _, body = edge.get("/api/public/v1/readiness")
    return str(json.loads(body)["checks"]["webhooks"].get("error", ""))


async def end_leases(store: Path) -> None:
    """Let all that waits be due now, as if leases and pauses were over."""
    opened = await open_store(store, system_clock)
    past = {"due_at": "2026-01-01T00:00:00.000000Z"}
    await opened.run(Update(WEBHOOK_DELIVERIES, past, (Filter("dead_at", "is", None),)))
    await opened.close()


async def waiting(store: Path) -> int:
    """Return how many events are still to be told."""
    opened = await open_store(store, system_clock)
    (result,) = await opened.run(Read(WEBHOOK_DELIVERIES))
    await opened.close()
    return len(result.rows)


async def is_disabled(store: Path) -> bool:
    """Return whether the endpoint is."""
    opened = await open_store(store, system_clock)
    (result,) = await opened.run(Read(WEBHOOK_ENDPOINTS))
    await opened.close()
    return result.rows[0]["disabled_at"] is not None


def test_a_killed_edge_tells_again_with_the_same_id(
    installation: Installation, listener: Listener
) -> None:
    """It is killed when the receiver has the event and has not answered yet."""
    with installation.serving() as edge:
        listener.before_answer = lambda: edge.process.send_signal(signal.SIGKILL)
        create_lead(edge)
        first = listener.arrivals.get(timeout=PATIENCE)
        edge.process.wait(PATIENCE)
    listener.before_answer = None
    asyncio.run(end_leases(installation.store))
    with installation.serving():
        assert listener.arrivals.get(timeout=PATIENCE) == first

    assert listener.received[0][1] == listener.received[1][1]
    assert json.loads(listener.received[0][1])["data"]["email"] == LEAD["email"]


@pytest.mark.size("ci")
def test_an_orderly_end_tells_nothing_twice(installation: Installation, listener: Listener) -> None:
    """The process waits for the answer to what it has told, writes that down, and ends."""
    with installation.serving() as edge:

        def ask_to_end() -> None:
            edge.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                edge.process.wait(4)

        listener.before_answer = ask_to_end
        create_lead(edge)
        listener.arrivals.get(timeout=PATIENCE)
        assert edge.process.wait(PATIENCE) == 0
    assert asyncio.run(waiting(installation.store)) == 0


@pytest.mark.size("ci")
def test_readiness_warns_until_the_operator_has_fixed_it(
    installation: Installation, listener: Listener
) -> None:
    """Of an endpoint that answered 410, and of what was given up with that; commands fix both."""
    listener.status = 410
    with installation.serving() as edge:
        assert warning(edge) == ""
        create_lead(edge)
        listener.arrivals.get(timeout=PATIENCE)
        wanted = b"a webhook endpoint is disabled and events for webhooks were given up"
        assert edge.await_body("/api/public/v1/readiness", wanted)
        assert edge.await_body("/api/public/v1/readiness", b'"webhooks":{"status":"warn"')
        status, said, _ = installation.run("doctor")
        assert (status, wanted.decode() in said) == (1, True)

        listed = installation.run("webhooks", "list")[1]
        assert "disabled: it answered 410 Gone" in listed
        endpoint = listed.splitlines()[1].split()[0]
        _, _, complained = installation.run("webhooks", "retry", endpoint)
        assert "enable it first" in complained
        listener.status = 204
        assert installation.run("webhooks", "enable", endpoint)[0] == 0
        assert "1 event is queued again" in installation.run("webhooks", "retry", endpoint)[1]
        listener.arrivals.get(timeout=PATIENCE)
        assert edge.await_body("/api/public/v1/readiness", b'"webhooks":{"status":"pass"}')
    assert not asyncio.run(is_disabled(installation.store))
