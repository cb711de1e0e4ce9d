"""Standard output and error behind a thread, so that no slow reader holds up a command."""

import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from stat import S_IFIFO, S_IFMT, S_IFSOCK

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
    groups = [(1, 2)] if os.path.sameopenfile(1, 2) else [(1,), (2,)]
    kinds = [S_IFMT(os.fstat(each[0]).st_mode) for each in groups]
    # A file, or /dev/null, takes what is written at once; as a pipe it could no longer seek.
    waits = [
        os.isatty(each[0]) or kind in {S_IFIFO, S_IFSOCK}
        for each, kind in zip(groups, kinds, strict=True)
    ]
    relays = [_Relay(*each) for each, may_wait in zip(groups, waits, strict=True) if may_wait]
    try:
        yield
    finally:
        for each in relays:
            each.close()


class _Relay:
    """The way from descriptors, which are one file, to that file."""

    def __init__(self, *descriptors: int) -> None:
        self._descriptors, self._target = descriptors, os.dup(descriptors[0])
        self._source, inlet = os.pipe()
        for each in descriptors:
            os.dup2(inlet, each)
        os.close(inlet)
        self._lines: deque[bytes] = deque(maxlen=MOST_LINES)
        self._lost, self._is_over, self._ready = 0, False, threading.Condition()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()
        threading.Thread(target=self._collect, daemon=True).start()

    def close(self) -> None:
        """Give the descriptors their file back, and the last lines a moment to be read."""
        sys.stdout.flush()
        sys.stderr.flush()
        for each in self._descriptors:
            os.dup2(self._target, each)
        self._writer.join(_PATIENCE)

    def _collect(self) -> None:
        """Take in whatever is written, until all who can write have closed their end."""
        rest, is_terminal = b"", os.isatty(self._target)
        while data := os.read(self._source, 65_536):
            lines = (rest + data).splitlines(keepends=True)
            # A terminal shows what is not yet a line, too, such as a bar that fills.
            rest = b"" if is_terminal or lines[-1].endswith(b"\n") else lines.pop()
            with self._ready:
                self._lost += max(0, len(self._lines) + len(lines) - MOST_LINES)
                self._lines.extend(lines)
                self._ready.notify()
        with self._ready:
            self._lines.extend([rest] * bool(rest))
            self._is_over = True
            self._ready.notify()

    def _write(self) -> None:
        """Write what was taken in; this thread alone waits for the reader."""
        target: int | None = self._target
        last = b"\n"
        while last:
            with self._ready:
                self._ready.wait_for(lambda: self._lines or self._is_over)
                lost = f"… {self._lost:,} lines not shown\n".encode() if self._lost else b""
                if lost and not last.endswith(b"\n"):
                    lost = b"\n" + lost
                last = rest = lost + b"".join(self._lines)
                self._lines.clear()
                self._lost = 0
            try:
                while rest and target is not None:
                    rest = rest[os.write(target, rest) :]
            except OSError:
                target = None  # Nobody will read any more.
