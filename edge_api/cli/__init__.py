"""The commands of `python -m edge_api`, each in a module of its name.

Shared by them: how they are run, parameters, and the printing of rows.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, TypeAlias

from click import BadParameter, IntRange, Option

from edge_api.db.errors import StoreRefusal
from edge_api.db.problems import Problem
from edge_api.db.types import parse_timestamp
from edge_api.schema.commands import Arguments, require_one
from edge_api.schema.environment import SettingsError
from edge_api.settings import read_settings

EXAMPLE_ID: Final = "0199a5b2-7c3e-7d10-8a44-5f0c2b9e6d71"
"""The id in the examples of help texts."""
COUNT: Final = IntRange(1, 999_999)
Columns: TypeAlias = Mapping[str, str | Callable[[Mapping[str, Any]], str]]
"""The columns of a list by head: the name of a member, or a function of the row."""


def execute(command: ModuleType, arguments: Arguments) -> int:
    """Run a command. Returns its exit status: 1 for failure, 2 for wrong settings or values."""
    code = 1
    try:
        # A journal that is restored whole brings its settings, so those before may lack some.
        is_whole = hasattr(command, "brings_settings") and command.brings_settings(arguments)
        settings = read_settings({}, None) if is_whole else read_settings(os.environ)
        ended = command.run(arguments, settings)
        return int(ended if isinstance(ended, int) else asyncio.run(ended))
    except PermissionError as error:
        if error.filename is None:  # of no file: a fault of ours
            raise
        errors = [
            f"{error.filename} cannot be used ({error.strerror}): run this as the user who serves"
        ]
    except SettingsError as error:
        errors, code = error.errors, 2
    except StoreRefusal as refusal:
        errors = [str(refusal)]
    except Problem as problem:
        errors, code = [problem.message], 2 if problem.code == "invalid" else 1
    if hasattr(command, "refuse"):  # it is what `doctor` is asked for
        return int(command.refuse(arguments, errors))
    sys.stderr.writelines(f"{message}\n" for message in errors)
    return int(getattr(command, "FAILURES", {}).get(arguments.action, code))


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
        raise BadParameter("names nothing: leave it out for the default")
    return found


def parse_instant(text: str) -> str:
    """Return the instant of an option, such as a date. Raises BadParameter."""
    try:
        return parse_timestamp(text)
    except ValueError:
        raise BadParameter(f"{text!r} is no date such as 2027-01-31") from None


END: Final = (
    Option(
        ["--expires"],
        type=parse_instant,
        metavar="DATE",
        help="when the key ends, such as 2027-01-31 (default: 90 days from now)",
    ),
    Option(["--no-expiry"], is_flag=True, help="let the API key never end"),
)
"""The options of a key's end."""


def choose_end(arguments: Arguments) -> str | None:
    """Return the end that the options give: an instant, `None` for none, empty for the default."""
    require_one(arguments, "--expires", "--no-expiry", least=0)
    return None if arguments.no_expiry else arguments.expires or ""
