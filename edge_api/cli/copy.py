"""`copy`: copy all rows of a store into another, checked by counts and digests."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from click import Option

from edge_api.auth.actor import system_clock
from edge_api.backup.files import secret_key_path
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.db.table import Table
from edge_api.db.tables import TABLES
from edge_api.db.transfer import CopiedTable, copy_tables
from edge_api.open_store import open_store
from edge_api.schema.commands import Arguments, parameter_type
from edge_api.schema.environment import sqlite_file
from edge_api.settings import SETTINGS, Settings

_URL_TYPE: Final = parameter_type(SETTINGS["DATABASE_URL"].read)
PARAMS: Final = (
    Option(
        ["--from", "source"], metavar="URL", type=_URL_TYPE, required=True, help="the store to read"
    ),
    Option(
        ["--to", "target"],
        metavar="URL",
        type=_URL_TYPE,
        required=True,
        help="the store to write; it is created if it is missing",
    ),
)


def run(arguments: Arguments, _settings: Settings) -> int:
    """Copy all rows, and print what both stores have then.

    Returns 0; raises Problem and StoreRefusal.
    """
    if arguments.source == arguments.target:
        raise Problem("invalid", "--from and --to name the same store")
    copied = asyncio.run(_copy(arguments.source, arguments.target))
    for each in copied:
        print(f"{each.table.name}: {each.rows:,} rows, {each.stored:,} copied, {each.digest}")
    rows, stored = sum(each.rows for each in copied), sum(each.stored for each in copied)
    print(f"{rows:,} rows are in both stores, the same; {stored:,} of them were copied now")
    file = sqlite_file(arguments.source)
    if file and (key := secret_key_path(file)).exists():
        print(f"the secret key is in no store: copy {key} to the new edge")
    return 0


async def _copy(source: str, target: str) -> Sequence[CopiedTable]:
    async with AsyncExitStack() as stack:
        reading = await _open(source, stack, is_target=False)
        writing = await _open(target, stack, is_target=True)
        try:
            return await copy_tables(reading, writing, TABLES.values(), _print_progress)
        finally:
            if sys.stderr.isatty():
                sys.stderr.write("\r\x1b[K")


async def _open(url: str, stack: AsyncExitStack, *, is_target: bool) -> Store:
    """Open a store; a target is created if it is missing, and locked if it is a file."""
    store = await open_store(
        url, system_clock, exclusive=is_target, create=is_target, migrates=is_target
    )
    stack.push_async_callback(store.close)
    return store


def _print_progress(table: Table, compared: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{table.name}: {compared:,} rows")
        sys.stderr.flush()
