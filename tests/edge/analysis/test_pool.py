"""Worker processes: killed when they take too long, replaced, and gone with the edge."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from edge_api.domain.analysis.pool import COMMAND, Pool
from edge_api.schema.problems import Problem
from tests.edge.edge_process import ROOT, Installation, free_port

JOB = orjson.dumps({"kind": "text", "text": "Once upon a time."})
LISTENING = """
import sys
from edge_api.domain.analysis.worker import read_jobs, send
send(b"")
"""
STUCK = (
    f"{LISTENING}\nfor job in read_jobs(sys.stdin.buffer):\n"
    "    while job != b'quick': pass\n    send(b'ok')"
)
"""A worker that answers one job alone, and is stuck in all others."""
MOMENT = 0.5
"""Seconds that a job may take where one is stuck."""

PoolMaker = Callable[..., Pool]


@pytest.fixture
async def make_pool() -> AsyncIterator[PoolMaker]:
    """Return a maker of pools, which are closed at the end."""
    async with AsyncExitStack() as stack:

        def make(**options: Any) -> Pool:
            pool = Pool(**options)
            stack.push_async_callback(pool.close)
            return pool

        yield make


def command(program: str) -> tuple[str, ...]:
    """Return the command that runs a program as a worker."""
    return (sys.executable, "-c", program)


async def refusal(awaited: Any) -> Problem:
    """Return the problem that something awaited raises."""
    with pytest.raises(Problem) as caught:
        await awaited
    assert caught.value.code == "unavailable"
    assert int(caught.value.headers["Retry-After"]) > 0
    return caught.value


async def gone(pid: int) -> bool:
    """Wait until a process has ended; tell whether it has."""
    for _ in range(1200):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        await asyncio.sleep(0.05)
    return False


async def test_a_worker_is_kept_for_the_next_job(make_pool: PoolMaker) -> None:
    """None runs before the first job, and the one that came for it stays."""
    pool = make_pool()
    assert pool.pids == set()

    first = orjson.loads(await pool.run(JOB))
    pids = pool.pids
    assert orjson.loads(await pool.run(JOB)) == first
    assert first["report"]["metrics"]["words"] == 4
    assert pool.pids == pids
    assert len(pids) == 1


async def test_a_stuck_worker_is_killed_and_replaced(make_pool: PoolMaker) -> None:
    """Its job is refused, its process ends, and the next job is answered by another."""
    pool = make_pool(size=1, seconds=MOMENT, command=command(STUCK))
    assert await pool.run(b"quick") == b"ok"
    (before,) = pool.pids

    assert "more time or memory" in (await refusal(pool.run(b"slow"))).sentence
    assert await gone(before)
    assert await pool.run(b"quick") == b"ok"
    assert before not in pool.pids


async def test_a_worker_that_dies_is_replaced(make_pool: PoolMaker) -> None:
    """Whoever killed it, idle or at work."""
    pool = make_pool(size=1, command=command(STUCK))
    assert await pool.run(b"quick") == b"ok"
    (idle,) = pool.pids
    os.kill(idle, signal.SIGKILL)
    assert await gone(idle)
    await asyncio.sleep(0.2)  # until the loop has heard of it
    assert await pool.run(b"quick") == b"ok"

    (busy,) = pool.pids
    task = asyncio.create_task(pool.run(b"slow"))
    await asyncio.sleep(0.2)
    os.kill(busy, signal.SIGKILL)
    await refusal(task)
    assert await pool.run(b"quick") == b"ok"


async def test_a_full_queue_is_told_so(make_pool: PoolMaker) -> None:
    """One at work and one waiting are enough here: the third is refused at once."""
    pool = make_pool(size=1, queue=1, seconds=1.0, command=command(STUCK))
    at_work = asyncio.create_task(pool.run(b"slow"))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(pool.run(b"quick"))
    await asyncio.sleep(0)

    assert "Too many documents" in (await refusal(pool.run(b"quick"))).sentence
    assert not at_work.done()
    await refusal(at_work)
    assert await waiting == b"ok"


async def test_nobody_waits_for_ever(make_pool: PoolMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that no worker comes to is refused after a while."""
    monkeypatch.setattr("edge_api.domain.analysis.pool.WAIT_SECONDS", 0.1)
    pool = make_pool(size=1, seconds=5.0, command=command(STUCK))
    at_work = asyncio.create_task(pool.run(b"slow"))
    await asyncio.sleep(0)

    assert "take their time" in (await refusal(pool.run(b"quick"))).sentence
    await pool.close()
    await refusal(at_work)


async def test_a_job_that_is_given_up_leaves_nothing_behind(make_pool: PoolMaker) -> None:
    """The worker of a cancelled job is killed: its answer would be taken for the next one's."""
    pool = make_pool(size=1, command=command(STUCK))
    assert await pool.run(b"quick") == b"ok"
    (before,) = pool.pids
    task = asyncio.create_task(pool.run(b"slow"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await gone(before)
    assert await pool.run(b"quick") == b"ok"


async def test_what_does_not_start_is_told_so(make_pool: PoolMaker) -> None:
    """A worker that ends at once is no worker."""
    pool = make_pool(command=command("raise SystemExit(3)"))

    assert "cannot be analysed now" in (await refusal(pool.run(JOB))).sentence


async def test_memory_has_an_end(make_pool: PoolMaker) -> None:
    """Who takes more than there is gets an error in place of the machine's memory."""
    program = (
        f"{LISTENING}\nfrom edge_api.domain.analysis.worker import confine\nconfine()\n"
        "for job in read_jobs(sys.stdin.buffer):\n    bytearray(1 << 30)\n    send(b'ok')"
    )
    pool = make_pool(command=command(program))

    await refusal(pool.run(JOB))


async def test_a_worker_knows_no_secret(
    make_pool: PoolMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment has nothing but where modules are, and others go before it."""
    monkeypatch.setenv("SECRET_KEY", "hush-hush-hush-hush-hush-hush-hush-hush")
    pool = make_pool(command=COMMAND)
    await pool.run(JOB)
    (pid,) = pool.pids
    process = psutil.Process(pid)

    assert set(process.environ()) <= {"PYTHONPATH", "LC_CTYPE"}
    assert process.cwd() == "/"
    assert process.nice() == 10


async def test_a_closed_pool_takes_nothing(make_pool: PoolMaker) -> None:
    """And its processes have ended."""
    pool = make_pool()
    await pool.run(JOB)
    (pid,) = pool.pids
    await pool.close()

    assert await gone(pid)
    await refusal(pool.run(JOB))


async def test_workers_end_with_the_edge(tmp_path: Path, journal: Path) -> None:
    """Also when the edge is killed: an idle one at once."""
    settings = {
        "SITE_URL": "http://journal.test",
        "PORT": str(free_port()),
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(journal),
    }
    with Installation(tmp_path, settings).serving() as served:
        headers = {"Content-Type": "application/json"}
        status, _, _ = served.post("/api/public/v1/analyze", b'{"text": "Hello."}', headers)
        assert status == 200
        (worker,) = psutil.Process(served.process.pid).children()
        served.process.kill()

        assert await gone(worker.pid)


async def test_a_busy_worker_ends_by_its_own_alarm() -> None:
    """When nobody is left to kill it."""
    program = (
        "import signal\nfrom edge_api.domain.analysis import worker\n"
        "worker.WORK_SECONDS = 0\nworker.answer = lambda job: [0 for _ in iter(int, 1)]\n"
        "worker.main()"
    )
    process = await asyncio.create_subprocess_exec(*command(program), stdin=-1, stdout=-1, cwd=ROOT)
    said, _ = await process.communicate(b"\x00\x00\x00\x02{}")

    assert said == b"\x00\x00\x00\x00", "that it was ready, and nothing more"
    assert process.returncode == -signal.SIGALRM
