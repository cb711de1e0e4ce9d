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

from edge_api.analysis.analyst import WORKER_COMMAND, WorkerPool
from edge_api.db.problems import Problem
from tests.edge.edge_process import ROOT, Installation, free_port, until

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

JOB = orjson.dumps({"kind": "text", "text": "Once upon a time."})
LISTENING = """
import sys, time
def send(message):
    sys.stdout.buffer.write(message + b"\\n")
    sys.stdout.buffer.flush()
def jobs():
    for line in sys.stdin.buffer:
        send(b"")
        yield line.strip()
send(b"")
"""
"""A worker that is there at once, since it loads nothing."""
STUCK = f"""{LISTENING}
for job in jobs():
    while job == b"slow": pass
    time.sleep(float(job) if job[:1].isdigit() else 0)
    send(b"ok")
"""
"""A worker that is stuck in one job, and sleeps as long as others say."""
MOMENT = 2.0
"""Seconds that a job may take where one is stuck."""

PoolMaker = Callable[..., WorkerPool]


@pytest.fixture
async def make_pool() -> AsyncIterator[PoolMaker]:
    """Return a maker of pools, which are closed at the end."""
    async with AsyncExitStack() as stack:

        def make(**options: Any) -> WorkerPool:
            pool = WorkerPool(**options)
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


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def gone(pid: int) -> bool:
    """Wait until a process has ended; return whether it has."""
    for _ in range(1200):
        if not _is_alive(pid):
            return True
        await asyncio.sleep(0.05)
    return False


async def works(pid: int) -> None:
    """Return when a process, which waited, has a job that takes processor time."""
    process = psutil.Process(pid)
    before = process.cpu_times().user
    await until(lambda: process.cpu_times().user > before)


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

    assert "more time or memory" in (await refusal(pool.run(b"slow"))).message
    assert await gone(before)
    assert await pool.run(b"quick") == b"ok"
    assert before not in pool.pids


async def test_a_worker_that_dies_is_replaced(make_pool: PoolMaker) -> None:
    """In whatever way it was killed, idle or at work."""
    pool = make_pool(size=1, command=command(STUCK))
    assert await pool.run(b"quick") == b"ok"
    (idle,) = pool.pids
    os.kill(idle, signal.SIGKILL)
    assert await gone(idle)
    assert await pool.run(b"quick") == b"ok"

    (busy,) = pool.pids
    task = asyncio.create_task(pool.run(b"slow"))
    await works(busy)
    os.kill(busy, signal.SIGKILL)
    await refusal(task)
    assert await pool.run(b"quick") == b"ok"


async def test_a_full_queue_is_refused(make_pool: PoolMaker) -> None:
    """One at work and one waiting are enough here: the third is refused at once."""
    pool = make_pool(size=1, queue=1, command=command(STUCK))
    at_work = asyncio.create_task(pool.run(b"0.5"))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(pool.run(b"quick"))
    await asyncio.sleep(0)

    assert "Too many documents" in (await refusal(pool.run(b"quick"))).message
    assert not at_work.done()
    assert await at_work == await waiting == b"ok"


async def test_a_worker_that_took_long_is_not_used_again(make_pool: PoolMaker) -> None:
    """It may have grown: its process has ended before its answer is given."""
    pool = make_pool(size=1, command=command(STUCK))
    assert await pool.run(b"1.1") == b"ok"
    assert pool.pids == set()

    assert await pool.run(b"quick") == b"ok"
    assert len(pool.pids) == 1


@pytest.mark.size("ci")
async def test_there_are_never_more_workers_than_places(make_pool: PoolMaker) -> None:
    """Those that replace others included."""
    pool = make_pool(size=2, command=command(STUCK))
    tasks = [asyncio.create_task(pool.run(b"1.1" if odd % 2 else b"quick")) for odd in range(6)]
    most = 0
    while not all(task.done() for task in tasks):
        most = max(most, len(pool.pids))
        await asyncio.sleep(0.01)

    assert [task.result() for task in tasks] == [b"ok"] * 6
    assert most == 2


async def test_a_job_does_not_pay_for_the_start_of_its_worker(make_pool: PoolMaker) -> None:
    """A worker may take longer to come up than a job may cost."""
    pool = make_pool(size=1, seconds=0.5, command=command(f"import time; time.sleep(1.5)\n{STUCK}"))

    assert await pool.run(b"quick") == b"ok"


async def test_a_worker_that_takes_too_long_to_start_is_ended(
    make_pool: PoolMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting caller gets an error, and need not wait for ever."""
    monkeypatch.setattr("edge_api.analysis.analyst.STARTUP_TIMEOUT_SECONDS", 0.5)
    pool = make_pool(size=1, command=command(f"import time; time.sleep(30)\n{STUCK}"))

    assert "cannot be analyzed now" in (await refusal(pool.run(b"quick"))).message
    assert pool.pids == set()


async def test_the_time_limit_includes_waiting(make_pool: PoolMaker) -> None:
    """A job that has waited for its turn has so much less for its work."""
    pool = make_pool(size=1, seconds=MOMENT, command=command(STUCK))
    assert await pool.run(b"quick") == b"ok"
    at_work = asyncio.create_task(pool.run(b"0.9"))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(pool.run(b"1.5"))

    assert await at_work == b"ok"
    assert "more time or memory" in (await refusal(waiting)).message


async def test_a_closed_pool_starts_nothing(make_pool: PoolMaker) -> None:
    """Neither a worker that somebody waits for nor one in the place of another."""
    others = set(psutil.Process().children())
    pool = make_pool(size=1, command=command(f"import time; time.sleep(60)\n{STUCK}"))
    task = asyncio.create_task(pool.run(b"quick"))
    await until(lambda: set(psutil.Process().children()) != others)
    (child,) = set(psutil.Process().children()) - others
    await pool.close()

    assert await gone(child.pid)
    assert pool.pids == set()
    await refusal(task)


@pytest.mark.parametrize("size", [1, 2])
async def test_a_worker_that_was_killed_idle_costs_no_job(make_pool: PoolMaker, size: int) -> None:
    """Also before the loop has heard of it, and when all were killed."""
    pool = make_pool(size=size, command=command(STUCK))
    await asyncio.gather(*(pool.run(b"0.3") for _ in range(size)))
    assert len(pool.pids) == size
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)

    assert await pool.run(b"quick") == b"ok"


async def test_nobody_waits_for_ever(make_pool: PoolMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that no worker comes to is refused after a while."""
    monkeypatch.setattr("edge_api.analysis.analyst.WAIT_SECONDS", 0.1)
    pool = make_pool(size=1, seconds=5.0, command=command(STUCK))
    at_work = asyncio.create_task(pool.run(b"slow"))
    await asyncio.sleep(0)

    assert "take their time" in (await refusal(pool.run(b"quick"))).message
    await pool.close()
    await refusal(at_work)


async def test_a_job_that_is_given_up_leaves_nothing_behind(make_pool: PoolMaker) -> None:
    """The worker of a cancelled job is killed: its answer would be taken for the next one's."""
    pool = make_pool(size=1, command=command(STUCK))
    assert await pool.run(b"quick") == b"ok"
    (before,) = pool.pids
    task = asyncio.create_task(pool.run(b"slow"))
    await works(before)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await gone(before)
    assert await pool.run(b"quick") == b"ok"


@pytest.mark.size("ci")
async def test_a_worker_that_does_not_start_is_reported(make_pool: PoolMaker) -> None:
    """A worker that ends at once is no worker."""
    pool = make_pool(command=command("raise SystemExit(3)"))

    assert "cannot be analyzed now" in (await refusal(pool.run(JOB))).message


async def test_the_memory_of_a_worker_is_limited(make_pool: PoolMaker) -> None:
    """A worker that takes more gets an error instead of the machine's memory."""
    program = (
        f"{LISTENING}\nfrom edge_api.analysis.report import limit_resources\nlimit_resources()\n"
        "for job in jobs():\n    bytearray(1 << 30)\n    send(b'ok')"
    )
    pool = make_pool(command=command(program))

    await refusal(pool.run(JOB))


async def test_a_worker_knows_no_secret(
    make_pool: PoolMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment has nothing but where modules are, and others go before it."""
    monkeypatch.setenv("SECRET_KEY", "hush-hush-hush-hush-hush-hush-hush-hush")
    pool = make_pool(command=WORKER_COMMAND)
    await pool.run(JOB)
    (pid,) = pool.pids
    process = psutil.Process(pid)

    assert set(process.environ()) <= {"PYTHONPATH", "LC_CTYPE"}
    assert process.cwd() == "/"
    assert process.nice() == min(19, os.nice(0) + 10)


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


@pytest.mark.size("ci")
async def test_a_busy_worker_ends_by_its_own_alarm() -> None:
    """It does so when nobody is left to kill it."""
    program = (
        "from edge_api.analysis import report as worker\n"
        "worker.WORK_SECONDS = 0\nworker.answer = lambda job: [0 for _ in iter(int, 1)]\n"
        "worker.main()"
    )
    process = await asyncio.create_subprocess_exec(*command(program), stdin=-1, stdout=-1, cwd=ROOT)
    said, _ = await process.communicate(b"{}\n")

    assert said == b"\n\n", "that it was ready and had the job, and nothing more"
    assert process.returncode == -signal.SIGALRM
