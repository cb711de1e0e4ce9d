"""`leads`: list, export, show and mark leads at a terminal."""

from click import Argument, Choice, Option

from edge_api.admin.rows import Rows
from edge_api.auth.actor import OPERATOR, system_clock
from edge_api.cli import (
    COUNT,
    EXAMPLE_ID,
    Columns,
    minute_column,
    print_list,
    printable,
)
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store, find_row, require_row
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from edge_api.leads.service import LeadQuery, all_leads, find_leads
from edge_api.open_store import command_store
from edge_api.operation.sheets import stream_csv
from edge_api.schema.commands import JSON, Actions, Arguments
from edge_api.settings import Settings

_STATUSES = LEADS.columns["status"].choices
_COLUMNS: Columns = {
    "ID": "id",
    "RECEIVED": minute_column("created_at"),
    "STATUS": "status",
    "NAME": "name",
    "E-MAIL": "email",
}
_MISSING = "There is no lead {}: `leads list` shows their ids"


_FILTERS = (
    Option(["--status"], multiple=True, type=Choice(_STATUSES), help="of this status; repeatable"),
    Option(["--search"], default="", help="with these words"),
)
ACTIONS: Actions = {
    "list": (
        "list leads, newest first",
        "--json",
        (*_FILTERS, Option(["--limit"], type=COUNT, default=50, help="leads (default: 50)"), JSON),
    ),
    "export": ("print all leads as CSV, newest first", "--status won", _FILTERS),
    "show": (
        "show a lead and the mail to its address",
        EXAMPLE_ID,
        (Argument(["id"], help="the id of a lead, as `leads list` shows it"),),
    ),
    "mark": (
        "change status or notes",
        f"{EXAMPLE_ID} --status contacted",
        (
            Argument(["id"], nargs=-1, required=True, help="ids of leads"),
            Option(["--status"], type=Choice(_STATUSES), help="their new status"),
            Option(["--notes"], help="replace the notes"),
        ),
    ),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0; raises Problem."""
    async with command_store(settings) as store:
        actions = {"list": _list, "export": _export, "show": _show, "mark": _mark}
        await actions[arguments.action](store, arguments)
    return 0


async def _list(store: Store, arguments: Arguments) -> None:
    statuses = tuple(arguments.status or (each for each in _STATUSES if each != "spam"))
    query = LeadQuery(arguments.search, (Filter("status", "in", statuses),), limit=arguments.limit)
    found = await find_leads(store, query)
    print_list(found, _COLUMNS, "no lead is like that", as_json=arguments.json)


async def _export(store: Store, arguments: Arguments) -> None:
    is_chosen = Filter("status", "in", tuple(arguments.status))
    query = LeadQuery(arguments.search, (is_chosen,) if arguments.status else ())
    async for part in stream_csv(LEADS.readable, all_leads(store, query)):
        print(part.decode(), end="")


async def _show(store: Store, arguments: Arguments) -> None:
    lead = await require_row(store, LEADS, arguments.id, _MISSING.format(arguments.id))
    for name in (name for name in LEADS.readable if lead[name] is not None):
        lines = [printable(line) for line in str(lead[name]).split("\n")]
        print(f"{name}: " + "\n  ".join(lines))
    to_address = (Filter("recipient_email", "eq", lead["email"]),)
    (mail,) = await store.run(Read(EMAIL_SEND_LOG, where=to_address))
    for row in mail.rows:
        print(f"mail {row['created_at'][:16]}: {row['template_name']}, {row['status']}")


async def _mark(store: Store, arguments: Arguments) -> None:
    given = {"status": arguments.status, "notes": arguments.notes}
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        raise Problem("invalid", "Give --status or --notes")
    leads = {each: await find_row(store, LEADS, each) for each in arguments.id}
    match = {"id": [row["id"] for row in leads.values() if row]}
    changed = await Rows(store, system_clock).update(LEADS, match, values, OPERATOR)
    if missing := [each for each, row in leads.items() if not row]:
        raise Problem("not_found", _MISSING.format(missing[0]))
    print(f"{len(changed)} lead{'s' * (len(changed) != 1)} changed")
