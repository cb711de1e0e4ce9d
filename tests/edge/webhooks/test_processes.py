"""Webhooks of an edge as its user runs it: sent within seconds, and again after kill -9."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from edge_api.auth.actor import system_clock
from edge_api.db.internal_tables import ANNOUNCED_POSTS, WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.query import Filter, Read, Update
from edge_api.db.sqlite.engine import open_store
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.edge.small_builds import make_post, point_at, write_build
from tests.edge.webhooks.listener import Listener, listening
from tests.patience import patience

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
    """Return a listener that gets new leads."""
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
    """Return how many events are still to be sent."""
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


def test_a_killed_edge_sends_again_with_the_same_id(
    installation: Installation, listener: Listener
) -> None:
    """It is killed when the receiver has the event and has not answered yet."""
    with installation.serving() as edge:
        listener.before_answer = lambda: edge.process.send_signal(signal.SIGKILL)
        create_lead(edge)
        first = listener.arrivals.get(timeout=patience())
        edge.process.wait(patience())
    listener.before_answer = None
    asyncio.run(end_leases(installation.store))
    with installation.serving():
        assert listener.arrivals.get(timeout=patience()) == first

    assert listener.received[0][1] == listener.received[1][1]
    assert json.loads(listener.received[0][1])["data"]["email"] == LEAD["email"]


def test_a_build_made_while_the_edge_was_down_is_sent_at_its_start(
    installation: Installation, tmp_path: Path
) -> None:
    """Once, and the posts that were there at the first start never."""
    folder, site_url = tmp_path / "builds", "http://localhost"
    made = installation.changed(BUILD_DIR=str(folder), SITE_URL=site_url)
    posts = [
        make_post(slug, day, url=f"{site_url}/journal/{slug}/")
        for day, slug in enumerate(("one", "two", "three"))
    ]
    starts = [(1, []), (2, ["post.published two"]), (2, []), (3, ["post.published three"])]
    with listening() as listener:
        assert made.run("webhooks", "add", listener.url, "--events", "post.published")[0] == 0
        for number, (length, expected) in enumerate(starts):
            newest_first = posts[:length][::-1]
            built = write_build(folder, f"build-{number:04}", newest_first, site_url=site_url)
            point_at(folder, built)
            with made.serving():
                for _ in expected:
                    listener.arrivals.get(timeout=patience())
                asyncio.run(announced(made.store, length))
            events = [json.loads(body) for _, body in listener.received]
            assert [f"{each['type']} {each['data']['slug']}" for each in events] == expected
            assert asyncio.run(waiting(made.store)) == 0
            listener.received.clear()


async def announced(store: Path, length: int) -> None:
    """Return when an edge has announced so many posts."""
    opened = await open_store(store, system_clock)
    for _ in range(round(patience() / 0.1)):
        (result,) = await opened.run(Read(ANNOUNCED_POSTS))
        if [row for row in result.rows if len(json.loads(row["posts"])) == length]:
            break
        await asyncio.sleep(0.1)
    else:
        raise TimeoutError
    await opened.close()


@pytest.mark.size("ci")
def test_an_orderly_end_sends_nothing_twice(installation: Installation, listener: Listener) -> None:
    """The process waits for the answer to what it has sent, stores it, and ends."""
    with installation.serving() as edge:

        def ask_to_end() -> None:
            edge.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                edge.process.wait(4)

        listener.before_answer = ask_to_end
        create_lead(edge)
        listener.arrivals.get(timeout=patience())
        assert edge.process.wait(patience()) == 0
    assert asyncio.run(waiting(installation.store)) == 0


@pytest.mark.size("ci")
def test_readiness_warns_until_the_operator_has_fixed_it(
    installation: Installation, listener: Listener
) -> None:
    """It warns of an endpoint that answered 410, and of given-up deliveries; commands fix both."""
    listener.status = 410
    with installation.serving() as edge:
        assert warning(edge) == ""
        create_lead(edge)
        listener.arrivals.get(timeout=patience())
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
        listener.arrivals.get(timeout=patience())
        assert edge.await_body("/api/public/v1/readiness", b'"webhooks":{"status":"pass"}')
    assert not asyncio.run(is_disabled(installation.store))
