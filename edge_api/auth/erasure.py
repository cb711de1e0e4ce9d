"""The rows about a person, found and erased by condition, within one transaction.

SQL narrows the rows by what all spellings of an address have in common; Python decides which are
about the person. What was erased is remembered by keys of rows alone, for restores.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Final
from unicodedata import normalize

from edge_api.auth.actor import Actor, Clock, audit_entry
from edge_api.db.email_address import normalize_address
from edge_api.db.internal_tables import ERASED_ROWS, FORMER_ROWS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    Order,
    Procedure,
    Query,
    QueryResult,
    Read,
    Store,
    Update,
)
from edge_api.db.table import PersonalData, Row, Table
from edge_api.db.tables import TABLES
from edge_api.db.types import MAX_EMAIL_LENGTH, PATTERNS, ColumnType, format_instant

PERSONAL: Final = {table: table.personal for table in TABLES.values() if table.personal}
PersonalRows = dict[Table, list[Row]]
"""The rows about a person, by table; tables without any are included."""
PAGE_SIZE: Final = 500
MAX_PATTERNS: Final = 16  # each costs as much as the one of the address
_DELIMITER: Final = re.compile(r'[\s<>"(),:;\[\]{}]')
_KEY: Final = re.compile(PATTERNS[ColumnType.UUID])


def is_within(address: str, text: str) -> bool:
    """Return whether a text is an address (GDPR, Article 4(1)), or contains it, in any spelling.

    Linear in the text, which a stranger may have written; `address` is in its canonical form.
    """
    # Punctuation around an address in a text does not belong to it.
    parts = (part.strip("'`.!?\\") for part in _DELIMITER.split(text) if "@" in part[1:-1])
    longest = 4 * (len(address) + MAX_EMAIL_LENGTH)  # of a spelling; NFC is quadratic in accents
    return any(
        len(each) <= longest and fold_address(each) == address
        for each in chain([text.strip()], parts)
    )


def fold_address(text: str) -> str:
    """Return the canonical form of an address; rows may have invalid ones."""
    stripped = normalize("NFC", text.strip())
    if stripped.isascii() and "xn--" not in stripped.lower():
        return stripped.lower()  # what follows would do no more, in many times the time
    try:
        return normalize_address(stripped)
    except ValueError:
        return stripped.lower()


def find_rows(
    results: list[QueryResult], found: PersonalRows, address: str, keys: set[str]
) -> Iterator[Read]:
    """Yield the reads that put all rows about a person into `found`; `results` are theirs.

    These have the address, one of `keys`, or, as `PersonalData.through` says, the key of such a
    row. To `keys` are added those of rows about the person that were deleted before.
    """
    number = -1
    while number < len(keys):  # by a key more may be found, as what waits for a lead
        number = len(keys)
        for table, data in PERSONAL.items():
            parents = map(TABLES.__getitem__, data.through)
            known = keys.union(row[each.key] for each in parents for row in found[each])
            found[table] = []
            read = _read(table, data, address, known)
            while read:
                yield read
                page = results[-1].rows
                found[table] += [row for row in page if _is_about(table, address, known, row)]
                beyond = (Filter(table.key, "gt", page[-1][table.key]),) if page else ()
                more = replace(read, where=read.where[:1] + beyond)
                read = more if len(page) == PAGE_SIZE else None
        for table in PERSONAL:
            gone = {
                row["row_id"]
                for row in found[FORMER_ROWS]
                for each in (row["former"], row["changed"])
                if row["table_name"] == table.name and each and _is_about(table, address, (), each)
            }
            if gone:
                yield Read(table, (table.key,), (Filter(table.key, "in", tuple(gone)),))
                keys |= gone.difference(row[table.key] for row in results[-1].rows)


def _read(table: Table, data: PersonalData, address: str, keys: Collection[str]) -> Read | None:
    """Return the read of rows that may be about the person, or `None`; the first page of them."""
    local, at, _ = address.partition("@")
    # No spelling changes the longest run of ASCII up to the at sign, so a text with the address has
    # it too. A domain has two forms, and many more that become them; a k may be the sign for
    # kelvin, and U+0130 becomes an i before a dot above.
    runs = re.findall(r"(?:[a-z0-9!#$&'*+/=?^_{|}~.@-](?!\u0307))+", local + at)
    run = max(runs, key=len, default="")[-MAX_EMAIL_LENGTH:].replace("k", "_")
    # Of many keys the beginnings, which are times; the more there are the shorter ones.
    sizes = ({key[:size] for key in keys} for size in (36, 8, 7, 6, 5, 4, 0))
    starts = next(each for each in sizes if len(each) <= MAX_PATTERNS)
    names = (table.key, *data.subject)
    has = "has" if local.isascii() else "has_wide"
    filters = [
        *(Filter(n, has, f"%{run}%") for n in data.subject if address),
        *(Filter(n, "in", tuple(keys)) for n in names if keys and n not in table.json_columns),
        *(Filter(n, "has_key", f"%{start}%") for n in names for start in starts),
    ]
    where = (Filter(table.key, "any", tuple(filters)),)
    return Read(table, where=where, order=(Order(table.key),), limit=PAGE_SIZE) if filters else None


def _is_about(table: Table, address: str, keys: Collection[str], row: Row) -> bool:
    names = (table.key, *PERSONAL[table].subject)
    values = [row[name] for name in names if row.get(name) is not None]
    texts = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
    return any(
        any(key in keys for key in _KEY.findall(text)) or (address and is_within(address, text))
        for text in texts
    )


def erase_rows(
    address: str, actor: Actor, clock: Clock, found: PersonalRows, results: list[QueryResult]
) -> Iterator[Query]:
    """Yield the queries of an erasure, for a `Procedure`; `found` gets the rows.

    Without an address it erases again what was erased before. Of a row that is kept only columns
    are cleared: a suppression is the wish not to be mailed. The audit log gets numbers, and no
    address.
    """
    keys: set[str] = set()
    if not address:
        yield Read(ERASED_ROWS)
        keys = {row["id"] for row in results[-1].rows}
    former = frozenset(keys)
    yield from find_rows(results, found, address, keys)
    for table, rows in reversed(found.items()):  # the newest entry is that of the leads
        data = PERSONAL[table]
        names = data.cleared_columns if data.kept_reason else (table.key,)
        doomed = [row[table.key] for row in rows if any(row[name] is not None for name in names)]
        if doomed:
            where = (Filter(table.key, "in", tuple(doomed)),)
            cleared = Update(table, dict.fromkeys(names), where) if data.kept_reason else None
            yield cleared or Delete(table, where)
            yield audit_entry(actor, "erase", table, len(doomed), clock())
            keys.update(doomed)
    # Not the keys of answers: each is a digest of an address too.
    new = tuple(filter(_KEY.fullmatch, keys - former))
    until = format_instant(clock() + timedelta(days=400))  # longer than a backup should be kept
    yield Delete(ERASED_ROWS, (Filter("id", "in", new),))  # erased before, and stored again
    yield Insert(ERASED_ROWS, [{"id": each, "expires_at": until} for each in new])


class Privacy:
    """The personal data of one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def find(self, address: str) -> PersonalRows:
        """Return all rows about the person with the address, in any spelling.

        Raises Problem: `invalid` for an invalid address that is stored nowhere, since a typing
        error must not pass for nothing.
        """
        found: PersonalRows = {}
        results: list[QueryResult] = []
        for query in find_rows(results, found, fold_address(address), set()):
            results += await self._store.run(query)
        if not any(found.values()):
            try:
                normalize_address(address)
            except ValueError:
                raise Problem("invalid", "EMAIL: not a valid e-mail address") from None
        return found

    async def erase(self, address: str | None, actor: Actor) -> PersonalRows:
        """Delete all rows about the person with the address; return them. Raises Problem.

        They are found and deleted in one transaction, so nothing is left that others write
        meanwhile. Without an address it deletes what was erased before and is stored again.
        """
        found: PersonalRows = {}
        erase = partial(erase_rows, fold_address(address or ""), actor, self._clock, found)
        await self._store.run(Procedure(erase))
        return found
