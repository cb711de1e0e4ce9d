"""One worker process as the edge sees it: started, asked, ended. What is asked is bytes here."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Final

from edge_api.domain.analysis import worker
from edge_api.domain.analysis.worker import HEAD, frame, read_length

START_SECONDS: Final = 15.0
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

    async def ask(self, job: bytes) -> bytes:
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
        async with asyncio.timeout(START_SECONDS):
            await each.listen()
    except BaseException:
        await each.kill()
        raise
    return each
