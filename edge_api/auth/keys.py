"""API keys and access tokens issued by hand: issued, listed, rotated, revoked.

Each change is in the audit log. The secret is returned once and not stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal

from edge_api.auth.actor import OPERATOR, AuditChange, Clock, audit_entry, new_id
from edge_api.auth.secrets import hash_secret, last_four, mint
from edge_api.db.oauth_tables import OAUTH_GRANTS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Order, Read, RowCount, Store, Update
from edge_api.db.table import Row
from edge_api.db.tables import ADMINISTRATIVE, CREDENTIALS
from edge_api.db.types import format_instant, parse_uuid
from edge_api.schema.credentials import DEFAULT_SCOPES, SCOPES, Scope

KeyType = Literal["api_key", "access_token"]

KEY_ROTATION_OVERLAP: Final = timedelta(days=7)  # of a rotated key and its successor
ACCESS_TOKEN_LIFETIME: Final = timedelta(days=90)
"""The default life of an access token."""

USUAL_SCOPES: Mapping[KeyType, tuple[Scope, ...]] = {
    "api_key": DEFAULT_SCOPES,
    "access_token": ("mcp", *DEFAULT_SCOPES),
}
"""The scopes of a key if nobody names any."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """The operator's input for a new key."""

    name: str
    type: KeyType = "api_key"
    scopes: tuple[str, ...] = ()  # empty: the usual ones
    tables: tuple[str, ...] | None = None  # administrative ones; `None` is all
    expires_at: str | None = None
    """An instant; `None`: never, for an access token after `ACCESS_TOKEN_LIFETIME`."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key: its secret, to be shown once, and its row."""

    secret: str
    row: Row


class Keys:
    """The keys in one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def issue(self, order: NewKey) -> Issued:
        """Store a new key. Raises Problem `invalid`, naming what is wrong."""
        issued = make_credential(order, self._clock())
        audit = audit_entry(OPERATOR, AuditChange("issue", CREDENTIALS, RowCount(0)), self._clock())
        await self._store.run(Insert(CREDENTIALS, [issued.row]), audit)
        return issued

    async def all(self) -> list[Row]:
        """Return every key, newest first."""
        order = (Order("created_at", descending=True), Order("id", descending=True))
        (outcome,) = await self._store.run(Read(CREDENTIALS, order=order))
        return outcome.rows

    async def rotate(self, key_id: str) -> Issued:
        """Issue a successor of a key, which goes on working for `KEY_ROTATION_OVERLAP` at most.

        The grants of OAuth clients pass to the new key, which expires when the old one would have;
        an access token starts a new life. Raises Problem `not_found`, and `conflict` for a key that
        is not valid or rotated already.
        """
        old, now = await self._find(key_id), self._clock()
        if (state := key_state(old, format_instant(now))) != "valid":
            raise Problem("conflict", f"The key {key_id} is {state}: issue a new one")
        new = NewKey(
            name=old["name"],
            type=old["type"],
            scopes=tuple(old["scopes"].split()),
            tables=None if old["tables"] is None else tuple(old["tables"].split()),
            expires_at=old["expires_at"] if old["type"] == "api_key" else None,
        )
        issued = make_credential(new, now)
        end = min(old["expires_at"] or "~", format_instant(now + KEY_ROTATION_OVERLAP))
        values = {"rotated_at": format_instant(now), "expires_at": end}
        audit = audit_entry(OPERATOR, AuditChange("rotate", CREDENTIALS, RowCount(1), ("id",)), now)
        untouched = (Filter("rotated_at", "is", None), Filter("revoked_at", "is", None))
        update = Update(CREDENTIALS, values, (*_is(old["id"]), *untouched), at_least=1)
        handing = transfer_grants(old["id"], issued.row["id"])
        await self._store.run(Insert(CREDENTIALS, [issued.row]), update, audit, handing)
        return issued

    async def revoke(self, key_id: str) -> None:
        """Revoke a valid key with all that it granted. Raises Problem `not_found`."""
        row, now = await self._find(key_id), self._clock()
        where = (*_is(row["id"]), Filter("revoked_at", "is", None))
        update = Update(CREDENTIALS, {"revoked_at": format_instant(now)}, where)
        audit = audit_entry(OPERATOR, AuditChange("revoke", CREDENTIALS, RowCount(0), ("id",)), now)
        grants = revoke_grants(Filter("credential_id", "eq", row["id"]), format_instant(now))
        await self._store.run(update, audit, grants)

    async def allows(self, secret: str, scopes: frozenset[str]) -> bool:
        """Return whether the secret is a key that works now and has all these scopes."""
        where = (Filter("digest", "eq", hash_secret(secret)),)
        (outcome,) = await self._store.run(Read(CREDENTIALS, where=where))
        now = format_instant(self._clock())
        return any(
            key_state(row, now) in ("valid", "rotated") and scopes <= set(row["scopes"].split())
            for row in outcome.rows
        )

    async def _find(self, key_id: str) -> Row:
        missing = Problem("not_found", f"There is no key {key_id}")
        try:
            where = _is(parse_uuid(key_id))
        except ValueError:
            raise missing from None
        (outcome,) = await self._store.run(Read(CREDENTIALS, where=where))
        if not outcome.rows:
            raise missing
        return outcome.rows[0]


def make_credential(order: NewKey, now: datetime, secret: str = "") -> Issued:
    """Return a new key that is not stored. Raises Problem `invalid`, naming what is wrong."""
    secret, present = secret or mint(order.type), format_instant(now)
    _check(order, present)
    life = format_instant(now + ACCESS_TOKEN_LIFETIME) if order.type == "access_token" else None
    given = {
        "name": order.name,
        "type": order.type,
        "digest": hash_secret(secret),
        "last_four": last_four(secret),
        "scopes": " ".join(order.scopes or USUAL_SCOPES[order.type]),
        "tables": None if order.tables is None else " ".join(order.tables),
        "expires_at": order.expires_at or life,
    }
    return Issued(secret, CREDENTIALS.new_row(given, present, partial(new_id, now)))


def key_state(row: Row, now: str) -> Literal["valid", "rotated", "expired", "revoked"]:
    """Return the state of a key at the instant `now`; a rotated one works until it expires."""
    if row["revoked_at"]:
        return "revoked"
    if row["expires_at"] and row["expires_at"] <= now:
        return "expired"
    return "rotated" if row["rotated_at"] else "valid"


def _check(order: NewKey, now: str) -> None:
    _check_names("scope", order.scopes, tuple(SCOPES))
    _check_names("table", order.tables or (), tuple(ADMINISTRATIVE))
    if order.type == "access_token" and "mcp" not in (order.scopes or USUAL_SCOPES[order.type]):
        raise Problem("invalid", "scopes: an access token needs the scope mcp")
    if order.expires_at is not None and order.expires_at <= now:
        raise Problem("invalid", "expires: must be in the future")


def _check_names(kind: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            message = f"{kind}s: there is no {kind} {name!r}; there are {', '.join(known)}"
            raise Problem("invalid", message)


def _is(key_id: str) -> tuple[Filter, ...]:
    return (Filter("id", "eq", key_id),)


def revoke_grants(which: Filter, present: str) -> Update:
    """Return the query that revokes grants."""
    return Update(OAUTH_GRANTS, {"revoked_at": present}, (which, _IN_FORCE))


def transfer_grants(old_key: str, new_key: str) -> Update:
    """Return the query that passes the grants of a rotated key to its successor."""
    of_old = Filter("credential_id", "eq", old_key)
    return Update(OAUTH_GRANTS, {"credential_id": new_key}, (of_old, _IN_FORCE))


_IN_FORCE = Filter("revoked_at", "is", None)
