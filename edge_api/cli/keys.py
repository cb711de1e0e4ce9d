"""`keys`: issue, list, rotate and revoke API keys and access tokens."""

import argparse
from typing import Any

from edge_api.auth.actor import system_clock
from edge_api.auth.keys import DEFAULT_KEY_SCOPES, IssuedKey, Keys, NewKey, key_state
from edge_api.cli import (
    Columns,
    add_command,
    add_end,
    add_id_command,
    add_json,
    add_list,
    minute_column,
    parse_instant,
    parse_words,
    print_list,
    print_secret,
)
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.open_store import command_store
from edge_api.schema.environment import EDGE
from edge_api.settings import Settings

_MEMBERS = (
    *("id", "name", "type", "last_four", "scopes", "tables", "created_at", "expires_at"),
    *("revoked_at", "rotated_at", "last_used_at", "needs_review"),
)
"""The members of a listed key: all columns but the digest."""
_COLUMNS: Columns = {
    "ID": "id",
    "NAME": "name",
    "TYPE": "type",
    "LAST 4": "last_four",
    "STATE": "state",
    "SCOPES": "scopes",
    "TABLES": lambda key: "all" if key["tables"] is None else ",".join(key["tables"]),
    "EXPIRES": minute_column("expires_at"),
    "LAST USED": minute_column("last_used_at"),
}
_ID = "the id of the key, as `keys list` shows it"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    actions = parser.add_subparsers(dest="action", required=True)
    example = '--name "my client" --scopes posts:read --expires 2027-01-31'
    parser = add_command(actions, "issue", "make a key and print it, once", example)
    parser.add_argument("--name", required=True, help="who or what will use it")
    kind = "api_key is for REST, access_token for MCP (default: api_key)"
    parser.add_argument("--type", choices=tuple(DEFAULT_KEY_SCOPES), default="api_key", help=kind)
    usual = " ".join(DEFAULT_KEY_SCOPES["api_key"])
    scopes = f"what it may do (default: {usual}; mcp too for an access_token)"
    parser.add_argument("--scopes", type=parse_words, default=(), metavar='"A B"', help=scopes)
    tables = "the administrative tables it may use (default: all)"
    parser.add_argument("--tables", type=parse_words, metavar='"T U"', help=tables)
    expires = "when it expires, such as 2027-01-31 (default: never)"
    parser.add_argument("--expires", type=parse_instant, metavar="DATE", help=expires)
    add_json(parser)
    add_list(actions, "list all keys, newest first")
    rotate = "issue a successor of a key; the old key works for 7 more days"
    add_json(add_id_command(actions, "rotate", rotate, _ID))
    add_id_command(actions, "revoke", "revoke a key at once", _ID)
    add_end(add_id_command(actions, "expire", "let a valid key end later, or never", _ID))


async def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run one action. Returns 0; raises Problem."""
    async with command_store(settings, create=arguments.action == "issue") as store:
        keys = Keys(store, system_clock)
        match arguments.action:
            case "issue":
                given = (arguments.type, arguments.scopes, arguments.tables, arguments.expires)
                _show_issued(
                    await keys.issue(NewKey(arguments.name, *given)), as_json=arguments.json
                )
            case "list":
                now = format_instant(system_clock())
                rows = [
                    {
                        **{name: row[name] for name in _MEMBERS},
                        **_word_lists(row),
                        "state": key_state(row, now),
                    }
                    for row in await keys.all()
                ]
                none = f'there are no keys yet; make one: {EDGE} keys issue --name "my client"'
                print_list(rows, _COLUMNS, none, as_json=arguments.json)
            case "rotate":
                _show_issued(await keys.rotate(arguments.id), as_json=arguments.json)
            case "revoke":
                await keys.revoke(arguments.id)
                print(f"{arguments.id} is revoked")
            case "expire":
                row = await keys.set_end(arguments.id, arguments.expires)
                print(f"{row['id']} ends {minute_column('expires_at')(row)}")
    return 0


def _show_issued(issued: IssuedKey, *, as_json: bool) -> None:
    row = issued.row
    members = {name: row[name] for name in ("id", "name", "type", "expires_at")}
    about = f"id {row['id']}, scopes {row['scopes']}, expires {row['expires_at'] or 'never'}"
    note = f"{about}\nIt is shown this once: keep it where secrets are kept."
    shown = {"key": issued.secret, **members, **_word_lists(row)}
    print_secret((issued.secret,), shown, note, as_json=as_json)


def _word_lists(row: Row) -> dict[str, Any]:
    return {name: row[name] and row[name].split() for name in ("scopes", "tables")}
