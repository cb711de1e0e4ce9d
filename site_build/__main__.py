"""The command line of the site build: `python -m site_build COMMAND`.

Of the commands only the one that is asked for is loaded: what previews a site, or draws one, takes
longer to load than a small site to build.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

from site_build.arguments import Parser, read_settings
from site_build.faults import BuildError


class Command(Protocol):
    """What a module of `site_build.commands` that holds a command offers."""

    SUMMARY: str

    def add_options(self, parser: argparse.ArgumentParser, settings: Mapping[str, str], /) -> None:
        """Declare the command's options."""

    def run(self, arguments: argparse.Namespace, /) -> int:
        """Carry it out and return the exit status."""


_ABOUT = "Builds the site, checks it, shows it while it is written, and publishes it."
_MODULES: Mapping[str, str] = {
    "check": "check",
    "new": "new",
    "build": "build",
    "publish": "publish",
    "card": "card",
    "serve": "serve",
    "list": "list_documents",
    "schema": "schema",
}
"""Where in `site_build.commands` each command is."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns its exit status: 0, 1 when the content or the disk is at fault, 2 for what was asked.
    """
    words = sys.argv[1:] if words is None else words
    try:
        commands = _load(words)
        arguments = _make_parser(commands, read_settings()).parse_args(words)
        return commands[arguments.command].run(arguments)
    except BuildError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return refusal.exitcode
    except KeyboardInterrupt:
        return 130


def _load(words: Sequence[str]) -> dict[str, Command]:
    """Return the command that stands first, or all of them, where help or advice is needed."""
    names = words[:1] if words and words[0] in _MODULES else _MODULES
    return {
        name: cast("Command", import_module(f"site_build.commands.{_MODULES[name]}"))
        for name in names
    }


def _make_parser(commands: Mapping[str, Command], settings: Mapping[str, str]) -> Parser:
    parser = Parser(prog="python -m site_build", description=_ABOUT)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in commands.items():
        command.add_options(subparsers.add_parser(name, help=command.SUMMARY), settings)
    return parser


if __name__ == "__main__":
    sys.exit(main())
