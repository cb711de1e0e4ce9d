"""The outbox of mail by hand: people list, retry, hasten and discard its entries."""

from edge_api.auth.actor import OPERATOR, Actor, Clock, audited
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.newsletter_tables import FAR
from edge_api.db.problems import Problem
from edge_api.db.query import (
    Delete,
    Filter,
    Order,
    QueryResult,
    Read,
    Store,
    Update,
    Where,
    read_all,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, EMAIL_SEND_STATE
from edge_api.db.types import format_instant
from edge_api.mail.queue import log_insert
from edge_api.outbox import GIVEN_UP, UNCLAIMED, requeued_values
from edge_api.schema.environment import EDGE


class OutboxAdmin:
    """The outbox of one store, as people see and change it."""

    def __init__(self, store: Store, clock: Clock, actor: Actor = OPERATOR) -> None:
        self._store = store
        self._clock = clock
        self._actor = actor

    async def all(self) -> list[Row]:
        """Return all entries, waiting or dead, oldest first, each with its last logged `reason`."""
        found = await read_all(self._store, Read(EMAIL_OUTBOX, order=(Order("queued_at"),)))
        ids = Filter("message_id", "in", tuple(entry["id"] for entry in found))
        log = Read(EMAIL_SEND_LOG, ("message_id", "error_message"), (ids,), (Order("created_at"),))
        # The last one of each message.
        reasons = {
            row["message_id"]: row["error_message"] for row in await read_all(self._store, log)
        }
        return [{**entry, "reason": reasons.get(entry["id"])} for entry in found]

    async def retry(self, entry_id: str | None = None, template: str | None = None) -> int:
        """Queue dead entries again, one, all of a template, or all; return their number.

        Raises Problem `not_found` for an id that was not given up, `conflict` where it changed
        meanwhile.
        """
        (dead,) = await self._store.run(Read(EMAIL_OUTBOX, where=_given_up(entry_id, template)))
        if dead.rows:
            now = self._clock()
            ids = Filter("id", "in", tuple(entry["id"] for entry in dead.rows))
            fresh = {**requeued_values(EMAIL_OUTBOX, now), "queued_at": format_instant(now)}
            update = Update(EMAIL_OUTBOX, fresh, (ids, GIVEN_UP), at_least=len(dead.rows))
            moves = (
                log_insert(entry, "pending", now, metadata={"requeued": True})
                for entry in dead.rows
            )
            await self._store.run(*audited(self._actor, "retry", update, now, ("id",)), *moves)
        return _count(dead, entry_id)

    async def make_all_due(self) -> int:
        """Make all waiting entries due now, and end a pause; return their number.

        Raises Problem.
        """
        now = self._clock()
        # Letters of a held mailing wait for its resumption.
        hurried = (*UNCLAIMED, Filter("due_at", "lt", FAR))
        (found,) = await self._store.run(Read(EMAIL_OUTBOX, ("id",), hurried))
        resumed = EMAIL_SEND_STATE.new_values({"retry_after_until": None}, format_instant(now))
        ends_pause = Update(EMAIL_SEND_STATE, resumed, (Filter("id", "eq", 1),))
        due = Update(EMAIL_OUTBOX, {"due_at": format_instant(now)}, hurried)
        hastened = audited(self._actor, "retry", due, now) if found.rows else ()
        await self._store.run(*hastened, ends_pause)
        return len(found.rows)

    async def discard(self, entry_id: str | None = None, template: str | None = None) -> int:
        """Delete dead entries, chosen as in `retry`; return their number. The log still has them.

        Raises Problem `not_found` for an id that was not given up.
        """
        delete = Delete(EMAIL_OUTBOX, _given_up(entry_id, template))
        change = audited(self._actor, "discard", delete, self._clock(), ("id",))
        _, gone, _ = await self._store.run(*change)
        return _count(gone, entry_id)


def _given_up(entry_id: str | None, template: str | None) -> Where:
    """Return the conditions of one entry that was given up, of all of a template, or of all."""
    one = () if entry_id is None else where_id(entry_id.lower())
    of_template = () if template is None else (Filter("template_name", "eq", template),)
    return (GIVEN_UP, *one, *of_template)


def _count(found: QueryResult, entry_id: str | None) -> int:
    """Return the number of rows found. Raises Problem where a given id was not found."""
    if entry_id is not None and not found.rows:
        raise Problem(
            "not_found", f"No mail {entry_id} was given up; {EDGE} mail list shows what was"
        )
    return len(found.rows)
