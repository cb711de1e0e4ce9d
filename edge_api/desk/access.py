"""The desk's screens Access, Mail and Audit.

They show pending access requests, keys, sessions, mail that waits or was given up, and the audit
log with undo.
"""

from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from functools import partial
from typing import Final
from uuid import uuid4

from edge_api.access.service import AccessDecisions, credential_types, default_scopes
from edge_api.auth.actor import undo
from edge_api.auth.keys import (
    CREDENTIAL_LIFETIME,
    IssuedKey,
    Keys,
    KeyType,
    NewKey,
    key_state,
    successor_expiry,
    undo_until,
)
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Order, Read, Where, find_row, read_all
from edge_api.db.table import Row, Table
from edge_api.db.tables import ADMINISTRATIVE, AUDIT_LOG, EMAIL_SEND_LOG
from edge_api.db.types import format_instant
from edge_api.desk.audit_sentences import describe
from edge_api.desk.screens import (
    Action,
    Screen,
    Values,
    Visit,
    render,
    safe_target,
)
from edge_api.desk.sessions import OWNER, Sessions
from edge_api.mail.messages import KEY_NOTICE
from edge_api.mail.outbox_admin import OutboxAdmin
from edge_api.mail.queue import Outbox
from edge_api.operation.input import FormErrors
from edge_api.operation.model import OperationResult
from edge_api.schema.credentials import (
    DEFAULT_SCOPES,
    PUBLISH_WITH_ENQUIRIES,
    SCOPES,
    describe_choices,
)

PAGE_SIZE: Final = 50


async def show_access(visit: Visit) -> Values:
    """Return access requests, keys, sessions, and the scopes that the sign-in may grant."""
    service = visit.service
    now = service.clock()
    keys = [
        {**row, "state": key_state(row, format_instant(now)), "undo_until": undo_until(row, now)}
        for row in await _keys(visit).all()
    ]
    unreviewed, leads, warning = await _keys(visit).find_unreviewed()
    opens = {name: text.replace("all enquiries", leads) for name, text in SCOPES.items()}
    latest = visit.session.key_expires_at
    return {
        "is_owner": visit.actor == OWNER,
        "revoked": visit.query.get("revoked"),
        "open_keys": unreviewed,
        "warning": warning,
        "default_scopes": lambda request: default_scopes(credential_types(request)),
        "last_day": min(format_instant(now + CREDENTIAL_LIFETIME), latest or "~")[:10],
        "requests": await _decisions(visit).all(),
        "keys": [row for row in keys if row["state"] in ("valid", "rotated")],
        "ended": [row for row in keys if row["state"] not in ("valid", "rotated")],
        "sessions": await service[Sessions].all(),
        "session_id": visit.session.id,
        "opens": opens,
        "scopes": describe_choices(visit.actor.scopes, opens),
        "usual": DEFAULT_SCOPES,
        "key": visit.path.get("key", ""),
        "chosen": visit.chosen,
        "tables": tuple(ADMINISTRATIVE),
        "once": str(uuid4()),
        "latest": latest,
    }


def _keys(visit: Visit) -> Keys:
    return Keys(visit.service.store, visit.service.clock, visit.actor)


def _decisions(visit: Visit) -> AccessDecisions:
    service = visit.service
    return AccessDecisions(service.store, service.clock, service[Outbox], visit.actor)


def _check_grant(visit: Visit, scopes: tuple[str, ...], expires_at: str | None) -> None:
    """Raise Problem `invalid` for a grant that exceeds the scopes or the end of the sign-in.

    A grant without an end or of more than a year requires a fresh sign-in, and so does one that
    gives access to the desk: an old session must not prolong itself.
    """
    if beyond := sorted({*scopes} - visit.actor.scopes - {PUBLISH_WITH_ENQUIRIES}):
        raise Problem("invalid", f"Your key has no scope {beyond[0]}, so it cannot grant it")
    latest = visit.session.key_expires_at
    if latest is not None and (expires_at is None or expires_at > latest):
        raise Problem(
            "invalid",
            f"Your key ends on {latest[:10]}, so it cannot grant "
            "what lasts longer: sign in with a key without an end, or by a link",
        )
    if (
        any(scope.startswith("admin:") for scope in scopes)
        or expires_at is None
        or expires_at > format_instant(visit.service.clock() + timedelta(days=366))
    ):
        visit.require_fresh_sign_in()


async def approve(visit: Visit) -> str:
    """Approve a request with the ticked scopes, until the end of the chosen day."""
    scopes, end = visit.chosen("scope"), _read_end(visit, "")
    if not scopes:
        raise FormErrors({"form": "Tick at least one scope that the request is to get."})
    _check_grant(visit, scopes, end)
    await _decisions(visit).approve(visit.path["key"], scopes, end)
    return ACCESS.path


def _read_end(visit: Visit, default: str | None) -> str | None:
    """Return the end of the day that a form names; `None` if its box for no end is ticked.

    If the day is missing, or is the last of the sign-in's key, return the end of that key, or
    `default` if the key has none. Raises FormErrors.
    """
    text, latest = visit.typed.get("expires", ""), visit.session.key_expires_at
    if visit.chosen("no_end"):
        return None
    if not text or text == (latest or "")[:10]:
        return latest or default
    try:
        return f"{date.fromisoformat(text) + timedelta(days=1)}T00:00:00.000000Z"
    except (ValueError, OverflowError):
        raise FormErrors({"expires": "Write a date such as 2027-12-31."}) from None


async def deny(visit: Visit) -> str:
    """Deny a request."""
    await _decisions(visit).deny(visit.path["key"])
    return ACCESS.path


async def issue(visit: Visit) -> OperationResult:
    """Issue a key and show its secret once; a second press of the button issues no other key."""
    typed, expires_at = visit.typed, _read_end(visit, None)
    scopes = visit.chosen("scope")
    if not scopes:
        raise FormErrors({"scope": "Tick at least one scope."})
    _check_grant(visit, scopes, expires_at)
    kind: KeyType = "access_token" if typed.get("type") == "access_token" else "api_key"
    new = NewKey(
        typed.get("name", "").strip(), kind, scopes, visit.chosen("table") or None, expires_at
    )
    try:
        issued = await _keys(visit).issue(new, typed.get("once", ""))
    except Problem as problem:
        if problem.code != "conflict":
            raise
        raise Problem(
            "conflict", "This key was issued already, and its secret was shown: see the list"
        ) from None
    return await _show_secret(visit, issued)


async def rotate(visit: Visit) -> OperationResult:
    """Issue the successor of a key and show its secret once."""
    row = await _keys(visit).find(visit.path["key"])
    expires_at = successor_expiry(row, visit.service.clock())
    _check_grant(visit, tuple(row["scopes"].split()), expires_at)
    return await _show_secret(visit, await _keys(visit).rotate(row["id"]), row["id"])


async def _show_secret(visit: Visit, issued: IssuedKey, former: str = "") -> OperationResult:
    return await render(
        visit.service,
        "secret",
        "A new key",
        name=issued.row["name"],
        secret=issued.secret,
        opens=[SCOPES[name] for name in issued.row["scopes"].split()],
        row=issued.row,
        back=ACCESS.path,
        former=former if visit.actor == OWNER else "",
    )


async def set_end(visit: Visit) -> str:
    """Set the day on which a key ends, or remove its end."""
    row, end = await _keys(visit).find(visit.path["key"]), _read_end(visit, "")
    _check_grant(visit, tuple(row["scopes"].split()), end)
    await _keys(visit).set_end(row["id"], end)
    return ACCESS.path


async def revoke(visit: Visit) -> str:
    """Revoke a key, and notify the owner. Raises Problem `conflict` for one that is revoked."""
    row = await _keys(visit).find(visit.path["key"])
    if row["revoked_at"]:
        raise Problem("conflict", "This key was revoked already")
    await _keys(visit).revoke(row["id"], *visit.service[Outbox].owner_entries(KEY_NOTICE, row))
    visit.service[Outbox].wake()
    return f"{ACCESS.path}?revoked={row['id']}"


async def take_back(visit: Visit) -> str:
    """Undo the revocation or rotation of a key, which only the owner can; notify the owner."""
    if visit.actor != OWNER:
        raise Problem("forbidden", "Only the owner can take this back: sign in by a mailed link")
    row = await _keys(visit).find(visit.path["key"])
    await _keys(visit).take_back(row["id"], *visit.service[Outbox].owner_entries(KEY_NOTICE, row))
    visit.service[Outbox].wake()
    return ACCESS.path


async def end_session(visit: Visit) -> str:
    """End a session."""
    await visit.service[Sessions].revoke(visit.path["key"], visit.actor)
    return ACCESS.path


async def show_mail(visit: Visit) -> Values:
    """Return the entries of the outbox that were given up, and those that wait."""
    found = await _outbox(visit).all()
    return {
        "dead": [each for each in found if each["dead_at"]],
        "queued": [each for each in found if not each["dead_at"]],
        "can_send": visit.service.settings.smtp_url is not None,
    }


def _outbox(visit: Visit) -> OutboxAdmin:
    return OutboxAdmin(visit.service.store, visit.service.clock, visit.actor)


async def _retry_or_discard(method: Callable[..., Awaitable[int]], visit: Visit) -> str:
    """Retry or discard one undeliverable message, all of a kind, or all."""
    await method(_outbox(visit), visit.typed.get("id"), visit.typed.get("kind"))
    return MAIL.path


async def show_audit(visit: Visit) -> Values:
    """Return a page of the audit log, newest first, of the tables that the sign-in may use."""
    where: Where = ()
    if visit.actor.tables is not None:
        where = (Filter("table_name", "in", tuple(visit.actor.tables)),)
    if (table := visit.query.get("table", "")) in ADMINISTRATIVE:
        where = (*where, Filter("table_name", "eq", table))
    if last := await find_row(visit.service.store, AUDIT_LOG, visit.query.get("before")):
        where = (*where, Filter("id", "lt", last["id"]))
    read = Read(AUDIT_LOG, (), where, (Order("id", descending=True),), PAGE_SIZE + 1)
    found = await read_all(visit.service.store, read)
    entries = await describe(visit.service.store, found[:PAGE_SIZE], visit.actor)
    return {
        "entries": entries,
        "tables": tuple(ADMINISTRATIVE),
        "before": entries[-1]["id"] if len(found) > PAGE_SIZE else None,
        "is_first": not visit.query.get("before"),
    }


async def undo_entry(visit: Visit) -> str:
    """Undo the change that an entry records. Raises Problem `invalid` as `_check_grant`."""

    def check(table: Table, row: Row) -> None:
        if table is ACCESS_REQUESTS and row["status"] == "approved":
            _check_grant(visit, tuple(row["scopes"].split()), row["credential_expires_at"])

    await undo(visit.service.store, visit.service.clock, visit.actor, visit.path["key"], check)
    return safe_target(visit.typed.get("back") or AUDIT.path)


ACCESS: Final = Screen("/desk/access/", "Access", "access", show_access, section="Settings")
MAIL: Final = Screen(
    "/desk/mail/", "Mail", "mail", show_mail, EMAIL_SEND_LOG.name, section="Settings"
)
AUDIT: Final = Screen(
    "/desk/audit/", "Audit", "audit", show_audit, section="Settings", checks_tables=True
)
SCREENS: Final = (ACCESS, MAIL, AUDIT)
ACTIONS: Final = (
    Action("/desk/access/requests/{key}/approve/", ACCESS, approve),
    Action("/desk/access/requests/{key}/deny/", ACCESS, deny),
    Action("/desk/access/keys/", ACCESS, issue),
    Action("/desk/access/keys/{key}/rotate/", ACCESS, rotate),
    Action("/desk/access/keys/{key}/revoke/", ACCESS, revoke),
    Action("/desk/access/keys/{key}/undo/", ACCESS, take_back),
    Action("/desk/access/keys/{key}/end/", ACCESS, set_end),
    Action("/desk/access/sessions/{key}/end/", ACCESS, end_session),
    Action("/desk/mail/retry/", MAIL, partial(_retry_or_discard, OutboxAdmin.retry)),
    Action("/desk/mail/discard/", MAIL, partial(_retry_or_discard, OutboxAdmin.discard)),
    Action("/desk/audit/{key}/undo/", AUDIT, undo_entry),
)
