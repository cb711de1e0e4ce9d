"""`keys`: issue, list, rotate and revoke API keys and access tokens."""

from typing import Any

from click import Argument, Choice, Option

from edge_api.auth.actor import system_clock
from edge_api.auth.keys import DEFAULT_KEY_SCOPES, IssuedKey, Keys, NewKey, key_state
from edge_api.cli import (
    END,
    EXAMPLE_ID,
    Columns,
    choose_end,
    minute_column,
    parse_instant,
    parse_words,
    print_list,
    print_secret,
)
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.open_store import command_store
from edge_api.schema.commands import JSON, Actions, Arguments
from edge_api.schema.environment import EDGE
from edge_api.settings import Settings

_MEMBERS = (
    "id",
    "name",
    "type",
    "last_four",
    "scopes",
    "tables",
    "created_at",
    "expires_at",
    "revoked_at",
    "rotated_at",
    "last_used_at",
    "needs_review",
)
"""The columns of a key that `keys list` prints: all but the digest."""
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
_ID = Argument(["id"], help="the id of the key, as `keys list` shows it")
ACTIONS: Actions = {
    "issue": (
        "make a key and print it, once",
        '--name "my client" --scopes posts:read --expires 2027-01-31',
        (
            Option(["--name"], required=True, help="who or what will use it"),
            Option(
                ["--type"],
                type=Choice(tuple(DEFAULT_KEY_SCOPES)),
                default="api_key",
                help="api_key is for REST, access_token for MCP (default: api_key)",
            ),
            Option(
                ["--scopes"],
                type=parse_words,
                metavar='"A B"',
                help=f"what it may do (default: {' '.join(DEFAULT_KEY_SCOPES['api_key'])}; "
                "mcp too for an access_token)",
            ),
            Option(
                ["--tables"],
                type=parse_words,
                metavar='"T U"',
                help="the administrative tables it may use (default: all)",
            ),
            Option(
                ["--expires"],
                type=parse_instant,
                metavar="DATE",
                help="when it expires, such as 2027-01-31 (default: never; a token: in 90 days)",
            ),
            JSON,
        ),
    ),
    "list": ("list all keys, newest first", "--json", (JSON,)),
    "rotate": (
        "issue a successor of a key; the old key works for 7 more days",
        EXAMPLE_ID,
        (_ID, JSON),
    ),
    "revoke": ("revoke a key at once", EXAMPLE_ID, (_ID,)),
    "expire": ("let a valid key end later, or never", EXAMPLE_ID, (_ID, *END)),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0; raises Problem."""
    async with command_store(settings, create=arguments.action == "issue") as store:
        keys = Keys(store, system_clock)
        match arguments.action:
            case "issue":
                new = NewKey(
                    arguments.name,
                    arguments.type,
                    arguments.scopes or (),
                    arguments.tables,
                    arguments.expires,
                )
                _show_issued(await keys.issue(new), as_json=arguments.json)
            case "list":
                now = format_instant(system_clock())
                rows = [
                    {
                        **{name: row[name] for name in _MEMBERS},
                        **_split_scopes_and_tables(row),
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
                row = await keys.set_end(arguments.id, choose_end(arguments))
                print(f"{row['id']} ends {minute_column('expires_at')(row)}")
    return 0


def _show_issued(issued: IssuedKey, *, as_json: bool) -> None:
    row = issued.row
    members = {name: row[name] for name in ("id", "name", "type", "expires_at")}
    note = (
        f"id {row['id']}, scopes {row['scopes']}, expires {row['expires_at'] or 'never'}\n"
        "It is shown this once: keep it where secrets are kept."
    )
    shown = {"key": issued.secret, **members, **_split_scopes_and_tables(row)}
    print_secret((issued.secret,), shown, note, as_json=as_json)


def _split_scopes_and_tables(row: Row) -> dict[str, Any]:
    return {name: row[name] and row[name].split() for name in ("scopes", "tables")}
