"""The commands of `python -m edge_api`, each in a module of its name.

Shared by them: options, parsers of values, and the printing of rows.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from edge_api.db.types import parse_timestamp

EXAMPLE_ID: Final = "0199a5b2-7c3e-7d10-8a44-5f0c2b9e6d71"
"""The id in the examples of help texts."""
Columns: TypeAlias = Mapping[str, str | Callable[[Mapping[str, Any]], str]]
"""The columns of a list by head: the name of a member, or a function of the row."""


Subparsers: TypeAlias = Any
"""The result of `add_subparsers`, for which argparse has no public name."""


def add_command(
    commands: Subparsers, name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """Add a command with its summary and an example, the words after its name."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example: %(prog)s {example}",
    )
    return parser


def add_id_command(
    commands: Subparsers, name: str, summary: str, help_text: str, metavar: str | None = None
) -> argparse.ArgumentParser:
    """Add a command that takes one id."""
    parser = add_command(commands, name, summary, EXAMPLE_ID)
    parser.add_argument("id", metavar=metavar, help=help_text)
    return parser


def add_list(commands: Subparsers, summary: str) -> argparse.ArgumentParser:
    """Add the command `list`, which prints a table or JSON."""
    parser = add_command(commands, "list", summary, "--json")
    add_json(parser, "a JSON array")
    return parser


def add_json(parser: argparse.ArgumentParser, what: str = "one JSON object") -> None:
    """Add the option `--json`."""
    parser.add_argument("--json", action="store_true", help=f"print {what}")


def print_list(
    rows: Sequence[Mapping[str, Any]], columns: Columns, empty_message: str, *, as_json: bool
) -> None:
    """Print rows as JSON or as a table; `empty_message` if there are none."""
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif rows:
        print_columns(
            [list(columns), *([_cell(row, column) for column in columns.values()] for row in rows)]
        )
    else:
        print(empty_message)


def print_secret(
    lines: Sequence[str], members: Mapping[str, Any], note: str, *, as_json: bool
) -> None:
    """Print what is shown once: one JSON object, or lines with a note on standard error."""
    if as_json:
        print(json.dumps(members, ensure_ascii=False))
    else:
        print(*lines, sep="\n")
        sys.stderr.write(f"{note}\n")


def _cell(row: Mapping[str, Any], column: str | Callable[[Mapping[str, Any]], str]) -> str:
    if callable(column):
        return printable(column(row))
    value = row[column]
    return ",".join(value) if isinstance(value, list) else printable(str(value))


def minute_column(member: str, empty_message: str = "never") -> Callable[[Mapping[str, Any]], str]:
    """Return a column that shows an instant to the minute, or `empty_message`."""
    return lambda row: (row[member] or empty_message)[:16]


def print_columns(lines: Sequence[Sequence[str]]) -> None:
    """Print lines of cells in columns; the first line is the head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def printable(text: str) -> str:
    """Return the text with control characters replaced, which a terminal would execute."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def parse_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of an option, separated by blanks or commas."""
    found = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not found:
        raise argparse.ArgumentTypeError("names nothing: leave it out for the default")
    return found


def parse_instant(text: str) -> str:
    """Return the instant of an option, such as a date. Raises ArgumentTypeError."""
    try:
        return parse_timestamp(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2027-01-31") from None


def add_end(parser: argparse.ArgumentParser) -> None:
    """Add the options of a key's end: an instant, `None` for none, empty for the default."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--expires",
        type=lambda text: text and parse_instant(text),  # argparse parses the default, too
        default="",
        metavar="DATE",
        help="when the key ends, such as 2027-01-31 (default: 90 days from now)",
    )
    group.add_argument(
        "--no-expiry",
        dest="expires",
        action="store_const",
        const=None,
        help="let the API key never end",
    )


def parse_count(text: str) -> int:
    """Return the number of an option, from 1 on. Raises ArgumentTypeError."""
    if re.fullmatch("[0-9]{1,6}", text) is None or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 999999")
    return int(text)
