"""Workers that are kept warm, killed when they take too long, and replaced.

Few work at a time and few wait; whoever comes beyond that is told to come again. What is worked
on is bytes here.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Final

from edge_api.domain.analysis import worker
from edge_api.domain.analysis.frames import HEAD, frame, read_length
from edge_api.schema.problems import Problem

WORKERS: Final = 2
QUEUE: Final = 8
"""Jobs that may wait."""
WAIT_SECONDS: Final = 2.0
"""How long a job may wait for a worker."""
START_SECONDS: Final = 15.0
LABOUR_SECONDS: Final = 1.0
"""A worker that took longer is replaced though it answered: nobody knows what it has piled up."""
RETRY_SECONDS: Final = 5
ANSWER_MOST: Final = 4 * 1024 * 1024
"""Bytes."""

COMMAND: Final = (sys.executable, "-P", "-s", "-m", worker.__name__)
_ROOT: Final = str(Path(__file__).parents[3])


class _Worker:
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

    async def ask(self, job: bytes) -> bytes:
        """Return the answer to a job. Raises OSError or EOFError when the process is gone."""
        sink = self._process.stdin
        assert sink is not None  # noqa: S101  it was asked for
        sink.write(frame(job))
        await sink.drain()
        return await self.listen()

    async def listen(self) -> bytes:
        """Return the next message of the process. Raises EOFError when it is gone."""
        source = self._process.stdout
        assert source is not None  # noqa: S101  it was asked for
        length = read_length(await source.readexactly(HEAD))
        if length > ANSWER_MOST:
            raise EOFError
        return await source.readexactly(length)

    async def kill(self) -> None:
        """End the process, whatever it does."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.communicate()


async def _start(command: tuple[str, ...]) -> _Worker:
    """Start a worker, which gets nothing of the environment but where its modules are.

    Raises Problem `unavailable` when it does not come up.
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
    each = _Worker(process)
    try:
        async with asyncio.timeout(START_SECONDS):
            await each.listen()
    except (TimeoutError, EOFError):
        await each.kill()
        raise _unavailable("Documents cannot be analysed now") from None
    except BaseException:
        await each.kill()
        raise
    return each


class Pool:
    """Runs jobs in worker processes, which start with the first of them."""

    def __init__(
        self,
        size: int = WORKERS,
        queue: int = QUEUE,
        seconds: float = worker.WORK_SECONDS,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self._places = asyncio.Semaphore(size)
        self._queue = queue
        self._seconds = seconds
        self._command = command
        self._waiting = 0
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._is_closed = False

    @property
    def pids(self) -> set[int]:
        """The ids of the processes that run."""
        return {each.pid for each in (*self._idle, *self._busy)}

    async def run(self, job: bytes) -> bytes:
        """Return what a worker answers to a job.

        Raises Problem `unavailable` when too many wait, or when the job takes more time or memory
        than there is for one.
        """
        if self._is_closed or (self._places.locked() and self._waiting >= self._queue):
            raise _unavailable("Too many documents are being analysed: try again in a moment")
        await self._wait()
        try:
            return await self._work(job)
        finally:
            self._places.release()

    async def close(self) -> None:
        """End every worker; jobs that run end with Problem `unavailable`."""
        self._is_closed = True
        for each in (*self._idle, *self._busy):
            await each.kill()
        self._idle = []

    async def _wait(self) -> None:
        """Wait for a place."""
        self._waiting += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            raise _unavailable("Other documents take their time: try again in a moment") from None
        finally:
            self._waiting -= 1

    async def _work(self, job: bytes) -> bytes:
        each = await self._take()
        self._busy.add(each)
        now = asyncio.get_running_loop().time
        start, is_sound = now(), False
        try:
            async with asyncio.timeout(self._seconds):
                answer = await each.ask(job)
            is_sound = now() - start < LABOUR_SECONDS and not self._is_closed
        except (TimeoutError, EOFError, OSError):
            sentence = "The document takes more time or memory than there is for one"
            raise _unavailable(sentence) from None
        else:
            return answer
        finally:
            self._busy.discard(each)
            if is_sound:
                self._idle.append(each)
            else:
                await each.kill()

    async def _take(self) -> _Worker:
        """Return a worker that runs: an idle one, or a new one."""
        while self._idle:
            each = self._idle.pop()
            if each.is_alive:
                return each
            await each.kill()
        return await _start(self._command)


def _unavailable(sentence: str) -> Problem:
    return Problem("unavailable", sentence, headers={"Retry-After": str(RETRY_SECONDS)})
