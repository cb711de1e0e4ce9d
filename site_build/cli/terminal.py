"""What a command says on the terminal: findings in colour for people, plain lines for pipes."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from site_build.errors import Diagnostic


def open_console() -> Console:
    """Return a console on standard output that prints whatever a text may hold."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_findings(console: Console, folder: Path, findings: Iterable[Diagnostic]) -> None:
    """Print each finding on a line of its own, its path as seen from where the command runs."""
    if console.is_terminal:
        for finding in findings:
            place, severity, message = _word(folder, finding)
            colour = "red" if severity == "error" else "yellow"
            console.print(Text.assemble((place, "cyan"), "  ", (severity, colour), "  ", message))
        return
    try:  # Laying out a line costs more than finding it, and a pipe shows nothing of it.
        console.file.writelines("  ".join(_word(folder, each)) + "\n" for each in findings)
        console.file.flush()
    except BrokenPipeError:
        console.on_broken_pipe()


def _word(folder: Path, finding: Diagnostic) -> tuple[str, str, str]:
    place = f"{os.path.join(folder, finding.path)}:{finding.line}:{finding.column}"  # noqa: PTH118
    return place, finding.severity, finding.message


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 file` or `3 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
