"""`mail`: send queued mail in a process of its own; list, retry, discard and preview it."""

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any, Final

from click import Argument, Choice, Option

from edge_api.auth.actor import system_clock
from edge_api.backup.files import secret_key
from edge_api.cli import Columns, minute_column, print_list
from edge_api.db.table import Row
from edge_api.mail.dispatcher import make_mail_service
from edge_api.mail.incoming import MAX_OCTETS, IncomingMail
from edge_api.mail.messages import MESSAGE_TYPES
from edge_api.mail.outbox_admin import OutboxAdmin
from edge_api.mail.preparation import site_title
from edge_api.mail.queue import NO_RELAY
from edge_api.mail.sample_message import open_templates, sample_message
from edge_api.mail.suppressions import Feedback
from edge_api.open_store import command_store
from edge_api.schema.commands import JSON, Actions, Arguments, require_one
from edge_api.settings import Settings

_COLUMNS: Columns = {
    "ID": "id",
    "TEMPLATE": "template",
    "TO": "recipient",
    "STATE": "state",
    "ATTEMPTS": "attempts",
    "QUEUED": minute_column("queued_at"),
    "DUE": minute_column("due_at"),
    "LAST WORD": lambda message: message["reason"] or "-",
}


_UNDELIVERABLE_ID = Argument(
    ["id"], required=False, help="the id of a message, as `mail list` shows it"
)
_ALL = "all undeliverable messages"
DEFAULT = ["run"]
ACTIONS: Actions = {
    "run": ("send queued mail, until SIGTERM or SIGINT ends it", "", ()),
    "list": ("list queued and undeliverable messages", "--json", (JSON,)),
    "retry": (
        "queue all undeliverable messages again, or one of them",
        "--all",
        (
            _UNDELIVERABLE_ID,
            Option(
                ["--all"],
                is_flag=True,
                help=f"{_ALL}, and send now what waits for a later attempt or the end of a pause",
            ),
        ),
    ),
    "discard": (
        "delete undeliverable messages, or one",
        "--all",
        (_UNDELIVERABLE_ID, Option(["--all"], is_flag=True, help=_ALL)),
    ),
    "receive": ("store a message from standard input, if it answers one of ours", "", ()),
    "preview": (
        "print a message with sample values",
        "lead_notification --html",
        (
            Argument(
                ["template"],
                type=Choice(MESSAGE_TYPES),
                metavar="TEMPLATE",
                help=f"one of {', '.join(MESSAGE_TYPES)}",
            ),
            Option(["--html"], is_flag=True, help="print its HTML part"),
            Option(["--text"], is_flag=True, help="print its text part (the default)"),
            Option(["--eml"], is_flag=True, help="print all of it, as it is sent"),
        ),
    ),
}


FAILURES: Final = {"receive": os.EX_TEMPFAIL}
"""The exit status of an action that failed: with it a relay keeps the message and retries."""


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0, or 2 if there is no relay."""
    if arguments.action == "run":
        return await _run(settings)
    if arguments.action == "receive":
        return await _receive(settings)
    if arguments.action == "preview":
        return _preview(arguments, settings)
    if arguments.action != "list":
        require_one(arguments, "ID", "--all")
    async with command_store(settings) as store:
        mail = OutboxAdmin(store, system_clock)
        if arguments.action == "list":
            found = [_to_json(entry) for entry in await mail.all()]
            none = "no mail waits, and none was given up"
            print_list(found, _COLUMNS, none, as_json=arguments.json)
            return 0
        is_retry = arguments.action == "retry"
        waiting = await mail.make_all_due() if is_retry and arguments.all else 0
        count = await (mail.retry if is_retry else mail.discard)(arguments.id)
    done = "queued again" if is_retry else "deleted"
    also = f", {waiting} that waited {'is' if waiting == 1 else 'are'} due now" if waiting else ""
    print(f"{count} message{'s' * (count != 1)} {done}{also}")
    return 0


async def _run(settings: Settings) -> int:
    """Send queued mail until SIGTERM or SIGINT; finish the current message first."""
    # These modules import aiohttp, which the other subcommands do not need.
    from edge_api.http.logs import configure_logging  # noqa: PLC0415
    from edge_api.http.server import handle_signals  # noqa: PLC0415
    from edge_api.newsletter.sending import Letters  # noqa: PLC0415

    if settings.smtp_url is None:
        sys.stderr.write(f"{NO_RELAY}\n")
        return 2
    configure_logging(settings.log_format)
    ending = handle_signals()
    async with command_store(settings, create=True) as store:
        letters = Letters(settings, store, system_clock)
        secret = secret_key(settings)
        mailing = make_mail_service(settings, store, system_clock, secret, letters=letters.prepare)
        running = asyncio.create_task(mailing.dispatcher.run())
        print(f"sending mail for {settings.site_url}", flush=True)
        await ending.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    return 0


async def _receive(settings: Settings) -> int:
    """Store a reply that the mail relay pipes in; ignore mail that answers no message of ours."""
    raw = sys.stdin.buffer.read(MAX_OCTETS)
    while sys.stdin.buffer.read(MAX_OCTETS):  # else the relay reports a broken pipe
        pass
    async with command_store(settings) as store:
        feedback = Feedback(store, system_clock, secret_key(settings))
        is_ours = await IncomingMail(settings, store, system_clock, feedback).receive(raw)
    print("stored" if is_ours else "left alone: it answers no message of this journal")
    return 0


def _preview(arguments: Arguments, settings: Settings) -> int:
    require_one(arguments, "--html", "--text", "--eml", least=0)
    templates = open_templates(settings)
    message = sample_message(arguments.template, settings, site_title(settings), templates)
    if arguments.eml:
        sys.stdout.write(message.as_bytes().decode())
        return 0
    part = message.get_body(("html",) if arguments.html else ("plain",))
    if not arguments.html:
        print(f"Subject: {message['Subject']}\n")
    sys.stdout.write(part.get_content() if part else "")
    return 0


def _to_json(entry: Row) -> dict[str, Any]:
    state = "being sent" if entry["lease"] else "waits"
    return {
        "id": entry["id"],
        "template": entry["template_name"],
        "recipient": entry["recipient_email"],
        "state": "given up" if entry["dead_at"] else state,
        "attempts": entry["attempts"],
        "queued_at": entry["queued_at"],
        "due_at": None if entry["dead_at"] else entry["due_at"],
        "dead_at": entry["dead_at"],
        "reason": entry["reason"],
    }
