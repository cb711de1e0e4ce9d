"""Personal data in the store: export, erasure, and retention.

For the rights of access and to erasure (GDPR, Articles 15 and 17). Each table declares where its
rows name a person (`Table.personal`), and how they age (`Table.retention`).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Final
from unicodedata import normalize

import orjson

from edge_api.admin.filters import format_value
from edge_api.auth.actor import SERVICE, Actor, Clock, audit_entry
from edge_api.db.email_address import normalize_address
from edge_api.db.internal_tables import FORMER_ROWS
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Order, Query, Read, RowCount, Store, Update, Where
from edge_api.db.table import PersonalData, Row, Table
from edge_api.db.tables import EMAIL_UNSUBSCRIBE_TOKENS, MAX_EMAIL_LENGTH, TABLES
from edge_api.db.transfer import read_pages
from edge_api.db.types import PATTERNS, ColumnType, format_instant
from edge_api.mail.suppressions import normalize_recipient
from edge_api.settings import Settings

PersonalRows = Mapping[Table, Sequence[Row]]
"""The rows about a person, by table; tables without any are included."""
_DELIMITER: Final = re.compile(r'[\s<>"(),:;\[\]{}]')
_KEY: Final = re.compile(PATTERNS[ColumnType.UUID])
_PUNCTUATION: Final = "'`.!?\\"  # stripped from both ends of an address in a text


def is_within(address: str, text: str) -> bool:
    """Return whether a text is an address (GDPR, Article 4(1)), or contains it, in any spelling.

    Linear in the text, which a stranger may have written; `address` is in its canonical form.
    """
    parts = (part.strip(_PUNCTUATION) for part in _DELIMITER.split(text) if "@" in part[1:-1])
    longest = 4 * (len(address) + MAX_EMAIL_LENGTH)  # of a spelling; NFC is quadratic in accents
    return any(
        len(each) <= longest and _fold(each) == address for each in chain([text.strip()], parts)
    )


def _fold(text: str) -> str:
    """Return the canonical form of an address; rows may have invalid ones."""
    stripped = normalize("NFC", text.strip())
    try:
        return normalize_address(stripped)
    except ValueError:
        return stripped.lower()


class Privacy:
    """The personal data of one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def find(self, address: str) -> PersonalRows:
        """Return all rows about the person with the address, in any spelling.

        It reads every row of the tables with personal data, since spellings differ. Raises Problem:
        `invalid` for an invalid address that is stored nowhere, since a typing error must not pass
        for nothing.
        """
        subject = _fold(address)
        found: dict[Table, Sequence[Row]] = {}
        for table in TABLES.values():
            if data := table.personal:
                parents = map(TABLES.__getitem__, data.through)
                keys = frozenset(row[each.key] for each in parents for row in found[each])
                is_about = partial(_is_about, data=data, subject=subject, keys=keys)
                found[table] = [
                    row
                    async for rows in read_pages(self._store, Read(table))
                    for row in await asyncio.to_thread(list[Row], filter(is_about, rows))
                ]
        if not any(found.values()):
            try:
                normalize_address(address)
            except ValueError:
                raise Problem("invalid", "EMAIL: not a valid e-mail address") from None
        return found

    async def erase(self, address: str, actor: Actor) -> PersonalRows:
        """Delete all rows about the person with the address, in one transaction; return them.

        Of a row that is kept only columns are cleared: a suppression is the wish not to be
        mailed. The audit log gets numbers, and no address. Raises Problem.
        """
        found = await self.find(address)
        queries: list[Query] = []
        for table, rows in [*found.items()][::-1]:  # the newest entry is that of the leads
            keys = tuple(row[table.key] for row in rows if _is_erasable(row, table.personal))
            if keys:
                where = (Filter(table.key, "in", keys),)
                query: Query = Delete(table, where)
                if table.personal and table.personal.kept_reason:
                    query = Update(table, dict.fromkeys(table.personal.cleared_columns), where)
                count = RowCount(len(queries))
                queries += [query, audit_entry(actor, "erase", table, count, self._clock())]
        await self._store.run(*queries)
        return found


def visible(table: Table, row: Row) -> Row:
    """Return the members of a row that its data subject is shown."""
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


def _is_about(row: Row, data: PersonalData, subject: str, keys: frozenset[str]) -> bool:
    texts = [format_value(row[name]) for name in data.subject if row[name] is not None]
    return any(
        is_within(subject, text) or (keys and not keys.isdisjoint(_KEY.findall(text)))
        for text in texts
    )


def _is_erasable(row: Row, data: PersonalData | None) -> bool:
    """Return whether an erasure changes a row."""
    cleared = data.cleared_columns if data and data.kept_reason else None
    return cleared is None or any(row[name] is not None for name in cleared)


MAILED_COLUMNS: Final[Mapping[Table, str]] = {
    table: data.mailed_column
    for table in TABLES.values()
    if (data := table.personal) and data.mailed_column
}
"""The tables whose rows name a mailed address, and the column. The outbox is read after the leads,
so that an entry written meanwhile is seen."""
UNUSED_TOKEN: Final = Filter("used_at", "is", None)
"""A used token proves how its address was suppressed."""
DELETE_BATCH: Final = 500  # in one transaction, so that others can write in between
READ_BATCH: Final = 2000  # in one query


class Retention:
    """Deletes rows that are older than the settings allow.

    Age alone counts. The token of an unsubscribe link is deleted with the last row that names its
    address, unless it was used.
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
        """Delete old rows and scrub the store; return the numbers by table. Raises Problem."""
        deleted = {
            table: await self._delete(table, since, days, actor)
            for table, (since, days) in self._limits.items()
        }
        if deleted_tokens := await self._delete_unused_tokens(actor):
            deleted[EMAIL_UNSUBSCRIBE_TOKENS] = deleted_tokens
        if any(deleted.values()):
            await self._store.scrub()
        return deleted

    async def _delete(self, table: Table, since: str, days: int, actor: Actor) -> int:
        before = format_instant(self._clock() - timedelta(days=days))
        old, oldest = (Filter(since, "lt", before),), (Order(since),)
        number = 0
        while True:
            (result,) = await self._store.run(Read(table, (table.key,), old, oldest, DELETE_BATCH))
            keys = tuple(row[table.key] for row in result.rows)
            if not keys:
                return number
            number += await self._delete_keys(table, keys, since, actor)

    async def _delete_keys(
        self, table: Table, keys: tuple[str, ...], since: str, actor: Actor, where: Where = ()
    ) -> int:
        deleted, *_ = await self._store.run(
            Delete(table, (*where, Filter(table.key, "in", keys))),
            audit_entry(actor, "forget", table, RowCount(0), self._clock(), since),
            *_delete_children(table, keys),
        )
        return len(deleted.rows)

    async def _delete_unused_tokens(self, actor: Actor) -> int:
        """Delete unused tokens beyond the longest retention whose address no row names."""
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
        unused = (UNUSED_TOKEN,)
        return sum([await delete(tuple(ids), actor=actor, where=unused) for ids in batches])

    async def _mailed_addresses(self) -> Collection[str]:
        """Return the canonical form of every address that a row names."""
        return {
            normalize_recipient(row[column])
            for table, column in MAILED_COLUMNS.items()
            async for rows in self._pages(table, column)
            for row in rows
        }

    def _pages(self, table: Table, column: str, where: Where = ()) -> AsyncIterator[Sequence[Row]]:
        return read_pages(self._store, Read(table, ("id", column), where), READ_BATCH)


def _delete_children(table: Table, keys: tuple[str, ...]) -> Iterator[Query]:
    """Yield queries that delete the rows of other tables that belong to rows of this one."""
    for child in TABLES.values():
        column, parent = (child.retention and child.retention.cascade_from) or ("", "")
        if parent == table.name:
            yield Delete(child, (Filter(column, "in", keys),))
