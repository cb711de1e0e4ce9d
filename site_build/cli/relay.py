"""Standard output and error behind a thread, so that no slow reader holds up a command."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import FileIO, TextIOWrapper
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

MOST_LINES = 1_000
"""Lines that wait for a reader; of more, the oldest are dropped."""
_PATIENCE = 1.0
"""Seconds that the last lines wait for their reader at the end."""
_END = (0, 0, b"")
_waiting = SimpleQueue[tuple[int, int, bytes]]()
"""Lines, each with its number and the descriptor that it is for."""
_numbers = count()


class _Relay(FileIO):
    """Takes whatever is written at once, and leaves it to the thread."""

    def write(self, data: Any) -> int:
        """Put a line into the queue, and return its length."""
        line = bytes(data)
        with suppress(Empty):
            while _waiting.qsize() >= MOST_LINES:
                _waiting.get_nowait()
        _waiting.put((next(_numbers), self.fileno(), line))
        return len(line)


@contextmanager
def relay_output() -> Iterator[None]:
    """Let what this process writes within the block never wait for a reader.

    Lines that nobody reads in time are dropped, and a line says how many. A reader that went away
    is no error.
    """
    writer = Thread(target=_write, args=(next(_numbers),), daemon=True)
    writer.start()
    encoding, errors = sys.stdout.encoding, "backslashreplace"
    out, err = (
        TextIOWrapper(_Relay(each, "w", closefd=False), encoding, errors, line_buffering=True)
        for each in (1, 2)
    )
    try:
        with redirect_stdout(out), redirect_stderr(err):
            yield
    finally:
        out.flush()
        err.flush()
        _waiting.put(_END)
        writer.join(_PATIENCE)


def _write(last: int) -> None:
    """Write each line to its descriptor; this thread alone waits for readers."""
    for number, descriptor, line in iter(_waiting.get, _END):
        lost = number - last - 1
        rest = (f"… {lost:,} lines not shown\n".encode() if lost else b"") + line
        last = number
        with suppress(OSError):  # Nobody will read it any more.
            while rest:
                rest = rest[os.write(descriptor, rest) :]
