"""A pool of worker processes, which are killed when they take too long.

Few jobs run and few wait; beyond that, callers are refused. Jobs and answers are lines of bytes.
"""

import asyncio
import os
import sys
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
    """A worker process, from the pool's side."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def request(self, job: bytes) -> bytes:
        """Return the answer to a job. Raises JobNotReceivedError or EOFError."""
        sink = self.process.stdin
        assert sink is not None  # noqa: S101  it is a pipe
        try:
            sink.write(job + b"\n")
            await sink.drain()
            await self.receive()  # the acknowledgement
        except (EOFError, OSError):
            raise JobNotReceivedError from None
        return await self.receive()

    async def receive(self) -> bytes:
        """Return the next message. Raises EOFError if the process has ended, or sends too much."""
        source = self.process.stdout
        assert source is not None  # noqa: S101  it is a pipe
        try:
            return (await source.readuntil()).removesuffix(b"\n")
        except asyncio.LimitOverrunError:
            raise EOFError from None

    def end(self) -> None:
        """Kill the process without waiting for it; a pending `receive` raises EOFError."""
        with suppress(ProcessLookupError):
            self.process.kill()


WORKERS: Final = 2
QUEUE_LIMIT: Final = 8  # jobs that may wait
WAIT_SECONDS: Final = 2.0
MAX_WORK_SECONDS: Final = 1.0
"""A worker that took longer is not used again: it may have grown."""
RETRY_SECONDS: Final = 5


class WorkerPool:
    """Runs jobs in at most `size` worker processes, which start when jobs need them."""

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
        self._command = command
        self._waiting = 0
        self._workers: set[Worker] = set()
        self._idle: list[Worker] = []
        self._is_closed = False

    @property
    def pids(self) -> set[int]:
        """The ids of the running processes."""
        return {each.process.pid for each in self._workers}

    async def run(self, job: bytes) -> bytes:
        """Return a worker's answer; neither has a line break.

        Raises Problem `unavailable` for a full queue or a costly job.
        """
        if self._is_closed or (self._slots.locked() and self._waiting >= self._queue):
            raise _unavailable("Too many documents are being analysed: try again in a moment")
        deadline = asyncio.get_running_loop().time() + self._seconds
        await self._wait(deadline)
        try:
            return await self._work(job, deadline - asyncio.get_running_loop().time())
        finally:
            self._slots.release()

    async def close(self) -> None:
        """End every worker; running jobs end with Problem `unavailable`."""
        self._is_closed = True
        ending, self._workers, self._idle = self._workers, set(), []
        for each in ending:
            each.end()
        await asyncio.gather(*(each.process.wait() for each in ending))

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

    async def _work(self, job: bytes, seconds: float) -> bytes:
        """Run a job in an idle worker, or in a new one if those ended before they got the job."""
        try:
            while self._idle:
                with suppress(JobNotReceivedError):
                    return await self._request(self._idle.pop(), job, seconds)
            return await self._request(await self._start(), job, seconds)
        except JobNotReceivedError:
            raise _unavailable("Documents cannot be analysed now") from None
        except (TimeoutError, EOFError):
            message = "The document takes more time or memory than there is for one"
            raise _unavailable(message) from None

    async def _request(self, each: Worker, job: bytes, seconds: float) -> bytes:
        """Return a worker's answer. Raises TimeoutError, JobNotReceivedError or EOFError."""
        now = asyncio.get_running_loop().time
        start, is_reusable = now(), False
        try:
            async with asyncio.timeout(seconds):
                answer = await each.request(job)
            is_reusable = now() - start < MAX_WORK_SECONDS and not self._is_closed
        finally:
            if is_reusable:
                self._idle.append(each)
            else:
                await self._kill(each)
        return answer

    async def _start(self) -> Worker:
        """Start a worker with its module path alone. Raises JobNotReceivedError."""
        if self._is_closed:
            raise JobNotReceivedError
        modules = os.pathsep.join(filter(None, [_ROOT, *sys.path]))
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                limit=MAX_ANSWER_BYTES,
                env={"PYTHONPATH": modules},
                cwd="/",
                start_new_session=True,  # Control-C is for the edge, which ends it in its own time
            )
        except OSError:
            raise JobNotReceivedError from None
        each, is_ready = Worker(process), False
        self._workers.add(each)
        if self._is_closed:  # since it was started
            each.end()
        try:
            async with asyncio.timeout(STARTUP_TIMEOUT_SECONDS):
                await each.receive()
            is_ready = True
        except (TimeoutError, EOFError):
            raise JobNotReceivedError from None
        finally:
            if not is_ready:
                await self._kill(each)
        return each

    async def _kill(self, each: Worker) -> None:
        """Kill a worker and wait for its end."""
        each.end()
        await each.process.communicate()
        self._workers.discard(each)


def _unavailable(message: str) -> Problem:
    return Problem("unavailable", message, headers={"Retry-After": str(RETRY_SECONDS)})
