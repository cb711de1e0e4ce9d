"""`requests`: who asks for access, and what whoever runs the service decides."""

import argparse
from typing import Any

from edge_api.access.service import AccessDecisions, requested_type
from edge_api.cli import EXAMPLE_ID, add_command, add_list, print_list, printable, words
from edge_api.db.table import Row
from edge_api.mail.dispatcher import mail_rules
from edge_api.mail.queue import Outbox
from edge_api.open_store import opened, system_clock
from edge_api.settings import Settings

_SHOWN = (
    *("id", "type", "name", "email", "purpose", "scopes", "status"),
    *("created_at", "expires_at", "decided_at", "credential_id", "second_credential_id"),
)
"""The members of a listed request: all columns but the digest and the second type."""
_HEAD = ("ID", "NAME", "E-MAIL", "TYPE", "STATUS", "SCOPES", "FILED", "ENDS", "PURPOSE")
_PURPOSE_SHOWN = 60
"""Characters in the list; JSON has all."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    actions = parser.add_subparsers(dest="action", required=True)
    add_list(actions, "list all requests, newest first")
    approve = "approve a request, so that its claim token fetches a credential"
    approving = add_command(actions, "approve", approve, f"{EXAMPLE_ID} --scopes posts:read")
    approving.add_argument("id", help="the id of the request, as `requests list` shows it")
    approving.add_argument(
        "--scopes",
        type=words,
        default=(),
        metavar='"A B"',
        help="what it may do (default: the scopes of the request, without administrative ones)",
    )
    deny = "deny a request; an approved one too, until its credential is fetched"
    denying = add_command(actions, "deny", deny, EXAMPLE_ID)
    denying.add_argument("id", help="the id of the request, as `requests list` shows it")


async def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Carry out one action. Returns 0; raises Problem."""
    async with opened(settings) as store:
        outbox = Outbox(mail_rules(settings), system_clock)
        decisions = AccessDecisions(store, system_clock, outbox)
        await _ACTIONS[arguments.action](decisions, arguments)
    return 0


async def _list(decisions: AccessDecisions, arguments: argparse.Namespace) -> None:
    rows = [_shown(row) for row in await decisions.all()]
    print_list(rows, _HEAD, _cells, "nobody has asked for access", as_json=arguments.json)


async def _approve(decisions: AccessDecisions, arguments: argparse.Namespace) -> None:
    row = await decisions.approve(arguments.id, arguments.scopes)
    print(
        f"{row['id']} is approved with {row['scopes']}; "
        f"its claim token fetches the credential until {row['expires_at'][:16]}Z"
    )


async def _deny(decisions: AccessDecisions, arguments: argparse.Namespace) -> None:
    row = await decisions.deny(arguments.id)
    print(f"{row['id']} is denied")


_ACTIONS = {"list": _list, "approve": _approve, "deny": _deny}


def _shown(row: Row) -> dict[str, Any]:
    shown = {name: row[name] for name in _SHOWN}
    return {**shown, "type": requested_type(row), "scopes": row["scopes"].split()}


def _cells(shown: dict[str, Any]) -> tuple[str, ...]:
    purpose = " ".join(shown["purpose"].split())
    is_long = len(purpose) > _PURPOSE_SHOWN
    return (
        shown["id"],
        printable(shown["name"]),
        printable(shown["email"] or "none"),
        shown["type"],
        shown["status"],
        ",".join(shown["scopes"]),
        shown["created_at"][:16],
        shown["expires_at"][:16],
        printable(f"{purpose[: _PURPOSE_SHOWN - 1]}…" if is_long else purpose),
    )
