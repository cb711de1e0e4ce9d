"""The command line of the edge: `python -m edge_api COMMAND`.

Only the module of the command that is asked for is imported: all of them together take three times
as long as `keys list` alone.
"""

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from edge_api.cli import add_command
from edge_api.db.errors import StoreRefusal
from edge_api.db.problems import Problem
from edge_api.schema.environment import SettingsError
from edge_api.settings import read_settings

_PROG = "python -m edge_api"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": ("serve the journal and its API", "--port 8000"),
    "migrate": (
        "bring the store to the present schema, or create it; `serve` does so when it starts",
        "--print",
    ),
    "leads": ("list, export, show and mark leads", "list --status new"),
    "desk": ("print a link that signs in to the owner's pages", "link"),
    "keys": ("issue, list, rotate and revoke API keys", 'issue --name "my client"'),
    "requests": ("list, approve and deny requests for access", "list"),
    "mail": ("send queued mail (without a subcommand); list, retry and preview it", "list"),
    "clients": ("register, list, rotate and revoke OAuth clients", "list"),
    "signing-keys": ("list and rotate the keys that sign access tokens", "list"),
    "webhooks": ("manage the addresses that are notified of new leads", "list"),
    "privacy": (
        "export or erase what is stored about a person; `retain` deletes old rows",
        "export ann@example.org",
    ),
    "backup": ("make a verified copy of the store, also while it is in use", "--keep 7"),
    "upgrade": ("back up the store and migrate it to this version, after a trial on a copy", ""),
    "restore": (
        "replace the store with a backup; the former store is kept beside it",
        "var/backups/edge-20261121T063629Z.db",
    ),
    "copy": (
        "copy all rows of a store into another one, and compare them",
        "--from sqlite:///var/edge.db --to sqlite:///var/copy.db",
    ),
    "audit": ("list who changed what, newest first", "--limit 20"),
    "doctor": (
        "check settings, store, build, mail and file permissions; exit with 1 if one is wrong",
        "--deep",
    ),
    "settings": ("print every setting with its value, secrets hidden", ""),
}
"""A summary of each command, and an example of its arguments."""


def main(arguments: list[str] | None = None, prog: str = _PROG) -> int:
    """Run one command. Returns its exit code: 0, 1 for failure, 2 for wrong usage or settings."""
    arguments = sys.argv[1:] if arguments is None else arguments
    gc.disable()  # loading modules makes no garbage; looking for it takes a tenth of the time
    try:
        parsed = make_parser(arguments, prog).parse_args(arguments)
    finally:
        gc.enable()
    errors, code = [], 1
    try:
        return _run(parsed)
    except BrokenPipeError:  # its reader has closed the pipe
        # What is not printed yet goes to /dev/null: flushing it at exit would fail.
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
        return 1
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
    if parsed.command == "doctor":  # it is what it is asked for
        return int(_load("doctor").print_report(errors, as_json=parsed.json))
    sys.stderr.writelines(f"{message}\n" for message in errors)
    return code


def make_parser(arguments: Sequence[str], prog: str = _PROG) -> argparse.ArgumentParser:
    """Return the parser, with the options of only the command in `arguments`."""
    parser = argparse.ArgumentParser(
        prog=prog, description="Serve the journal and its API, and manage its store."
    )
    # Imported only where it is asked for, which takes longer than most commands.
    is_asked = "--version" in arguments[:1]
    version = import_module("edge_api.operation.model").VERSION if is_asked else ""
    parser.add_argument("--version", action="version", version=f"fore-edge {version}")
    commands = parser.add_subparsers(dest="command", required=True)
    command_name = next((word for word in arguments if word in COMMANDS), None)
    for name, (summary, example) in COMMANDS.items():
        command = add_command(commands, name, summary, example)
        if name == command_name:
            _load(name).add_options(command)
    return parser


def _load(name: str) -> ModuleType:
    """Return the module of a command.

    Its `add_options` declares options and the commands below it on a parser; its `run` takes the
    parsed arguments and the settings, and returns the exit code, or what is awaited for it.
    """
    return import_module(f"edge_api.cli.{name.replace('-', '_')}")


def _run(arguments: argparse.Namespace) -> int:
    command = _load(arguments.command)
    ended: int | Coroutine[Any, Any, int] = command.run(arguments, read_settings(os.environ))
    code = ended if isinstance(ended, int) else asyncio.run(ended)
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
