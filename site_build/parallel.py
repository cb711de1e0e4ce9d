"""Runs a function on many items in several processes, and yields results as they are ready.

Processes are forked, so that they share all data of the parent without a copy. Each result has its
item's index, so that the outcome is the same for any number of processes. This knows nothing of
sites.
"""

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar, cast

from site_build.errors import BuildError

T = TypeVar("T")
R = TypeVar("R")

_FEW = 8
"""The most items that one process finishes before another one could start."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def count_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_unordered(work: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[tuple[int, R]]:
    """Yield the index and the result of `work` for each item, in no particular order.

    Raises what `work` raised, and BuildError when a process dies.
    """
    if jobs <= 1 or len(items) <= _FEW:
        yield from ((index, work(item)) for index, item in enumerate(items))
        return
    with _worker_processes(work, items, jobs) as workers:
        yield from _collect(workers)


@contextmanager
def in_background(work: Callable[[], R], jobs: int) -> Iterator[Callable[[], R]]:
    """Run `work` in a process while the body goes on; yield a function that returns its result.

    With one job, that function runs it. It raises the same errors as `map_unordered`.
    """
    if jobs <= 1:
        yield work
        return
    with _worker_processes(lambda _: work(), [None], 1) as workers:
        yield lambda: next(_collect(workers))[1]


@contextmanager
def _worker_processes(
    work: Callable[[T], R], items: Sequence[T], jobs: int
) -> Iterator[dict[Connection, BaseProcess]]:
    """Start processes that work on the items; yield them by the connections of their results."""
    context = multiprocessing.get_context("fork")
    gc.freeze()  # A garbage collection in a child would write to all shared memory, and copy it.
    workers: dict[Connection, BaseProcess] = {}
    try:
        for first in range(jobs):
            receiver, sender = context.Pipe(duplex=False)
            indexes = range(first, len(items), jobs)
            process = context.Process(
                target=_run_share,
                args=(work, items, indexes, sender, [*workers, receiver]),
                daemon=True,
            )
            with _signals_held():
                process.start()
                workers[receiver] = process
            sender.close()
        yield workers
    finally:
        gc.unfreeze()
        for receiver, worker in workers.items():
            worker.terminate()
            worker.join()
            worker.close()
            receiver.close()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until after the body; a process forked in it unblocks them itself.

    An exception that a handler raises during the fork would be lost. Handlers are replaced as well,
    since another thread may get a signal that is blocked in this one.
    """
    held: list[int] = []
    # Only the main thread runs handlers, and only it may set them.
    is_main = threading.current_thread() is threading.main_thread()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    numbers = _STOP_SIGNALS if is_main else ()
    handlers = {each: signal.signal(each, lambda got, _: held.append(got)) for each in numbers}
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for got in held:
            signal.raise_signal(got)


def _run_share(
    work: Callable[[T], R],
    items: Sequence[T],
    indexes: range,
    sender: Connection,
    inherited: Sequence[Connection],
) -> None:
    """Work on one process's share of the items; SIGINT is left to the parent."""
    gc.enable()  # The parent may have switched it off, but here garbage must not pile up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    for receiver in inherited:
        receiver.close()  # With a reader open here, this would not notice that the parent is gone.
    try:
        for index in indexes:
            sender.send((index, work(items[index])))
        sender.send(None)
    except BrokenPipeError:
        return  # The parent is gone.
    except Exception as error:  # noqa: BLE001 - the parent raises it, whatever it is
        sender.send(error)


def _collect(workers: dict[Connection, BaseProcess]) -> Iterator[tuple[int, R]]:
    """Yield results until every process has sent None, which means that it is done."""
    busy = set(workers)
    while busy:
        for receiver in cast("list[Connection]", wait(busy)):
            process = workers[receiver]
            try:
                message: object = receiver.recv()
            except EOFError:
                process.join()
                code = process.exitcode or 0
                end = signal.Signals(-code).name if code < 0 else f"exit status {code}"
                raise BuildError(
                    f"a process of the build died ({end}); is there memory enough? "
                    "Try again with --jobs 1"
                ) from None
            if isinstance(message, Exception):
                raise message
            if message is None:
                busy.discard(receiver)
            else:
                yield cast("tuple[int, R]", message)
