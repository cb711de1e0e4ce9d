"""Rows of the administrative tables, read by a query string, and changed with audit.

Every table is treated alike, by its declaration. Hidden columns count as unknown ones. Every error
of a query is reported, since a misspelt filter that was ignored would return every row. Answers to
reads are cached until the store changes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from edge_api.admin.filters import (
    ALIAS,
    CASTS,
    COMPARABLE,
    IS_VALUES,
    OPERATORS,
    SelectItems,
    apply_selection,
    operators_for,
    parse_filter,
    parse_selection,
    readable_column,
    split_list,
)
from edge_api.auth.actor import Actor, Clock, audited, new_id
from edge_api.db.caches import SingleFlightCache
from edge_api.db.problems import Problem, format_validation_error, not_one_row
from edge_api.db.query import Delete, Filter, Insert, Order, Read, Store, Update, Value, Where
from edge_api.db.table import Column, Row, Table
from edge_api.db.types import (
    PATTERNS,
    VALUE_SQLSTATES,
    ColumnType,
    Integer,
    Text,
    Timestamp,
    Uuid,
    format_instant,
)

_QUOTED: Final = r'"(?:[^"\\\u0000]|\\[^\u0000])*"'


def filter_pattern(kind: ColumnType) -> str:
    """Return the regular expression of a filter for a column type."""
    names: dict[str, list[str]] = {}
    for name in operators_for(kind):
        names.setdefault(OPERATORS[name].operand_form, []).append(name)
    forms = (rf"{_one_of(words)}\.{_operand(form, kind)}" for form, words in names.items())
    return rf"^(?:not\.)?{_one_of(forms)}$"


def selection_pattern(table: Table) -> str:
    """Return the regular expression of `select`."""
    columns = [table.columns[name] for name in table.readable]
    casts = {each: [name for name, kinds in CASTS.items() if each in kinds] for each in ColumnType}
    chosen = _one_of(rf"{each.name}(?:::{_one_of(casts[each.kind])})?" for each in columns)
    element = rf" *(?:\*|(?:{ALIAS}:)?{chosen}) *"
    return rf"^(?: *|{element}(?:,{element})*)$"


def order_pattern(table: Table) -> str:
    """Return the regular expression of `order`."""
    columns = (name for name in table.readable if table.columns[name].kind in COMPARABLE)
    element = rf" *{_one_of(columns)}(?:\.(?:asc|desc))?(?:\.nulls(?:first|last))? *"
    return rf"^{element}(?:,{element})*$"


def _one_of(forms: Iterable[str]) -> str:
    first, *others = forms
    return f"(?:{'|'.join([first, *others])})" if others else first


def _operand(form: str, kind: ColumnType) -> str:
    """Return the regular expression of an operand.

    In a list, an element that is a quoted string is matched as that only, not as plain text too.
    """
    if form == "pattern":
        return r"(?:[^\\\u0000]|\\[^\u0000])*"
    if form == "state":  # in upper or lower case
        words = _one_of(IS_VALUES)
        return re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", words)
    value = PATTERNS[kind] if kind == ColumnType.TEXT else f" *{PATTERNS[kind]} *"
    if form == "value":
        return value
    element = rf'(?:{value}|"{value}")'
    if kind == ColumnType.TEXT:
        element = rf"(?:{_QUOTED}(?=[,)])|(?!{_QUOTED}[,)])[^,)\u0000]*)"
    return rf"\( *(?:{element}(?:,{element})*)?\) *"


RESERVED: Final = ("select", "limit", "offset", "order")
"""The names of query parameters that are not filters."""
MAX_LIMIT: Final = 1000
MAX_FILTERS: Final = 100  # engines refuse expressions that are much deeper
DEFAULT_LIMIT: Final = 100
MAX_OFFSET: Final = 10**15
"""Larger offsets are reduced to this: engines count to 2**63, and no table has as many rows."""

_INTEGER: Final = re.compile(r"(-?)0*([0-9]+)")

Pairs = Sequence[tuple[str, str]]
_ELEMENT: Final = re.compile(
    r"(?P<column>[^.]+)(?:\.(?P<direction>asc|desc))?(?:\.(?P<nulls>nullsfirst|nullslast))?"
)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query string: the rows to read, and the members to return."""

    read: Read
    selection: SelectItems


def parse_query(
    table: Table, pairs: Pairs, *, with_total: bool = False, seconds: float | None = None
) -> ParsedQuery:
    """Return the query of decoded parameters, with a time limit. Raises Problem `invalid`."""
    filters = [(name, text) for name, text in pairs if name not in RESERVED]
    if len(filters) > MAX_FILTERS:
        raise Problem("invalid", f"filters: at most {MAX_FILTERS} are taken", sqlstate="54001")
    reserved = single_values(pairs, RESERVED)
    selection, columns = _select(table, reserved.get("select", ""))
    where = tuple(parse_filter(table, name, text) for name, text in filters)
    order = parse_order(table, reserved["order"]) if "order" in reserved else ()
    limit = _integer("limit", reserved.get("limit", str(DEFAULT_LIMIT)))
    if not 1 <= limit <= MAX_LIMIT:
        raise Problem("invalid", f"limit: must be from 1 to {MAX_LIMIT}")
    offset = _integer("offset", reserved.get("offset", "0"))
    if offset < 0:
        raise Problem("invalid", "offset: must be 0 or more")
    read = Read(
        table,
        columns=columns,
        where=where,
        order=order,
        limit=limit,
        offset=min(offset, MAX_OFFSET),
        with_total=with_total,
        timeout=seconds,
    )
    return ParsedQuery(read, selection)


@lru_cache(256)
def _select(table: Table, text: str) -> tuple[SelectItems, tuple[str, ...]]:
    """Return the selection, and the columns to read."""
    selection = parse_selection(table, text)
    return selection, tuple(dict.fromkeys(output.column for output in selection))


def single_values(pairs: Pairs, names: Sequence[str]) -> Mapping[str, str]:
    """Return the parameters with these names. Raises Problem `invalid` if one is given twice."""
    found: dict[str, str] = {}
    for name, text in pairs:
        if name in found:
            raise Problem("invalid", f"{name}: is given more than once")
        if name in names:
            found[name] = text
    return MappingProxyType(found)


def check_columns(text: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise Problem `invalid` unless `columns` of an insert names the members of the rows.

    PostgREST's clients send `columns` with an array of rows. It lists all member names, which may
    be quoted.
    """
    members = {name for row in rows for name in row}
    named = {name.strip(" ") for name in split_list(f"({text})") or ()}
    if named != members:
        raise Problem(
            "invalid",
            "columns: must name the members of the rows in the body "
            f"({', '.join(sorted(members))}), or be left out",
        )


def _integer(name: str, text: str) -> int:
    """Return the integer; a very long one is cut to its first digits, still out of range."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise Problem("invalid", f"{name}: must be an integer", sqlstate="22P02")
    return int(found[1] + found[2][: len(str(MAX_OFFSET)) + 1])


@lru_cache(256)
def parse_order(table: Table, text: str) -> tuple[Order, ...]:
    """Parse PostgREST's `order`, a list separated by commas.

    Unless an element says otherwise, NULLs are the greatest values, as in PostgreSQL. If a column
    is named twice, the first element counts. Raises Problem `invalid` for an unknown column
    (42703), one that has no order (42883), and anything else that is no element (PGRST100).
    """
    terms: dict[str, Order] = {}
    for element in text.split(","):
        found = _ELEMENT.fullmatch(element.strip(" "))
        if found is None:
            raise Problem(
                "invalid", "order: must be a list of column[.asc|.desc][.nullsfirst|.nullslast]"
            )
        column = readable_column(table, found["column"])
        if column.kind not in COMPARABLE:
            raise Problem(
                "invalid",
                f"order: {column.name} holds {column.kind}, which has no order",
                sqlstate="42883",
            )
        descending = found["direction"] == "desc"
        nulls_first = found["nulls"] == "nullsfirst" if found["nulls"] else descending
        terms.setdefault(column.name, Order(column.name, descending, nulls_first))
    return tuple(terms.values())


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
