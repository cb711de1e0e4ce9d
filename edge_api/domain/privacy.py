"""What the store keeps of one person: found by their e-mail address, shown, or erased.

For the rights of access and to erasure (GDPR, Articles 15 and 17). Each table declares where its
rows name a person (`Table.personal`). How rows are shown is not known here.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final
from unicodedata import normalize

from edge_api.domain.actor import Actor, Change, Clock, audit_entry
from edge_api.domain.selection import spell_value
from edge_api.domain.transfer import pages
from edge_api.schema.mailbox import fold_address
from edge_api.schema.problems import Problem
from edge_api.schema.table import PersonalData, Row, Table
from edge_api.schema.tables import TABLES
from edge_api.store.plan import AffectedBy, Condition, Delete, Plan, Read, Store, Update

Found = Mapping[Table, Sequence[Row]]
"""The whole rows that are about a person; tables without any are there, with none."""
_BESIDE: Final = r'\s<>"(),:;\[\]{}'
_ADDRESS: Final = re.compile(rf"[^{_BESIDE}]+@[^{_BESIDE}]+")
_AROUND: Final = "'`.!?\\"
"""What may stand next to an address in a text and is no part of it."""


class DataSubject:
    """Recognises one person's address (GDPR, Article 4(1)), however it is spelt."""

    def __init__(self, address: str) -> None:
        self.address = _fold(address)
        self.is_valid = _is_valid(address)

    def is_at(self, text: str) -> bool:
        """Tell whether a text is the address and nothing else."""
        return _fold(text) == self.address

    def is_in(self, text: str) -> bool:
        """Tell whether a text is the address, or has it somewhere within."""
        if self.is_at(text):
            return True
        return any(
            _fold(found[0].strip(_AROUND)) == self.address for found in _ADDRESS.finditer(text)
        )


def _is_valid(text: str) -> bool:
    try:
        fold_address(text)
    except ValueError:
        return False
    return True


def _fold(text: str) -> str:
    """Return the one spelling of an address; rows written by hand may hold what is none."""
    bare = normalize("NFC", text.strip())
    try:
        return fold_address(bare)
    except ValueError:
        return bare.lower()


class Privacy:
    """What one store keeps of people."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def find(self, address: str) -> Found:
        """Return all that is kept of whoever has the address, however it is spelt.

        Every row of the tables with personal data is looked at: spellings differ. Raises Problem,
        `invalid` for what is no address and was stored nowhere: a slip of the pen must not pass
        for nothing.
        """
        subject = DataSubject(address)
        found: dict[Table, Sequence[Row]] = {}
        for table in TABLES.values():
            if data := table.personal:
                parents = map(TABLES.__getitem__, data.through)
                keys = frozenset(row[each.key] for each in parents for row in found[each])
                found[table] = [
                    row
                    async for rows in pages(self._store, Read(table))
                    for row in rows
                    if _is_about(row, data, subject, keys)
                ]
        if not subject.is_valid and not any(found.values()):
            raise Problem("invalid", "EMAIL: not a valid e-mail address")
        return found

    async def erase(self, address: str, actor: Actor) -> Found:
        """Delete all that is kept of whoever has the address, in one transaction; return it.

        Of a row that is `kept` only columns are cleared: a suppression is the wish not to be
        mailed, which has to be honoured. The audit log gets numbers, and no address. Raises
        Problem.
        """
        found = await self.find(address)
        plans: list[Plan] = []
        for table, rows in found.items():
            keys = tuple(row[table.key] for row in rows if _loses(row, table.personal))
            if keys:
                change = Change("erase", table, AffectedBy(len(plans)))
                plans += [_erase(table, keys), audit_entry(actor, change, self._clock())]
        await self._store.run(*plans)
        return found


def _is_about(row: Row, data: PersonalData, subject: DataSubject, keys: Collection[str]) -> bool:
    texts = [spell_value(row[name]) for name in data.subject if row[name] is not None]
    return any(subject.is_in(text) or any(key in text for key in keys) for text in texts)


def _loses(row: Row, data: PersonalData | None) -> bool:
    """Tell whether an erasure changes a row."""
    return data is None or not data.kept or any(row[name] is not None for name in data.cleared)


def _erase(table: Table, keys: tuple[str, ...]) -> Plan:
    where = (Condition(table.key, "in", keys),)
    if table.personal and table.personal.kept:
        return Update(table, dict.fromkeys(table.personal.cleared), where)
    return Delete(table, where)
