"""Standard output and error behind a thread, so that no slow reader holds up a command."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from io import FileIO
from queue import Empty, SimpleQueue
from threading import Thread

MOST_LINES = 1_000
"""Lines that wait for a reader; of more, the oldest are dropped."""
_PATIENCE = 1.0
"""Seconds that the last lines wait for their reader at the end."""


@contextmanager
def relay_output() -> Iterator[None]:
    """Let what is written within the block never wait for a reader, of child processes too.

    Lines that nobody reads in time are dropped, and a line says how many. A reader that went away
    is no error. Colours stay as they are on a terminal.
    """
    if os.isatty(1):
        os.environ.setdefault("FORCE_COLOR", "1")
    with ExitStack() as relays:
        for each in [(1, 2)] if os.path.sameopenfile(1, 2) else [(1,), (2,)]:
            # A file, or /dev/null, takes what is written at once; as a pipe it could not seek.
            if os.isatty(each[0]) or not FileIO(each[0], "w", closefd=False).seekable():
                relays.enter_context(_relay(each))
        yield


@contextmanager
def _relay(descriptors: tuple[int, ...]) -> Iterator[None]:
    """Put a pipe and two threads between descriptors, which are one file, and that file."""
    target, (source, inlet) = os.dup(descriptors[0]), os.pipe()
    waiting: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
    for each in descriptors:
        os.dup2(inlet, each)
    os.close(inlet)
    writer = Thread(target=_write, args=(waiting, target), daemon=True)
    writer.start()
    Thread(target=_collect, args=(source, waiting, os.isatty(target)), daemon=True).start()
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for each in descriptors:
            os.dup2(target, each)
        writer.join(_PATIENCE)


def _collect(source: int, waiting: SimpleQueue[tuple[int, bytes]], is_terminal: bool) -> None:  # noqa: FBT001
    """Take in and number whatever is written, until all who can write have closed their end."""
    # A terminal shows what is not yet a line, too, such as a bar that fills.
    chunks = partial(os.read, source, 65_536)
    pieces: Iterable[bytes] = iter(chunks, b"") if is_terminal else os.fdopen(source, "rb")
    for piece in enumerate(pieces):
        waiting.put(piece)
        if waiting.qsize() > MOST_LINES:
            with suppress(Empty):
                waiting.get_nowait()
    waiting.put((0, b""))


def _write(waiting: SimpleQueue[tuple[int, bytes]], target: int) -> None:
    """Write what was taken in; this thread alone waits for the reader."""
    expected = 0
    with suppress(OSError):  # Nobody will read any more.
        while (piece := waiting.get())[1]:
            lost = piece[0] - expected
            rest = (f"… {lost:,} lines not shown\n".encode() if lost else b"") + piece[1]
            expected = piece[0] + 1
            while rest:
                rest = rest[os.write(target, rest) :]
