"""Keeps several workers on one listening socket, each a process with a line to it.

It serves nothing itself and opens no store. A worker inherits the sockets, so that what connects
while one of them is being replaced waits in the kernel until another one takes it.
"""

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
from typing import Final, Self

from edge_api.app import assemble
from edge_api.cli.development_key import greet
from edge_api.cli.inherited_fds import Inheritance, Line
from edge_api.health import Health
from edge_api.http.server import Server, heed_signals, serve_until, start_on
from edge_api.metrics import forget_worker
from edge_api.settings import Settings


async def work(inherited: Inheritance, host: str, settings: Settings) -> int:
    """Serve on the inherited sockets until told to end, or not needed any more. Returns 0.

    Returns 2 where nothing was inherited: the options are not for people.
    """
    try:
        end, sockets = inherited.take()
    except OSError:
        sys.stderr.write("--inherited: only the supervisor of --workers gives it\n")
        return 2
    told, line = heed_signals(), await Line.open(end)
    async with assemble(settings, alone=True) as assembly:
        report = await assembly.service[Health].report()
        line.say(str(report.get("error", "")))
        if not await line.wanted():
            line.close()
            return 0
        server = await start_on(assembly.app.handle, sockets, assembly.app.refuse)
        if inherited.greets:
            await greet(assembly, host, server.port)
        leaving = asyncio.create_task(_leave_at_the_last(line, server, told))
        await serve_until(told, server, assembly.service[Health].start_draining)
        leaving.cancel()
    line.close()
    return 0


async def _leave_at_the_last(line: Line, server: Server, told: asyncio.Event) -> None:
    """When the supervisor needs this worker no more, or is dead, leave new connections to others.

    At once, unlike at the end of the service: a connection that was taken has all the time of the
    drain to bring its request, and the port is free for the next supervisor.
    """
    await line.last()
    server.refuse()
    told.set()


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
        forget_worker(self._process.pid)
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


QUICK_SECONDS: Final = 10.0
"""A worker that lives no longer than this has not come to work: it would die again."""
QUICK_DEATHS_MOST: Final = 5
"""So many of them one after the other, while no other worker serves, are the end of the service."""
PAUSE_SECONDS: Final = 0.25
"""Before the second start in a row; twice as long before each further one."""
PAUSE_MOST: Final = 30.0
STANDARD_INPUT: Final = 0
"""The descriptor, which may be a terminal."""

_log = logging.getLogger(__name__)


class _Place:
    """Where one of the workers stands. Who holds the lock may put another one there."""

    def __init__(self, number: int, worker: WorkerProcess) -> None:
        self.number = number
        self.worker = worker
        self.lock = asyncio.Lock()


class Supervisor:
    """Workers on `sockets`, each started with the command line `words`."""

    def __init__(self, sockets: Sequence[socket.socket], words: Sequence[str]) -> None:
        self._sockets = sockets
        self._words = words
        self._places: list[_Place] = []
        self._started: list[WorkerProcess] = []
        self._told = asyncio.Event()
        self._renewal = asyncio.Event()
        self._status = 0

    async def run(self, count: int) -> int:
        """Keep so many workers until SIGTERM or SIGINT, and return the exit status.

        SIGHUP renews them, one after the other. A second signal to end kills them.
        """
        self._heed_signals()
        working = asyncio.create_task(self._work(count))
        telling = asyncio.create_task(self._told.wait())
        await asyncio.wait({working, telling}, return_when=asyncio.FIRST_COMPLETED)
        telling.cancel()
        working.cancel()
        await asyncio.wait({working})
        await self._end_all()
        if not working.cancelled():
            working.result()  # a fault of ours is not passed over
        return self._status

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._heed_end)
        loop.add_signal_handler(signal.SIGHUP, self._heed_hangup)

    def _heed_end(self) -> None:
        if self._told.is_set():
            for worker in self._started:
                worker.kill()
        self._told.set()

    def _heed_hangup(self) -> None:
        """Renew; but who closes the terminal in which this was started means the end."""
        (self._told if _terminal_is_gone() else self._renewal).set()

    async def _work(self, count: int) -> None:
        """Start the first worker alone: what keeps it from serving is said once, and is the end."""
        first = await self._start(1, greets=True)
        if not first.serves:
            return self._give_up(first, await first.wait())
        self._places.append(_Place(1, first))
        rest = [self._start(number) for number in range(2, count + 1)]
        for worker in await asyncio.gather(*rest):
            self._places.append(_Place(worker.number, worker))
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(self._keep(place))
            group.create_task(self._renew_on_demand())
        return None

    async def _start(self, number: int, *, greets: bool = False) -> WorkerProcess:
        """Start a worker, and return it when it serves or has ended."""
        worker = await self._try(number, greets=greets)
        if worker.could_serve:
            self._admit(worker)
        return worker

    async def _try(self, number: int, *, greets: bool = False) -> WorkerProcess:
        """Start a worker, and return it when it could serve or has ended."""
        worker = await WorkerProcess.start(number, self._sockets, self._words, greets=greets)
        self._started = [each for each in self._started if not each.has_ended]
        self._started.append(worker)
        await worker.begin()
        return worker

    def _admit(self, worker: WorkerProcess) -> None:
        worker.want()
        _log.info("%s serves%s", worker.name, worker.fault and f", but: {worker.fault}")

    async def _keep(self, place: _Place) -> None:
        """Put another worker into a place whenever the one there has died."""
        deaths = 0
        while True:
            worker = place.worker
            status = await worker.wait()
            async with place.lock:
                if place.worker is not worker:
                    continue
                is_early = not worker.could_serve or worker.age < QUICK_SECONDS
                deaths = deaths + 1 if is_early else 0
                _log.warning("%s %s; another takes its place", worker.name, spell_status(status))
                if deaths >= QUICK_DEATHS_MOST and not self._any_serves():
                    return self._give_up(worker, status)
                await asyncio.sleep(_pause(deaths))
                await self._refill(place)

    async def _refill(self, place: _Place) -> None:
        """Put a new worker into a place; one that the system cannot start is tried again later."""
        try:
            place.worker = await self._start(place.number)
        except OSError as error:
            _log.error("worker %d cannot be started: %s", place.number, error.strerror)
            await asyncio.sleep(PAUSE_MOST)

    def _any_serves(self) -> bool:
        return any(place.worker.serves for place in self._places)

    def _give_up(self, worker: WorkerProcess, status: int) -> None:
        """End, since no worker serves and another would not either; what it said stands above."""
        _log.error("no worker serves: %s %s", worker.name, spell_status(status))
        self._status = max(status, 1)
        self._told.set()

    async def _renew_on_demand(self) -> None:
        while True:
            await self._renewal.wait()
            self._renewal.clear()
            await self._renew()

    async def _renew(self) -> None:
        """Replace one worker after the other; the first that is not as it should be is the last."""
        try:
            for place in self._places:
                if not await self._replace(place):
                    return
        except OSError as error:  # the system cannot start another
            _log.error("the other workers stay as they are: %s", error.strerror)
        else:
            _log.info("all %d workers are new", len(self._places))

    async def _replace(self, place: _Place) -> bool:
        """Start another worker for a place, and let the one there go when that one is as good."""
        async with place.lock:
            fresh = await self._try(place.number)
            if fresh.fault not in ("", place.worker.fault):
                _log.error("the other workers stay as they are: %s is not ready", fresh.name)
                fresh.end()
                await fresh.wait_at_most()
                return False
            self._admit(fresh)
            old, place.worker = place.worker, fresh
        old.retire()
        await old.wait_at_most()
        return True

    async def _end_all(self) -> None:
        """Tell all workers to end, and return when they have."""
        for worker in self._started:
            worker.end()
        statuses = await asyncio.gather(*(worker.wait_at_most() for worker in self._started))
        if -signal.SIGKILL in statuses:
            self._status = 1


def _pause(deaths: int) -> float:
    """Return how long to wait after so many quick deaths in a row."""
    return min(PAUSE_MOST, PAUSE_SECONDS * 2 ** (deaths - 1)) if deaths else 0.0


def _terminal_is_gone() -> bool:
    try:
        os.tcgetpgrp(STANDARD_INPUT)
    except OSError as error:
        return error.errno not in (errno.ENOTTY, errno.EBADF)  # where there never was one
    return False
