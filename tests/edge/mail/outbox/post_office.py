"""A post office for tests: the parts of mail over a real store, with a clock that is moved."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from ssl import create_default_context
from typing import Any

from edge_api.auth.actor import new_id
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.mail_addresses import MailServer, parse_relay
from edge_api.db.query import Delete, Filter, Insert, Order, Read, Store, Update
from edge_api.db.table import Row, Table
from edge_api.db.tables import EMAIL_SEND_LOG, EMAIL_SEND_STATE, LEADS, SUPPRESSED_EMAILS
from edge_api.db.types import format_instant
from edge_api.mail.dispatcher import MailService, make_mail_service
from edge_api.mail.transports import SmtpSession
from edge_api.settings import Settings, read_settings
from tests.edge.domain.conftest import MovableClock
from tests.edge.mail.outbox.scripted_relay import Relay

OWNER = "owner@journal-keepers.net"
SENDER = "journal@journal-keepers.net"
SITE_URL = "https://journal.example"
SECRET = b"a secret of this test alone, 32 bytes"
LEAD = {
    "name": "Ann Lee",
    "email": "ann@readers-club.net",
    "budget_tier": "starter",
    "message": "Hello.",
}


class TickingClock(MovableClock):
    """Goes on by a microsecond whenever it is looked at, so that rows have an order in time."""

    def __call__(self) -> datetime:
        """Return the instant."""
        self.move(microseconds=1)
        return self.now


@dataclass
class PostOffice:
    """Everything that mail needs, and ways to look at what came of it."""

    store: Store
    clock: TickingClock
    settings: Settings
    mailing: MailService

    async def take_lead(self, **changes: Any) -> Row:
        """Store a lead as the service does, with what tells of it, and return it."""
        now = self.clock()
        given = {**LEAD, **changes}
        row = LEADS.new_row(given, format_instant(now), lambda: new_id(now))
        outbox_entries = self.mailing.outbox.outbox_entries(row)
        await self.store.run(Insert(LEADS, [row]), *outbox_entries)
        return row

    async def tick(self) -> bool:
        """Let the dispatcher have one turn."""
        return await self.mailing.dispatcher.send_batch()

    async def tick_at(self, **by: float) -> None:
        """Move the clock, and let the dispatcher have one turn."""
        self.clock.move(**by)
        await self.tick()

    async def rows(self, table: Table, *where: Filter, order: str = "id") -> list[Row]:
        """Return the rows of a table."""
        (result,) = await self.store.run(Read(table, where=where, order=(Order(order),)))
        return result.rows

    async def outbox(self) -> list[Row]:
        """Return what waits, or was given up."""
        return await self.rows(EMAIL_OUTBOX)

    async def log(self) -> list[Row]:
        """Return the log in the order of time."""
        return await self.rows(EMAIL_SEND_LOG, order="created_at")

    async def statuses(self, template: str = "") -> list[str]:
        """Return what the log tells of all messages, or of those of one template."""
        rows = await self.log()
        return [row["status"] for row in rows if template in row["template_name"]]

    async def change_state(self, **values: Any) -> None:
        """Set how mail is sent, as an administrator does."""
        await self.store.run(Update(EMAIL_SEND_STATE, values, (Filter("id", "eq", 1),)))

    async def suppress(self, address: str, reason: str = "unsubscribe") -> None:
        """Suppress an address, as an administrator does."""
        now = self.clock()
        given = {"email": address, "reason": reason}
        row = SUPPRESSED_EMAILS.new_row(given, format_instant(now), lambda: new_id(now))
        await self.store.run(Insert(SUPPRESSED_EMAILS, [row]))

    async def allow(self, address: str) -> None:
        """Delete a suppression, as an administrator does."""
        await self.store.run(Delete(SUPPRESSED_EMAILS, (Filter("email", "eq", address),)))

    async def suppressed(self) -> dict[str, str]:
        """Return the suppressed addresses with their reasons."""
        return {row["email"]: row["reason"] for row in await self.rows(SUPPRESSED_EMAILS)}

    async def erase(self, lead: Row) -> None:
        """Delete a lead."""
        await self.store.run(Delete(LEADS, (Filter("id", "eq", lead["id"]),)))

    async def change_entries(self, **values: Any) -> None:
        """Change every entry of the outbox."""
        every = (Filter("id", "is", None, negated=True),)
        await self.store.run(Update(EMAIL_OUTBOX, values, every))


def open_office(
    store: Store, clock: TickingClock, relay: Relay | None, **changes: str
) -> PostOffice:
    """Return a post office that sends through a relay; `changes` are settings."""
    given = {
        "SITE_URL": SITE_URL,
        "BUILD_DIR": "no-build",
        "OWNER_EMAIL": f"The owner <{OWNER}>",
        "MAIL_FROM": f"A journal <{SENDER}>",
        **({"SMTP_URL": f"smtp://127.0.0.1:{relay.port}"} if relay else {}),
        **changes,
    }
    settings = read_settings(given, dotenv=None)
    place = parse_relay(settings.smtp_url) if settings.smtp_url else None
    transport = None
    if relay is not None and isinstance(place, MailServer):
        timeouts = (relay.patience, relay.patience)
        transport = partial(SmtpSession, place, create_default_context(), timeouts)
    mailing = make_mail_service(settings, store, clock, SECRET, transport)
    return PostOffice(store, clock, settings, mailing)
