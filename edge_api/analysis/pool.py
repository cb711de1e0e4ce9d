"""A pool of worker processes, which are killed and replaced when they take too long.

Few jobs run and few wait; beyond that, callers are refused. Jobs and answers are lines.
"""

import asyncio
import os
import sys
from asyncio import LimitOverrunError, Task
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Final

from edge_api.analysis import worker
from edge_api.db.problems import Problem

STARTUP_TIMEOUT_SECONDS: Final = 15.0  # until a process is ready
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024  # bytes

COMMAND: Final = (sys.executable, "-P", "-s", "-m", worker.__name__)
_ROOT: Final = str(Path(__file__).parents[2])


class JobNotReceivedError(Exception):
    """A process ended before it received its job, so the job is not the cause."""


class Worker:
    """A worker process, from the pool's side: started and replaced in the background."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._starting: Task[None] | None = None
        self.process: Process | None = None

    def readiness(self) -> int:
        """Return 2 for a process that is ready, 1 for one that starts, and 0 for none."""
        return 0 if self._starting is None else 1 + self._starting.done()

    async def wait_until_started(self) -> None:
        """Start a process, unless that was done. Raises TimeoutError; it starts nevertheless."""
        self._starting = self._starting or asyncio.create_task(self._start())
        if not (await asyncio.wait({self._starting}, timeout=START_SECONDS))[0]:
            raise TimeoutError

    async def request(self, job: bytes) -> bytes:
        """Return the answer to a job. Raises JobNotReceivedError, EOFError or LimitOverrunError."""
        if self.process is None:
            raise JobNotReceivedError
        sink = self.process.stdin
        assert sink is not None  # noqa: S101  it is a pipe
        try:
            sink.write(job + b"\n")
            await sink.drain()
            await self._receive(self.process)  # the acknowledgement
        except (EOFError, OSError):
            raise JobNotReceivedError from None
        return await self._receive(self.process)

    def restart(self) -> None:
        """Kill the process and start another, which takes its place once it has ended."""
        self.kill()
        self._starting = asyncio.create_task(self._start())

    def kill(self) -> None:
        """Kill the process without waiting for it; a pending `request` raises its errors."""
        if self._starting is not None:
            self._starting.cancel()
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()

    async def end(self) -> None:
        """Kill the process and wait for its end; no `request` may be pending."""
        self.kill()
        if self._starting is not None:
            await asyncio.wait({self._starting})
        await self._wait()

    async def _start(self) -> None:
        """Start a process with its module path alone; after a failure there is none."""
        await self._wait()
        modules = os.pathsep.join(filter(None, [_ROOT, *sys.path]))
        with suppress(EOFError, OSError):  # TimeoutError is one of the latter
            self.process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env={"PYTHONPATH": modules},
                cwd="/",
                limit=MAX_ANSWER_BYTES,
                start_new_session=True,  # Control-C is for the edge, which ends it in its own time
            )
            async with asyncio.timeout(STARTUP_TIMEOUT_SECONDS):
                await self._receive(self.process)
            return
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self._wait()

    async def _wait(self) -> None:
        if self.process is not None:
            await self.process.communicate()
            self.process = None

    async def _receive(self, process: Process) -> bytes:
        source = process.stdout
        assert source is not None  # noqa: S101  it is a pipe
        return (await source.readuntil())[:-1]


WORKERS: Final = 2
QUEUE_LIMIT: Final = 8  # jobs that may wait
WAIT_SECONDS: Final = 2.0
MAX_WORK_SECONDS: Final = 1.0
"""A worker that took longer is replaced after its answer: it may have grown."""
START_SECONDS: Final = STARTUP_TIMEOUT_SECONDS  # time limit of a job for a starting worker
RETRY_SECONDS: Final = 5


class WorkerPool:
    """Runs jobs in worker processes, which start with the first job.

    Workers start in the background: if a waiting job gives up, the next takes its worker. There are
    never more than `size`, those that are starting included.
    """

    def __init__(
        self,
        size: int = WORKERS,
        queue: int = QUEUE_LIMIT,
        seconds: float = worker.WORK_SECONDS,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        """`seconds` is the time limit of a job, without a worker's start."""
        self._slots = asyncio.Semaphore(size)
        self._queue = queue
        self._seconds = seconds
        self._waiting = 0
        self._workers = tuple(Worker(command) for _ in range(size))
        self._free = list(self._workers)
        self._is_closed = False

    @property
    def pids(self) -> set[int]:
        """The ids of the running processes."""
        return {each.process.pid for each in self._workers if each.process is not None}

    async def run(self, job: bytes) -> bytes:
        """Return a worker's answer to a job of one line.

        Raises Problem `unavailable` for a full queue or a costly job.
        """
        if self._is_closed or (self._slots.locked() and self._waiting >= self._queue):
            raise _unavailable("Too many documents are being analysed: try again in a moment")
        deadline = asyncio.get_running_loop().time() + self._seconds
        await self._wait(deadline)
        each = max(self._free, key=Worker.readiness)
        self._free.remove(each)
        seconds = deadline - asyncio.get_running_loop().time()
        try:
            for _ in range(2):  # again, if the process ended before it got the job
                with suppress(JobNotReceivedError):
                    return await self._work(each, job, seconds)
        except (TimeoutError, EOFError, LimitOverrunError):
            message = "The document takes more time or memory than there is for one"
            raise _unavailable(message) from None
        finally:
            self._free.append(each)
            self._slots.release()
        raise _unavailable("Documents cannot be analysed now")

    async def close(self) -> None:
        """End every worker; running jobs end with Problem `unavailable`."""
        self._is_closed = True
        for each in self._workers:
            each.kill()
        for _ in self._workers:  # until every job has ended
            await self._slots.acquire()
        for each in self._workers:
            await each.end()
            self._slots.release()

    async def _wait(self, deadline: float) -> None:
        last = min(deadline, asyncio.get_running_loop().time() + WAIT_SECONDS)
        self._waiting += 1
        try:
            async with asyncio.timeout_at(last):
                await self._slots.acquire()
        except TimeoutError:
            raise _unavailable("Other documents take their time: try again in a moment") from None
        finally:
            self._waiting -= 1

    async def _work(self, each: Worker, job: bytes, seconds: float) -> bytes:
        """Return a worker's answer; replace it unless it may be used again."""
        if self._is_closed:
            raise JobNotReceivedError
        try:
            await each.wait_until_started()
        except TimeoutError:
            raise _unavailable("Documents cannot be analysed now") from None
        now = asyncio.get_running_loop().time
        start, is_reusable = now(), False
        try:
            async with asyncio.timeout(seconds):
                answer = await each.request(job)
            is_reusable = now() - start < MAX_WORK_SECONDS
        finally:
            if not is_reusable and not self._is_closed:
                each.restart()
        return answer


def _unavailable(message: str) -> Problem:
    return Problem("unavailable", message, headers={"Retry-After": str(RETRY_SECONDS)})
