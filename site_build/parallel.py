"""Work spread over processes: one function, many items, results as they come.

Processes are forked, so that they see all the parent has read without a copy. The split depends on
nothing but the number of items, and each result carries its item's index, so that the outcome is
the same for any number of processes. It knows nothing of sites.
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
"""So few items are done sooner than a process is started."""

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
    """Do `work` in a process of its own while the body goes on; yields what waits for its result.

    With one job it is done when it is waited for. Waiting raises what `map_unordered` does.
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
    """Have so many processes at work on the items; yields from where each reports."""
    context = multiprocessing.get_context("fork")
    gc.freeze()  # A collection in a child would touch, and so copy, all that it shares.
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
    """Answer SIGINT and SIGTERM only after the body; a process forked in it unblocks them itself.

    What a handler raises in a hook of fork is lost. Another thread may take what this one blocks.
    """
    held: list[int] = []
    # Only the main thread runs handlers, and only it may set them.
    is_main = threading.current_thread() is threading.main_thread()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    numbers = _STOP_SIGNALS if is_main else ()
    handlers = {each: signal.signal(each, lambda came, _: held.append(came)) for each in numbers}
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for came in held:
            signal.raise_signal(came)


def _run_share(
    work: Callable[[T], R],
    items: Sequence[T],
    indexes: range,
    sender: Connection,
    inherited: Sequence[Connection],
) -> None:
    """Do one process's share; the parent answers an interruption, so this does not."""
    gc.enable()  # Whatever the parent does: what comes and goes here must not pile up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    for receiver in inherited:
        receiver.close()  # With a reader left here, the death of the parent would go unnoticed.
    try:
        for index in indexes:
            sender.send((index, work(items[index])))
        sender.send(None)
    except BrokenPipeError:
        return  # The parent is gone, and with it whoever wanted the results.
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
        sender.send(error)


def _collect(workers: dict[Connection, BaseProcess]) -> Iterator[tuple[int, R]]:
    """Yield results until every process has said that it is done."""
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
