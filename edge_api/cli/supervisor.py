"""The supervisor of `serve --workers`: it serves nothing and opens no store.

A worker inherits the sockets, so that a connection made while one is being replaced waits in the
kernel until another takes it.
"""

import argparse
import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from edge_api.metrics import mark_worker_dead

_OPTION: Final = "--inherited"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InheritedFds:
    """The file descriptors that a worker inherits."""

    number: int  # from 1 on
    greets: bool  # whether it prints the startup message
    line: int
    sockets: tuple[int, ...]

    def as_options(self) -> list[str]:
        """Return the option for the worker."""
        numbers = (self.number, int(self.greets), self.line, *self.sockets)
        return [_OPTION, ",".join(map(str, numbers))]

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the value of the option. Raises ValueError."""
        number, greets, line, first, *more = map(int, text.split(","))
        return cls(number, bool(greets), line, (first, *more))

    def take(self) -> tuple[socket.socket, list[socket.socket]]:
        """Return the line and the listening sockets, uninheritable. Raises OSError without any."""
        descriptors = (self.line, *self.sockets)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # noqa: FBT003  the standard library's own form
        line, *sockets = (socket.socket(fileno=descriptor) for descriptor in descriptors)
        return line, sockets


def add_option(parser: argparse.ArgumentParser) -> None:
    """Declare the option of workers, which only the supervisor uses."""
    parser.add_argument(_OPTION, type=InheritedFds.read, help=argparse.SUPPRESS)


class ControlSocket:
    """One end of the line between supervisor and worker.

    The worker reports once that it can serve, and waits until it is wanted. When the supervisor
    closes its end, or dies, the worker is retired.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> Self:
        """Return the line of a socket."""
        return cls(*await asyncio.open_connection(sock=end))

    def say(self, error: str) -> None:
        """Report to the supervisor that this worker can serve, and its error, if any."""
        self._writer.write(f"{' '.join(error.splitlines())}\n".encode())

    async def hear(self) -> str | None:
        """Return the worker's error, empty if it has none; `None` if it ends first."""
        said = await self._reader.readline()
        return said.decode().strip() if said.endswith(b"\n") else None

    def want(self) -> None:
        """Have the worker take connections."""
        self._writer.write(b"\n")

    async def wanted(self) -> bool:
        """Wait for the supervisor's decision; return whether the worker is wanted."""
        with suppress(OSError):
            return bool(await self._reader.read(1))
        return False

    async def wait_closed(self) -> None:
        """Wait until the other side closes its end, or dies."""
        with suppress(OSError):  # what was said to it and not heard, when it died
            await self._reader.read()

    def close(self) -> None:
        """Close this end."""
        self._writer.close()


START_SECONDS: Final = 90.0
"""Until a worker serves: longer than it waits for others to migrate."""
END_SECONDS: Final = 30.0
"""Until a worker ends: requests, mail and the store take less together."""


class WorkerProcess:
    """A process of `serve` that has inherited the listening sockets."""

    def __init__(self, number: int, process: Process, line: ControlSocket) -> None:
        self.number = number
        self.error: str | None = None
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
        """Start it with our command line, in a process group that Ctrl-C does not reach."""
        ours, theirs = socket.socketpair()
        with theirs:
            descriptors = tuple(each.fileno() for each in sockets)
            inheritance = InheritedFds(number, greets, theirs.fileno(), descriptors)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "edge_api", *words, *inheritance.as_options()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *descriptors),
                process_group=0,
            )
        return cls(number, process, await ControlSocket.open(ours))

    @property
    def name(self) -> str:
        """Its name in the log."""
        return f"worker {self.number} (process {self._process.pid})"

    @property
    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.returncode is not None

    @property
    def serves(self) -> bool:
        """Return whether it takes requests."""
        return self._is_wanted and not self.has_ended

    @property
    def is_ready(self) -> bool:
        """Return whether it ever reported that it can serve."""
        return self.error is not None

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._started_at

    async def begin(self) -> None:
        """Wait until it can serve, has ended, or took too long."""
        try:
            async with asyncio.timeout(START_SECONDS):
                self.error = await self._line.hear()
        except TimeoutError:
            self.kill()
        if not self.is_ready:
            await self.wait()

    def want(self) -> None:
        """Have it take connections from now on."""
        self._is_wanted = True
        self._line.want()
        _log.info("%s serves%s", self.name, self.error and f", but: {self.error}")

    def end(self) -> None:
        """Have it report not ready for a while, finish its requests, and end."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        if not self._is_wanted:  # it waits at the line
            self._line.close()

    def retire(self) -> None:
        """Have it leave connections to the others from now on, finish, and end."""
        self._line.close()

    def kill(self) -> None:
        """End it now."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> int:
        """Return its exit status once it has ended, negative for a signal."""
        status = await self._process.wait()
        self._line.close()
        mark_worker_dead(self._process.pid)
        return status

    async def wait_at_most(self) -> int:
        """Wait for its end; kill it after `END_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                return await self.wait()
        self.kill()
        return await self.wait()


def describe_status(status: int) -> str:
    """Return in words how a process ended."""
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by {signal.Signals(-status).name}"


EARLY_EXIT_SECONDS: Final = 10.0
"""A worker that ends sooner has failed to start: the next may too."""
MAX_EARLY_EXITS: Final = 5
"""So many in a row, while no other worker serves, end the service."""
PAUSE_SECONDS: Final = 0.25
"""Before the second start in a row; doubled before each further one."""
PAUSE_MOST: Final = 30.0
STANDARD_INPUT: Final = 0  # may be a terminal


class _WorkerSlot:
    """The slot of a worker. The holder of the lock may replace the worker."""

    def __init__(self, number: int, worker: WorkerProcess) -> None:
        self.number = number
        self.worker = worker
        self.lock = asyncio.Lock()


class Supervisor:
    """Workers on `sockets`, each started with the command line `words`."""

    def __init__(self, sockets: Sequence[socket.socket], words: Sequence[str]) -> None:
        self._sockets = sockets
        self._words = words
        self._slots: list[_WorkerSlot] = []
        self._started: list[WorkerProcess] = []
        self._stop = asyncio.Event()
        self._renewal = asyncio.Event()
        self._status = 0

    async def run(self, count: int) -> int:
        """Keep `count` workers until SIGTERM or SIGINT, and return the exit status.

        SIGHUP renews them, one after the other. A second signal to end kills them.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._heed_end)
        loop.add_signal_handler(signal.SIGHUP, self._heed_hangup)
        working = asyncio.create_task(self._work(count))
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        working.cancel()
        await asyncio.wait({working})
        for worker in self._started:
            worker.end()
        statuses = await asyncio.gather(*(worker.wait_at_most() for worker in self._started))
        if -signal.SIGKILL in statuses:
            self._status = 1
        if not working.cancelled():
            working.result()  # a fault of ours is not passed over
        return self._status

    def _heed_end(self) -> None:
        if self._stop.is_set():
            for worker in self._started:
                worker.kill()
        self._stop.set()

    def _heed_hangup(self) -> None:
        """Renew the workers, or end if the terminal was closed."""
        (self._stop if _terminal_is_gone() else self._renewal).set()

    async def _work(self, count: int) -> None:
        """Start the first worker alone: if it cannot serve, the others cannot either."""
        first = await self._start(1, greets=True)
        if not first.serves:
            return self._give_up(first, await first.wait())
        self._slots.append(_WorkerSlot(1, first))
        rest = [self._start(number) for number in range(2, count + 1)]
        for worker in await asyncio.gather(*rest):
            self._slots.append(_WorkerSlot(worker.number, worker))
        async with asyncio.TaskGroup() as group:
            for slot in self._slots:
                group.create_task(self._keep(slot))
            group.create_task(self._renew_on_demand())
        return None

    async def _start(self, number: int, *, greets: bool = False) -> WorkerProcess:
        """Start a worker, and return it when it serves or has ended."""
        worker = await self._try(number, greets=greets)
        if worker.is_ready:
            worker.want()
        return worker

    async def _try(self, number: int, *, greets: bool = False) -> WorkerProcess:
        """Start a worker, and return it when it could serve or has ended."""
        worker = await WorkerProcess.start(number, self._sockets, self._words, greets=greets)
        self._started = [each for each in self._started if not each.has_ended]
        self._started.append(worker)
        await worker.begin()
        return worker

    async def _keep(self, slot: _WorkerSlot) -> None:
        """Replace the worker of a slot whenever it has ended."""
        deaths = 0
        while True:
            worker = slot.worker
            status = await worker.wait()
            async with slot.lock:
                if slot.worker is not worker:
                    continue
                is_early = not worker.is_ready or worker.age < EARLY_EXIT_SECONDS
                deaths = deaths + 1 if is_early else 0
                _log.warning("%s %s; a new one replaces it", worker.name, describe_status(status))
                any_serves = any(each.worker.serves for each in self._slots)
                if deaths >= MAX_EARLY_EXITS and not any_serves:
                    return self._give_up(worker, status)
                pause = PAUSE_SECONDS * 2 ** (deaths - 1) if deaths else 0.0
                await asyncio.sleep(min(PAUSE_MOST, pause))
                try:
                    slot.worker = await self._start(slot.number)
                except OSError as error:  # the system cannot start one now
                    _log.error("worker %d cannot be started: %s", slot.number, error.strerror)
                    await asyncio.sleep(PAUSE_MOST)

    def _give_up(self, worker: WorkerProcess, status: int) -> None:
        """End, since no worker serves and another would not either."""
        _log.error("no worker serves: %s %s", worker.name, describe_status(status))
        self._status = max(status, 1)
        self._stop.set()

    async def _renew_on_demand(self) -> None:
        """Replace one worker after the other on demand, up to the first that is not ready."""
        while True:
            await self._renewal.wait()
            self._renewal.clear()
            try:
                for slot in self._slots:
                    if not await self._replace(slot):
                        break
                else:
                    _log.info("all %d workers are new", len(self._slots))
            except OSError as error:  # the system cannot start another
                _log.error("the other workers stay as they are: %s", error.strerror)

    async def _replace(self, slot: _WorkerSlot) -> bool:
        """Start another worker for a slot, and retire the old one if it is as good."""
        async with slot.lock:
            fresh = await self._try(slot.number)
            if fresh.error not in ("", slot.worker.error):
                _log.error("the other workers stay as they are: %s is not ready", fresh.name)
                fresh.end()
                await fresh.wait_at_most()
                return False
            fresh.want()
            old, slot.worker = slot.worker, fresh
        old.retire()
        await old.wait_at_most()
        return True


def _terminal_is_gone() -> bool:
    try:
        os.tcgetpgrp(STANDARD_INPUT)
    except OSError as error:
        return error.errno not in (errno.ENOTTY, errno.EBADF)  # where there never was one
    return False
