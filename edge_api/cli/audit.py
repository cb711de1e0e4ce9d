"""`audit`: list changes of administrative tables and keys, newest first."""

import argparse
import json

from edge_api.auth.actor import recent_entries
from edge_api.cli import parse_count
from edge_api.db.table import Row
from edge_api.open_store import command_store
from edge_api.settings import Settings

_LIMIT = 100


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--limit", type=parse_count, default=_LIMIT, help=f"entries (default: {_LIMIT})"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the newest entries. Returns 0; raises Problem."""
    async with command_store(settings) as store:
        entries = await recent_entries(store, arguments.limit)
    if arguments.json:
        print(json.dumps(entries, indent=2, ensure_ascii=False))
        return 0
    print(*map(_line, entries) if entries else ["nothing was changed yet"], sep="\n")
    return 0


def _line(entry: Row) -> str:
    rows = f"{entry['rows']} row{'' if entry['rows'] == 1 else 's'}"
    match = f" by {entry['columns']}" if entry["columns"] else ""
    return f"{entry['at']}  {entry['actor']}  {entry['verb']} {entry['table_name']}{match}: {rows}"
