"""Transactions step by step, as each engine runs them: one, or a group that shares a commit.

No engine is known here. The inserts of a group are deferred until a step could read their rows, so
that one statement a table stores them all.
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from edge_api.db import sql
from edge_api.db.errors import stale_update, too_many_rows
from edge_api.db.problems import not_one_row
from edge_api.db.query import Delete, Insert, InsertFromRead, Query, QueryResult, Read, Update
from edge_api.db.table import Row, Table


class NewRows(NamedTuple):
    """Rows that one statement stores, each with its parameters for it."""

    table: Table
    text: str
    records: list[tuple[Any, ...]]
    rows: list[Row]


class Fetch(NamedTuple):
    """A statement that gives back records."""

    table: Table
    statement: sql.Statement
    names: tuple[str, ...] = ()
    """The columns that each record has; none for a count."""
    rows: Sequence[Row] = ()
    """The values that it stores."""
    many: bool = False
    """Whether it may give back more than one record, and not all of a table."""


TransactionStep = NewRows | Fetch
"""A statement, or one for each of many rows, that an engine runs."""
Steps = Generator[TransactionStep, Any, list[list[QueryResult]]]
"""Takes the records of each `Fetch`, and returns the results of each list of queries."""


def plan_steps(
    lists: Sequence[Sequence[Query]], dialect: sql.Dialect, *, defer_inserts: bool = False
) -> Steps:
    """Yield the steps for lists of queries, each in its order; `defer_inserts` batches inserts.

    Then a step that fails does not tell which list has failed. Raises Problem.
    """
    transaction = _Transaction(dialect, defer_inserts=defer_inserts)
    all_results = []
    for queries in lists:
        results: list[QueryResult] = []
        for query in queries:
            results.append((yield from transaction.run(query, results)))
        all_results.append(results)
    yield from transaction.flush()
    return all_results


class _Transaction:
    def __init__(self, dialect: sql.Dialect, *, defer_inserts: bool) -> None:
        self._dialect = dialect
        self._defer_inserts = defer_inserts
        self._deferred: dict[str, NewRows] = {}
        self._read_cache: dict[Table, tuple[Read, list[Row]]] = {}

    def run(
        self, query: Query, earlier: Sequence[QueryResult]
    ) -> Generator[TransactionStep, Any, QueryResult]:
        if isinstance(query, InsertFromRead):
            query = query.insert((yield from self._read_once(query.read)))
        if isinstance(query, Insert):
            rows = sql.resolve_counts(query, [len(result.rows) for result in earlier])
            if rows:
                self._read_cache.pop(query.table, None)
                text, records = sql.insert_rows(query, rows, self._dialect)
                new = self._deferred.setdefault(text, NewRows(query.table, text, [], []))
                new.records.extend(records)
                new.rows.extend(rows)
            if not self._defer_inserts:
                yield from self.flush()
            return QueryResult(rows)
        yield from self.flush(query.table)
        if isinstance(query, Read):
            return (yield from self._read(query))
        self._read_cache.pop(query.table, None)
        return (yield from self._change(query))

    def _read(self, query: Read) -> Generator[TransactionStep, Any, QueryResult]:
        statement = sql.read_rows(query, self._dialect)
        total = None
        if query.with_total:
            total = yield from self._count(query.table, sql.count_rows(query, self._dialect))
        names = query.columns or tuple(query.table.columns)
        many = query.limit is not None and query.limit > 1
        records = yield Fetch(query.table, statement, names, many=many)
        return QueryResult(sql.decode(query.table, names, records), total)

    def _change(self, query: Update | Delete) -> Generator[TransactionStep, Any, QueryResult]:
        table, names, most = query.table, tuple(query.table.columns), query.at_most
        # Counted first: undoing a million changes costs as much as making them.
        if most is not None and most < (
            yield from self._count(table, sql.count_matches(query, most, self._dialect))
        ):
            raise too_many_rows(most)
        if isinstance(query, Update):
            statement, values = sql.update_rows(query, self._dialect), [dict(query.values)]
        else:
            statement, values = sql.delete_rows(query, self._dialect), []
        rows = sql.decode(table, names, (yield Fetch(table, statement, names, values)))
        if query.single and len(rows) != 1:
            raise not_one_row(len(rows))
        if isinstance(query, Update) and len(rows) < query.at_least:
            raise stale_update()
        return QueryResult(sorted(rows, key=lambda row: row[table.key]))

    def _count(
        self, table: Table, statement: sql.Statement
    ) -> Generator[TransactionStep, Any, int]:
        ((number,),) = yield Fetch(table, statement)
        return int(number)

    def _read_once(self, read: Read) -> Generator[TransactionStep, Any, list[Row]]:
        """Run a read once for all rows that derive from it, until its table changes."""
        if read.table not in self._read_cache or self._read_cache[read.table][0] != read:
            yield from self.flush(read.table)
            self._read_cache[read.table] = read, (yield from self._read(read)).rows
        return self._read_cache[read.table][1]

    def flush(self, table: Table | None = None) -> Generator[TransactionStep, Any, None]:
        """Yield the deferred inserts: those of a table, or all."""
        for text in [text for text, new in self._deferred.items() if table in (None, new.table)]:
            yield self._deferred.pop(text)
