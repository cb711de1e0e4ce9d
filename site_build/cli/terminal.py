"""Output of commands: findings in colour on a terminal, plain lines in pipes.

A relay keeps a slow reader of the output from holding up a command that keeps running.
"""

import itertools
import os
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


def open_console() -> Console:
    """Return a console on standard output; it prints signs that it cannot encode as escapes."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_findings(
    console: Console, folder: Path, findings: Iterable[Diagnostic], most: int = 10
) -> None:
    """Print each finding on a line of its own, its path relative to the working folder.

    Errors come first. At most `most` of a kind are printed, and the number of the others.
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
        # A path or an address stays in one piece, so that it can be clicked.
        layout = TextWrapper(
            console.width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        for line in lines:
            text = Text(layout.fill(line))
            text.highlight_regex(
                r"(?s)^(?P<cyan>.+?:\d+:\d+)\s+(?:(?P<red>error)|(?P<yellow>warning))\s"
            )
            console.print(text)
        return
    try:  # A pipe needs no layout, which would take longer than the check.
        console.file.writelines(f"{each}\n" for each in lines)
        console.file.flush()
    except BrokenPipeError:
        console.on_broken_pipe()


def summarize(findings: Collection[Diagnostic], files: int) -> str:
    """Return a line with the numbers of errors, warnings, kinds and files."""
    errors = sum(each.severity == "error" for each in findings)
    kinds = len({each.kind for each in findings})
    warnings = len(findings) - errors
    numbers = f"{with_noun(errors, 'error')}, {with_noun(warnings, 'warning')}"
    of_kinds = f" of {with_noun(kinds, 'kind')}" if kinds < len(findings) else ""
    return f"{numbers}{of_kinds} in {with_noun(files, 'file')}"


def confirm(console: Console, question: str, *, assume_yes: bool = False) -> bool:
    """Print a question; return whether a person at the terminal agrees, or True to `assume_yes`."""
    is_asked = not assume_yes and sys.stdin.isatty() and sys.stdout.isatty()
    console.print(question, end=" [y/N] " if is_asked else "\n")
    return assume_yes or (is_asked and sys.stdin.readline().strip().lower() in {"y", "yes"})


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 file` or `3 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


MOST_LINES = 1_000
"""The most lines that wait for a reader; beyond that, the oldest are dropped."""
_END = (0, 0, b"")
_waiting = SimpleQueue[tuple[int, int, bytes]]()
"""Lines, each with its number and the descriptor that it is for."""
_numbers = itertools.count()


class _Relay(FileIO):
    """A file that accepts lines at once; the thread of `relay_output` writes them."""

    def write(self, data: Any) -> int:
        """Put a line into the queue; return its length."""
        with suppress(Empty):
            while _waiting.qsize() >= MOST_LINES:
                _waiting.get_nowait()
        _waiting.put((next(_numbers), self.fileno(), bytes(data)))
        return len(data)


@contextmanager
def relay_output() -> Iterator[None]:
    """Within the block, keep output of this process from waiting for a reader.

    Lines that nobody reads in time are dropped, and a line reports how many. A closed pipe is no
    error.
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
                except BlockingIOError:  # the reader of the pipe made it non-blocking
                    select([], [descriptor], [])
