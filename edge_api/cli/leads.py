"""`leads`: list, export, show and mark leads at a terminal."""

import argparse

from edge_api.admin.filters import stream_csv
from edge_api.admin.rows import Rows, parse_match
from edge_api.auth.actor import OPERATOR, system_clock
from edge_api.cli import (
    EXAMPLE_ID,
    Columns,
    add_command,
    add_id_command,
    add_list,
    minute_column,
    parse_count,
    print_list,
    printable,
)
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from edge_api.leads.service import LeadQuery, all_leads, find_leads
from edge_api.open_store import command_store
from edge_api.settings import Settings

_STATUSES = LEADS.columns["status"].choices
_COLUMNS: Columns = {
    "ID": "id",
    "RECEIVED": minute_column("created_at"),
    "STATUS": "status",
    "NAME": "name",
    "E-MAIL": "email",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    actions = parser.add_subparsers(dest="action", required=True)
    listing = add_list(actions, "list leads, newest first")
    exporting = add_command(
        actions, "export", "print all leads as CSV, newest first", "--status won"
    )
    for each in (listing, exporting):
        each.add_argument("--status", action="append", choices=_STATUSES, help="of this status")
        each.add_argument("--search", default="", help="with these words")
    listing.add_argument("--limit", type=parse_count, default=50, help="leads (default: 50)")
    help_text = "the id of a lead, as `leads list` shows it"
    add_id_command(actions, "show", "show a lead and the mail to its address", help_text)
    marking = add_command(
        actions, "mark", "change status or notes", f"{EXAMPLE_ID} --status contacted"
    )
    marking.add_argument("id", nargs="+", help="ids of leads")
    marking.add_argument("--status", choices=_STATUSES)
    marking.add_argument("--notes", help="replace the notes")


async def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run one action. Returns 0; raises Problem."""
    async with command_store(settings) as store:
        actions = {"list": _list, "export": _export, "show": _show, "mark": _mark}
        await actions[arguments.action](store, arguments)
    return 0


async def _list(store: Store, arguments: argparse.Namespace) -> None:
    statuses = tuple(arguments.status or (each for each in _STATUSES if each != "spam"))
    query = LeadQuery(arguments.search, statuses, limit=arguments.limit)
    found, _ = await find_leads(store, query)
    print_list(found, _COLUMNS, "no lead is like that", as_json=arguments.json)


async def _export(store: Store, arguments: argparse.Namespace) -> None:
    query = LeadQuery(arguments.search, tuple(arguments.status or ()))
    async for part in stream_csv(LEADS.readable, all_leads(store, query)):
        print(part.decode(), end="")


async def _show(store: Store, arguments: argparse.Namespace) -> None:
    (found,) = await store.run(Read(LEADS, where=parse_match(LEADS, {"id": arguments.id})))
    if not found.rows:
        raise _missing(arguments.id)
    lead = found.rows[0]
    for name in (name for name in LEADS.readable if lead[name] is not None):
        lines = [printable(line) for line in str(lead[name]).split("\n")]
        print(f"{name}: " + "\n  ".join(lines))
    to_address = (Filter("recipient_email", "eq", lead["email"]),)
    (mail,) = await store.run(Read(EMAIL_SEND_LOG, where=to_address))
    for row in mail.rows:
        print(f"mail {row['created_at'][:16]}: {row['template_name']}, {row['status']}")


def _missing(lead_id: str) -> Problem:
    return Problem("not_found", f"There is no lead {lead_id}: `leads list` shows their ids")


async def _mark(store: Store, arguments: argparse.Namespace) -> None:
    given = {"status": arguments.status, "notes": arguments.notes}
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        raise Problem("invalid", "Give --status or --notes")
    changed = await Rows(store, system_clock).update(LEADS, {"id": arguments.id}, values, OPERATOR)
    if len(changed) < len(set(arguments.id)):
        raise _missing(next(iter(set(arguments.id) - {row["id"] for row in changed})))
    print(f"{len(changed)} lead{'s' * (len(changed) != 1)} changed")
