"""Rows of the administrative tables, read and changed with audit.

Every table is treated alike, by its declaration. Hidden columns count as unknown ones. Answers to
reads are cached until the store changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from edge_api.admin.filters import SelectItems, apply_selection, parse_selection, readable_column
from edge_api.admin.query import Pairs, ParsedQuery, parse_query
from edge_api.auth.actor import Actor, Clock, audited, new_id
from edge_api.db.caches import SingleFlightCache
from edge_api.db.problems import Problem, format_validation_error, not_one_row
from edge_api.db.query import Delete, Filter, Insert, Store, Update, Value, Where
from edge_api.db.table import Column, Row, Table
from edge_api.db.types import (
    VALUE_SQLSTATES,
    ColumnType,
    Integer,
    Text,
    Timestamp,
    Uuid,
    format_instant,
)

READ_TIMEOUT_SECONDS: Final = 5.0
"""The time limit of a read: many times what sorting a million rows without an index takes."""
MAX_INSERT_ROWS: Final = 1000  # rows of one insert: as many as one read returns
MAX_CHANGES: Final = 10_000  # rows that one update or deletion may affect
_STRICT: Final = ConfigDict(strict=True)
_VALIDATORS: Mapping[ColumnType, TypeAdapter[Any]] = {
    ColumnType.TEXT: TypeAdapter(Text, config=_STRICT),
    ColumnType.INTEGER: TypeAdapter(Integer, config=_STRICT),
    ColumnType.UUID: TypeAdapter(Uuid, config=_STRICT),
    ColumnType.TIMESTAMP: TypeAdapter(Timestamp, config=_STRICT),
}
"""The validators of values to match, by type. They ignore the bounds of a column: a value outside
of them matches no row."""


@dataclass(frozen=True, slots=True)
class RowsPage:
    """The answer to a read."""

    names: tuple[str, ...]
    """The members of each row, in the requested order."""
    json: bytes
    """The rows, as an array of objects."""
    count: int
    """The number of rows."""
    offset: int
    total: int | None
    """The number of rows without limit and offset, if it was requested."""

    @property
    def rows(self) -> list[Row]:
        """The rows, parsed from JSON."""
        rows: list[Row] = orjson.loads(self.json)
        return rows


@dataclass(frozen=True, slots=True)
class ReturnOptions:
    """The requested response of a write."""

    selection: SelectItems = ()
    """The members of each written row; empty: every readable column."""
    single: bool = False
    """Whether it must affect exactly one row: otherwise Problem `not_acceptable`, and no change."""


DEFAULT_OPTIONS: Final = ReturnOptions()


class Rows:
    """Reads and changes the rows of the administrative tables of a store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pages = SingleFlightCache[RowsPage](lambda page: len(page.json))

    async def read(
        self, table: Table, pairs: Pairs, *, with_total: bool = False, only_keys: bool = False
    ) -> RowsPage:
        """Return the rows that decoded query parameters ask for, or only their keys.

        Raises Problem `invalid` for any error in them, `unavailable` after READ_TIMEOUT_SECONDS.
        """
        query = parse_query(table, pairs, with_total=with_total, seconds=READ_TIMEOUT_SECONDS)
        if only_keys:
            read = replace(query.read, columns=(table.key,))
            query = ParsedQuery(read, parse_selection(table, table.key))
        if not self._store.version_is_exact:  # a change by another edge must be visible at once
            return await self._read(query)
        length = sum(len(name) + len(text) for name, text in pairs)
        # The parameters are the key, since the hash of `query` would be computed anew each time.
        key = (self._store.version(), table, with_total, only_keys, *pairs)
        return await self._pages.get(key, partial(self._read, query), length)

    async def _read(self, query: ParsedQuery) -> RowsPage:
        (result,) = await self._store.run(query.read)
        names = tuple(output.name for output in query.selection)
        encoded = orjson.dumps(apply_selection(result.rows, query.selection))
        return RowsPage(names, encoded, len(result.rows), query.read.offset, result.total)

    async def insert(
        self,
        table: Table,
        given: Sequence[Mapping[str, Any]],
        actor: Actor,
        options: ReturnOptions = DEFAULT_OPTIONS,
    ) -> list[Row]:
        """Store new rows, all or none, and return them as stored.

        Raises Problem `invalid` for an invalid row or too many, `conflict` for a row that exists,
        `not_acceptable` for another number of rows than `options` asks for.
        """
        if len(given) > MAX_INSERT_ROWS:
            raise Problem(
                "invalid", f"body: must have {MAX_INSERT_ROWS} rows or fewer", sqlstate="54000"
            )
        now = self._clock()
        rows: list[Row] = []
        for number, row in enumerate(given, start=1):
            try:
                for name in row:
                    readable_column(table, name)
                rows.append(table.new_row(row, format_instant(now), partial(new_id, now)))
            except Problem as problem:
                problem.details = f"Row {number} of the body"
                raise
        if options.single and len(rows) != 1:
            raise not_one_row(len(rows))
        return await self._write("insert", Insert(table, rows), actor, options)

    async def update(
        self,
        table: Table,
        match: Mapping[str, Any],
        values: Mapping[str, Any],
        actor: Actor,
        options: ReturnOptions = DEFAULT_OPTIONS,
    ) -> list[Row]:
        """Change the rows that match and return them changed.

        Raises Problem `invalid` for an error in either object or more than MAX_CHANGES rows,
        `conflict` for a duplicate of a unique value, `not_acceptable` like `insert`.
        """
        where = parse_match(table, match)
        if not values:
            raise Problem("invalid", "values: must name at least one column")
        changed = table.new_values(values, format_instant(self._clock()))
        query = Update(table, changed, where, MAX_CHANGES, single=options.single)
        return await self._write("update", query, actor, options)

    async def delete(
        self,
        table: Table,
        match: Mapping[str, Any],
        actor: Actor,
        options: ReturnOptions = DEFAULT_OPTIONS,
    ) -> list[Row]:
        """Delete the rows that match and return them. Raises Problem like `update`."""
        query = Delete(table, parse_match(table, match), MAX_CHANGES, single=options.single)
        return await self._write("delete", query, actor, options)

    async def _write(
        self, verb: str, query: Insert | Update | Delete, actor: Actor, options: ReturnOptions
    ) -> list[Row]:
        """Execute a change and its audit entry in one transaction."""
        _, result, _ = await self._store.run(*audited(actor, verb, query, self._clock()))
        return apply_selection(result.rows, options.selection or parse_selection(query.table))


def parse_match(table: Table, match: Mapping[str, Any]) -> Where:
    """Return the filters of a match: equality, NULL for `null`, any of an array's values.

    Raises Problem `invalid` for an empty object (21000), an unknown column (42703) and a value
    that is not of the column's type (22P02, ...).
    """
    if not match:
        raise Problem(
            "invalid",
            "match: must name at least one column",
            sqlstate="21000",
            hint="No change is made to a whole table by leaving out what to match",
        )
    return tuple(_match_filter(table, name, value) for name, value in match.items())


def _match_filter(table: Table, name: str, value: Any) -> Filter:
    column = readable_column(table, name)
    if value is None:
        return Filter(name, "is", None)
    if column.kind == ColumnType.JSON:
        raise Problem("invalid", f"match.{name}: a JSON column can only be null", sqlstate="42883")
    if isinstance(value, list):
        return Filter(name, "in", tuple(_check_value(table, column, item) for item in value))
    return Filter(name, "eq", _check_value(table, column, value))


def _check_value(table: Table, column: Column, value: Any) -> Value:
    try:
        checked: Value = _VALIDATORS[column.kind].validate_python(value)
    except ValidationError as error:
        message = format_validation_error(error.errors(include_url=False)[0])
        sqlstate = VALUE_SQLSTATES[column.kind]
        raise Problem("invalid", f"match.{column.name}: {message}", sqlstate=sqlstate) from None
    if isinstance(checked, str) and column.name in table.case_insensitive:
        return checked.lower()
    return checked
