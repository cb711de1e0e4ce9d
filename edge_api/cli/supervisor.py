"""The supervisor of `serve --workers`, which starts and replaces the worker processes.

A worker inherits the sockets, so that a connection made while one is being replaced waits in the
kernel until another takes it.
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
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

from edge_api.metrics import make_restart_counter, mark_worker_dead

INHERITED_OPTION: Final = "--inherited"
"""The option of workers, which only the supervisor uses. Its value has the number of the worker,
1 if it prints the startup message, and the file descriptors of the control and listening sockets.
"""
_log = logging.getLogger(__name__)


START_SECONDS: Final = 90.0
"""Time limit for a worker's start: longer than another process needs to migrate the store."""
STOP_SECONDS: Final = 30.0
"""Time limit for a worker's end: more than requests, mail and the store need."""


class WorkerProcess:
    """A process of `serve` that has inherited the listening sockets, and a control socket.

    Over the control socket the worker reports that it is ready, with its error if it has one, and
    then waits for its activation. It retires when the supervisor closes its end or dies.
    """

    def __init__(
        self,
        number: int,
        process: Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.number = number
        self.error: str | None = None
        """The error that the worker has reported, or an empty text; `None` before its report."""
        self._is_active = False
        self._process = process
        self._reader, self._writer = reader, writer
        self._started_at = time.monotonic()

    @classmethod
    async def start(
        cls,
        number: int,
        sockets: Sequence[socket.socket],
        argv: Sequence[str],
        *,
        prints_startup: bool = False,
    ) -> Self:
        """Start a worker in a process group of its own, which Ctrl-C does not reach."""
        ours, theirs = socket.socketpair()
        with theirs:
            descriptors = tuple(each.fileno() for each in sockets)
            inherited = (number, int(prints_startup), theirs.fileno(), *descriptors)
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "edge_api",
                *argv,
                INHERITED_OPTION,
                ",".join(map(str, inherited)),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *descriptors),
                process_group=0,
            )
        return cls(number, process, *await asyncio.open_connection(sock=ours))

    @property
    def name(self) -> str:
        """Its name in the log."""
        return f"worker {self.number} (process {self._process.pid})"

    @property
    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.returncode is not None

    @property
    def is_serving(self) -> bool:
        """Return whether it accepts requests."""
        return self._is_active and not self.has_ended

    @property
    def is_ready(self) -> bool:
        """Return whether it has reported, perhaps with an error, that it can be activated."""
        return self.error is not None

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._started_at

    async def wait_until_ready(self) -> None:
        """Wait until it can serve, has ended, or took too long."""
        try:
            async with asyncio.timeout(START_SECONDS):
                line = await self._reader.readline()
        except TimeoutError:
            line = b""
            self.kill()
        if not line.endswith(b"\n"):
            await self.wait()
            return
        self.error = line.decode().strip()

    def activate(self) -> None:
        """Let the worker accept connections from now on."""
        self._is_active = True
        self._writer.write(b"\n")
        _log.info("%s serves%s", self.name, self.error and f", but: {self.error}")

    def stop(self) -> None:
        """Send SIGTERM: the worker reports not ready for a while, finishes its work, and ends."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        if not self._is_active:  # until its activation it reads only the control socket
            self.retire()

    def retire(self) -> None:
        """Close the control socket: the worker stops accepting, finishes its requests, and ends."""
        self._writer.close()

    def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> int:
        """Wait for the process to end; return its exit status, negative for a signal."""
        status = await self._process.wait()
        self.retire()
        mark_worker_dead(self._process.pid)
        return status

    async def wait_or_kill(self) -> int:
        """Wait for the process to end; kill it after `STOP_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                return await self.wait()
        self.kill()
        return await self.wait()


def describe_status(status: int) -> str:
    """Return a description of how a process ended."""
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by {signal.Signals(-status).name}"


EARLY_EXIT_SECONDS: Final = 10.0  # a worker that ends sooner has failed to start: the next may too
MAX_EARLY_EXITS: Final = 5  # this many in a row, while no other worker serves, end the service
MAX_PAUSE_SECONDS: Final = 30.0


class Supervisor:
    """Workers on `sockets`, each started with the command line `argv`."""

    def __init__(self, sockets: Sequence[socket.socket], argv: Sequence[str]) -> None:
        self._sockets = sockets
        self._argv = argv
        self._workers: dict[int, WorkerProcess] = {}
        """The workers by number; the lock of a number is held while its worker is replaced."""
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._processes: list[WorkerProcess] = []
        """All worker processes that may still run, also those that were replaced."""
        self._stop = asyncio.Event()
        self._restart = asyncio.Event()
        self._status = 0
        self._count_restart = make_restart_counter()

    async def run(self, count: int) -> int:
        """Run `count` workers until SIGTERM or SIGINT, and return the exit status.

        SIGHUP replaces them, one after the other. A second SIGTERM or SIGINT kills them.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._handle_stop)
        loop.add_signal_handler(signal.SIGHUP, self._handle_hangup)
        running = asyncio.create_task(self._run_workers(count))
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        running.cancel()
        await asyncio.wait({running})
        for worker in self._processes:
            worker.stop()
        statuses = await asyncio.gather(*(worker.wait_or_kill() for worker in self._processes))
        if -signal.SIGKILL in statuses:
            self._status = 1
        if not running.cancelled():
            running.result()  # raises the exception that ended it, if one did
        return self._status

    def _handle_stop(self) -> None:
        if self._stop.is_set():
            for worker in self._processes:
                worker.kill()
        self._stop.set()

    def _handle_hangup(self) -> None:
        """Replace the workers, or end if the terminal was closed."""
        try:
            os.tcgetpgrp(0)  # the standard input, which may be a terminal
        except OSError as error:
            # Either of these means that the standard input was no terminal from the start.
            is_gone = error.errno not in (errno.ENOTTY, errno.EBADF)
        else:
            is_gone = False
        (self._stop if is_gone else self._restart).set()

    async def _run_workers(self, count: int) -> None:
        """Start the first worker alone: if it cannot serve, the others cannot either."""
        first = await self._start(1, prints_startup=True)
        if not first.is_serving:
            return self._give_up(first, await first.wait())
        rest = [self._start(number) for number in range(2, count + 1)]
        self._workers = {each.number: each for each in (first, *await asyncio.gather(*rest))}
        async with asyncio.TaskGroup() as group:
            for number in self._workers:
                group.create_task(self._respawn(number))
            group.create_task(self._restart_on_demand())
        return None

    async def _start(self, number: int, *, prints_startup: bool = False) -> WorkerProcess:
        """Start and activate a worker; return it when it serves or has ended."""
        worker = await self._start_ready(number, prints_startup=prints_startup)
        if worker.is_ready:
            worker.activate()
        return worker

    async def _start_ready(self, number: int, *, prints_startup: bool = False) -> WorkerProcess:
        """Start a worker; return it when it is ready or has ended."""
        worker = await WorkerProcess.start(
            number, self._sockets, self._argv, prints_startup=prints_startup
        )
        self._processes = [each for each in self._processes if not each.has_ended]
        self._processes.append(worker)
        await worker.wait_until_ready()
        return worker

    async def _respawn(self, number: int) -> None:
        """Replace the worker of a number whenever it has ended."""
        early_exits = 0
        while True:
            worker = self._workers[number]
            status = await worker.wait()
            async with self._locks[number]:
                if self._workers[number] is not worker:
                    continue
                is_early = not worker.is_ready or worker.age < EARLY_EXIT_SECONDS
                early_exits = early_exits + 1 if is_early else 0
                _log.warning("%s %s; a new one replaces it", worker.name, describe_status(status))
                self._count_restart()
                any_serves = any(each.is_serving for each in self._workers.values())
                if early_exits >= MAX_EARLY_EXITS and not any_serves:
                    return self._give_up(worker, status)
                # 0.25 s before the second start in a row, doubled before each further one.
                pause = 0.25 * 2 ** (early_exits - 1) if early_exits else 0.0
                await asyncio.sleep(min(MAX_PAUSE_SECONDS, pause))
                try:
                    self._workers[number] = await self._start(number)
                except OSError as error:  # the system cannot start a process now
                    _log.error("worker %d cannot be started: %s", number, error.strerror)
                    await asyncio.sleep(MAX_PAUSE_SECONDS)

    def _give_up(self, worker: WorkerProcess, status: int) -> None:
        """Stop the supervisor, since `worker` failed to start."""
        _log.error("no worker serves: %s %s", worker.name, describe_status(status))
        self._status = max(status, 1)
        self._stop.set()

    async def _restart_on_demand(self) -> None:
        """Replace the workers one by one on SIGHUP; stop at the first that is not ready."""
        while True:
            await self._restart.wait()
            self._restart.clear()
            try:
                for number in self._workers:
                    if not await self._replace(number):
                        break
                else:
                    _log.info("all %d workers are new", len(self._workers))
            except OSError as error:  # the system cannot start another process
                _log.error("the other workers stay as they are: %s", error.strerror)

    async def _replace(self, number: int) -> bool:
        """Start another worker of a number, and retire the old one if the new one is ready."""
        async with self._locks[number]:
            new = await self._start_ready(number)
            old = self._workers[number]
            if new.error not in ("", old.error):
                _log.error("the other workers stay as they are: %s is not ready", new.name)
                new.stop()
                await new.wait_or_kill()
                return False
            new.activate()
            self._workers[number] = new
        old.retire()
        await old.wait_or_kill()
        return True
