"""Workers that are kept warm, killed when they take too long, and replaced.

Few work at a time and few wait; whoever comes beyond that is told to come again. What is worked
on is bytes here.
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
from edge_api.analysis.worker import HEAD, frame, read_length
from edge_api.db.problems import Problem

COME_UP_SECONDS: Final = 15.0
"""How long a process may take until it listens."""
ANSWER_MOST: Final = 4 * 1024 * 1024
"""Bytes."""

COMMAND: Final = (sys.executable, "-P", "-s", "-m", worker.__name__)
_ROOT: Final = str(Path(__file__).parents[3])


class UnheardError(Exception):
    """A process had ended before it got its job, so that the job has no part in that."""


class Worker:
    """One process, as the edge sees it."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def is_alive(self) -> bool:
        """Tell whether the process runs, as far as anybody knows."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    async def request(self, job: bytes) -> bytes:
        """Return the answer to a job.

        Raises UnheardError when the process was gone before it had the job, and EOFError when it
        went with it.
        """
        try:
            await self._tell(job)
        except (EOFError, OSError):
            raise UnheardError from None
        return await self.listen()

    async def _tell(self, job: bytes) -> None:
        """Hand over a job, until the process says that it has it."""
        sink = self._process.stdin
        assert sink is not None  # noqa: S101  it was asked for
        sink.write(frame(job))
        await sink.drain()
        await self.listen()

    async def listen(self) -> bytes:
        """Return the next message of the process. Raises EOFError when it is gone."""
        source = self._process.stdout
        assert source is not None  # noqa: S101  it was asked for
        length = read_length(await source.readexactly(HEAD))
        if length > ANSWER_MOST:
            raise EOFError
        return await source.readexactly(length)

    def end(self) -> None:
        """End the process, whatever it does, without waiting for it; whoever listens hears EOF."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def kill(self) -> None:
        """End the process and wait until it has; nobody else may be listening to it."""
        self.end()
        await self._process.communicate()


async def start_worker(command: tuple[str, ...]) -> Worker:
    """Start a worker, which gets nothing of the environment but where its modules are.

    Raises TimeoutError, EOFError or OSError when it does not come up.
    """
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
        async with asyncio.timeout(COME_UP_SECONDS):
            await each.listen()
    except BaseException:
        await each.kill()
        raise
    return each


WORKERS: Final = 2
QUEUE: Final = 8
"""Jobs that may wait."""
WAIT_SECONDS: Final = 2.0
"""How long a job may wait for its turn."""
LABOUR_SECONDS: Final = 1.0
"""A worker that took longer is replaced though it answered: nobody knows what it has piled up."""
START_SECONDS: Final = COME_UP_SECONDS
"""How long a job waits for a worker that starts."""
RETRY_SECONDS: Final = 5


class Pool:
    """Runs jobs in worker processes, which start with the first of them.

    Workers start in the background: whoever waits for one may give up, and the next has it. There
    are never more than `size`, those that are starting included.
    """

    def __init__(
        self,
        size: int = WORKERS,
        queue: int = QUEUE,
        seconds: float = worker.WORK_SECONDS,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        """Take the seconds that a job has for its turn and its work, not for a worker's start."""
        self._places = asyncio.Semaphore(size)
        self._size = size
        self._queue = queue
        self._seconds = seconds
        self._command = command
        self._waiting = 0
        self._seeking = 0
        """Jobs that have their turn and no worker yet."""
        self._idle: LifoQueue[Worker | None] = LifoQueue()
        """`None` tells one who seeks that a worker could not be started."""
        self._workers: set[Worker] = set()
        self._has_none = asyncio.Event()
        self._starts: set[Task[None]] = set()
        self._ends: set[Task[None]] = set()
        self._is_closed = False

    @property
    def pids(self) -> set[int]:
        """The ids of the processes that run."""
        return {each.pid for each in self._workers}

    async def run(self, job: bytes) -> bytes:
        """Return what a worker answers to a job.

        Raises Problem `unavailable` when too many wait, or when the job takes more time or memory
        than there is for one.
        """
        if self._is_closed or (self._places.locked() and self._waiting >= self._queue):
            raise _unavailable("Too many documents are being analysed: try again in a moment")
        deadline = asyncio.get_running_loop().time() + self._seconds
        await self._wait(deadline)
        try:
            return await self._work(job, deadline - asyncio.get_running_loop().time())
        finally:
            self._places.release()

    async def close(self) -> None:
        """End every worker; jobs that run end with Problem `unavailable`."""
        self._is_closed = True
        for task in self._starts:
            task.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        for each in self._workers:
            each.end()
        self._discard_idle()
        for _ in range(self._seeking):
            self._idle.put_nowait(None)
        if self._workers:  # those at work are given up by their jobs, which hear that they ended
            await self._has_none.wait()

    async def _wait(self, deadline: float) -> None:
        """Wait for a place."""
        last = min(deadline, asyncio.get_running_loop().time() + WAIT_SECONDS)
        self._waiting += 1
        try:
            async with asyncio.timeout_at(last):
                await self._places.acquire()
        except TimeoutError:
            raise _unavailable("Other documents take their time: try again in a moment") from None
        finally:
            self._waiting -= 1

    async def _work(self, job: bytes, seconds: float, *, again: bool = True) -> bytes:
        """Have a job done, by another worker where one ended before it got the job."""
        try:
            return await self._ask(await self._take(), job, seconds)
        except (TimeoutError, EOFError):
            sentence = "The document takes more time or memory than there is for one"
            raise _unavailable(sentence) from None
        except UnheardError:
            if self._is_closed or not again:
                raise _unavailable("Documents cannot be analysed now") from None
        self._discard_idle()  # whatever ended one may have ended the others
        return await self._work(job, seconds, again=False)

    async def _ask(self, each: Worker, job: bytes, seconds: float) -> bytes:
        """Return the answer of a worker, which is kept if all went well.

        Raises TimeoutError, and UnheardError or EOFError when the process is gone.
        """
        now = asyncio.get_running_loop().time
        start, is_sound = now(), False
        try:
            async with asyncio.timeout(seconds):
                answer = await each.request(job)
            is_sound = now() - start < LABOUR_SECONDS and not self._is_closed
        finally:
            if is_sound:
                self._idle.put_nowait(each)
            else:
                self._retire(each)
        return answer

    async def _take(self) -> Worker:
        """Return a worker that runs: an idle one, or the next that comes up.

        Raises UnheardError where that does not come up.
        """
        while not self._idle.empty():
            each = self._idle.get_nowait()
            if each is not None and each.is_alive:
                self._start_missing()  # it may have been meant for another
                return each
            self._retire(each)
        if self._is_closed:
            raise _unavailable("Documents cannot be analysed now")
        self._seeking += 1
        self._start_missing()
        try:
            async with asyncio.timeout(START_SECONDS):
                each = await self._idle.get()
        except TimeoutError:
            raise _unavailable("Documents cannot be analysed now") from None
        finally:
            self._seeking -= 1
        if each is None:
            raise UnheardError
        return each

    def _start_missing(self) -> None:
        """Start workers for those who seek one."""
        for _ in range(self._seeking - len(self._starts)):
            self._begin()

    def _begin(self) -> None:
        """Start a worker in the background, where there is room for one."""
        if not self._is_closed and len(self._workers) + len(self._starts) < self._size:
            _keep(self._starts, self._start())

    async def _start(self) -> None:
        try:
            each = await start_worker(self._command)
        except (EOFError, OSError):  # TimeoutError is one of the latter
            if self._seeking:
                self._idle.put_nowait(None)
            return
        self._workers.add(each)
        self._has_none.clear()
        self._idle.put_nowait(each)

    def _discard_idle(self) -> None:
        while not self._idle.empty():
            self._retire(self._idle.get_nowait())

    def _retire(self, each: Worker | None) -> None:
        """End a worker, and start another in its place, both in the background."""
        if each is not None:
            each.end()
            _keep(self._ends, self._replace(each))

    async def _replace(self, each: Worker) -> None:
        await each.kill()
        self._workers.discard(each)
        if not self._workers:
            self._has_none.set()
        self._begin()


def _keep(tasks: set[Task[None]], work: Coroutine[Any, Any, None]) -> None:
    """Let work go on in the background; the loop itself would forget it."""
    task = asyncio.ensure_future(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def _unavailable(sentence: str) -> Problem:
    return Problem("unavailable", sentence, headers={"Retry-After": str(RETRY_SECONDS)})
