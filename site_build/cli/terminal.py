"""What a command says on the terminal: findings in colour for people, plain lines for pipes."""

import os
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from textwrap import TextWrapper

from rich.console import Console
from rich.text import Text

from edge_api.schema.environment import BUILD
from site_build.errors import Diagnostic

_SHOWN = 10
"""Findings of one kind that are printed, unless all are wanted."""
_PARTS = re.compile(r"(?s)^(?P<cyan>.+?:\d+:\d+)\s+(?:(?P<red>error)|(?P<yellow>warning))\s")
"""The colours of a finding's place and severity."""


def open_console() -> Console:
    """Return a console on standard output that prints whatever a text may hold."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_findings(
    console: Console, folder: Path, findings: Iterable[Diagnostic], *, every: bool = False
) -> None:
    """Print each finding on a line of its own, its path as seen from where the command runs.

    Errors come first. Without `every`, only the first ten of a kind are printed, and how many more
    there are.
    """
    lines: list[str] = []
    kinds: dict[str, list[Diagnostic]] = {}
    for each in sorted(findings, key=lambda each: each.severity):
        kinds.setdefault(each.kind, []).append(each)
    for kind in kinds.values():
        shown = len(kind) if every else _SHOWN
        places = (os.path.join(folder, each.path) for each in kind[:shown])  # noqa: PTH118
        lines += (str(e._replace(path=path)) for e, path in zip(kind, places, strict=False))
        if more := len(kind[shown:]):
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
    errors, kinds = (
        sum(each.severity == "error" for each in findings),
        len({e.kind for e in findings}),
    )
    of = f" of {count(kinds, 'kind')}" if kinds < len(findings) else ""
    warnings = count(len(findings) - errors, "warning")
    return f"{count(errors, 'error')}, {warnings}{of} in {count(files, 'file')}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 file` or `3 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
