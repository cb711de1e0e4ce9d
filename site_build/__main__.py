"""The command line of the site build: `python -m site_build COMMAND`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from site_build.arguments import Parser, read_settings
from site_build.commands import build, card, check, list_documents, new, publish, schema, serve
from site_build.faults import BuildError


class Command(Protocol):
    """What a module of `site_build.commands` that holds a command offers."""

    SUMMARY: str

    def add_options(self, parser: argparse.ArgumentParser, settings: Mapping[str, str], /) -> None:
        """Declare the command's options."""

    def run(self, arguments: argparse.Namespace, /) -> int:
        """Carry it out and return the exit status."""


_COMMANDS: Mapping[str, Command] = {
    "check": check,
    "new": new,
    "build": build,
    "publish": publish,
    "card": card,
    "serve": serve,
    "list": list_documents,
    "schema": schema,
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns its exit status: 0, 1 when the content or the disk is at fault, 2 for what was asked.
    """
    try:
        arguments = _make_parser(read_settings()).parse_args(words)
        return _COMMANDS[arguments.command].run(arguments)
    except BuildError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return refusal.exitcode
    except KeyboardInterrupt:
        return 130


def _make_parser(settings: Mapping[str, str]) -> Parser:
    parser = Parser(prog="python -m site_build", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in _COMMANDS.items():
        command.add_options(subparsers.add_parser(name, help=command.SUMMARY), settings)
    return parser


if __name__ == "__main__":
    sys.exit(main())
