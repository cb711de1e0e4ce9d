"""`/metrics` and the access log: their content, their readers, and what they leave out."""

import asyncio
import json
import logging
import re
import signal
import socket
import stat
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyrage.x25519 import Identity

from edge_api.auth.actor import new_id
from edge_api.backup.verify import Verification, change_result, store_place
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.query import Insert
from edge_api.db.types import format_instant
from edge_api.schema.environment import VERSION
from edge_api.stats.reading import KINDS
from tests.edge.edge_process import ROOT, Installation, free_port
from tests.patience import patience

AT = "2026-01-31T08:05:09.000000Z"
LEAD = {"name": "Ann", "email": "ann@mail.example", "budget_tier": "5k", "message": "Hello"}


async def scrape(edge: Any) -> dict[Any, float]:
    """Return every sample by its name and labels."""
    async with edge.ask("GET", "/metrics", await edge.key("metrics:read")) as answer:
        assert answer.status == 200, await answer.text()
        families = text_string_to_metric_families(await answer.text())
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }


async def test_without_the_setting_there_are_no_metrics(edge: Any) -> None:
    """The path is like any other without a page."""
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


@pytest.mark.each_engine
async def test_mail_that_was_given_up_is_counted_if_it_must_reach_the_owner(make_edge: Any) -> None:
    """Any visitor could cause that other mail is, and an alert of it."""
    now = datetime.now(UTC)
    rows = [
        EMAIL_OUTBOX.new_row(
            {
                "queue": "transactional",
                "template_name": name,
                "recipient_email": "ann@mail.example",
                "subject_id": new_id(now),
                "dead_at": format_instant(now),
            },
            format_instant(now),
            lambda: new_id(now),
        )
        for name in ("lead_notification", "lead_acknowledgement", "newsletter_confirmation")
    ]
    async with make_edge(METRICS="on") as edge:
        await edge.service.store.run(Insert(EMAIL_OUTBOX, rows))
        found = await scrape(edge)

    assert found["edge_outbox_dead", ("outbox", "mail")] == 1


async def test_limits_that_were_hit_are_counted(make_edge: Any) -> None:
    """A 429 is counted for its operation."""
    async with make_edge(METRICS="on", RATE_LEADS_ATTEMPTS="1/minute") as edge:
        for _ in range(3):
            async with edge.ask("POST", "/api/public/v1/leads", json=LEAD):
                pass
        found = await scrape(edge)

    assert found["edge_limited_requests_total", ("operation", "create_lead")] == 2


async def test_metrics_need_a_key_from_every_address(make_edge: Any) -> None:
    """A tunnel on the same machine may add no header, so that nothing tells it from Prometheus."""
    async with make_edge(METRICS="on") as edge:
        for headers in ({}, {"X-Forwarded-For": "203.0.113.9"}):
            async with edge.ask("GET", "/metrics", headers=headers) as answer:
                assert answer.status == 401
        reader = await edge.key("posts:read")
        async with edge.ask("GET", "/metrics", reader) as answer:
            assert answer.status == 403
        assert await scrape(edge)


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


def installed(folder: Path, place: object, **more: str) -> Installation:
    """Return an installation with metrics at a place of their own."""
    settings = {
        "DATABASE_URL": f"sqlite:///{folder}/edge.db",
        "BUILD_DIR": str(folder / "build"),
        "PORT": str(free_port()),
        "METRICS": "on",
        "METRICS_SOCKET": str(place),
    }
    return Installation(folder, {**settings, **more})


def ask_socket(path: Path, target: str) -> bytes:
    """Return the answer of a Unix socket to one GET."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(f"GET {target} HTTP/1.0\r\n\r\n".encode())
        with client.makefile("rb") as answer:
            return answer.read()


@pytest.mark.size("test")
def test_a_socket_for_metrics_needs_no_key(tmp_path: Path) -> None:
    """It has nothing else, is for owner and group, and is gone at the end, if not after a kill."""
    path = tmp_path / "metrics.sock"
    installation = installed(tmp_path, path)
    with installation.serving() as edge:
        assert b"edge_resident_memory_bytes" in ask_socket(path, "/metrics")
        for target in ("/", "/api/public/ping", "/api/public/v1/leads", "/desk/", "/metrics/"):
            assert ask_socket(path, target).startswith(b"HTTP/1.1 404 "), target
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert edge.get("/metrics")[0] == 401
        edge.process.kill()
        edge.process.wait()
    assert path.is_socket()
    with installation.serving() as edge:
        assert b" 200 " in ask_socket(path, "/metrics")
        assert edge.end(signal.SIGTERM)[0] == 0
    assert not path.exists()


@pytest.mark.size("test")
def test_a_port_for_metrics_needs_no_key(tmp_path: Path) -> None:
    """It is on the loopback address, whatever `--host` says, and has nothing else."""
    port = free_port()
    with installed(tmp_path, port).serving() as edge:
        scraped = replace(edge, port=port)
        assert b"edge_requests_total" in scraped.get("/metrics")[2]
        assert scraped.get("/")[0] == 404
        assert edge.end(signal.SIGTERM)[0] == 0


@pytest.mark.size("test")
@pytest.mark.parametrize("kind", ["port", "socket", "file", "folder"])
def test_a_place_that_cannot_be_had_ends_the_start(tmp_path: Path, kind: str) -> None:
    """In one sentence; what is there stays."""
    path = tmp_path / "here"
    with socket.socket(socket.AF_UNIX if kind == "socket" else socket.AF_INET) as taken:
        taken.bind(str(path) if kind == "socket" else ("127.0.0.1", 0))
        taken.listen()
        if kind == "file":
            path.write_text("kept")
        place = taken.getsockname()[1] if kind == "port" else path
        place = tmp_path / "none" / "here" if kind == "folder" else place
        code, _, complained = installed(tmp_path, place).run("serve")

    said = [line for line in complained.splitlines() if " INFO " not in line]
    in_use = "Address already in use; end what listens there (ss -lnp names it)"
    missing = "No such file or directory; make its folder, and let this user write there"
    reason = missing if kind == "folder" else in_use
    sentence = f"METRICS_SOCKET: cannot listen on {place}: {reason}, or set another METRICS_SOCKET"
    assert (code, said) == (1, [sentence])
    assert path.exists() is (kind in ("socket", "file"))


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


async def test_access_log_off_writes_nothing(edge: Any, caplog: pytest.LogCaptureFixture) -> None:
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
        output, _ = edge.process.communicate(timeout=patience())

    lines = [line for line in output.splitlines() if line.startswith("- - - [")]
    assert ['"GET /api/public/ping HTTP/1.1" 200 ' in line for line in lines] == [True, False]
    assert '" 400 ' in lines[1]


@pytest.mark.size("test")
@pytest.mark.parametrize("words", ["check rules deploy", "test rules tests/edge"])
def test_the_rules_for_prometheus_are_valid(words: str) -> None:
    """Its own tool takes them, and raises what they are to raise."""
    run = partial(subprocess.run, cwd=ROOT, check=False, capture_output=True, text=True)
    provided = run([ROOT / "tools" / "provide", "promtool"])
    assert provided.returncode == 0, provided.stderr
    *command, folder = words.split()
    file = {"deploy": "prometheus-rules.yml", "tests/edge": "prometheus_rules_test.yml"}[folder]
    checked = run([provided.stdout.strip(), *command, f"{folder}/{file}"])
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def test_the_rules_name_metrics_that_are_there(make_edge: Any) -> None:
    """Each name in an expression is a series from the first answer on."""
    rules = (ROOT / "deploy" / "prometheus-rules.yml").read_text()
    named = set(re.findall(r"\bedge_[a-z_]+", rules))
    async with make_edge(METRICS="on") as edge:
        found = {name for name, *_ in await scrape(edge)}

    # There is a certificate only with https, and an age once there is a backup.
    ages = {"edge_backup_age_seconds", "edge_archive_age_seconds"}
    assert named - found == {"edge_certificate_days", *ages}


@pytest.mark.parametrize(
    ("part", "setting", "value", "watched"),
    [
        ("backup", "LITESTREAM_REPLICA", "file:///nowhere/replica", 0),
        ("backup", "LITESTREAM_REPLICA", "", 1),
        ("archive", "BACKUP_RECIPIENT", "", 0),
        ("archive", "BACKUP_RECIPIENT", str(Identity.generate().to_public()), 1),
    ],
    ids=["replica", "backup", "unkeyed", "archive"],  # a new key in each process that collects
)
async def test_what_may_grow_old_has_no_age(
    part: str, setting: str, value: str, watched: int, make_edge: Any
) -> None:
    """One that was made by hand, beside a replica or without a public key, alerts nobody."""
    made = Verification("/x", AT, made_at=AT)
    async with make_edge(METRICS="on", **{setting: value}) as edge:
        settings = edge.service.settings
        store_place(settings).parent.mkdir(exist_ok=True)
        change_result(settings, part, lambda _: made)
        found = await scrape(edge)

    assert ("is older than 2 days" in made.find_error(part, settings)) == watched
    if settings.database_path is None and part == "backup":
        watched = 0  # a server makes its own
    assert ((f"edge_{part}_age_seconds",) in found) == watched


async def test_each_series_is_there_from_the_start(make_edge: Any) -> None:
    """A rate over a series that begins at 1 would not see the first failure."""
    async with make_edge(METRICS="on") as edge:
        found = await scrape(edge)
        async with edge.ask("GET", "/metrics", await edge.key("metrics:read")) as answer:
            text = await answer.text()

    for status in ("2xx", "4xx", "5xx"):
        labels = ("operation", "create_lead"), ("status", status)
        assert found["edge_requests_total", *labels] == 0
    assert found["edge_limited_requests_total", ("operation", "create_lead")] == 0
    for outcome in ("sent", "failed"):
        assert found["edge_mail_total", ("outcome", outcome)] == 0
    for kind in KINDS:
        assert found["edge_page_views_total", ("kind", kind)] == 0
    for check in ("content", "newsletter", "secret_key"):
        assert found["edge_check", ("check", check)] == 0
    assert found["edge_backups_total",] == found["edge_archives_total",] == 0
    assert found["edge_disk_free_bytes", ("folder", "build")] > 0
    assert found["edge_disk_size_bytes", ("folder", "build")] > 0
    assert "_created" not in text
    assert "# TYPE edge_backups_total counter" in text
    assert f'version="{VERSION}"' in text
    assert "edge_cpu_seconds_total" in text
    assert "edge_open_files" in text
