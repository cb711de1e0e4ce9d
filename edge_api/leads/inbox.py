"""Leads as their owner looks for them: by status and by words, and marked as done."""

from dataclasses import dataclass
from typing import Final

from edge_api.db.query import Filter, Order, Read, Store, Where, fold
from edge_api.db.table import Row
from edge_api.db.tables import LEADS

FIRST_SEARCHED: Final = 250
"""Rows that a search reads without the index, which is slow for words that many leads have."""
MAX_SEARCHED: Final = 2000
"""Rows that a search reads at the most, in the order asked for."""
MIN_INDEXED: Final = 3
"""Characters of the shortest word that the index of trigrams finds."""


@dataclass(frozen=True, slots=True)
class LeadQuery:
    """Which leads to find."""

    search: str = ""
    """Words, each of which stands in name, address or message, whatever the case."""
    statuses: tuple[str, ...] = ()
    """Any of these; none: all."""
    oldest_first: bool = False
    limit: int = 50
    offset: int = 0
    beyond: Where = ()
    """More filters, as for the leads after one of them."""


async def find_leads(store: Store, query: LeadQuery) -> tuple[list[Row], bool]:
    """Return leads by the time at which they came, and whether more follow.

    Of a search only the first `MAX_SEARCHED` are found; words under `MIN_INDEXED` characters are
    sought among as many leads alone. Raises Problem `unavailable`.
    """
    by_status = (Filter("status", "in", query.statuses),) if query.statuses else ()
    where: Where = (*query.beyond, *by_status)
    words = fold(query.search).split()
    start, end = query.offset, query.offset + query.limit
    if not words:
        rows = await _read(store, query, where, query.limit + 1, start)
        return rows[: query.limit], len(rows) > query.limit
    indexed = tuple(word for word in words if len(word) >= MIN_INDEXED)
    by_index = (*where, Filter("id", "search", indexed))
    first, rest = FIRST_SEARCHED, MAX_SEARCHED - FIRST_SEARCHED
    steps = [(where, 0, first), (where, first, 3 * first if indexed else rest)]
    if indexed:
        steps += [(by_index, 0, first), (by_index, first, rest)]
    found: list[Row] = []
    for part, offset, count in steps:
        rows = await _read(store, query, part, count, offset)
        found = [*(found if offset else ()), *(row for row in rows if _has_all(row, words))]
        if len(found) > end or len(rows) < count:
            break
    return found[start:end], len(found) > end


async def _read(
    store: Store, query: LeadQuery, where: Where, limit: int, offset: int = 0
) -> list[Row]:
    way = not query.oldest_first
    order = (Order("created_at", descending=way), Order("id", descending=way))
    read = Read(LEADS, where=where, order=order, limit=limit, offset=offset)
    (result,) = await store.run(read)
    return result.rows


def _has_all(row: Row, words: list[str]) -> bool:
    text = fold("\n".join(row[name] for name in LEADS.searched))
    return all(word in text for word in words)
