"""`webhooks`: the endpoints that are notified of events, and their undelivered events."""

import argparse
import re
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from edge_api.auth.actor import system_clock
from edge_api.auth.tokens import SecretBox
from edge_api.backup.files import secret_key
from edge_api.cli import (
    EXAMPLE_ID,
    Columns,
    add_command,
    add_id_command,
    add_json,
    add_list,
    print_list,
    print_secret,
)
from edge_api.db.table import Row
from edge_api.open_store import command_store
from edge_api.settings import Settings
from edge_api.webhooks.endpoints import (
    EVENTS,
    KEY_PURPOSE,
    LEAD_CREATED,
    SECRET_ROTATION_OVERLAP,
    Endpoints,
)

if TYPE_CHECKING:
    from edge_api.webhooks.dispatcher import WebhookSender

_MAX_OVERLAP: Final = 30 * 24  # hours
_MEMBERS: Final = (
    *("id", "url", "events", "created_at", "former_until", "disabled_at", "disabled_for"),
    *("waiting", "given_up"),
)
"""The members of a listed endpoint: all but its secrets."""
_COLUMNS: Columns = {
    "ID": "id",
    "STATE": lambda row: f"disabled: {row['disabled_for']}" if row["disabled_at"] else "enabled",
    "EVENTS": "events",
    "WAITING": "waiting",
    "GIVEN UP": "given_up",
    "URL": "url",
}
_ID: Final = "of an endpoint, as `webhooks list` shows it"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    actions = parser.add_subparsers(dest="action", required=True)
    add_one = partial(add_id_command, actions, help_text=_ID, metavar="ID")
    add = "notify an address of new leads, or of posts; print its id and secret, once"
    adding = add_command(actions, "add", add, "https://example.org/hooks/leads")
    adding.add_argument("url", metavar="URL", help="an https address that is public")
    _add_events(adding, default=(LEAD_CREATED,))
    add_json(adding)
    choose = "choose the events of an endpoint anew"
    choosing = add_command(actions, "choose", choose, f"{EXAMPLE_ID} --events {LEAD_CREATED}")
    choosing.add_argument("id", metavar="ID", help=_ID)
    _add_events(choosing, required=True)
    add_list(actions, "list all endpoints, oldest first")
    add_one("remove", "remove an endpoint, and forget the events that it did not get")
    add_one("enable", "enable an endpoint that was disabled because it answered 410")
    rotating = add_one("rotate", "give an endpoint a new secret; print it, once")
    rotating.add_argument(
        "--overlap",
        type=_hours,
        default=SECRET_ROTATION_OVERLAP,
        metavar="HOURS",
        help="how long the old secret signs as well (default: 24)",
    )
    add_json(rotating)
    retrying = add_command(actions, "retry", "queue undeliverable events again", EXAMPLE_ID)
    retrying.add_argument("id", metavar="ID", nargs="?", help="of an endpoint (default: all)")
    add_one("discard", "delete the undeliverable events of an endpoint")
    add_one("test", "send a test event, and print the result")


def _add_events(parser: argparse.ArgumentParser, **more: Any) -> None:
    about = f"names of events (default of `add`: {LEAD_CREATED}): {', '.join(EVENTS)}"
    parser.add_argument("--events", nargs="+", choices=EVENTS, metavar="NAME", help=about, **more)


async def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run one action. Returns 0, or 1 for a test that failed; raises Problem."""
    async with command_store(settings, create=arguments.action == "add") as store:
        box = SecretBox(secret_key(settings), KEY_PURPOSE)
        endpoints = Endpoints(store, system_clock, box, partial(_open_sender, settings))
        return await _act(endpoints, arguments)


async def _act(endpoints: Endpoints, arguments: argparse.Namespace) -> int:
    match arguments.action:
        case "add":
            _show(await endpoints.add(arguments.url, arguments.events), as_json=arguments.json)
        case "list":
            found = [{name: row[name] for name in _MEMBERS} for row in await endpoints.all()]
            none = "there are no webhook endpoints yet; nobody is notified of events"
            print_list(found, _COLUMNS, none, as_json=arguments.json)
        case "remove":
            await endpoints.remove(arguments.id)
            print(f"{arguments.id} is removed, with the events that wait for it")
        case "enable":
            await endpoints.enable(arguments.id)
            print(
                f"{arguments.id} gets new events from now on; "
                "`retry` queues its undeliverable events again"
            )
        case "choose":
            await endpoints.choose(arguments.id, arguments.events)
            print(f"{arguments.id} gets from now on: {', '.join(arguments.events)}")
        case "rotate":
            _show(await endpoints.rotate(arguments.id, arguments.overlap), as_json=arguments.json)
        case "retry":
            number = await endpoints.retry(arguments.id)
            print(f"{_events(number)} queued again; a running edge sends them within seconds")
        case "discard":
            print(f"{_events(await endpoints.discard(arguments.id))} deleted")
        case "test":
            answer = await endpoints.test(arguments.id)
            print(f"{arguments.id}: {answer.message}")
            return 0 if answer.is_delivered else 1
    return 0


def _open_sender(settings: Settings) -> "WebhookSender":
    # It imports aiohttp, which only `add` and `test` need.
    from edge_api.webhooks.dispatcher import make_sender  # noqa: PLC0415

    return make_sender(settings)


def _hours(text: str) -> timedelta:
    if re.fullmatch("[0-9]{1,9}", text) is None or int(text) > _MAX_OVERLAP:
        raise argparse.ArgumentTypeError(f"must be a number of hours from 0 to {_MAX_OVERLAP}")
    return timedelta(hours=int(text))


def _show(endpoint: Row, *, as_json: bool) -> None:
    members = {name: endpoint[name] for name in ("id", "url", "secret")}
    note = "The secret is shown this once: give it to the receiver, which checks it."
    print_secret((endpoint["id"], endpoint["secret"]), members, note, as_json=as_json)


def _events(number: int) -> str:
    return "1 event is" if number == 1 else f"{number} events are"
