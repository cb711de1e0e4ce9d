"""Transactions as steps that each engine runs, and group commit.

This module knows no engine. The inserts of a group are deferred until a step could read their rows,
so that one statement stores all new rows of a table.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from edge_api.db import sql
from edge_api.db.errors import unavailable
from edge_api.db.problems import Problem, not_one_row
from edge_api.db.query import (
    Delete,
    Insert,
    InsertFromRead,
    Procedure,
    Query,
    QueryResult,
    Read,
    Update,
)
from edge_api.db.table import Row, Table


class NewRows(NamedTuple):
    """New rows that one statement stores; `records` has the parameters for each of them."""

    table: Table
    text: str
    records: list[tuple[Any, ...]]
    rows: list[Row]


class Fetch(NamedTuple):
    """A statement that returns records."""

    table: Table
    statement: sql.Statement
    names: tuple[str, ...] = ()
    """The columns of each record; empty for a count."""
    rows: Sequence[Row] = ()
    """The values that an update stores, for error messages."""
    many: bool = False
    """Whether the statement reads with a limit above one."""


TransactionStep = NewRows | Fetch
"""A step that an engine runs: a statement that stores new rows, or one that returns records."""


def plan_steps(
    lists: Sequence[Sequence[Query]], dialect: sql.Dialect, *, defer_inserts: bool = False
) -> Generator[TransactionStep, Any, list[list[QueryResult]]]:
    """Yield the steps of all lists of queries in order, and return the results of each list.

    The caller sends the records of each `Fetch` into the generator. `defer_inserts` batches the
    inserts of all lists: then a failed step does not show which list failed. Raises Problem.
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
        if isinstance(query, Procedure):
            results: list[QueryResult] = []
            for step in query.start(results):
                results.append((yield from self.run(step, results)))
            return QueryResult()
        if isinstance(query, InsertFromRead):
            query = query.insert((yield from self._read_once(query.read)))
        if isinstance(query, Insert):
            rows = sql.resolve_counts(query, [len(result.rows) for result in earlier])
            if rows:
                self._read_cache.pop(query.table, None)
                text, records = sql.insert_statement(query, rows, self._dialect)
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
        statement = sql.select_statement(query, self._dialect)
        total = None
        if query.with_total:
            total = yield from self._count(query.table, sql.count_statement(query, self._dialect))
        names = query.columns or tuple(query.table.columns)
        names += (query.summed,) if query.summed else ()
        many = query.limit is not None and query.limit > 1
        records = yield Fetch(query.table, statement, names, many=many)
        return QueryResult(sql.decode(query.table, names, records), total)

    def _change(self, query: Update | Delete) -> Generator[TransactionStep, Any, QueryResult]:
        table, names, most = query.table, tuple(query.table.columns), query.at_most
        # Count the matching rows first: undoing a million changes costs as much as making them.
        if most is not None and most < (
            yield from self._count(table, sql.count_matches_statement(query, most, self._dialect))
        ):
            raise Problem(
                "invalid",
                f"match: fits more than {most} rows, which is the most for one call; narrow it",
                sqlstate="54000",
            )
        if isinstance(query, Update):
            statement, values = sql.update_statement(query, self._dialect), [dict(query.values)]
        else:
            statement, values = sql.delete_statement(query, self._dialect), []
        rows = sql.decode(table, names, (yield Fetch(table, statement, names, values)))
        if query.single and len(rows) != 1:
            raise not_one_row(len(rows))
        if isinstance(query, Update) and len(rows) < query.at_least:
            raise Problem("conflict", "What was to be changed has changed meanwhile: look again")
        return QueryResult(sorted(rows, key=lambda row: row[table.key]))

    def _count(
        self, table: Table, statement: sql.Statement
    ) -> Generator[TransactionStep, Any, int]:
        ((number,),) = yield Fetch(table, statement)
        return int(number)

    def _read_once(self, read: Read) -> Generator[TransactionStep, Any, list[Row]]:
        """Return the rows of a read, which are cached until its table changes."""
        if read.table not in self._read_cache or self._read_cache[read.table][0] != read:
            yield from self.flush(read.table)
            self._read_cache[read.table] = read, (yield from self._read(read)).rows
        return self._read_cache[read.table][1]

    def flush(self, table: Table | None = None) -> Generator[TransactionStep, Any, None]:
        """Yield the deferred inserts: those of a table, or all."""
        for text in [text for text, new in self._deferred.items() if table in (None, new.table)]:
            yield self._deferred.pop(text)


W = TypeVar("W")

MAX_GROUP_SIZE: Final = 256
"""The most callers that share a commit: more would save little, and delay the first ones."""
DRAIN_SECONDS: Final = 3.0
"""The time for which a closing store still commits the work of callers that wait already."""


class GroupCommitter(ABC, Generic[W]):
    """Collects work while the last group is committed, and commits it as the next group.

    Each caller is answered after the commit and never before.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[W, asyncio.Future[Any]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.last_commit_failed = False
        """Whether the commit of the last group failed."""

    async def run(self, work: W) -> Any:
        """Return the result of `work`, once that is durable.

        Raises what the work raises, and what `_commit` raises when it fails for the whole group.
        Cancelling a caller does not affect the others; its work is dropped unless it has begun.
        """
        self.refuse_closed()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._commit_groups())
            self._task.add_done_callback(self._handle_end)
        return await future

    def refuse_closed(self) -> None:
        """Raise Problem `unavailable` once the store is closed."""
        if self._closed:
            raise unavailable("The store is closed")

    async def close(self) -> None:
        """Commit waiting work, for a few seconds at the most, and refuse the rest."""
        self._closed = True
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=DRAIN_SECONDS)
        self._refuse_waiting()

    @abstractmethod
    async def _commit(self, works: Sequence[W]) -> Sequence[Any]:
        """Run all works in one transaction, and return the result of each after the commit.

        The result of work that failed is its exception. Raises when the whole group fails.
        """

    async def _commit_groups(self) -> None:
        while self._waiting:
            count = min(len(self._waiting), MAX_GROUP_SIZE)
            calls = [self._waiting.popleft() for _ in range(count)]
            group = [call for call in calls if not call[1].done()]
            results: Sequence[Any] = [unavailable("The store was stopped") for _ in group]
            try:
                results = await self._commit([work for work, _ in group])
                self.last_commit_failed = False
            except Exception as error:  # noqa: BLE001  every caller of the group gets the error
                results = [error for _ in group]
                self.last_commit_failed = True
            finally:
                for (_, future), result in zip(group, results, strict=True):
                    _resolve(future, result)

    def _handle_end(self, task: asyncio.Task[None]) -> None:
        # An event loop that shuts down cancels tasks, even those that have not begun.
        if task.cancelled():
            self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        while self._waiting:
            _resolve(self._waiting.popleft()[1], unavailable("The store was stopped"))


def _resolve(future: asyncio.Future[Any], result: Any) -> None:
    """Set the result or the exception for a caller, unless that was cancelled meanwhile."""
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
