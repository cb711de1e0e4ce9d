"""Screens of access: requests to decide, keys, and sessions of the desk."""

from datetime import date, timedelta
from typing import Final
from uuid import uuid4

from edge_api.access.service import AccessDecisions
from edge_api.auth.keys import IssuedKey, Keys, KeyType, NewKey, key_state
from edge_api.db.problems import Problem
from edge_api.db.table import Row
from edge_api.db.tables import ADMINISTRATIVE
from edge_api.db.types import format_instant
from edge_api.desk.screens import Action, Screen, Values, Visit, render
from edge_api.desk.sessions import Sessions, is_beyond
from edge_api.mail.queue import Outbox
from edge_api.operation.input import FormErrors
from edge_api.operation.service import OperationResult
from edge_api.schema.credentials import DEFAULT_SCOPES, SCOPES

PATH: Final = "/desk/access/"


async def show_access(visit: Visit) -> Values:
    """Return requests, keys and sessions; what the sign-in may grant."""
    service = visit.service
    now = format_instant(service.clock())
    keys = [{**row, "state": key_state(row, now)} for row in await _keys(visit).all()]
    return {
        "requests": await _decisions(visit).all(),
        "keys": [row for row in keys if row["state"] in ("valid", "rotated")],
        "ended": [row for row in keys if row["state"] not in ("valid", "rotated")],
        "sessions": await service[Sessions].all(),
        "session_id": visit.session.id,
        "scopes": {name: text for name, text in SCOPES.items() if name in visit.actor.scopes},
        "usual": DEFAULT_SCOPES,
        "tables": tuple(ADMINISTRATIVE),
        "once": str(uuid4()),
        "latest": visit.session.key_expires_at,
    }


def _keys(visit: Visit) -> Keys:
    return Keys(visit.service.store, visit.service.clock, visit.actor)


def _decisions(visit: Visit) -> AccessDecisions:
    service = visit.service
    return AccessDecisions(service.store, service.clock, service[Outbox], visit.actor)


def _check_grant(visit: Visit, scopes: tuple[str, ...], expires_at: str | None) -> None:
    """Raise Problem `invalid` for more than the sign-in itself has."""
    if beyond := sorted(set(scopes) - visit.actor.scopes):
        raise Problem("invalid", f"Your key has no scope {beyond[0]}, so it cannot grant it")
    if is_beyond(expires_at, visit.session.key_expires_at):
        raise Problem(
            "invalid",
            f"Your key ends on {(visit.session.key_expires_at or '')[:10]}, so it cannot grant "
            "what lasts longer: sign in with a key without an end, or by a link",
        )


async def approve(visit: Visit) -> str:
    """Approve a request with the scopes that are ticked."""
    scopes = visit.chosen("scope")
    if not scopes:
        raise FormErrors({"form": "Tick at least one scope that the request is to get."})
    _check_grant(visit, scopes, None)
    await _decisions(visit).approve(visit.path["key"], scopes)
    return PATH


async def deny(visit: Visit) -> str:
    """Deny a request."""
    await _decisions(visit).deny(visit.path["key"])
    return PATH


async def issue(visit: Visit) -> OperationResult:
    """Issue a key and show its secret, once; the form's id keeps a second press from another."""
    typed = visit.typed
    expires_at = None
    if text := typed.get("expires", ""):
        try:
            expires_at = f"{date.fromisoformat(text) + timedelta(days=1)}T00:00:00.000000Z"
        except (ValueError, OverflowError):
            raise FormErrors({"expires": "Write a date such as 2027-12-31."}) from None
    scopes = visit.chosen("scope")
    if not scopes:
        raise FormErrors({"scope": "Tick at least one scope."})
    _check_grant(visit, scopes, expires_at)
    kind: KeyType = "access_token" if typed.get("type") == "access_token" else "api_key"
    tables = visit.chosen("table")
    new = NewKey(typed.get("name", "").strip(), kind, scopes, tables or None, expires_at)
    try:
        issued = await _keys(visit).issue(new, typed.get("once", ""))
    except Problem as problem:
        if problem.code != "conflict":
            raise _at_field(problem) from None
        message = "This key was issued already, and its secret was shown: see the list"
        raise Problem("conflict", message) from None
    return await _show_secret(visit, issued)


def _at_field(problem: Problem) -> Exception:
    name, colon, sentence = problem.message.partition(": ")
    is_field = colon and name in ("name", "scopes", "tables", "expires")
    return (
        FormErrors({name.removesuffix("s") if name != "expires" else name: f"{sentence}."})
        if is_field
        else problem
    )


async def rotate(visit: Visit) -> OperationResult:
    """Issue the successor of a key and show its secret, once."""
    row = await _find(visit)
    _check_grant(visit, tuple(row["scopes"].split()), row["expires_at"])
    return await _show_secret(visit, await _keys(visit).rotate(row["id"]))


async def _find(visit: Visit) -> Row:
    for row in await _keys(visit).all():
        if row["id"] == visit.path["key"]:
            return row
    raise Problem("not_found", "There is no such key")


async def _show_secret(visit: Visit, issued: IssuedKey) -> OperationResult:
    return await render(visit.service, "secret", "A new key", issued=issued, back=PATH)


async def revoke(visit: Visit) -> str:
    """Revoke a key."""
    await _keys(visit).revoke(visit.path["key"])
    return PATH


async def end_session(visit: Visit) -> str:
    """End a session."""
    await visit.service[Sessions].revoke(visit.path["key"], visit.actor)
    return PATH


ACCESS: Final = Screen(PATH, "Access", "access", show_access, nav="Access")
SCREENS: Final = (ACCESS,)
ACTIONS: Final = (
    Action("/desk/access/requests/{key}/approve/", ACCESS, approve),
    Action("/desk/access/requests/{key}/deny/", ACCESS, deny),
    Action("/desk/access/keys/", ACCESS, issue),
    Action("/desk/access/keys/{key}/rotate/", ACCESS, rotate),
    Action("/desk/access/keys/{key}/revoke/", ACCESS, revoke),
    Action("/desk/access/sessions/{key}/end/", ACCESS, end_session),
)
