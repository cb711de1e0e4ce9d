"""Transactions step by step, as each engine carries them out: one, or a group that shares a commit.

No engine is known here. The new rows of a group are held back until a step could meet them, so that
one statement a table stores them all.
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from edge_api.db import sql
from edge_api.db.query import Delete, Insert, InsertFromRead, Query, QueryResult, Read, Update
from edge_api.db.table import Row, Table


class NewRows(NamedTuple):
    """Rows that one statement stores, each with its parameters for it."""

    table: Table
    text: str
    records: list[tuple[Any, ...]]
    rows: list[Row]


TransactionStep = NewRows | Read | Update | Delete
"""What an engine does at once."""
Steps = Generator[TransactionStep, Any, list[list[QueryResult]]]
"""Takes the outcome of each query, and returns the outcomes of each list of queries."""


def plan_steps(
    lists: Sequence[Sequence[Query]], dialect: sql.Dialect, *, holds: bool = False
) -> Steps:
    """Yield what to do for lists of queries, each in its order; with `holds`, rows come later.

    Then nobody knows which list was at fault when a step fails. Raises Problem.
    """
    transaction = _Transaction(dialect, holds=holds)
    results = []
    for queries in lists:
        outcomes: list[QueryResult] = []
        for query in queries:
            outcomes.append((yield from transaction.run(query, outcomes)))
        results.append(outcomes)
    yield from transaction.store()
    return results


class _Transaction:
    def __init__(self, dialect: sql.Dialect, *, holds: bool) -> None:
        self._dialect = dialect
        self._holds = holds
        self._held: dict[str, NewRows] = {}
        self._known: dict[Table, tuple[Read, list[Row]]] = {}

    def run(
        self, query: Query, earlier: Sequence[QueryResult]
    ) -> Generator[TransactionStep, Any, QueryResult]:
        if isinstance(query, InsertFromRead):
            query = query.insert((yield from self._look(query.read)))
        if isinstance(query, Insert):
            rows = sql.resolve_counts(query, [len(outcome.rows) for outcome in earlier])
            if rows:
                self._known.pop(query.table, None)
                text, records = sql.insert_rows(query, rows, self._dialect)
                new = self._held.setdefault(text, NewRows(query.table, text, [], []))
                new.records.extend(records)
                new.rows.extend(rows)
            if not self._holds:
                yield from self.store()
            return QueryResult(rows)
        if not isinstance(query, Read):
            self._known.pop(query.table, None)
        yield from self.store(query.table)
        outcome: QueryResult = yield query
        return outcome

    def _look(self, read: Read) -> Generator[TransactionStep, Any, list[Row]]:
        """Read once for all rows that derive from it, until its table changes."""
        if read.table not in self._known or self._known[read.table][0] != read:
            yield from self.store(read.table)
            self._known[read.table] = read, (yield read).rows
        return self._known[read.table][1]

    def store(self, table: Table | None = None) -> Generator[TransactionStep, Any, None]:
        """Yield the rows that are held back: those of a table, or all."""
        for text in [text for text, new in self._held.items() if table in (None, new.table)]:
            yield self._held.pop(text)
