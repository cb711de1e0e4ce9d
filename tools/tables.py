"""Writes the tables of settings and commands in docs/operators.md from their declarations.

`python -m tools.tables` replaces the lines between the markers of each table. A test compares the
page with the declarations, and names this command where they differ.
"""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import click

from edge_api.__main__ import COMMANDS
from edge_api.schema.commands import JSON
from edge_api.settings import SETTINGS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "operators.md"


def write_row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|\n"


def settings_table() -> str:
    """Return the table of all settings: name, default, description."""
    rows = [
        write_row(f"`{name}`", f"`{each.default}`" if each.default else "", each.description)
        for name, each in SETTINGS.items()
    ]
    return write_row("setting", "default", "meaning") + "|---|---|---|\n" + "".join(rows)


def commands_table() -> str:
    """Return the table of all commands and subcommands with their options."""
    rows = [
        row
        for commands in COMMANDS.values()
        for name, (module, summary, _) in commands.items()
        for row in _command_rows(name, module, summary)
    ]
    return write_row("command", "option", "effect") + "|---|---|---|\n" + "".join(rows)


def _command_rows(name: str, place: str, summary: str) -> Iterator[str]:
    module = import_module(place)
    if not hasattr(module, "ACTIONS"):
        yield from _option_rows(name, summary, module.PARAMS)
        return
    for action, (about, _, params) in module.ACTIONS.items():
        yield from _option_rows(f"{name} {action}", about, params)


def _option_rows(path: str, summary: str, params: Sequence[click.Parameter]) -> Iterator[str]:
    context = click.Context(click.Command(path))
    arguments = [each.make_metavar(context) for each in params if isinstance(each, click.Argument)]
    json = ["[--json]"] if JSON in params else []
    yield write_row(f"`{' '.join([path, *arguments, *json])}`", "", summary)
    for each in params:
        if each is JSON or each.name == "id" or getattr(each, "hidden", False):
            continue  # the text above the table says what these two are
        words = [each.make_metavar(context)]
        if isinstance(each, click.Option):
            words = [*each.opts, *([] if each.is_flag else words)]
        option = " ".join(words).replace("INTEGER RANGE", "N").replace("|", r"\|")
        needed = " (required)" if each.required and isinstance(each, click.Option) else ""
        yield write_row("", f"`{option}`", f"{each.help}{needed}")


def replace_tables(text: str) -> str:
    """Return a page's text with its tables as the declarations have them.

    Raises ValueError if a table has no markers.
    """
    for name, table in (("settings", settings_table()), ("commands", commands_table())):
        begin, end = f"<!-- table of {name}, by python -m tools.tables -->\n", "<!-- end -->\n"
        pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"the page needs a line {begin.strip()!r}, and {end.strip()!r} below")
        before, after = pattern.split(text)
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(replace_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
