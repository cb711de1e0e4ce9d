"""Actors, the audit log of their changes, and the identifiers of new rows."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from struct import unpack
from typing import Final, Literal
from uuid import UUID

from edge_api.db.query import Insert, Order, Read, RowCount, Store, read_all
from edge_api.db.table import Row, Table
from edge_api.db.tables import AUDIT_LOG
from edge_api.db.types import format_instant

Clock = Callable[[], datetime]
"""Returns the current instant in UTC, with its zone. Tests pass a clock of their own."""


def system_clock() -> datetime:
    """Return the current instant in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Actor:
    """The sender of a request or author of a change, such as the holder of a credential."""

    credential_id: str  # empty for a client that acts for itself
    name: str
    type: str  # `api_key` or `access_token`
    scopes: frozenset[str]
    tables: frozenset[str] | None = None
    """The administrative tables that it may use; `None` is all of them."""
    client_id: str = ""  # the OAuth client that acts, for the credential or for itself

    def may_use(self, table: str) -> bool:
        """Return whether it may use an administrative table; an empty name stands for all."""
        return self.tables is None or table in self.tables

    @property
    def limit_key(self) -> str:
        """The key of the actor's rate limits: the credential's id, whatever client acts for it."""
        return self.credential_id or self.client_id

    @property
    def label(self) -> str:
        """The name of the actor in the audit log."""
        key = f"credential:{self.credential_id}" if self.credential_id else ""
        client = f"client:{self.client_id}" if self.client_id else ""
        return f"{key} {client}".strip() or self.name


OPERATOR = Actor("operator", "operator", "api_key", frozenset())  # the user of the command line

ANYONE = Actor("", "anybody", "", frozenset())  # anyone without a credential

SERVICE = Actor("service", "service", "api_key", frozenset())  # the running service by itself


def audit_entry(
    actor: Actor,
    verb: str,
    table: Table | Literal["posts"],
    rows: int | RowCount,
    now: datetime,
    *columns: str,
) -> Insert:
    """Return the query that stores the audit entry of a change.

    `rows` is the number of changed rows; for a `RowCount` the engine fills in the number after the
    change. `columns` are the columns that the change filtered by. Posts have no table: of one,
    `columns` are its slug and its version, or the path of a picture.
    """
    given = {
        "actor": actor.label,
        "verb": verb,
        "table_name": table if isinstance(table, str) else table.name,
        "columns": ",".join(columns),
        "rows": 0,
    }
    row = AUDIT_LOG.new_row(given, format_instant(now), partial(new_id, now))
    return Insert(AUDIT_LOG, [{**row, "rows": rows}])


async def recent_entries(store: Store, limit: int) -> list[Row]:
    """Return the newest entries of the audit log, the newest first."""
    order = (Order("at", descending=True), Order("id", descending=True))
    return await read_all(store, Read(AUDIT_LOG, order=order, limit=limit))


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_random_pool: list[int] = []  # random numbers of 64 bits, each used once


def new_id(now: datetime) -> str:
    """Return a UUID, version 7, that sorts after all UUIDs of earlier microseconds.

    The twelve bits after the milliseconds hold the fraction of a millisecond (RFC 9562, section
    6.2, method 3); the other 62 are random.
    """
    milliseconds, microseconds = divmod((now - _EPOCH) // _MICROSECOND, 1000)
    fraction = (microseconds << 12) // 1000
    try:
        number = _random_pool.pop()
    except IndexError:
        # Get many numbers by one system call: it releases the interpreter lock, and acquiring that
        # again costs more than the rest of an identifier.
        _random_pool.extend(unpack("512Q", os.urandom(8 * 512)))
        number = _random_pool.pop()
    bits = milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | number >> 2
    return str(UUID(int=bits))


if hasattr(os, "register_at_fork"):  # no two processes may use the same numbers
    os.register_at_fork(after_in_child=_random_pool.clear)
