"""What `/metrics` and the access log say, to whom, and what they leave out."""

import asyncio
import json
import logging
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.edge.edge_process import Installation, free_port

LEAD = {"name": "Ann", "email": "ann@mail.example", "budget_tier": "5k", "message": "Hello"}


async def scrape(edge: Any, key: str | None = None, **headers: str) -> dict[Any, float]:
    """Return every sample by its name and labels."""
    async with edge.ask("GET", "/metrics", key, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        families = text_string_to_metric_families(await answer.text())
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }


async def test_without_the_setting_there_are_none(edge: Any) -> None:
    """The path is like any other that nothing stands on."""
    async with edge.ask("GET", "/metrics") as answer:
        assert answer.status == 404


@pytest.mark.each_engine
async def test_requests_and_what_waits_are_counted(make_edge: Any) -> None:
    """Operations, files and what cannot be parsed are counted, by status class."""
    async with make_edge(METRICS="on") as edge:
        key = await edge.key()
        for _ in range(3):
            async with edge.ask("GET", "/api/public/v1/posts", key):
                pass
        async with edge.ask("GET", "/nowhere/"):
            pass
        async with edge.ask("POST", "/api/public/v1/leads", json=LEAD) as answer:
            assert answer.status == 201
        found = await scrape(edge)

    requests = "edge_requests_total"
    assert found[requests, ("operation", "list_posts"), ("status", "2xx")] == 3
    assert found[requests, ("operation", "site"), ("status", "4xx")] == 1
    assert found["edge_request_seconds_count", ("operation", "create_lead")] == 1
    assert found["edge_leads",] == 1
    assert found["edge_outbox_waiting", ("outbox", "webhooks")] == 0
    assert found["edge_posts",] > 0
    assert found["edge_build_age_seconds",] > 0
    assert found["edge_check", ("check", "store")] == 0
    assert ("edge_check", ("check", "watcher")) in found


async def test_limits_that_were_hit_are_counted(make_edge: Any) -> None:
    """A 429 is counted for its operation."""
    async with make_edge(METRICS="on", RATE_LEADS_ATTEMPTS="1/minute") as edge:
        for _ in range(3):
            async with edge.ask("POST", "/api/public/v1/leads", json=LEAD):
                pass
        found = await scrape(edge)

    assert found["edge_limited_requests_total", ("operation", "create_lead")] == 2


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
async def test_what_was_forwarded_needs_a_key(make_edge: Any, name: str) -> None:
    """A proxy on the same machine opens nothing; the scope does."""
    async with make_edge(METRICS="on") as edge:
        async with edge.ask("GET", "/metrics", headers={name: "203.0.113.9"}) as answer:
            assert answer.status == 401
        reader = await edge.key("posts:read")
        async with edge.ask("GET", "/metrics", reader) as answer:
            assert answer.status == 403
        assert await scrape(edge, await edge.key("metrics:read"), **{name: "203.0.113.9"})


async def test_the_event_loop_and_the_memory_are_measured(make_edge: Any) -> None:
    """Both are there as soon as the background job runs."""
    async with make_edge(METRICS="on") as edge:
        for _ in range(100):
            found = await scrape(edge)
            if found["edge_resident_memory_bytes",]:
                break
            await asyncio.sleep(0.05)

    assert found["edge_resident_memory_bytes",] > 10_000_000
    assert found["edge_event_loop_lag_seconds",] >= 0


async def lines_of(edge: Any, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the access log of three requests that have something to hide."""
    caplog.set_level(logging.INFO, logger="edge_api.access")
    key = await edge.key()
    for path in ("/api/public/v1/leads?limit=1", "/shared/0123456789abcdef/?a=ann@mail.example"):
        async with edge.ask("GET", path, key, headers={"User-Agent": 'a"b\n'.strip()}):
            pass
    async with edge.ask("POST", "/api/public/v1/leads", json=LEAD):
        pass
    lines = [each.getMessage() for each in caplog.records if each.name == "edge_api.access"]
    for secret in (key, "0123456789abcdef", "ann@mail", "127.0.0.1", "limit=1", "Hello"):
        assert secret not in "\n".join(lines)
    return lines


async def test_a_line_of_the_combined_format(
    make_edge: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Readers of web servers' logs can read it; nothing of a person is in it."""
    async with make_edge(ACCESS_LOG="combined") as edge:
        first, second, third = await lines_of(edge, caplog)

    assert first.startswith("- - - [")
    assert '"GET /api/public/v1/leads HTTP/1.1" 200 ' in first
    assert '"a\\x22b"' in first
    assert '"GET /shared/- HTTP/1.1" 404 ' in second
    assert '"POST /api/public/v1/leads HTTP/1.1" 201 ' in third


async def test_a_line_of_json(make_edge: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It names the operation and the id that the answer repeats."""
    async with make_edge(ACCESS_LOG="json") as edge:
        lines = [json.loads(line) for line in await lines_of(edge, caplog)]

    assert [line["operation"] for line in lines] == ["list_leads", "site", "create_lead"]
    assert all(len(line["request_id"]) >= 8 and line["seconds"] > 0 for line in lines)


async def test_off_writes_nothing(edge: Any, caplog: pytest.LogCaptureFixture) -> None:
    """That is the default."""
    assert await lines_of(edge, caplog) == []


@pytest.mark.size("test")
def test_a_process_writes_bare_lines_to_standard_output(tmp_path: Path) -> None:
    """Also of what cannot be parsed: a reader of web servers' logs takes each line as it is."""
    settings = {
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(tmp_path / "build"),
        "PORT": str(free_port()),
        "ACCESS_LOG": "combined",
    }
    with Installation(tmp_path, settings).serving() as edge:
        assert edge.get("/api/public/ping")[0] == 200
        with socket.create_connection(("127.0.0.1", edge.port)) as client:
            client.sendall(b"nonsense\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 400 ")
        edge.process.send_signal(signal.SIGTERM)
        output, _ = edge.process.communicate(timeout=60)

    lines = [line for line in output.splitlines() if line.startswith("- - - [")]
    assert ['"GET /api/public/ping HTTP/1.1" 200 ' in line for line in lines] == [True, False]
    assert '" 400 ' in lines[1]
