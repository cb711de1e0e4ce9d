"""`requests`: list, approve and deny requests for access."""

from click import Argument, Option

from edge_api.access.service import NO_END, AccessDecisions, requested_type
from edge_api.auth.actor import system_clock
from edge_api.cli import (
    END,
    EXAMPLE_ID,
    Columns,
    choose_end,
    minute_column,
    parse_words,
    print_list,
)
from edge_api.mail.queue import Outbox
from edge_api.open_store import command_store
from edge_api.schema.commands import JSON, Actions, Arguments
from edge_api.settings import Settings

_MEMBERS = (
    "id",
    "type",
    "name",
    "email",
    "purpose",
    "scopes",
    "status",
    "created_at",
    "expires_at",
    "decided_at",
    "credential_id",
    "second_credential_id",
    "credential_expires_at",
)
"""The columns of a request that `requests list` prints: all but the digest and `second_type`."""
_MAX_PURPOSE = 60  # characters of a purpose in the table; `--json` prints it whole
_COLUMNS: Columns = {
    "ID": "id",
    "NAME": "name",
    "E-MAIL": lambda request: request["email"] or "none",
    "TYPE": "type",
    "STATUS": "status",
    "SCOPES": "scopes",
    "FILED": minute_column("created_at"),
    "ENDS": minute_column("expires_at"),
    "PURPOSE": lambda request: _shorten(" ".join(request["purpose"].split())),
}
_ID = Argument(["id"], help="the id of the request, as `requests list` shows it")
ACTIONS: Actions = {
    "list": ("list all requests, newest first", "--json", (JSON,)),
    "approve": (
        "approve a request, so that its claim token fetches a credential",
        f"{EXAMPLE_ID} --scopes posts:read",
        (
            _ID,
            Option(
                ["--scopes"],
                type=parse_words,
                metavar='"A B"',
                help="what it may do (default: posts:read, and mcp for an access token; never "
                "what the request asks for)",
            ),
            *END,
        ),
    ),
    "deny": (
        "deny a request; an approved one too, until its credential is fetched",
        EXAMPLE_ID,
        (_ID,),
    ),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0; raises Problem."""
    async with command_store(settings) as store:
        decisions = AccessDecisions(store, system_clock, Outbox(settings, system_clock))
        match arguments.action:
            case "list":
                rows = [
                    {
                        **{name: row[name] for name in _MEMBERS},
                        "type": requested_type(row),
                        "scopes": row["scopes"].split(),
                    }
                    for row in await decisions.all()
                ]
                print_list(rows, _COLUMNS, "nobody has asked for access", as_json=arguments.json)
            case "approve":
                row = await decisions.approve(
                    arguments.id, arguments.scopes or (), choose_end(arguments)
                )
                end = row["credential_expires_at"]
                print(
                    f"{row['id']} is approved with {row['scopes']}; its claim token fetches the "
                    f"credential until {row['expires_at'][:16]}Z, and that ends "
                    f"{'never' if end == NO_END else end[:16]}"
                )
                if not arguments.scopes:
                    print("to grant more, name the scopes with --scopes")
            case "deny":
                print(f"{(await decisions.deny(arguments.id))['id']} is denied")
    return 0


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_PURPOSE else f"{text[: _MAX_PURPOSE - 1]}…"
