"""Finds and erases the rows about a person, within one transaction.

SQL selects candidates by the part that all spellings of an address share; Python decides which of
them are about the person. Only the keys of erased rows are stored, so that a restore erases again.
"""

import hmac
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Final
from unicodedata import normalize
from uuid import UUID

from edge_api.auth.actor import Actor, Clock, audit_entry
from edge_api.db.internal_tables import ERASED_ROWS, FORMER_ROWS
from edge_api.db.mail_addresses import normalize_address
from edge_api.db.newsletter_tables import SUBSCRIBERS
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
from edge_api.db.tables import IDEMPOTENCY_KEYS, TABLES
from edge_api.db.types import MAX_EMAIL_LENGTH, PATTERNS, ColumnType, format_instant

PERSONAL_DATA: Final = {table: table.personal for table in TABLES.values() if table.personal}
PersonalRows = dict[Table, list[Row]]
"""The rows about a person, by table; tables without any are included."""
PAGE_SIZE: Final = 500
MAX_PATTERNS: Final = 16  # patterns of keys; each costs as much as the pattern of the address
_DELIMITER: Final = re.compile(r'[\s<>"(),:;\[\]{}]')
_UUID: Final = re.compile(PATTERNS[ColumnType.UUID])


def is_within(address: str, text: str) -> bool:
    """Return whether a text is or contains an address, in any spelling.

    It takes linear time, since a stranger may have written the text. `address` is in its canonical
    form.
    """
    # Punctuation around an address in a text does not belong to it.
    parts = (part.strip("'`.!?\\") for part in _DELIMITER.split(text) if "@" in part[1:-1])
    # A bound for the length of a spelling, since NFC takes quadratic time for accents.
    longest = 4 * (len(address) + MAX_EMAIL_LENGTH)
    return any(
        len(each) <= longest and fold_address(each) == address
        for each in chain([text.strip()], parts)
    )


def fold_address(text: str) -> str:
    """Return the canonical form of an address, or of an invalid one its lower case."""
    stripped = normalize("NFC", text.strip())
    if stripped.isascii() and "xn--" not in stripped.lower():
        return stripped.lower()  # the same as below, but many times faster
    try:
        return normalize_address(stripped)
    except ValueError:
        return stripped.lower()


def find_rows(
    results: list[QueryResult], found: PersonalRows, address: str, keys: set[str]
) -> Iterator[Read]:
    """Yield the reads that find all rows about a person; `found` gets the rows.

    `results` are the results of the reads so far. A row is about the person if it has the address,
    one of `keys`, or the key of such a row in a table of `PersonalData.through`. The keys of rows
    about the person that were deleted before are added to `keys`.
    """
    number = -1
    while number < len(keys):  # new keys may lead to more rows, such as those about a lead
        number = len(keys)
        for table, data in PERSONAL_DATA.items():
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
        for table in PERSONAL_DATA:
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
    """Return the read of the first page of rows that may be about the person, or `None`."""
    local, at, _ = address.partition("@")
    # No spelling changes the longest run of ASCII up to the at sign, so every text with the address
    # has it. Left out are the domain, which has many forms, a k, which may be the kelvin sign, and
    # an i before a dot above, which may be U+0130.
    runs = re.findall(r"(?:[a-z0-9!#$&'*+/=?^_{|}~.@-](?!\u0307))+", local + at)
    run = max(runs, key=len, default="")[-MAX_EMAIL_LENGTH:].replace("k", "_")
    # Match many keys by prefixes, which are times: the more keys, the shorter the prefixes.
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
    names = (table.key, *PERSONAL_DATA[table].subject)
    values = [row[name] for name in names if row.get(name) is not None]
    texts = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
    return any(
        any(key in keys for key in _UUID.findall(text)) or (address and is_within(address, text))
        for text in texts
    )


def address_key(secret: bytes, address: str) -> str:
    """Return the keyed digest by which a subscriber's address is known without its row."""
    return hmac.digest(secret, f"subscriber\n{fold_address(address)}".encode(), "sha256").hex()


def erased_key(key: str) -> str:
    """Return a digest of `address_key` as the key that `erased_rows` has of an erased subscriber.

    So an import does not bring them back.
    """
    return str(UUID(hex=key[:32]))


class Privacy:
    """Finds and erases personal data in one store.

    `secret` keys the digests of subscribers' addresses; without it these are neither found nor
    stored.
    """

    def __init__(self, store: Store, clock: Clock, secret: bytes = b"") -> None:
        self._store = store
        self._clock = clock
        self._secret = secret

    async def find(self, address: str) -> PersonalRows:
        """Return all rows about the person with the address, in any spelling.

        Raises Problem: `invalid` for an invalid address that is stored nowhere, so that a typing
        error does not look like an address without rows.
        """
        found: PersonalRows = {}
        results: list[QueryResult] = []
        for query in find_rows(results, found, fold_address(address), {*self._marks(address)}):
            results += await self._store.run(query)
        if not any(found.values()):
            try:
                normalize_address(address)
            except ValueError:
                raise Problem("invalid", "EMAIL: not a valid e-mail address") from None
        return found

    async def erase(self, address: str | None, actor: Actor) -> PersonalRows:
        """Delete all rows about the person with the address; return them. Raises Problem.

        They are found and deleted in one transaction, so that no row is left that others write
        meanwhile. Without an address it deletes rows that were erased before and stored again.
        """
        found: PersonalRows = {}
        erase = partial(self._erase, fold_address(address or ""), actor, found)
        await self._store.run(Procedure(erase))
        return found

    def _erase(
        self, address: str, actor: Actor, found: PersonalRows, results: list[QueryResult]
    ) -> Iterator[Query]:
        """Yield the queries of an erasure, for a `Procedure`; `found` gets the rows.

        Without an address, rows that were erased before are erased again. Rows of a table with a
        `kept_reason` are not deleted, but their `cleared_columns` are: a suppression keeps the wish
        not to be mailed. The audit log gets the numbers of rows, and no address.
        """
        keys: set[str] = set()
        if not address:
            yield Read(ERASED_ROWS)
            keys = {row["id"] for row in results[-1].rows}
        former = frozenset(keys)
        marks = self._marks(address)
        keys |= marks
        yield from find_rows(results, found, address, keys)
        for table, rows in reversed(found.items()):  # the newest audit entry is that of the leads
            data = PERSONAL_DATA[table]
            names = data.cleared_columns if data.kept_reason else (table.key,)
            doomed = [
                row[table.key] for row in rows if any(row[name] is not None for name in names)
            ]
            if doomed:
                where = (Filter(table.key, "in", tuple(doomed)),)
                cleared = Update(table, dict.fromkeys(names), where) if data.kept_reason else None
                yield cleared or Delete(table, where)
                yield audit_entry(actor, "erase", table, len(doomed), self._clock())
                keys.update(doomed)
        if not (found[SUBSCRIBERS] or any(e["response"] in marks for e in found[IDEMPOTENCY_KEYS])):
            keys -= marks
        # Only UUIDs: the key of a stored answer to a request is a digest that includes an address.
        new = tuple(filter(_UUID.fullmatch, keys - former))
        # Longer than a backup should be kept.
        until = format_instant(self._clock() + timedelta(days=400))
        # A row that was erased before may have been stored again.
        yield Delete(ERASED_ROWS, (Filter("id", "in", new),))
        yield Insert(ERASED_ROWS, [{"id": each, "expires_at": until} for each in new])

    def _marks(self, address: str) -> frozenset[str]:
        """Return the `erased_key` of an address, which is stored if it was a subscriber's."""
        is_known = address and self._secret
        return frozenset([erased_key(address_key(self._secret, address))] if is_known else [])
