"""Sessions of the desk: browsers that signed in with an API key or with the owner's link."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from secrets import token_urlsafe
from typing import Final

from edge_api.auth.actor import Actor, Clock, audit_entry, new_id
from edge_api.auth.credentials import actor_of
from edge_api.auth.keys import key_state
from edge_api.auth.secrets import hash_secret
from edge_api.db.internal_tables import DESK_SESSIONS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Order, Read, RowCount, Store, Update, Where
from edge_api.db.table import Row
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from edge_api.schema.credentials import SCOPES

LIFETIME: Final = timedelta(days=30)
OWNER: Final = Actor("", "owner", "session", frozenset(SCOPES))
"""Who signed in by a link: every scope, no list of tables."""


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in."""

    id: str
    actor: Actor
    key_expires_at: str | None
    """The end of the key it was made with; `None` for a key without one, and for the owner."""


class Sessions:
    """The sessions in one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def start(self, actor: Actor, user_agent: str) -> str:
        """Store a session and return its secret, for the cookie. Raises Problem."""
        secret, now = token_urlsafe(32), self._clock()
        given = {
            "digest": hash_secret(secret),
            "credential_id": actor.credential_id or None,
            "browser": _name_browser(user_agent),
            "expires_at": format_instant(now + LIFETIME),
        }
        row = DESK_SESSIONS.new_row(given, format_instant(now), partial(new_id, now))
        audit = audit_entry(actor, "sign in", DESK_SESSIONS, RowCount(0), now)
        await self._store.run(Insert(DESK_SESSIONS, [row]), audit)
        return secret

    async def find(self, secret: str) -> Session | None:
        """Return a session that holds, and whose key does. Raises Problem `unavailable`."""
        now = format_instant(self._clock())
        where = (Filter("digest", "eq", hash_secret(secret)), *_active(now))
        (found,) = await self._store.run(Read(DESK_SESSIONS, where=where, limit=1))
        if not found.rows:
            return None
        row = found.rows[0]
        if row["credential_id"] is None:
            return Session(row["id"], OWNER, None)
        of_key = (Filter("id", "eq", row["credential_id"]),)
        (keys,) = await self._store.run(Read(CREDENTIALS, where=of_key))
        if not keys.rows or key_state(keys.rows[0], now) not in ("valid", "rotated"):
            return None
        return Session(row["id"], actor_of(keys.rows[0]), keys.rows[0]["expires_at"])

    async def all(self) -> list[Row]:
        """Return the rows of all sessions that hold, newest first."""
        now, order = format_instant(self._clock()), (Order("created_at", descending=True),)
        found, keys = await self._store.run(
            Read(DESK_SESSIONS, where=_active(now), order=order), Read(CREDENTIALS)
        )
        valid = {row["id"] for row in keys.rows if key_state(row, now) in ("valid", "rotated")}
        return [row for row in found.rows if row["credential_id"] in (None, *valid)]

    async def revoke(self, session_id: str, actor: Actor) -> None:
        """End a session. Raises Problem `not_found` for one that has ended or never was."""
        now = self._clock()
        where = (Filter("id", "eq", session_id), *_active(format_instant(now)))
        update = Update(DESK_SESSIONS, {"revoked_at": format_instant(now)}, where, at_least=1)
        audit = audit_entry(actor, "sign out", DESK_SESSIONS, RowCount(0), now, "id")
        try:
            await self._store.run(update, audit)
        except Problem as problem:
            if problem.code == "conflict":
                raise Problem("not_found", "This session has ended already") from None
            raise


def _active(now: str) -> Where:
    return Filter("expires_at", "gt", now), Filter("revoked_at", "is", None)


def _name_browser(user_agent: str) -> str:
    """Return the name of a browser and its system, for the owner to tell sessions apart."""
    names = [name for mark, name in _BROWSERS.items() if mark in user_agent]
    systems = [each for each in _SYSTEMS if each in user_agent]
    return " on ".join((*names[:1], *systems[:1])) or user_agent[:60]


_BROWSERS: Final = {
    "Firefox": "Firefox",
    "Edg": "Edge",
    "OPR": "Opera",
    "Chrome": "Chrome",
    "Safari": "Safari",
}
_SYSTEMS: Final = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
"""As they name themselves; several stand in one text, and the first here is the right one."""


def cookie_name(site_url: str) -> str:
    """Return the name of the cookie: on https one that only this host can set (RFC 6265bis)."""
    return "__Host-desk" if site_url.startswith("https:") else "desk"


def set_cookie(site_url: str, secret: str) -> str:
    """Return the value of `Set-Cookie` for a secret; an empty one ends the cookie."""
    secure = "; Secure" if site_url.startswith("https:") else ""
    age = int(LIFETIME.total_seconds()) if secret else 0
    name = cookie_name(site_url)
    return f"{name}={secret}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}"


def read_cookie(site_url: str, headers: Mapping[str, str]) -> str:
    """Return the secret in the browser's cookie; empty where there is none (RFC 6265, 5.4)."""
    pairs = (part.strip().partition("=") for part in headers.get("Cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == cookie_name(site_url)), "")


def is_beyond(expires_at: str | None, limit: str | None) -> bool:
    """Return whether an expiry is later than the limit; `None` is never."""
    return limit is not None and (expires_at is None or expires_at > limit)
