"""`privacy`: show or erase what is stored about a person, and delete old rows."""

import asyncio
import json
import sys
import time
from typing import Any, Final

from click import Argument, Option

from edge_api.admin.privacy import Retention, export_person, visible
from edge_api.auth.actor import OPERATOR, system_clock
from edge_api.auth.erasure import PersonalRows, Privacy
from edge_api.backup.copies import list_unerased_copies
from edge_api.backup.files import secret_key
from edge_api.cli import printable
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.db.table import Row, Table
from edge_api.db.types import format_instant
from edge_api.open_store import command_store
from edge_api.schema.commands import JSON, Actions, Arguments
from edge_api.settings import Settings

SCRUB_TIMEOUT_SECONDS: Final = 10.0  # time limit of the wait for readers of the log


_EMAIL: Final = Argument(["email"], help="the address, in any spelling")
ACTIONS: Actions = {
    "export": (
        "print all that is stored about an address",
        "ann@example.org --json",
        (_EMAIL, JSON),
    ),
    "erase": (
        "delete all that is stored about an address",
        "ann@example.org --yes",
        (_EMAIL, Option(["--yes"], is_flag=True, help="do not ask")),
    ),
    "retain": ("delete rows that are older than RETAIN_..._DAYS", "", ()),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0, or 1 if it was not completed; raises Problem."""
    async with command_store(settings) as store:
        actions = {"export": _export, "erase": _erase, "retain": _retain}
        return await actions[arguments.action](store, arguments, settings)


async def _export(store: Store, arguments: Arguments, settings: Settings) -> int:
    found = await Privacy(store, system_clock, secret_key(settings)).find(arguments.email)
    if arguments.json:
        print(export_person(arguments.email, found, format_instant(system_clock())).decode())
    elif not any(found.values()):
        print(f"nothing is kept of {printable(arguments.email)}")
    for table, rows in found.items():
        for row in () if arguments.json else rows:
            _print_row(table, row)
    return 0


async def _erase(store: Store, arguments: Arguments, settings: Settings) -> int:
    privacy = Privacy(store, system_clock, secret_key(settings))
    found = await privacy.find(arguments.email)
    if not any(found.values()):
        print(f"nothing is kept of {printable(arguments.email)}")
    elif arguments.yes or not _erasable(found) or _is_confirmed(found):
        _report(await privacy.erase(arguments.email, OPERATOR))
        print(
            "Out of reach of this command:",
            *await list_unerased_copies(store, settings, system_clock()),
            sep="\n- ",
        )
    else:
        print("nothing was erased")
        return 1
    return await _scrub(store, settings)


async def _retain(store: Store, _arguments: Arguments, settings: Settings) -> int:
    retention = Retention(store, system_clock, settings)
    if not retention.is_enabled:
        print("everything is kept for ever: set RETAIN_LEADS_DAYS, RETAIN_MAIL_LOG_DAYS or others")
        return 0
    for table, number in (await retention.apply(OPERATOR)).items():
        print(f"{table.name}: {_count_rows(number)} deleted")
    return await _scrub(store, settings)


async def _scrub(store: Store, settings: Settings) -> int:
    """Remove deleted data from the store's files, also while the service runs.

    SQLite's file is rewritten once; further attempts only truncate its log, once nobody reads it.
    PostgreSQL keeps rows that a transaction still reads, so each attempt rewrites its tables.
    """
    ends_at = time.monotonic() + SCRUB_TIMEOUT_SECONDS
    is_full = True
    while not await store.scrub(full=is_full):
        if time.monotonic() > ends_at:
            sys.stderr.write(
                "an older state of the store is being read, so that it still holds what was "
                "deleted: run this again\n"
            )
            return 1
        await asyncio.sleep(0.1)
        is_full = settings.database_path is None
    return 0


def _print_row(table: Table, row: Row) -> None:
    print(table.name)
    for name, value in visible(table, row).items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines = [printable(line) for line in text.split("\n")]
            print(f"  {name}: " + "\n    ".join(lines))
    print()


def _is_confirmed(found: PersonalRows) -> bool:
    """Ask for confirmation at the terminal. Raises Problem `invalid` without a terminal."""
    if not sys.stdin.isatty():
        raise Problem("invalid", "Erasing cannot be undone: confirm it with --yes")
    summary = ", ".join(
        f"{_count_rows(len(rows))} of {table.name}" for table, rows in _erasable(found)
    )
    try:
        return input(f"Erase {summary}? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _report(found: PersonalRows) -> None:
    """Print the number of erased rows of each table, and what an erasure keeps."""
    for table, rows in _erasable(found):
        print(f"{table.name}: {_count_rows(len(rows))} erased")
    for table, rows in found.items():
        if rows and table.personal and table.personal.kept_reason:
            print(f"{table.name}: {table.personal.kept_reason}")
    for row in found[ACCESS_REQUESTS]:
        for key_id in filter(None, (row["credential_id"], row["second_credential_id"])):
            print(f"the credential {key_id} is still valid; run keys revoke to end it")


def _erasable(found: PersonalRows) -> list[tuple[Table, Any]]:
    """Return the tables with rows that an erasure deletes, and these rows."""
    return [
        (table, rows)
        for table, rows in found.items()
        if rows and not (table.personal and table.personal.kept_reason)
    ]


def _count_rows(number: int) -> str:
    return f"{number} row{'' if number == 1 else 's'}"
