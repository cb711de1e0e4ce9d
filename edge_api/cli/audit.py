"""`audit`: list changes of administrative tables and keys, newest first; undo one of them."""

import json
from typing import Final

from click import Option

from edge_api.auth.actor import OPERATOR, find_undoable, recent_entries, system_clock, undo
from edge_api.cli import COUNT
from edge_api.db.table import Row
from edge_api.open_store import command_store
from edge_api.schema.commands import JSON, Arguments
from edge_api.settings import Settings

PARAMS: Final = (
    Option(["--limit"], type=COUNT, default=100, help="entries (default: 100)"),
    JSON,
    Option(["--ids"], is_flag=True, help="with the ids of what can be undone"),
    Option(["--undo"], metavar="ID", help="undo the change of an entry with an id"),
)


async def run(arguments: Arguments, settings: Settings) -> int:
    """Print the newest entries, or undo one. Returns 0; raises Problem."""
    async with command_store(settings) as store:
        if arguments.undo:
            await undo(store, system_clock, OPERATOR, arguments.undo)
            print("undone")
            return 0
        entries = await recent_entries(store, arguments.limit)
        ids = await find_undoable(store, [each["id"] for each in entries] if arguments.ids else [])
    if arguments.json:
        print(json.dumps(entries, indent=2, ensure_ascii=False))
        return 0
    lines = [_format_entry(entry, can_undo=entry["id"] in ids) for entry in entries]
    print(*lines or ["nothing was changed yet"], sep="\n")
    return 0


def _format_entry(entry: Row, *, can_undo: bool) -> str:
    rows = f"{entry['rows']} row{'' if entry['rows'] == 1 else 's'}"
    what = f"{entry['verb']} {entry['table_name']}"
    id_ = f"  --undo {entry['id']}" if can_undo else ""
    match = f" by {entry['columns']}" if entry["columns"] else ""
    return f"{entry['at']}  {entry['actor']}  {what}{match}: {rows}{id_}"
