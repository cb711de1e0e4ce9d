"""`webhooks`: manage the endpoints that get events, and their undelivered events."""

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from click import Argument, Choice, IntRange, Option, UsageError

from edge_api.auth.actor import system_clock
from edge_api.auth.tokens import SecretBox
from edge_api.backup.files import secret_key
from edge_api.cli import EXAMPLE_ID, Columns, print_list, print_secret
from edge_api.db.table import Row
from edge_api.open_store import command_store
from edge_api.schema.commands import JSON, Actions, Arguments
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

_LISTED_COLUMNS: Final = (
    "id",
    "url",
    "events",
    "created_at",
    "former_until",
    "disabled_at",
    "disabled_for",
    "waiting",
    "given_up",
)
"""The columns of an endpoint that `webhooks list` prints: all but its secrets."""
_COLUMNS: Columns = {
    "ID": "id",
    "STATE": lambda row: f"disabled: {row['disabled_for']}" if row["disabled_at"] else "enabled",
    "EVENTS": "events",
    "WAITING": "waiting",
    "GIVEN UP": "given_up",
    "URL": "url",
}
_ID_PARAM: Final = Argument(["id"], help="of an endpoint, as `webhooks list` shows it")
_EVENT_PARAMS: Final = (
    Option(
        ["--events"],
        multiple=True,
        type=Choice(EVENTS),
        metavar="NAME...",
        help=f"names of events (default of `add`: {LEAD_CREATED}): {', '.join(EVENTS)}",
    ),
    Argument(["more"], nargs=-1, type=Choice(EVENTS), metavar="[NAME...]", help="more of them"),
)
ACTIONS: Actions = {
    "add": (
        "notify an address of new leads, or of posts; print its id and secret, once",
        "https://example.org/hooks/leads",
        (Argument(["url"], help="an https address that is public"), *_EVENT_PARAMS, JSON),
    ),
    "choose": (
        "choose the events of an endpoint anew",
        f"{EXAMPLE_ID} --events {LEAD_CREATED}",
        (_ID_PARAM, *_EVENT_PARAMS),
    ),
    "list": ("list all endpoints, oldest first", "--json", (JSON,)),
    "remove": (
        "remove an endpoint, and forget the events that it did not get",
        EXAMPLE_ID,
        (_ID_PARAM,),
    ),
    "enable": (
        "enable an endpoint that was disabled because it answered 410, or was paused",
        EXAMPLE_ID,
        (_ID_PARAM,),
    ),
    "rotate": (
        "give an endpoint a new secret; print it, once",
        EXAMPLE_ID,
        (
            _ID_PARAM,
            Option(
                ["--overlap"],
                type=IntRange(0, 30 * 24),
                default=SECRET_ROTATION_OVERLAP // timedelta(hours=1),
                metavar="HOURS",
                help="how long the old secret signs as well (default: 24)",
            ),
            JSON,
        ),
    ),
    "retry": (
        "send undeliverable events, and those that wait for a later attempt, now",
        EXAMPLE_ID,
        (Argument(["id"], required=False, help="of an endpoint (default: all that are enabled)"),),
    ),
    "discard": ("delete the undeliverable events of an endpoint", EXAMPLE_ID, (_ID_PARAM,)),
    "test": ("send a test event, and print the result", EXAMPLE_ID, (_ID_PARAM,)),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0, or 1 for a test that failed; raises Problem."""
    async with command_store(settings, create=arguments.action == "add") as store:
        box = SecretBox(secret_key(settings), KEY_PURPOSE)
        endpoints = Endpoints(store, system_clock, box, partial(_open_sender, settings))
        match arguments.action:
            case "add":
                events = (*arguments.events, *arguments.more) or (LEAD_CREATED,)
                _print_endpoint(await endpoints.add(arguments.url, events), as_json=arguments.json)
            case "list":
                found = [
                    {name: row[name] for name in _LISTED_COLUMNS} for row in await endpoints.all()
                ]
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
                if not (events := (*arguments.events, *arguments.more)):
                    raise UsageError("Missing option '--events'.")
                await endpoints.set_events(arguments.id, events)
                print(f"{arguments.id} gets from now on: {', '.join(events)}")
            case "rotate":
                _print_endpoint(
                    await endpoints.rotate(arguments.id, timedelta(hours=arguments.overlap)),
                    as_json=arguments.json,
                )
            case "retry":
                number = await endpoints.retry(arguments.id)
                print(
                    f"{_event_count(number)} queued again; a running edge sends them within seconds"
                )
            case "discard":
                print(f"{_event_count(await endpoints.discard(arguments.id))} deleted")
            case "test":
                answer = await endpoints.test(arguments.id)
                print(f"{arguments.id}: {answer.message}")
                return 0 if answer.is_delivered else 1
    return 0


def _open_sender(settings: Settings) -> "WebhookSender":
    # This module imports aiohttp, which only `add` and `test` need.
    from edge_api.webhooks.dispatcher import make_sender  # noqa: PLC0415

    return make_sender(settings)


def _print_endpoint(endpoint: Row, *, as_json: bool) -> None:
    members = {name: endpoint[name] for name in ("id", "url", "secret")}
    note = "The secret is shown this once: give it to the receiver, which checks it."
    print_secret((endpoint["id"], endpoint["secret"]), members, note, as_json=as_json)


def _event_count(number: int) -> str:
    return "1 event is" if number == 1 else f"{number} events are"
