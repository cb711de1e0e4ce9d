"""Processes that count into one store: several of them at once, and the ends of one."""

import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.edge.edge_process import Installation, free_port
from tests.edge.postgresql import PostgreSQL
from tests.edge.stats.conftest import CHROME
from tests.edge.workers.conftest import installed, supervised
from tests.patience import patience

pytestmark = pytest.mark.size("test")

PAGE = "/journal/a/"
SUM = "SELECT coalesce(sum(count), 0) FROM {}page_views"


def send(port: int, count: int, pause: float = 0.0) -> int:
    """Send requests for a page on one connection, and return how many were answered."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=patience())) as connection:
        for _ in range(count):
            connection.request("GET", PAGE, headers={"User-Agent": CHROME})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            time.sleep(pause)
    return count


def test_workers_of_two_edges_sum_exactly(tmp_path: Path, postgresql: PostgreSQL) -> None:
    """Four processes add to the same row, every ten seconds and at the end."""
    with installed(tmp_path, postgresql) as first:
        folder = tmp_path / "second"
        folder.mkdir()
        site = {"SITE_URL": f"http://127.0.0.1:{first.settings['PORT']}"}
        second = Installation(folder, {**first.settings, "PORT": str(free_port()), **site})
        with supervised(first) as one, supervised(second) as other:
            with ThreadPoolExecutor(8) as threads:
                ports = [one.port, other.port] * 4
                counts = list(threads.map(lambda port: send(port, 150, pause=0.08), ports))
            assert len(one.workers) == len(other.workers) == 2
            assert one.end() == other.end() == 0
        database = first.settings["DATABASE_URL"].rpartition("/")[2]
        assert postgresql.execute(SUM.format("fore_edge."), database) == [(sum(counts),)]
        rows = "SELECT count(*) FROM fore_edge.page_views"
        assert postgresql.execute(rows, database)[0][0] <= 2, "a day's views are one row"


def stored(installation: Installation) -> int:
    """Return the views that the store has."""
    with closing(sqlite3.connect(installation.store)) as connection:
        return int(connection.execute(SUM.format("")).fetchone()[0])


def test_an_orderly_end_loses_nothing(installation: Installation) -> None:
    """What was counted since the last time is stored at SIGTERM."""
    with installation.serving() as edge:
        sent = send(edge.port, 30)
        assert edge.end(signal.SIGTERM)[0] == 0
    assert stored(installation) == sent


def test_kill_9_loses_seconds(installation: Installation) -> None:
    """Only what came after the last storing, which no request waits for."""
    with installation.serving() as edge:
        sent = send(edge.port, 30)
        deadline = time.monotonic() + patience(60)
        while stored(installation) < sent:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        more = send(edge.port, 20)
        edge.process.kill()
        edge.process.wait()
    assert sent <= stored(installation) <= sent + more
    with installation.serving() as edge:
        again = send(edge.port, 5)
        before = stored(installation)
        assert edge.end(signal.SIGTERM)[0] == 0
    assert stored(installation) == before + again, "counting goes on in the same rows"
