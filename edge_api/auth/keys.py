"""API keys and access tokens issued by hand: issued, listed, rotated, revoked.

Each change is in the audit log. The secret is returned once and not stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal

from edge_api.auth.actor import OPERATOR, Actor, Clock, audit_entry, new_id
from edge_api.auth.secrets import hash_secret, last_four, mint
from edge_api.db.internal_tables import OAUTH_GRANTS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Filter,
    Insert,
    Order,
    Query,
    Read,
    RowCount,
    Store,
    Update,
    count_query,
    read_all,
    read_first,
    require_row,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import ADMINISTRATIVE, CREDENTIALS, LEADS
from edge_api.db.types import format_instant
from edge_api.schema.credentials import (
    DEFAULT_SCOPES,
    ENQUIRY_SCOPES,
    PUBLISH_WITH_ENQUIRIES,
    SCOPES,
    Scope,
    publishes_with_enquiries,
)
from edge_api.schema.sentences import sentence

KeyType = Literal["api_key", "access_token"]

KEY_ROTATION_OVERLAP: Final = timedelta(days=7)  # a rotated key and its successor are both valid
UNDO_TIME: Final = timedelta(minutes=10)  # for undoing a revocation or a rotation
CREDENTIAL_LIFETIME: Final = timedelta(days=90)
"""The default lifetime of an access token, and of each credential from an access request."""

_MAX_NAMES: Final = 5  # names of keys in one sentence

DEFAULT_KEY_SCOPES: Mapping[KeyType, tuple[Scope, ...]] = {
    "api_key": DEFAULT_SCOPES,
    "access_token": ("mcp", *DEFAULT_SCOPES),
}
"""The scopes of a key if none are named."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """The operator's input for a new key."""

    name: str
    type: KeyType = "api_key"
    scopes: tuple[str, ...] = ()  # empty: the default ones
    tables: tuple[str, ...] | None = None  # administrative ones; `None` is all
    expires_at: str | None = None
    """An instant; `None` is never, or for an access token `CREDENTIAL_LIFETIME` from now."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key: its secret, to be shown once, and its row."""

    secret: str
    row: Row


class Keys:
    """Issues, lists, rotates and revokes the keys in one store."""

    def __init__(self, store: Store, clock: Clock, actor: Actor = OPERATOR) -> None:
        self._store = store
        self._clock = clock
        self._actor = actor

    async def issue(self, new: NewKey, key_id: str = "") -> IssuedKey:
        """Store a new key. Raises Problem `invalid`, naming what is wrong.

        `key_id` is a UUID that the caller made, so that a repeated call is a `conflict`.
        """
        now = self._clock()
        new = replace(new, scopes=confirm_scopes(new.scopes))
        issued = make_credential(new, now, key_id=key_id)
        audit = audit_entry(self._actor, "issue", CREDENTIALS, RowCount(0), now)
        await self._store.run(Insert(CREDENTIALS, [issued.row]), audit)
        return issued

    async def all(self) -> list[Row]:
        """Return every key, newest first."""
        return await read_all(self._store, Read(CREDENTIALS, order=NEWEST))

    async def rotate(self, key_id: str) -> IssuedKey:
        """Issue a successor of a key; the old one stays valid for `KEY_ROTATION_OVERLAP` at most.

        The grants of OAuth clients pass to the new key, which expires when the old one would have;
        an access token gets a new lifetime. Raises Problem `not_found`, and `conflict` for a key
        that is not valid or rotated already.
        """
        old, now = await self.find(key_id), self._clock()
        if (state := key_state(old, format_instant(now))) != "valid":
            raise Problem("conflict", f"The key {key_id} is {state}: issue a new one")
        new = NewKey(
            name=old["name"],
            type=old["type"],
            scopes=tuple(old["scopes"].split()),
            tables=None if old["tables"] is None else tuple(old["tables"].split()),
            expires_at=successor_expiry(old, now),
        )
        issued = make_credential(new, now)
        issued.row["needs_review"] = old["needs_review"]
        end = min(old["expires_at"] or "~", format_instant(now + KEY_ROTATION_OVERLAP))
        values = {
            "rotated_at": format_instant(now),
            "expires_at": end,
            "former_expires_at": old["expires_at"],
        }
        audit = audit_entry(self._actor, "rotate", CREDENTIALS, RowCount(1), now, "id")
        unchanged = (Filter("rotated_at", "is", None), _NOT_REVOKED)
        update = Update(CREDENTIALS, values, (*where_id(old["id"]), *unchanged), at_least=1)
        of_old = (Filter("credential_id", "eq", old["id"]), _NOT_REVOKED)
        transfer = Update(OAUTH_GRANTS, {"credential_id": issued.row["id"]}, of_old)
        await self._store.run(Insert(CREDENTIALS, [issued.row]), update, audit, transfer)
        return issued

    async def revoke(self, key_id: str, *also: Query) -> None:
        """Revoke a valid key, and the grants to OAuth clients under it. Raises Problem `not_found`.

        The queries `also` are run in the same transaction.
        """
        row, now = await self.find(key_id), self._clock()
        where = (*where_id(row["id"]), _NOT_REVOKED)
        update = Update(CREDENTIALS, {"revoked_at": format_instant(now)}, where)
        audit = audit_entry(self._actor, "revoke", CREDENTIALS, RowCount(0), now, "id")
        grants = revoke_grants(Filter("credential_id", "eq", row["id"]), format_instant(now))
        await self._store.run(update, audit, grants, *also)

    async def take_back(self, key_id: str, *also: Query) -> None:
        """Undo the revocation, or else the rotation, of a key and its grants, within `UNDO_TIME`.

        If a rotation is undone, the key gets its former expiry, and the successor is revoked. The
        queries `also` are run in the same transaction. Raises Problem `not_found`, and `conflict`
        if it is too late or nothing is left to undo.
        """
        row, now = await self.find(key_id), self._clock()
        if not (row["revoked_at"] or row["rotated_at"]):
            raise Problem("conflict", "There is nothing to take back: it was taken back already")
        if undo_until(row, now) is None:
            raise Problem("conflict", "It is too late to take this back: issue a new key")
        if at := row["revoked_at"]:
            then, values = Filter("revoked_at", "eq", at), {"revoked_at": None}
            others = [
                Update(OAUTH_GRANTS, values, (Filter("credential_id", "eq", row["id"]), then))
            ]
        else:
            then = Filter("rotated_at", "eq", row["rotated_at"])
            made = (
                Filter("created_at", "eq", row["rotated_at"]),
                Filter("name", "eq", row["name"]),
                Filter("id", "neq", row["id"]),
            )
            new = (await read_all(self._store, Read(CREDENTIALS, where=made)))[0]
            if new["rotated_at"]:
                raise Problem("conflict", "Its successor was rotated too: take that back first")
            values = {
                "rotated_at": None,
                "former_expires_at": None,
                # A former version did not store it, but an API key's successor has the same one.
                "expires_at": row["former_expires_at"] or new["expires_at"],
            }
            others = [
                Update(
                    CREDENTIALS,
                    {"revoked_at": format_instant(now)},
                    (*where_id(new["id"]), _NOT_REVOKED),
                ),
                Update(
                    OAUTH_GRANTS,
                    {"credential_id": row["id"]},
                    (Filter("credential_id", "eq", new["id"]), _NOT_REVOKED),
                ),
            ]
        update = Update(CREDENTIALS, values, (*where_id(row["id"]), then), at_least=1)
        audit = audit_entry(self._actor, "undo", CREDENTIALS, RowCount(0), now, "id")
        await self._store.run(update, audit, *others, *also)

    async def set_end(self, key_id: str, end: str | None = "") -> Row:
        """Set the expiry of a valid key to the instant `end`, and mark the key as reviewed.

        `None` is never, an empty text `CREDENTIAL_LIFETIME` from now. Return the changed row.
        Raises Problem `not_found`, `invalid` for an end in the past, and `conflict` for a key that
        is not valid or was rotated.
        """
        row, now = await self.find(key_id), self._clock()
        end = read_end(end, now)
        if (state := key_state(row, format_instant(now))) != "valid":
            raise Problem("conflict", f"The key {key_id} is {state} already")
        _check(NewKey(row["name"], expires_at=end), format_instant(now))
        values = {"expires_at": end, "needs_review": 0}
        unchanged = (Filter("rotated_at", "is", None), _NOT_REVOKED)
        update = Update(CREDENTIALS, values, (*where_id(row["id"]), *unchanged), at_least=1)
        audit = audit_entry(self._actor, "set_end", CREDENTIALS, RowCount(0), now, "id")
        await self._store.run(update, audit)
        return {**row, **values}

    async def find_unreviewed(self) -> tuple[list[Row], str, str]:
        """Return the keys from requests before 1.0.1 that can read enquiries and never expire.

        The oldest key is first. Also return what they can read, such as "all 312 enquiries", and a
        sentence about the keys, which is empty if there are none.
        """
        where = (Filter("needs_review", "eq", 1), Filter("expires_at", "is", None), _NOT_REVOKED)
        found, count = await self._store.run(
            Read(CREDENTIALS, where=where, order=(Order("created_at"), Order("id"))),
            count_query(LEADS),
        )
        keys = [row for row in found.rows if ENQUIRY_SCOPES.intersection(row["scopes"].split())]
        leads = f"all {count.total:,} enquiries" if (count.total or 0) > 1 else "all enquiries"
        subject = f"{len(keys)} keys given to requests" if keys[1:] else "1 key given to a request"
        names = ", ".join(row["name"] for row in keys[:_MAX_NAMES])
        sentence = (
            f"{subject} can read {leads} and never end{'' if keys[1:] else 's'}: "
            f"{names}{f' and {len(keys) - _MAX_NAMES} more' if keys[_MAX_NAMES:] else ''}"
        )
        return keys, leads, sentence if keys else ""

    async def allows(self, secret: str, scopes: frozenset[str]) -> bool:
        """Return whether the secret is a valid key with all these scopes."""
        where = (Filter("digest", "eq", hash_secret(secret)),)
        row, now = await read_first(self._store, Read(CREDENTIALS, where=where)), self._clock()
        return (
            row is not None
            and key_state(row, format_instant(now)) in ("valid", "rotated")
            and scopes <= set(row["scopes"].split())
        )

    async def find(self, key_id: str) -> Row:
        """Return the row of a key. Raises Problem `not_found`."""
        return await require_row(self._store, CREDENTIALS, key_id, f"There is no key {key_id}")


def confirm_scopes(chosen: Iterable[str]) -> tuple[str, ...]:
    """Return the scopes that a person chose, without the word `PUBLISH_WITH_ENQUIRIES`.

    Raises Problem `invalid` for scopes that need this word and lack it.
    """
    chosen = tuple(chosen)
    scopes = tuple(name for name in chosen if name != PUBLISH_WITH_ENQUIRIES)
    if scopes == chosen and publishes_with_enquiries(scopes):
        raise Problem(
            "invalid",
            sentence(
                "A key that can both publish and read enquiries also needs %(word)s: a stranger's "
                "enquiry could tell the agent what to publish",
                word=PUBLISH_WITH_ENQUIRIES,
            ),
        )
    return scopes


def undo_until(row: Row, now: datetime) -> str | None:
    """Return the instant until which a key's last change can be undone; `None` if it cannot."""
    at = datetime.fromisoformat(row["revoked_at"] or row["rotated_at"] or "1970-01-01T00:00Z")
    return format_instant(at + UNDO_TIME) if abs(now - at) < UNDO_TIME else None


def successor_expiry(old: Row, now: datetime) -> str | None:
    """Return the expiry of the successor that a rotation would make now; `None` is never."""
    if old["type"] == "access_token":
        return format_instant(now + CREDENTIAL_LIFETIME)
    return None if old["expires_at"] is None else str(old["expires_at"])


def make_credential(new: NewKey, now: datetime, secret: str = "", key_id: str = "") -> IssuedKey:
    """Return a new key without storing it. Raises Problem `invalid`, naming what is wrong."""
    secret, timestamp = secret or mint(new.type), format_instant(now)
    _check(new, timestamp)
    expiry = format_instant(now + CREDENTIAL_LIFETIME) if new.type == "access_token" else None
    given = {
        "name": new.name,
        "type": new.type,
        "digest": hash_secret(secret),
        "last_four": last_four(secret),
        "scopes": " ".join(new.scopes or DEFAULT_KEY_SCOPES[new.type]),
        "tables": None if new.tables is None else " ".join(new.tables),
        "expires_at": new.expires_at or expiry,
        "needs_review": 0,
    }
    given |= {"id": key_id} if key_id else {}
    return IssuedKey(secret, CREDENTIALS.new_row(given, timestamp, partial(new_id, now)))


def key_state(row: Row, now: str) -> Literal["valid", "rotated", "expired", "revoked"]:
    """Return the state of a key at the instant `now`; a rotated one works until it expires."""
    if row["revoked_at"]:
        return "revoked"
    if row["expires_at"] and row["expires_at"] <= now:
        return "expired"
    return "rotated" if row["rotated_at"] else "valid"


def _check(new: NewKey, now: str) -> None:
    _check_names("scope", new.scopes, tuple(SCOPES))
    _check_names("table", new.tables or (), tuple(ADMINISTRATIVE))
    if new.type == "access_token" and "mcp" not in (new.scopes or DEFAULT_KEY_SCOPES[new.type]):
        raise Problem("invalid", "scopes: an access token needs the scope mcp")
    if new.expires_at is not None and new.expires_at <= now:
        raise Problem("invalid", "expires: must be in the future")


def read_end(end: str | None, now: datetime) -> str | None:
    """Return the given expiry, or `CREDENTIAL_LIFETIME` from now for an empty text."""
    return format_instant(now + CREDENTIAL_LIFETIME) if end == "" else end


def _check_names(kind: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise Problem(
                "invalid", f"{kind}s: there is no {kind} {name!r}; there are {', '.join(known)}"
            )


def revoke_grants(where: Filter, timestamp: str) -> Update:
    """Return the query that revokes the grants to OAuth clients that match."""
    return Update(OAUTH_GRANTS, {"revoked_at": timestamp}, (where, _NOT_REVOKED))


_NOT_REVOKED = Filter("revoked_at", "is", None)
