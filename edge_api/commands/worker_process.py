"""One worker as its supervisor sees it: a process, and the line to it."""

import asyncio
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

from edge_api.commands.inheritance import Inheritance, Line

START_SECONDS: Final = 90.0
"""How long a worker may take until it serves: longer than it waits for others to migrate."""
END_SECONDS: Final = 30.0
"""How long it may take to end: requests under way, mail and the store have less together."""


class WorkerProcess:
    """A process of `serve` that has inherited the listening sockets."""

    def __init__(self, number: int, process: Process, line: Line) -> None:
        self.number = number
        self.fault: str | None = None
        """What is wrong with it now that it can serve, empty if nothing is; `None` until then."""
        self._is_wanted = False
        self._process = process
        self._line = line
        self._started_at = time.monotonic()

    @classmethod
    async def start(
        cls,
        number: int,
        sockets: Sequence[socket.socket],
        words: Sequence[str],
        *,
        greets: bool = False,
    ) -> Self:
        """Start it with the command line that its supervisor has.

        It is in a process group of its own: Ctrl-C is for the supervisor, which tells the workers.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            descriptors = tuple(each.fileno() for each in sockets)
            inheritance = Inheritance(number, greets, theirs.fileno(), descriptors)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "edge_api", *words, *inheritance.as_options()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *descriptors),
                process_group=0,
            )
        return cls(number, process, await Line.open(ours))

    @property
    def name(self) -> str:
        """What it is called in the log."""
        return f"worker {self.number} (process {self._process.pid})"

    @property
    def serves(self) -> bool:
        """Tell whether it takes requests."""
        return self._is_wanted and self._process.returncode is None

    @property
    def has_ended(self) -> bool:
        """Tell whether the process is gone."""
        return self._process.returncode is not None

    @property
    def could_serve(self) -> bool:
        """Tell whether it ever came so far as to say how it is."""
        return self.fault is not None

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._started_at

    async def begin(self) -> None:
        """Return when it can serve, which `fault` tells, or has ended, or had too much time."""
        try:
            async with asyncio.timeout(START_SECONDS):
                self.fault = await self._line.hear()
        except TimeoutError:
            self.kill()
        if not self.could_serve:
            await self.wait()

    def want(self) -> None:
        """Have it take connections from now on."""
        self._is_wanted = True
        self._line.want()

    def end(self) -> None:
        """Have it say no in readiness for a while, finish what is under way, and end."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        if not self._is_wanted:  # it waits at the line
            self._line.close()

    def retire(self) -> None:
        """Have it leave connections to the others from now on, and end as otherwise."""
        self._line.close()

    def kill(self) -> None:
        """End it now."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> int:
        """Return its exit status when it has ended; less than 0 is the number of a signal."""
        status = await self._process.wait()
        self._line.close()
        return status

    async def wait_at_most(self) -> int:
        """Do as `wait` does, but kill it when it had enough time."""
        try:
            async with asyncio.timeout(END_SECONDS):
                return await self.wait()
        except TimeoutError:
            self.kill()
            return await self.wait()


def spell_status(status: int) -> str:
    """Return how a process ended, for a sentence."""
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by {signal.Signals(-status).name}"
