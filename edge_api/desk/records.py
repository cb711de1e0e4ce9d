"""Screens of mail that waits or was given up, and of the audit log with undo."""

from typing import Final

from edge_api.auth.undo import undo, undoable
from edge_api.db.query import Filter, Order, Read, Where
from edge_api.db.tables import ADMINISTRATIVE, AUDIT_LOG, CREDENTIALS, EMAIL_SEND_LOG
from edge_api.desk.screens import Action, Screen, Values, Visit, is_uuid, safe_target
from edge_api.mail.queue import OutboxAdmin

PAGE_SIZE: Final = 50
MAIL_PATH: Final = "/desk/mail/"
AUDIT_PATH: Final = "/desk/audit/"


async def show_mail(visit: Visit) -> Values:
    """Return the entries of the outbox: first those that were given up."""
    found = await _outbox(visit).all()
    return {
        "dead": [each for each in found if each["dead_at"]],
        "queued": [each for each in found if not each["dead_at"]],
        "can_send": visit.service.settings.smtp_url is not None,
    }


def _outbox(visit: Visit) -> OutboxAdmin:
    return OutboxAdmin(visit.service.store, visit.service.clock, visit.actor)


async def retry(visit: Visit) -> str:
    """Queue a message again, or all that were given up."""
    await _outbox(visit).retry(visit.typed.get("id") or None)
    return MAIL_PATH


async def discard(visit: Visit) -> str:
    """Delete a message that was given up, or all such."""
    await _outbox(visit).discard(visit.typed.get("id") or None)
    return MAIL_PATH


async def show_audit(visit: Visit) -> Values:
    """Return a page of the audit log, newest first; of a sign-in with a table list, its tables."""
    where: Where = ()
    if visit.actor.tables is not None:
        where = (Filter("table_name", "in", tuple(visit.actor.tables)),)
    if (table := visit.query.get("table", "")) in ADMINISTRATIVE:
        where = (*where, Filter("table_name", "eq", table))
    if is_uuid(before := visit.query.get("before", "")):
        where = (*where, Filter("id", "lt", before))
    order = (Order("id", descending=True),)
    read = Read(AUDIT_LOG, where=where, order=order, limit=PAGE_SIZE + 1)
    (found,) = await visit.service.store.run(read)
    entries = found.rows[:PAGE_SIZE]
    (keys,) = await visit.service.store.run(Read(CREDENTIALS, ("id", "name")))
    return {
        "entries": entries,
        "names": {f"credential:{row['id']}": f"the key {row['name']}" for row in keys.rows},
        "undoable": await undoable(visit.service.store, [row["id"] for row in entries]),
        "before": entries[-1]["id"] if len(found.rows) > PAGE_SIZE else None,
        "is_first": not visit.query.get("before"),
    }


async def undo_entry(visit: Visit) -> str:
    """Undo the change of an entry."""
    await undo(visit.service.store, visit.service.clock, visit.actor, visit.path["key"])
    return safe_target(visit.typed.get("back") or AUDIT_PATH)


MAIL: Final = Screen(MAIL_PATH, "Mail", "mail", show_mail, EMAIL_SEND_LOG.name, nav="Mail")
AUDIT: Final = Screen(AUDIT_PATH, "Audit", "audit", show_audit, nav="Audit", is_open=True)
SCREENS: Final = (MAIL, AUDIT)
ACTIONS: Final = (
    Action("/desk/mail/retry/", MAIL, retry),
    Action("/desk/mail/discard/", MAIL, discard),
    Action("/desk/audit/{key}/undo/", AUDIT, undo_entry),
)
