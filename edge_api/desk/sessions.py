"""Sessions of the desk: browsers that signed in with an API key or with the owner's link.

Their cookies are here too, and the tokens that bind forms to a session.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from secrets import token_urlsafe
from typing import Final

from edge_api.auth.actor import Actor, Clock, audit_entry, new_id
from edge_api.auth.credentials import actor_of
from edge_api.auth.keys import key_state
from edge_api.auth.secrets import hash_secret, is_signed, sign
from edge_api.db.internal_tables import DESK_SESSIONS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Filter,
    Insert,
    Read,
    RowCount,
    Store,
    Update,
    Where,
    find_row,
    read_first,
)
from edge_api.db.table import Row
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.operation.model import HtmlResult, OperationResult, Service
from edge_api.outbox import run_unless_conflict
from edge_api.schema.credentials import SCOPES

LIFETIME: Final = timedelta(days=30)
FRESH_FOR: Final = timedelta(days=1)
"""The time after a sign-in in which no action requires a new sign-in."""
OWNER: Final = Actor("", "owner", "session", frozenset(SCOPES))
"""The actor of a sign-in by a link: every scope, no list of tables."""


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in."""

    id: str
    actor: Actor
    key_expires_at: str | None
    """The end of the key that signed in; `None` for a key without an end, and for the owner."""
    started_at: str


class Sessions:
    """Starts, finds and ends the sessions in one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def start(self, actor: Actor, user_agent: str) -> str:
        """Store a session and return its secret, for the cookie. Raises Problem."""
        secret, now = token_urlsafe(32), self._clock()
        # The names of a browser and its system, for the owner to tell sessions apart.
        names = [name for mark, name in _BROWSERS.items() if mark in user_agent]
        systems = [each for each in _SYSTEMS if each in user_agent]
        given = {
            "digest": hash_secret(secret),
            "credential_id": actor.credential_id or None,
            "browser": " on ".join((*names[:1], *systems[:1])) or user_agent[:60],
            "expires_at": format_instant(now + LIFETIME),
        }
        row = DESK_SESSIONS.new_row(given, format_instant(now), partial(new_id, now))
        audit = audit_entry(actor, "sign in", DESK_SESSIONS, RowCount(0), now)
        await self._store.run(Insert(DESK_SESSIONS, [row]), audit)
        return secret

    async def find(self, secret: str) -> Session | None:
        """Return the active session of a secret, if its key is valid. Raises `unavailable`."""
        now = format_instant(self._clock())
        where = (Filter("digest", "eq", hash_secret(secret)), *_active(now))
        row = await read_first(self._store, Read(DESK_SESSIONS, where=where, limit=1))
        if row is None:
            return None
        if row["credential_id"] is None:
            return Session(row["id"], OWNER, None, row["created_at"])
        key = await find_row(self._store, CREDENTIALS, row["credential_id"])
        if key is None or key_state(key, now) not in ("valid", "rotated"):
            return None
        return Session(row["id"], actor_of(key), key["expires_at"], row["created_at"])

    async def all(self) -> list[Row]:
        """Return the rows of all active sessions, newest first."""
        now = format_instant(self._clock())
        found, keys = await self._store.run(
            Read(DESK_SESSIONS, where=_active(now), order=NEWEST), Read(CREDENTIALS)
        )
        valid = {row["id"] for row in keys.rows if key_state(row, now) in ("valid", "rotated")}
        return [row for row in found.rows if row["credential_id"] in (None, *valid)]

    async def revoke(self, session_id: str, actor: Actor) -> None:
        """End a session. Raises Problem `not_found` for one that has ended or never was."""
        now = self._clock()
        where = (Filter("id", "eq", session_id), *_active(format_instant(now)))
        update = Update(DESK_SESSIONS, {"revoked_at": format_instant(now)}, where, at_least=1)
        audit = audit_entry(actor, "sign out", DESK_SESSIONS, RowCount(0), now, "id")
        if not await run_unless_conflict(self._store, update, audit):
            raise Problem("not_found", "This session has ended already")


def _active(now: str) -> Where:
    return Filter("expires_at", "gt", now), Filter("revoked_at", "is", None)


_BROWSERS: Final = {
    "Firefox": "Firefox",
    "Edg": "Edge",
    "OPR": "Opera",
    "Chrome": "Chrome",
    "Safari": "Safari",
}
"""Browsers, by their names in `User-Agent`: of several, the first in this order is right."""
_SYSTEMS: Final = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
"""Systems, as `User-Agent` names them: of several, the first in this order is right."""


BROWSER_COOKIE: Final = "desk-browser"
"""The cookie of a browser: a random value, which is signed once somebody has signed in there."""


def cookie_name(site_url: str, cookie: str) -> str:
    """Return the name of a cookie: on https one that only this host can set (RFC 6265bis)."""
    return f"__Host-{cookie}" if site_url.startswith("https:") else cookie


def set_cookie(site_url: str, value: str, cookie: str = "desk") -> str:
    """Return the header `Set-Cookie` for a value; an empty one ends the cookie.

    Browsers keep it for as long as they may (RFC 6265bis: 400 days). The session ends earlier, in
    the store: its cookie still shows whose form was sent, so that nothing that was typed is lost.
    """
    secure = "; Secure" if site_url.startswith("https:") else ""
    pair, age = f"{cookie_name(site_url, cookie)}={value}", 400 * 24 * 3600 if value else 0
    return f"{pair}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}"


def read_cookie(site_url: str, header: str, cookie: str = "desk") -> str:
    """Return the first value of a cookie in a `Cookie` header, else "" (RFC 6265, 5.4)."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return next((value for name, _, value in pairs if name == cookie_name(site_url, cookie)), "")


HIDDEN_FIELD: Final = "form.token"
"""The hidden field of every form; a name with a dot cannot be a column of a table."""
_FORM_TAG: Final = re.compile(rb'<form [^>]*method="post" action="(?:/desk/[^">]*)?"[^>]*>')


def check_origin(service: Service, headers: Mapping[str, str]) -> None:
    """Reject a form that another origin sent. Raises Problem `forbidden`.

    A browser sends `Sec-Fetch-Site` or `Origin`, or both, with a POST (Fetch Metadata, section 2.3;
    Fetch, section 3.2).
    """
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    own = service.settings.site_url
    if service.settings.is_loopback:  # `dispatch` has checked that Host is a loopback name
        own = f"http://{headers.get('Host', '')}"
    is_own = site in (None, "same-origin") and origin in (None, own)
    if not is_own or site is origin is None:
        raise Problem("forbidden", "This form was not sent by the desk itself: open it, try again")


def check_token(site_url: str, cookies: str, token: str) -> None:
    """Reject a form whose token is not of this session. Raises Problem `forbidden`.

    A check of the origin is not enough: a form in a post has the same origin.
    """
    if not is_signed(_form_secret(site_url, cookies), HIDDEN_FIELD, token):
        raise Problem(
            "forbidden",
            "Nothing was changed: this form is not from a page that the desk showed to this "
            "sign-in. Go back, reload that page, and send it again (the browser must take cookies)",
        )


def add_tokens(site_url: str, cookies: str, result: OperationResult) -> None:
    """Add a token to each form of a page, so that no template can forget it.

    A browser without a cookie gets one, to which its forms are bound. Each page has a new token,
    since compression could reveal a constant one (BREACH).
    """
    is_ours = isinstance(result, HtmlResult) and not result.is_preview
    if is_ours and _FORM_TAG.search(result.value):
        secret = _form_secret(site_url, f"{result.headers.get('Set-Cookie', '')};{cookies}")
        if not secret:
            secret = token_urlsafe(16)
            given = {"Set-Cookie": set_cookie(site_url, secret, BROWSER_COOKIE)}
            result.headers = {**result.headers, **given}
        field = f'<input type="hidden" name="{HIDDEN_FIELD}" value="{sign(secret, HIDDEN_FIELD)}">'
        result.value = _FORM_TAG.sub(rb"\g<0>" + field.encode(), result.value)


def _form_secret(site_url: str, cookies: str) -> str:
    """Return the secret to which forms are bound: of the session, or else of the browser."""
    return read_cookie(site_url, cookies) or read_cookie(site_url, cookies, BROWSER_COOKIE)
