"""`clients`: register, list, rotate and revoke OAuth clients."""

import json
from pathlib import Path
from typing import Any

from click import Argument, Choice, Option

from edge_api.auth.actor import system_clock
from edge_api.cli import (
    EXAMPLE_ID,
    Columns,
    minute_column,
    parse_words,
    print_list,
    print_secret,
)
from edge_api.db.problems import Problem
from edge_api.db.table import Row
from edge_api.oauth.authlib_server import AUTH_METHODS, GRANT_TYPES
from edge_api.oauth.clients import Clients, NewClient
from edge_api.open_store import command_store
from edge_api.schema.commands import JSON, PATH, Actions, Arguments
from edge_api.schema.credentials import UNVETTED_SCOPES
from edge_api.settings import Settings

_LIST_MEMBERS = ("redirect_uris", "grant_types", "scopes")
_MEMBERS = (
    "id",
    "kind",
    "name",
    "auth_method",
    *_LIST_MEMBERS,
    "created_at",
    "last_used_at",
    "revoked_at",
    "secret_last_four",
)
"""The columns of a client that are shown: all but `secret_digest`, `jwks` and `fresh_until`."""
_COLUMNS: Columns = {
    "ID": "id",
    "KIND": "kind",
    "NAME": "name",
    "AUTHENTICATES BY": "auth_method",
    "GRANTS": "grant_types",
    "SCOPES": "scopes",
    "STATE": lambda client: "revoked" if client["revoked_at"] else "valid",
    "LAST USED": minute_column("last_used_at"),
}
_ID = Argument(["id"], help="the id of the client, as `clients list` shows it")
ACTIONS: Actions = {
    "register": (
        "register a client, and print its id and secret, once",
        '--name "my client" --redirect-uri http://127.0.0.1:8765/callback',
        (
            Option(["--name"], required=True, help="its name, as people see it"),
            Option(
                ["--redirect-uri"],
                multiple=True,
                metavar="URI",
                help="where browsers may be sent back to; repeatable",
            ),
            Option(
                ["--auth"],
                type=Choice(AUTH_METHODS),
                help="how it authenticates "
                "(default: none with --redirect-uri, else client_secret_basic)",
            ),
            Option(
                ["--grants"],
                type=parse_words,
                metavar='"A B"',
                help=f"of {', '.join(GRANT_TYPES)} "
                "(default: the first two with --redirect-uri, else client_credentials)",
            ),
            Option(
                ["--scopes"],
                type=parse_words,
                default=" ".join(UNVETTED_SCOPES),
                metavar='"A B"',
                help=f"the scopes that it may be granted (default: {' '.join(UNVETTED_SCOPES)})",
            ),
            Option(["--jwks"], type=PATH, help="its public keys, for private_key_jwt"),
            JSON,
        ),
    ),
    "list": ("list all clients, newest first", "--json", (JSON,)),
    "rotate": ("give a client a new secret; the old one ends at once", EXAMPLE_ID, (_ID, JSON)),
    "revoke": ("revoke a client, and every token that it was granted", EXAMPLE_ID, (_ID,)),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0; raises Problem."""
    async with command_store(settings, create=arguments.action == "register") as store:
        clients = Clients(store, system_clock, _reject_fetch, settings.redirect_schemes)
        match arguments.action:
            case "register":
                _print_client(
                    await clients.register(_read_client(arguments)), as_json=arguments.json
                )
            case "list":
                rows = [_to_json(row) for row in await clients.all()]
                none = "there are no clients yet; they may also register themselves"
                print_list(rows, _COLUMNS, none, as_json=arguments.json)
            case "rotate":
                _print_client(await clients.rotate(arguments.id), as_json=arguments.json)
            case "revoke":
                await clients.revoke(arguments.id)
                print(f"{arguments.id} is revoked, with all that it was granted")
    return 0


async def _reject_fetch(_url: str) -> bytes:
    raise Problem("unavailable", "Documents are fetched by the running service alone")


def _read_client(arguments: Arguments) -> NewClient:
    has_redirect = bool(arguments.redirect_uri)
    return NewClient(
        name=arguments.name,
        auth_method=arguments.auth or ("none" if has_redirect else "client_secret_basic"),
        grant_types=arguments.grants
        or (("authorization_code", "refresh_token") if has_redirect else ("client_credentials",)),
        scopes=arguments.scopes,
        redirect_uris=arguments.redirect_uri,
        jwks=_read_keys(arguments.jwks),
    )


def _read_keys(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise Problem("invalid", f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Problem("invalid", f"{path} is no JSON: give it a JWK set") from None


def _print_client(row: Row, *, as_json: bool) -> None:
    secret = row["secret"]
    members = {"client_id": row["id"], "client_secret": secret, **_to_json(row)}
    if secret is None and not as_json:
        print(row["id"])
        return
    note = "The secret is shown this once: keep it where secrets are kept."
    print_secret((row["id"], secret), members, note, as_json=as_json)


def _to_json(row: Row) -> dict[str, Any]:
    return {name: row[name].split() if name in _LIST_MEMBERS else row[name] for name in _MEMBERS}
