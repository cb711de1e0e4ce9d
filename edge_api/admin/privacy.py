"""Personal data in the store: its export, and its retention; `auth/erasure.py` erases it.

They serve the rights of access and to erasure (GDPR, Articles 15 and 17). Each table declares which
columns name a person (`Table.personal`), and when rows are too old (`Table.retention`).
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

import orjson

from edge_api.auth.actor import SERVICE, Actor, Clock, audit_entry
from edge_api.auth.erasure import PersonalRows
from edge_api.db.internal_tables import FORMER_ROWS
from edge_api.db.newsletter_tables import LETTER_LOG_DAYS
from edge_api.db.query import Delete, Filter, Order, Read, RowCount, Store, Where, read_all
from edge_api.db.table import Row, Table
from edge_api.db.tables import EMAIL_SEND_LOG, EMAIL_UNSUBSCRIBE_TOKENS, LEADS, TABLES
from edge_api.db.transfer import read_pages
from edge_api.db.types import format_instant
from edge_api.mail.suppressions import normalize_recipient
from edge_api.settings import Settings


def visible(table: Table, row: Row) -> Row:
    """Return the members of a row that the export shows to its data subject."""
    hidden = table.hidden.union(table.personal.withheld_columns if table.personal else ())
    shown = {name: value for name, value in row.items() if name not in hidden}
    if table is FORMER_ROWS:
        inner = TABLES[row["table_name"]]
        shown |= {each: row[each] and visible(inner, row[each]) for each in ("former", "changed")}
    return shown


def export_person(address: str, found: PersonalRows, now: str) -> bytes:
    """Return all rows about a person as JSON, for the right of access."""
    rows = {table.name: [visible(table, row) for row in found[table]] for table in found}
    return orjson.dumps({"email": address, "exported_at": now, **rows}, option=orjson.OPT_INDENT_2)


MAILED_COLUMNS: Final[Mapping[Table, str]] = {
    table: data.mailed_column
    for table in TABLES.values()
    if (data := table.personal) and data.mailed_column
}
"""The column with an address that gets mail, by table."""
UNUSED_TOKEN: Final = Filter("used_at", "is", None)
"""The filter of tokens to delete: a used one stays, as proof of how its address was suppressed."""
IS_LETTER: Final = Filter("template_name", "like", "newsletter\\_*")
DELETE_BATCH: Final = 500  # rows in one transaction, so that others can write in between
READ_BATCH: Final = 2000  # rows in one query


def _delete_cascaded(table: Table, keys: tuple[str, ...]) -> Iterator[Delete]:
    """Yield the queries that delete rows of other tables along with these (`cascade_from`)."""
    for child in TABLES.values():
        column, parent = (child.retention and child.retention.cascade_from) or ("", "")
        if parent == table.name:
            yield Delete(child, (Filter(column, "in", keys),))


class Retention:
    """Deletes rows that are older than the settings allow.

    Nothing but the age of a row counts. The token of an unsubscribe link is deleted with the last
    row that names its address, unless it was used.
    """

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._limits: Mapping[Table, tuple[str, int]] = {
            table: (rule.since, days)
            for table in TABLES.values()
            if (rule := table.retention)
            and rule.setting
            and (days := getattr(settings, rule.setting))
        }

    @property
    def is_enabled(self) -> bool:
        """Whether any table has a retention limit."""
        return bool(self._limits)

    async def apply(self, actor: Actor = SERVICE) -> Mapping[Table, int]:
        """Delete old rows and scrub the store; return their number by table. Raises Problem."""
        deleted = {
            table: await self._delete(table, since, days, actor)
            for table, (since, days) in self._limits.items()
        }
        if letters := await self._delete(
            EMAIL_SEND_LOG, "created_at", LETTER_LOG_DAYS, actor, (IS_LETTER,)
        ):
            deleted[EMAIL_SEND_LOG] = deleted.get(EMAIL_SEND_LOG, 0) + letters
        if deleted_tokens := await self._delete_unused_tokens(actor):
            deleted[EMAIL_UNSUBSCRIBE_TOKENS] = deleted_tokens
        if any(deleted.values()):
            await self._store.scrub()
        return deleted

    async def _delete(
        self, table: Table, since: str, days: int, actor: Actor, where: Where = ()
    ) -> int:
        before = format_instant(self._clock() - timedelta(days=days))
        old, oldest = (*where, Filter(since, "lt", before)), (Order(since),)
        number = 0
        while True:
            rows = await read_all(self._store, Read(table, (), old, oldest, DELETE_BATCH))
            keys = tuple(row[table.key] for row in rows)
            if not keys:
                return number
            number += await self._delete_keys(table, keys, since, actor)
            if table is FORMER_ROWS:
                await self._forget_deleted_leads(rows)

    async def _forget_deleted_leads(self, rows: Sequence[Row]) -> None:
        """Delete the rows that belong to deleted leads, once their deletion cannot be undone."""
        ids = {row["row_id"] for row in rows if row["table_name"] == LEADS.name}
        stored, undoable = await self._store.run(
            Read(LEADS, ("id",), (Filter("id", "in", tuple(ids)),)),
            Read(FORMER_ROWS, ("row_id",), (Filter("row_id", "in", tuple(ids)),)),
        )
        ids -= {
            value for result in (stored, undoable) for row in result.rows for value in row.values()
        }
        if ids:
            await self._store.run(*_delete_cascaded(LEADS, tuple(ids)))

    async def _delete_keys(
        self, table: Table, keys: tuple[str, ...], since: str, actor: Actor, where: Where = ()
    ) -> int:
        deleted, *_ = await self._store.run(
            Delete(table, (*where, Filter(table.key, "in", keys))),
            audit_entry(actor, "forget", table, RowCount(0), self._clock(), since),
            *_delete_cascaded(table, keys),
        )
        return len(deleted.rows)

    async def _delete_unused_tokens(self, actor: Actor) -> int:
        """Delete unused tokens older than the longest retention if no row names their address."""
        limits = self._limits.items()
        days = max((days for table, (_, days) in limits if table in MAILED_COLUMNS), default=0)
        if not days:
            return 0
        before = format_instant(self._clock() - timedelta(days=days))
        old = (UNUSED_TOKEN, Filter("created_at", "lt", before))
        found = self._pages(EMAIL_UNSUBSCRIBE_TOKENS, "email", old)
        tokens = [row async for rows in found for row in rows]
        named = await self._mailed_addresses() if tokens else frozenset()
        ids = [row["id"] for row in tokens if normalize_recipient(row["email"]) not in named]
        batches = (ids[start : start + DELETE_BATCH] for start in range(0, len(ids), DELETE_BATCH))
        delete = partial(self._delete_keys, EMAIL_UNSUBSCRIBE_TOKENS, since="created_at")
        return sum(
            [await delete(tuple(ids), actor=actor, where=(UNUSED_TOKEN,)) for ids in batches]
        )

    async def _mailed_addresses(self) -> Collection[str]:
        """Return every address that a row of `MAILED_COLUMNS` names, in its canonical form.

        `TABLES` has the outbox after the leads, so that a message queued meanwhile is found.
        """
        return {
            normalize_recipient(row[column])
            for table, column in MAILED_COLUMNS.items()
            async for rows in self._pages(table, column)
            for row in rows
        }

    def _pages(self, table: Table, column: str, where: Where = ()) -> AsyncIterator[Sequence[Row]]:
        return read_pages(self._store, Read(table, ("id", column), where), READ_BATCH)
