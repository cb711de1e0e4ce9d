"""The audit log: who did what, when, to how many rows.

An entry is a plan, so that it goes into the transaction of the change that it tells of.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from edge_api.domain.actor import Actor
from edge_api.domain.identity import new_id
from edge_api.schema.kinds import spell_instant
from edge_api.schema.table import Row, Table
from edge_api.schema.tables import AUDIT_LOG
from edge_api.store.plan import AffectedBy, Insert, Order, Read, Store


@dataclass(frozen=True, slots=True)
class Change:
    """What was done."""

    verb: str
    table: Table
    rows: int | AffectedBy
    """How many; the engine puts it in where it is known only once the change is made."""
    columns: tuple[str, ...] = ()
    """Those that the match named."""


def audit_entry(actor: Actor, change: Change, now: datetime) -> Insert:
    """Return the plan that writes down who made a change, and when."""
    given = {
        "actor": actor.label,
        "verb": change.verb,
        "table_name": change.table.name,
        "columns": ",".join(change.columns),
        "rows": 0,
    }
    row = AUDIT_LOG.new_row(given, spell_instant(now), partial(new_id, now))
    return Insert(AUDIT_LOG, [{**row, "rows": change.rows}])


async def recent_entries(store: Store, limit: int) -> list[Row]:
    """Return the newest entries, newest first."""
    order = (Order("at", descending=True), Order("id", descending=True))
    (outcome,) = await store.run(Read(AUDIT_LOG, order=order, limit=limit))
    return outcome.rows
