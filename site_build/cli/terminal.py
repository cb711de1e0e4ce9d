"""What a command says on the terminal: findings in colour for people, plain lines for pipes.

A relay lets no slow reader hold up a command that keeps running.
"""

import itertools
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import FileIO, TextIOWrapper
from pathlib import Path
from queue import Empty, SimpleQueue
from select import select
from textwrap import TextWrapper
from threading import Thread
from typing import Any

from rich.console import Console
from rich.text import Text

from edge_api.schema.environment import BUILD
from site_build.errors import Diagnostic

_PARTS = re.compile(r"(?s)^(?P<cyan>.+?:\d+:\d+)\s+(?:(?P<red>error)|(?P<yellow>warning))\s")
"""The colours of a finding's place and severity."""


def open_console() -> Console:
    """Return a console on standard output that prints whatever a text may hold."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_findings(
    console: Console, folder: Path, findings: Iterable[Diagnostic], most: int = 10
) -> None:
    """Print each finding on a line of its own, its path as seen from where the command runs.

    Errors come first. Of one kind, so many at `most` are printed, and how many more there are.
    """
    lines: list[str] = []
    kinds: dict[str, list[Diagnostic]] = {}
    for each in sorted(findings, key=lambda each: each.severity):
        kinds.setdefault(each.kind, []).append(each)
    for kind in kinds.values():
        lines += (str(e._replace(path=os.path.join(folder, e.path))) for e in kind[:most])  # noqa: PTH118
        if more := len(kind[most:]):
            lines.append(f"… and {more:,} more like these: {BUILD} check --all")
    if console.is_terminal:
        # A path or an address stays in one piece, for those who click on it.
        layout = TextWrapper(
            console.width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        for line in lines:
            text = Text(layout.fill(line))
            text.highlight_regex(_PARTS)
            console.print(text)
        return
    try:  # Laying out a line costs more than finding it, and a pipe shows nothing of it.
        console.file.writelines(f"{each}\n" for each in lines)
        console.file.flush()
    except BrokenPipeError:
        console.on_broken_pipe()


def total(findings: Collection[Diagnostic], files: int) -> str:
    """Return how many findings there are, of how many kinds, in how many files."""
    errors = sum(each.severity == "error" for each in findings)
    kinds = len({each.kind for each in findings})
    both = f"{count(errors, 'error')}, {count(len(findings) - errors, 'warning')}"
    of = f" of {count(kinds, 'kind')}" if kinds < len(findings) else ""
    return f"{both}{of} in {count(files, 'file')}"


def confirm(console: Console, question: str, *, is_agreed: bool = False) -> bool:
    """Print a question; return whether it is agreed to, if need be by a person at a terminal."""
    is_asked = not is_agreed and sys.stdin.isatty() and sys.stdout.isatty()
    console.print(question, end=" [y/N] " if is_asked else "\n")
    return is_agreed or (is_asked and sys.stdin.readline().strip().lower() in {"y", "yes"})


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 file` or `3 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


MOST_LINES = 1_000
"""Lines that wait for a reader; of more, the oldest are dropped."""
_END = (0, 0, b"")
_waiting = SimpleQueue[tuple[int, int, bytes]]()
"""Lines, each with its number and the descriptor that it is for."""
_numbers = itertools.count()


class _Relay(FileIO):
    """Takes whatever is written at once, and leaves it to the thread."""

    def write(self, data: Any) -> int:
        """Put a line into the queue, and return its length."""
        with suppress(Empty):
            while _waiting.qsize() >= MOST_LINES:
                _waiting.get_nowait()
        _waiting.put((next(_numbers), self.fileno(), bytes(data)))
        return len(data)


@contextmanager
def relay_output() -> Iterator[None]:
    """Let what this process writes within the block never wait for a reader.

    Lines that nobody reads in time are dropped, and a line says how many. A reader that went away
    is no error.
    """
    writer = Thread(target=_write, args=(next(_numbers),), daemon=True)
    writer.start()
    out, err = (
        TextIOWrapper(
            _Relay(each, "w", closefd=False),
            sys.stdout.encoding,
            "backslashreplace",
            line_buffering=True,
        )
        for each in (1, 2)
    )
    try:
        with redirect_stdout(out), redirect_stderr(err):
            yield
    finally:
        _waiting.put(_END)
        writer.join(timeout=1)


def _write(last: int) -> None:
    """Write each line to its descriptor; this thread alone waits for readers."""
    for number, descriptor, line in iter(_waiting.get, _END):
        lost = number - last - 1
        rest = (f"… {lost:,} lines not shown\n".encode() if lost else b"") + line
        last = number
        with suppress(OSError):  # Nobody will read it any more.
            while rest:
                try:
                    rest = rest[os.write(descriptor, rest) :]
                except BlockingIOError:  # a pipe that its reader made so
                    select([], [descriptor], [])
