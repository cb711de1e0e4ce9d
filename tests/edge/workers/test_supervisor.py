"""Several workers on one socket: how they start, come back, are renewed and end."""

import asyncio
import json
import logging
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from edge_api.__main__ import main
from edge_api.cli.supervisor import MAX_EARLY_EXITS
from edge_api.http.logs import JsonFormatter
from edge_api.journal.search_index_files import MIN_POSTS_FOR_INDEX_FILE
from tests.edge.edge_process import Installation, free_port
from tests.edge.ledger import Difference, compare, stored_leads
from tests.edge.load import LEAD, LEADS, Writers
from tests.edge.postgresql import PostgreSQL
from tests.edge.small_builds import make_post, point_at, write_build
from tests.edge.workers.conftest import SECRET_KEY, Service, is_alive, supervised
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

READINESS = "/api/public/v1/readiness"


def test_workers_greet_once_and_serve_as_one_edge(lasting: Service) -> None:
    """One line says where, one has the key of development, which opens; each log line says whose.

    Readiness names the build, so that one can tell which is served on which machine.
    """
    assert lasting.greeting[0] == f"serving {lasting.origin}\n"
    said, _, key = lasting.greeting[1].strip().rpartition(" ")
    assert said == "development key (all but posts:publish, this machine only):"
    for _ in range(8):
        assert lasting.edge.get("/api/public/v1/admin/leads", {"X-API-Key": key})[0] == 200
    report = json.loads(lasting.edge.get(READINESS)[2])
    assert report["checks"]["index"]["build_id"] == "build-0001"
    for number in (1, 2):
        assert f" INFO    [{number}] - edge_api.journal.builds: serving build " in lasting.log


def test_a_port_in_use_is_reported(lasting: Service) -> None:
    """In the sentence of one edge, with status 1; the first service goes on."""
    code, said, complained = lasting.installation.run("serve", "--workers", "2")

    assert (code, said) == (1, "")
    taken = f"cannot listen on 127.0.0.1:{lasting.port}: Address already in use; end what listens"
    assert complained.startswith(taken)
    assert lasting.edge.get(READINESS)[0] == 200


async def test_a_worker_that_is_killed_comes_back_and_loses_nothing(
    lasting: Service, postgresql: PostgreSQL
) -> None:
    """Under load: the other answers on, what was acknowledged is there, and nothing twice."""
    known = lasting.log.count(" serves\n")
    async with Writers([lasting.origin]) as writers:
        for number in (1, 2):
            await writers.acknowledge_more(40)
            psutil.Process(lasting.workers[number]).kill()
            await writers.acknowledge_more(40)
            await asyncio.to_thread(lasting.await_log, " serves\n", known + number)
        await writers.acknowledge_more(40)

    assert writers.outcome.refused == 0
    assert compare(writers.outcome, stored_leads(postgresql, lasting.database)) == Difference()
    assert "was ended by SIGKILL; a new one replaces it" in lasting.log


@pytest.mark.size("ci")
async def test_a_renewal_refuses_no_connection_and_cuts_none(
    lasting: Service, postgresql: PostgreSQL
) -> None:
    """SIGHUP replaces each worker by another that is ready, while leads come without a pause."""
    before = lasting.workers
    async with Writers([lasting.origin]) as writers:
        await writers.acknowledge_more(40)
        lasting.process.send_signal(signal.SIGHUP)
        await asyncio.to_thread(lasting.await_log, "all 2 workers are new")
        await writers.acknowledge_more(40)
    outcome = writers.outcome

    assert (outcome.refused, outcome.cut, outcome.silent) == (0, 0, 0)
    assert set(outcome.answers) == {201}
    assert compare(outcome, stored_leads(postgresql, lasting.database)).lost == set()
    assert set(lasting.workers) == set(before)
    assert set(lasting.workers.values()).isdisjoint(before.values())


def test_a_renewal_stops_at_a_worker_that_is_not_ready(lasting: Service) -> None:
    """The build is gone: those that served it stay, and serve it again once it is back."""
    builds, before = Path(lasting.installation.settings["BUILD_DIR"]), lasting.workers
    (builds / "build-0001").rename(builds / "elsewhere")
    lasting.fail_to_renew()
    lasting.await_that(lambda: lasting.workers == before)

    assert not json.loads(lasting.edge.get(READINESS)[2])["ready"]
    (builds / "elsewhere").rename(builds / "build-0001")
    lasting.await_that(lambda: json.loads(lasting.edge.get(READINESS)[2])["ready"])


def test_a_renewal_stops_at_a_setting_that_is_wrong(lasting: Service) -> None:
    """It is read anew, and its sentence is in the log."""
    before, file = lasting.workers, lasting.installation.folder / ".env"
    file.write_text("RATE_SEARCH=often\n")
    lasting.fail_to_renew()
    file.unlink()

    assert "RATE_SEARCH: must be like" in lasting.log
    assert lasting.workers == before
    assert lasting.edge.get(READINESS)[0] == 200


def test_a_signal_ends_all_in_order(service: Service) -> None:
    """Readiness says no, a request under way is answered, the status is 0 and nobody is left."""
    workers = service.children()
    body = json.dumps({**LEAD, "message": "slow"}).encode()
    head = f"POST {LEADS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", service.port), 60) as slow:
        slow.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:9])
        service.process.send_signal(signal.SIGTERM)
        assert service.edge.await_body(READINESS, b"Not ready: shutting down")
        slow.sendall(body[9:])
        assert slow.recv(4096).startswith(b"HTTP/1.1 201 ")
    assert service.process.wait(30) == 0
    assert [each for each in workers if is_alive(each)] == []
    assert "Traceback" not in service.log
    assert service.process.stdout is not None
    assert service.process.stdout.read() == "", "it greets once"


@pytest.mark.size("ci")
def test_a_second_signal_kills(service: Service) -> None:
    """Requests under way are lost, and the status says so."""
    workers = service.children()
    with socket.create_connection(("127.0.0.1", service.port), 60) as slow:
        slow.sendall(
            f"POST {LEADS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n".encode()
        )
        service.process.send_signal(signal.SIGINT)
        assert service.edge.await_body(READINESS, b"Not ready: shutting down")
        assert service.end(signal.SIGINT) == 1
    assert [each for each in workers if is_alive(each)] == []


@pytest.mark.size("ci")
def test_workers_end_with_their_supervisor(installation: Installation) -> None:
    """However it dies; the port is free for the next one before they have finished."""
    with supervised(installation) as service:
        workers = service.children()
        service.process.kill()
        service.process.wait(30)
        service.await_that(lambda: is_free(service.port))
        with installation.serving() as edge:
            assert edge.get(READINESS)[0] == 200
        service.await_that(lambda: not any(map(is_alive, workers)))


def is_free(port: int) -> bool:
    """Return whether nobody listens on a port any more."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


TERMINAL = (sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])")
"""Runs a command in a terminal of its own, which closes when this process dies."""


@pytest.mark.size("ci")
def test_closing_the_terminal_ends_all_workers(installation: Installation) -> None:
    """There SIGHUP is no wish for new workers: nobody would be left to end them."""
    serve = (sys.executable, "-m", "edge_api", "serve", "--workers", "2")
    with subprocess.Popen(
        [*TERMINAL, *serve],
        cwd=installation.folder,
        env=installation.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as terminal:
        assert terminal.stdout is not None
        for line in terminal.stdout:  # the log, too: it is what a person sees
            if b"worker 2 (process" in line:
                break
        started = psutil.Process(terminal.pid).children(recursive=True)
        terminal.kill()

    assert len(started) == 3
    gone, _ = psutil.wait_procs(started, timeout=patience(30))
    assert len(gone) == 3


@pytest.mark.size("ci")
def test_workers_without_a_database_are_not_tried_again(installation: Installation) -> None:
    """The store's sentence is there once, and the status is 1."""
    missing = installation.changed(DATABASE_URL=f"{installation.settings['DATABASE_URL']}_no")
    code, said, complained = missing.run("serve", "--workers", "3")

    assert (code, said) == (1, "")
    assert complained.count("is not there: make it with createdb, or correct DATABASE_URL") == 1
    assert "Traceback" not in complained


@pytest.mark.size("ci")
@pytest.mark.parametrize("module", ["edge_api", *in_ci("tests.edge.workers.no_time")])
def test_workers_that_never_come_to_serve_are_given_up_when_none_serves(
    installation: Installation, postgresql: PostgreSQL, module: str
) -> None:
    """The database is gone: while one worker lives, pages are served; then the status is 1.

    However long each takes to find that out.
    """
    with supervised(installation, module=module) as service:
        postgresql.drop(service.database)
        psutil.Process(service.workers[2]).kill()
        service.await_log("ended with status 1; a new one replaces it", 2)
        assert service.edge.get("/")[0] == 200
        assert service.process.poll() is None

        psutil.Process(service.workers[1]).kill()
        assert service.process.wait(3 * patience()) == 1  # five starts of a busy machine
        # The other worker may complain of the database after that.
        assert service.log.count("no worker serves: worker ") == 1


@pytest.mark.size("ci")
def test_a_worker_that_never_starts_ends_nothing_while_another_serves(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    """It is tried again beyond the number of starts after which a service without any ends."""
    with supervised(installation) as service:
        postgresql.drop(service.database)
        psutil.Process(service.workers[2]).kill()
        failed = "ended with status 1; a new one replaces it"
        service.await_that(
            lambda: (
                service.log.count(failed) > MAX_EARLY_EXITS or service.process.poll() is not None
            )
        )
        assert service.process.poll() is None
        assert service.edge.get("/")[0] == 200


def test_log_lines_as_json_have_the_worker() -> None:
    """As a member, where there is one."""
    record = logging.makeLogRecord({"levelname": "INFO", "name": "x", "msg": "hello"})

    assert json.loads(JsonFormatter(2).format(record))["worker"] == 2
    assert "worker" not in json.loads(JsonFormatter().format(record))


def test_nobody_else_gives_what_workers_inherit(installation: Installation) -> None:
    """The option is refused with a message."""
    code, _, complained = installation.run("serve", "--inherited", "1,0,77,78")

    assert code == 2
    assert complained == "--inherited: only the supervisor of --workers gives it\n"


@pytest.mark.parametrize("text", ["1,0", "1,0,x,7", ""])
def test_invalid_inherited_sockets_are_refused(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As any other option that cannot be read."""
    assert main(["serve", "--inherited", text]) == 2
    assert "Invalid value for '--inherited'" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "65", "-1"])
def test_an_invalid_number_of_workers_is_refused(
    count: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything is opened."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.test/journal")
    monkeypatch.setenv("SECRET_KEY", SECRET_KEY)

    assert main(["serve", "--workers", count]) == 2
    assert f"{count} is not in the range 1<=x<=64" in capsys.readouterr().err


def test_workers_share_one_search_index(service: Service) -> None:
    """It is made beside the builds, by one of them for all, and goes when the next one is there."""
    builds = service.installation.folder / "build"
    slugs = [f"post-{number}" for number in range(MIN_POSTS_FOR_INDEX_FILE)]
    for build_id in ("build-0002", "build-0003"):
        posts = [make_post(slug) for slug in sorted(slugs)]
        point_at(builds, write_build(builds, build_id, posts, site_url=service.origin))
        service.await_log(f"serving build {build_id}, posts: {MIN_POSTS_FOR_INDEX_FILE}", 2)
        (file,) = builds.glob(".search-*")
        assert file.name.startswith(f".search-{build_id}-")
        slugs[0] = "another"

    url = "/api/public/v1/search?limit=1&q=another"
    assert {json.loads(service.edge.get(url)[2])["count"] for _ in range(8)} == {1}
    assert "no search index" not in service.log


@pytest.mark.size("ci")
def test_one_worker_needs_no_supervisor(installation: Installation) -> None:
    """The process that was started serves by itself."""
    with installation.serving() as edge:
        assert psutil.Process(edge.process.pid).children() == []
        assert edge.end(signal.SIGTERM)[0] == 0


def test_metrics_are_whole_whichever_worker_is_asked(installation: Installation) -> None:
    """Requests that any worker answered are added up, and a killed one leaves no memory behind."""
    place = free_port()
    with supervised(installation.changed(METRICS="on", METRICS_SOCKET=str(place))) as service:
        metrics = replace(service.edge, port=place)
        for _ in range(20):
            assert service.edge.get("/api/public/ping")[0] == 200
        first = service.workers[1]
        psutil.Process(first).kill()
        service.await_that(
            lambda: len(service.workers) == 2 and first not in service.workers.values()
        )
        service.await_log(" serves\n", 3)
        service.process.send_signal(signal.SIGHUP)
        service.await_log("all 2 workers are new")
        seen = {metrics.get("/metrics")[2].decode() for _ in range(4)}

    for text in seen:
        assert "edge_worker_restarts_total 1.0" in text
        assert 'edge_requests_total{operation="ping",status="2xx"} 20.0' in text
        assert f'edge_resident_memory_bytes{{pid="{first}"}}' not in text
        assert "edge_resident_memory_bytes{pid=" in text
