"""A store that is away is logged once, and its return too; our own faults keep their traces."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from edge_api.auth.actor import Clock
from edge_api.background import every
from edge_api.db import errors as faults
from edge_api.db.errors import query_timeout, unavailable
from edge_api.db.problems import Problem
from edge_api.db.query import Insert, Read
from edge_api.db.sqlite.engine import open_store
from edge_api.db.tables import LEADS
from tests.edge.store.samples import CheckedStore, make_lead

pytestmark = pytest.mark.size("test")


async def await_lines(caplog: pytest.LogCaptureFixture, number: int) -> list[str]:
    """Return what was logged, once it is so many lines; ten seconds is more than it takes."""
    for _ in range(200):
        if len(caplog.records) >= number:
            break
        await asyncio.sleep(0.05)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.size("ci")
async def test_each_time_that_a_store_is_locked_is_two_lines(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """However many are refused meanwhile."""
    caplog.set_level(logging.INFO)
    store = await open_store(tmp_path / "edge.db", clock)
    lines = []
    with closing(sqlite3.connect(tmp_path / "edge.db", isolation_level=None)) as rival:
        for outage in (1, 2):
            rival.execute("BEGIN IMMEDIATE")
            writing = [store.run(Insert(LEADS, [make_lead()])) for _ in range(20)]
            results = await asyncio.gather(*writing, return_exceptions=True)
            assert {type(result) for result in results} == {Problem}
            rival.execute("ROLLBACK")
            lines = await await_lines(caplog, 2 * outage)
    await store.run(Insert(LEADS, [make_lead()]))
    await store.close()

    assert lines[::2] == ["the store is unavailable: database is locked"] * 2
    for line in lines[1::2]:
        assert line.startswith("the store is available again after ")
        assert int(line.split("; ")[1].split()[0]) >= 20
    assert len(caplog.records) == 4


async def test_the_looks_of_an_outage_itself_are_no_attempts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The number says how many requests and turns of background work failed."""
    monkeypatch.setattr(faults, "RECOVERY_POLL_SECONDS", 0.01)
    fault, looks = unavailable("The store is away"), iter(range(10))

    async def look() -> None:
        if next(looks) < 5:
            outage.record_failure(fault, fault)
            raise fault

    outage = CheckedStore(look)
    for _ in range(2):
        outage.record_failure(fault, fault)

    _, line = await await_lines(caplog, 2)
    assert line.endswith("; 2 attempts failed")


async def test_requests_to_a_store_without_its_file_are_counted(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of them, though the file is looked for once a second only."""
    file = tmp_path / "edge.db"
    store = await open_store(file, clock)
    file.rename(tmp_path / "away")
    for _ in range(20):
        with pytest.raises(Problem):
            await store.run(Insert(LEADS, [make_lead()]))
    (tmp_path / "away").rename(file)
    _, line = await await_lines(caplog, 2)
    await store.close()

    assert int(line.split("; ")[1].split()[0]) == 20


async def test_a_read_that_took_too_long_is_no_outage(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The store is there, and the client gets the error: nothing is logged."""
    store = await open_store(tmp_path / "edge.db", clock)
    await store.run(Insert(LEADS, [make_lead(notes="x" * 2000) for _ in range(1000)]))
    with pytest.raises(Problem):
        await store.run(Read(LEADS, order=(), with_total=True, timeout=0.0))
    await store.close()

    assert caplog.records == []


@pytest.mark.parametrize(
    ("fault", "lines"),
    [(unavailable("The store is away"), 0), (query_timeout(), 3), (RuntimeError("ours"), 3)],
)
async def test_background_work_logs_what_nobody_else_does(
    fault: Exception, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of ours with its trace, a read that took too long without; no store that is away."""
    turns, third = iter(range(10)), asyncio.Event()

    async def work() -> None:
        if next(turns) == 2:
            third.set()
        raise fault

    task = asyncio.create_task(every(0.001, "counting sheep", partial(work)))
    await third.wait()
    task.cancel()

    traces = [record for record in caplog.records if record.exc_info]
    assert len(caplog.records) == lines
    assert len(traces) == (lines if isinstance(fault, RuntimeError) else 0)
    assert all("counting sheep" in record.getMessage() for record in caplog.records)
