"""Leads that were answered, and what their senders write back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from edge_api.auth.actor import new_id, system_clock
from edge_api.db.query import Filter, Insert, Order, Read, Store, Update, read_all, where_id
from edge_api.db.table import Row, Table
from edge_api.db.tables import EMAIL_SEND_LOG, LEAD_MESSAGES, LEADS, MAILBOX_STATE
from edge_api.db.types import format_instant
from tests.patience import patience

HOST = "journal.test"
LEAD = {
    "name": "Ann Lee",
    "email": "ann@readers-club.net",
    "budget_tier": "starter",
    "message": "Hello.",
}


def new_row(table: Table, **given: Any) -> Row:
    """Return a row of now."""
    now = system_clock()
    return table.new_row(given, format_instant(now), lambda: new_id(now))


async def answer_lead(store: Store, **changes: Any) -> tuple[Row, str]:
    """Store a lead and an answer to it; return the lead, and the Message-ID of the answer."""
    lead = new_row(LEADS, **{**LEAD, "status": "contacted", **changes})
    sent = new_row(LEAD_MESSAGES, lead_id=lead["id"], kind="sent", email=lead["email"], body="Yes.")
    about = {"message_id": sent["id"], "template_name": "lead_answer"}
    log = new_row(EMAIL_SEND_LOG, **about, recipient_email=lead["email"], status="sent")
    inserts = Insert(LEADS, [lead]), Insert(LEAD_MESSAGES, [sent]), Insert(EMAIL_SEND_LOG, [log])
    await store.run(*inserts)
    return lead, f"<{UUID(sent['id'])}@{HOST}>"


async def set_status(store: Store, lead: Row, **values: Any) -> None:
    """Change a lead, as its owner does."""
    await store.run(Update(LEADS, values, where_id(lead["id"])))


async def received(store: Store) -> list[Row]:
    """Return the stored replies, oldest first."""
    where = (Filter("kind", "eq", "received"),)
    return await read_all(store, Read(LEAD_MESSAGES, where=where, order=(Order("id"),)))


async def status_of(store: Store, lead: Row) -> str:
    """Return the status that a lead has now."""
    (row,) = await read_all(store, Read(LEADS, where=where_id(lead["id"])))
    return str(row["status"])


async def mailbox_state(store: Store) -> Row:
    """Return how far the mailbox was read; nothing is 0."""
    rows = await read_all(store, Read(MAILBOX_STATE))
    return rows[0] if rows else {"last_uid": 0, "fault": None, "checked_at": ""}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Return when something holds; fail when it does not come to that."""
    for _ in range(round(patience(60) / 0.02)):
        if await holds():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def until_read(store: Store, uid: int) -> Row:
    """Return the mailbox's state once an edge has read it up to a message, and ended its turn."""
    since = (await mailbox_state(store))["checked_at"] or ""

    async def is_read() -> bool:
        state = await mailbox_state(store)
        return bool(state["last_uid"] >= uid and (state["checked_at"] or "") > since)

    await until(is_read)
    return await mailbox_state(store)


def write(
    message_id: str, text: str = "Thanks!", *, headers: tuple[str, ...] = (), **given: str
) -> bytes:
    """Return a reply to a message as its sender's program writes it."""
    named = {
        "From": "Ann <ann@readers-club.net>",
        "Subject": "Re: Your question",
        "Message-ID": f"<{new_id(system_clock())}@mail.readers-club.net>",
        "In-Reply-To": message_id,
        **{name.replace("_", "-"): value for name, value in given.items()},
    }
    lines = [f"{name}: {value}" for name, value in named.items() if value]
    return "\r\n".join((*headers, *lines, "", text, "")).encode("utf-8", "surrogateescape")


def report(message_id: str, status: str = "5.1.1", action: str = "failed", **given: str) -> bytes:
    """Return what a mail server reports of a message (RFC 3464), to the address it names."""
    recipient = given.get("recipient", "ann@readers-club.net")
    returned = given.get("returned", "text/rfc822-headers")
    return "\r\n".join(
        (
            "Return-Path: <>",
            "From: MAILER-DAEMON@mail.readers-club.net",
            "To: journal@journal.test",
            "Subject: Undelivered Mail Returned to Sender",
            "Auto-Submitted: auto-replied",
            "MIME-Version: 1.0",
            'Content-Type: multipart/report; report-type=delivery-status; boundary="x/y"',
            "",
            "--x/y",
            "Content-Type: text/plain",
            "",
            "Your message could not be delivered.",
            "--x/y",
            "Content-Type: message/delivery-status",
            "",
            "Reporting-MTA: dns; mail.readers-club.net",
            "",
            f"Final-Recipient: rfc822; {recipient}",
            f"Action: {action}",
            f"Status: {status}",
            "",
            "--x/y",
            f"Content-Type: {returned}",
            "",
            f"Message-ID: {message_id}",
            "Subject: Re: Your question",
            "",
            "--x/y--",
            "",
        )
    ).encode()
