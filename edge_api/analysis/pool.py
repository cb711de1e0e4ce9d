"""A pool of worker processes, which are killed and replaced when they take too long.

Few jobs run and few wait; beyond that, callers are refused. Jobs and answers are bytes.
"""

import asyncio
import os
import sys
from asyncio import LifoQueue, Task
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from edge_api.analysis import worker
from edge_api.analysis.worker import HEADER_SIZE, frame, read_length
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
        self._process = process

    @property
    def is_alive(self) -> bool:
        """Return whether the process runs, as far as is known."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    async def request(self, job: bytes) -> bytes:
        """Return the answer to a job. Raises JobNotReceivedError or EOFError."""
        sink = self._process.stdin
        assert sink is not None  # noqa: S101  it is a pipe
        try:
            sink.write(frame(job))
            await sink.drain()
            await self.receive()  # the acknowledgement
        except (EOFError, OSError):
            raise JobNotReceivedError from None
        return await self.receive()

    async def receive(self) -> bytes:
        """Return the next message of the process. Raises EOFError if it has ended."""
        source = self._process.stdout
        assert source is not None  # noqa: S101  it is a pipe
        length = read_length(await source.readexactly(HEADER_SIZE))
        if length > MAX_ANSWER_BYTES:
            raise EOFError
        return await source.readexactly(length)

    def end(self) -> None:
        """Kill the process without waiting for it; a pending `receive` raises EOFError."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def kill(self) -> None:
        """Kill the process and wait for its end; no `receive` may be pending."""
        self.end()
        await self._process.communicate()


async def start_worker(command: tuple[str, ...]) -> Worker:
    """Start a worker with its module path alone. Raises TimeoutError, EOFError or OSError."""
    modules = os.pathsep.join(filter(None, [_ROOT, *sys.path]))
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={"PYTHONPATH": modules},
        cwd="/",
        start_new_session=True,  # Control-C is for the edge, which ends it in its own time
    )
    each = Worker(process)
    try:
        async with asyncio.timeout(STARTUP_TIMEOUT_SECONDS):
            await each.receive()
    except BaseException:
        await each.kill()
        raise
    return each


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
        self._size = size
        self._queue = queue
        self._seconds = seconds
        self._command = command
        self._waiting = 0
        self._waiting_for_worker = 0  # jobs with a slot and no worker yet
        self._idle: LifoQueue[Worker | None] = LifoQueue()
        """`None` means that a worker could not be started."""
        self._workers: set[Worker] = set()
        self._all_ended = asyncio.Event()
        self._starts: set[Task[None]] = set()
        self._ends: set[Task[None]] = set()
        self._is_closed = False

    @property
    def pids(self) -> set[int]:
        """The ids of the running processes."""
        return {each.pid for each in self._workers}

    async def run(self, job: bytes) -> bytes:
        """Return a worker's answer.

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
        for task in self._starts:
            task.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        for each in self._workers:
            each.end()
        self._discard_idle()
        for _ in range(self._waiting_for_worker):
            self._idle.put_nowait(None)
        if self._workers:  # busy workers are retired by their jobs, which get EOFError
            await self._all_ended.wait()

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

    async def _work(self, job: bytes, seconds: float, *, retry: bool = True) -> bytes:
        """Run a job, with another worker if one ended before it got the job."""
        try:
            return await self._request(await self._acquire_worker(), job, seconds)
        except (TimeoutError, EOFError):
            message = "The document takes more time or memory than there is for one"
            raise _unavailable(message) from None
        except JobNotReceivedError:
            if self._is_closed or not retry:
                raise _unavailable("Documents cannot be analysed now") from None
        self._discard_idle()  # the others may have ended too
        return await self._work(job, seconds, retry=False)

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
                self._idle.put_nowait(each)
            else:
                self._retire(each)
        return answer

    async def _acquire_worker(self) -> Worker:
        """Return an idle worker, or the next that starts. Raises JobNotReceivedError."""
        while not self._idle.empty():
            each = self._idle.get_nowait()
            if each is not None and each.is_alive:
                self._start_missing()  # it may have been started for another job
                return each
            self._retire(each)
        if self._is_closed:
            raise _unavailable("Documents cannot be analysed now")
        self._waiting_for_worker += 1
        self._start_missing()
        try:
            async with asyncio.timeout(START_SECONDS):
                each = await self._idle.get()
        except TimeoutError:
            raise _unavailable("Documents cannot be analysed now") from None
        finally:
            self._waiting_for_worker -= 1
        if each is None:
            raise JobNotReceivedError
        return each

    def _start_missing(self) -> None:
        for _ in range(self._waiting_for_worker - len(self._starts)):
            self._begin()

    def _begin(self) -> None:
        """Start a worker in the background, if there is room."""
        if not self._is_closed and len(self._workers) + len(self._starts) < self._size:
            _run_in_background(self._starts, self._start())

    async def _start(self) -> None:
        try:
            each = await start_worker(self._command)
        except (EOFError, OSError):  # TimeoutError is one of the latter
            if self._waiting_for_worker:
                self._idle.put_nowait(None)
            return
        self._workers.add(each)
        self._all_ended.clear()
        self._idle.put_nowait(each)

    def _discard_idle(self) -> None:
        while not self._idle.empty():
            self._retire(self._idle.get_nowait())

    def _retire(self, each: Worker | None) -> None:
        """End a worker and start another, both in the background."""
        if each is not None:
            each.end()
            _run_in_background(self._ends, self._replace(each))

    async def _replace(self, each: Worker) -> None:
        await each.kill()
        self._workers.discard(each)
        if not self._workers:
            self._all_ended.set()
        self._begin()


def _run_in_background(tasks: set[Task[None]], work: Coroutine[Any, Any, None]) -> None:
    """Run a task in the background, with a reference so that it is not collected."""
    task = asyncio.ensure_future(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def _unavailable(message: str) -> Problem:
    return Problem("unavailable", message, headers={"Retry-After": str(RETRY_SECONDS)})
