"""The command line of the edge: `python -m edge_api COMMAND`."""

import argparse
import os
import sys
from collections.abc import Mapping
from typing import Protocol

from edge_api.commands import (
    Subparsers,
    audit,
    backup,
    clients,
    copy,
    doctor,
    keys,
    mail,
    migrate,
    privacy,
    requests,
    restore,
    serve,
    settings,
    signing_keys,
    webhooks,
)
from edge_api.schema.problems import Problem
from edge_api.settings import Settings, SettingsError, read_settings
from edge_api.store.faults import StoreRefusal


class Command(Protocol):
    """What a module of `edge_api.commands` that holds a command offers."""

    def add_parser(self, subparsers: Subparsers) -> None:
        """Declare the command and its options."""

    def run(self, arguments: argparse.Namespace, settings: Settings, /) -> int:
        """Carry it out and return the exit code."""


_COMMANDS: Mapping[str, Command] = {
    "serve": serve,
    "migrate": migrate,
    "keys": keys,
    "requests": requests,
    "mail": mail,
    "clients": clients,
    "signing-keys": signing_keys,
    "webhooks": webhooks,
    "privacy": privacy,
    "backup": backup,
    "restore": restore,
    "copy": copy,
    "audit": audit,
    "doctor": doctor,
    "settings": settings,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns its exit code: 0, 1 for failure, 2 for wrong usage or settings."""
    parser = argparse.ArgumentParser(prog="python -m edge_api", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True)
    for command in _COMMANDS.values():
        command.add_parser(subparsers)
    parsed = parser.parse_args(arguments)
    try:
        return _run(parsed)
    except BrokenPipeError:  # whoever read what it prints has seen enough
        _print_to_nobody()
        return 1
    except PermissionError as error:
        if error.filename is None:  # of no file: a fault of ours
            raise
        sys.stderr.write(
            f"{error.filename} cannot be used ({error.strerror}): run this as the user who serves\n"
        )
        return 1
    except SettingsError as error:
        sys.stderr.writelines(f"{fault}\n" for fault in error.faults)
        return 2
    except StoreRefusal as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    except Problem as problem:
        sys.stderr.write(f"{problem.sentence}\n")
        return 2 if problem.code == "invalid" else 1


def _run(arguments: argparse.Namespace) -> int:
    code = _COMMANDS[arguments.command].run(arguments, read_settings(os.environ))
    sys.stdout.flush()
    return code


def _print_to_nobody() -> None:
    """Lead away what is still to be printed: the end of the process would complain about it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
