"""The commands of `python -m edge_api`: they wire the parts together and speak to a terminal.

How all of them declare options, read lists of words and show rows is here.
"""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

EXAMPLE_ID: Final = "0199a5b2-7c3e-7d10-8a44-5f0c2b9e6d71"
"""The id in the examples of help texts."""
T = TypeVar("T")


class Subparsers(Protocol):
    """What `add_subparsers` returns, for which argparse has no public name."""

    def add_parser(
        self,
        name: str,
        *,
        help: str,  # noqa: A002  so argparse calls it
        description: str,
        epilog: str,
    ) -> argparse.ArgumentParser:
        """Add the parser of one subcommand."""


def add_command(
    commands: Subparsers, name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """Add a command, whose help says its summary and shows `example`, the words after its name."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example: %(prog)s {example}",
    )


def add_list(commands: Subparsers, summary: str) -> None:
    """Add the command `list`, which prints a table, or JSON where that is asked for."""
    parser = add_command(commands, "list", summary, "--json")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def print_list(
    shown: Sequence[T],
    head: Sequence[str],
    cells: Callable[[T], Sequence[str]],
    none: str,
    *,
    as_json: bool,
) -> None:
    """Print what a list shows, as JSON or by the cells of each line; `none` says there are none."""
    if as_json:
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    elif shown:
        print_columns([head, *map(cells, shown)])
    else:
        print(none)


def print_columns(lines: Sequence[Sequence[str]]) -> None:
    """Print lines of cells in columns as wide as they need; the first line is the head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def printable(text: str) -> str:
    """Return the text with a sign for each character that a terminal would obey."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def words(text: str) -> tuple[str, ...]:
    """Return the words of an option, each once, between blanks or commas."""
    found = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not found:
        raise argparse.ArgumentTypeError("names nothing: leave it out for the default")
    return found


def read_count(text: str) -> int:
    """Return the number of an option, from 1 on. Raises ArgumentTypeError."""
    if re.fullmatch("[0-9]{1,6}", text) is None or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 999999")
    return int(text)
