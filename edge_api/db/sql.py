"""Write queries as SQL and tables as DDL, in an engine's dialect; decode records into rows.

Names come from the declared tables and are quoted; values are only ever parameters. Nothing is run
here.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from edge_api.db.problems import Problem
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    Order,
    Pattern,
    Read,
    RowCount,
    Update,
    ValueIfExists,
    Where,
)
from edge_api.db.table import Column, Row, Table, unknown_column
from edge_api.db.types import ColumnType


@dataclass(frozen=True, slots=True)
class SchemaDialect:
    """The differences of an engine's DDL."""

    types: Mapping[ColumnType, str]
    """The SQL type of each kind of column."""
    checks: Mapping[ColumnType, str]
    """The CHECK of a column by kind; instants have one width, so as texts they sort by time."""
    options: str
    """The text after the columns in CREATE TABLE."""
    search: Sequence[str]
    """The statements for searched columns, with placeholders that `format_search` fills in."""


def create_statements(tables: Iterable[Table], dialect: SchemaDialect) -> Iterator[str]:
    """Yield the statements that make every table with its indexes."""
    for table in tables:
        columns = ",\n".join(
            f"    {_define_column(table, column, dialect)}" for column in table.columns.values()
        )
        yield f"CREATE TABLE {table.name} (\n{columns}\n){dialect.options}"
        for index in table.indexes:
            unique = "UNIQUE " if index.unique else ""
            names = ", ".join(
                f"{name[1:]} DESC" if name[0] == "-" else name for name in index.columns
            )
            part = index.where and f" WHERE {index.where[0]} = {_literal(index.where[1])}"
            yield f"CREATE {unique}INDEX {index.name} ON {table.name} ({names}){part or ''}"
        yield from format_search(table, dialect.search)


def format_search(table: Table, statements: Iterable[str]) -> Iterator[str]:
    """Yield an engine's statements for the searched columns of a table, if it has some."""
    old, new = (
        ", ".join(f"fold_accents({row}.{name})" for name in table.searched)
        for row in ("old", "new")
    )
    values = ", ".join(
        f"json_extract(value, '$[{at}]')" for at in range(1, len(table.searched) + 1)
    )
    given = {"joined": " || ' ' || ".join(table.searched), "values": values, "old": old, "new": new}
    for statement in statements if table.searched else ():
        yield statement.format(table=table.name, columns=", ".join(table.searched), **given)


def _define_column(table: Table, column: Column, dialect: SchemaDialect) -> str:
    words = [column.name, dialect.types[column.kind]]
    if not column.nullable:
        words.append("NOT NULL")
    if column.name == table.key:
        words.append("PRIMARY KEY")
    if column.default is not None:
        words.append(f"DEFAULT {_literal(column.default)}")
    checks = " AND ".join(_checks(table, column, dialect))
    return " ".join([*words, *([f"CHECK ({checks})"] if checks else [])])


def _checks(table: Table, column: Column, dialect: SchemaDialect) -> Iterator[str]:
    """Yield the conditions of a column's CHECK."""
    name = column.name
    if column.choices:
        yield f"{name} IN ({', '.join(map(_literal, column.choices))})"
    elif column.kind in dialect.checks:
        yield dialect.checks[column.kind].format(column=name)
    else:
        measure = name if column.kind is ColumnType.INTEGER else f"length({name})"
        minimum, maximum = column.bounds
        if minimum is not None and minimum == maximum:
            yield f"{measure} = {minimum}"
        elif minimum is not None and maximum is not None:
            yield f"{measure} BETWEEN {minimum} AND {maximum}"
        elif minimum is not None:
            yield f"{measure} >= {minimum}"
        elif maximum is not None:
            yield f"{measure} <= {maximum}"
    if column.name in table.case_insensitive:
        yield f"{name} = lower({name})"


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def decode(table: Table, names: Sequence[str], records: Iterable[Iterable[Any]]) -> list[Row]:
    """Return a row for each record, which has the values of the columns `names`."""
    rows = [dict(zip(names, record, strict=True)) for record in records]
    for name in table.json_columns.intersection(names):
        for row in rows:
            row[name] = None if row[name] is None else json.loads(row[name])
    return rows


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def write_json(value: Any) -> str:
    """Return a value as JSON text. Raises Problem `invalid` for one that JSON lacks (RFC 8259)."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise Problem("invalid", "the value cannot be written as JSON", sqlstate="22P02") from None


COMPARISONS: Mapping[str, str] = {
    "eq": "{column} = ?",
    "neq": "{column} <> ?",
    "gt": "{column} > ?",
    "gte": "{column} >= ?",
    "lt": "{column} < ?",
    "lte": "{column} <= ?",
    "is": "{column} IS NULL",
}
"""The SQL of filter operators that is the same in every engine."""


STATEMENT_CACHE_SIZE = 256
"""The number of cached texts of each function; clients can request any number of column lists."""


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """The differences of an engine's SQL."""

    operations: Mapping[str, str]
    """The SQL of each filter operator: `{column}` is the column, each `?` an operand."""
    operands: Mapping[str, Callable[[Any], tuple[Any, ...]]]
    """Functions by operator that convert a filter's value to operands; else it is the operand."""
    no_limit: int | None
    """The LIMIT that means no limit."""
    case_placeholders: Mapping[ColumnType, str]
    """The placeholders in a CASE, where an engine cannot infer their type."""
    format_placeholders: Callable[[str], str]
    """Replaces the question marks of a text by the engine's placeholders."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with the values for its placeholders."""

    text: str
    parameters: Sequence[Any] = ()


def select_statement(query: Read, dialect: Dialect) -> Statement:
    """Return the statement that reads the rows, or sums of theirs."""
    names = _names(query.table, query.columns or tuple(query.table.columns))
    where = _where(query.table, query.where, dialect)
    limit = dialect.no_limit if query.limit is None else query.limit
    if query.summed:
        name = _names(query.table, (query.summed,))
        # PostgreSQL's sum of integers is a numeric. ORDER BY takes the sum, not the column.
        text = (
            f"SELECT {names}, CAST(sum({name}) AS bigint) AS {name} "
            f"FROM {quote(query.table.name)}{where.text} "
            f"GROUP BY {names} ORDER BY {name} DESC, {names} LIMIT ?"
        )
        return Statement(dialect.format_placeholders(text), (*where.parameters, limit))
    text = (
        f"SELECT {names} FROM {quote(query.table.name)}{where.text} "
        f"ORDER BY {_order(query.table, query.order)} LIMIT ? OFFSET ?"
    )
    return Statement(dialect.format_placeholders(text), (*where.parameters, limit, query.offset))


def count_statement(query: Read, dialect: Dialect) -> Statement:
    """Return the statement that counts the rows that match, without limit and offset."""
    where = _where(query.table, query.where, dialect)
    text = f"SELECT count(*) FROM {quote(query.table.name)}{where.text}"
    return Statement(dialect.format_placeholders(text), where.parameters)


def insert_statement(
    query: Insert, rows: Sequence[Row], dialect: Dialect
) -> tuple[str, list[tuple[Any, ...]]]:
    """Return the text that stores one row of the query, and the parameters for each of `rows`."""
    cases = tuple(name for name, value in rows[0].items() if isinstance(value, ValueIfExists))
    where = _where(query.table, query.condition, dialect)
    records = [tuple(_bind_row(query.table, row, where.parameters)) for row in rows]
    return _insert(query.table, cases, where.text, query.merge, dialect), records


_MERGES: Mapping[str, str] = {
    "sum": "{old} + {new}",
    "largest": "CASE WHEN {old} < {new} THEN {new} ELSE {old} END",
}


@lru_cache(STATEMENT_CACHE_SIZE)
def _insert(table: Table, cases: tuple[str, ...], where: str, merge: str, dialect: Dialect) -> str:
    placeholders = dict.fromkeys(table.columns, "?")
    for name in cases:
        placeholder = dialect.case_placeholders.get(table.columns[name].kind, "?")
        # Not INSERT ... SELECT: SQLite would first store the rows in a temporary table.
        condition = f"EXISTS (SELECT 1 FROM {quote(table.name)}{where})"
        placeholders[name] = f"CASE WHEN {condition} THEN {placeholder} ELSE {placeholder} END"
    names, values = _names(table, tuple(placeholders)), ", ".join(placeholders.values())
    text = f"INSERT INTO {quote(table.name)} ({names}) VALUES ({values})"
    if merge:
        counted = ", ".join(map(quote, table.indexes[0].columns))
        merged = _MERGES[merge].format(old=f"{quote(table.name)}.count", new="excluded.count")
        text += f" ON CONFLICT ({counted}) DO UPDATE SET count = {merged}"
    return dialect.format_placeholders(text)


def _bind_row(table: Table, row: Row, condition: Sequence[Any]) -> Iterator[Any]:
    for name, column in table.columns.items():
        value = row[name]
        if isinstance(value, ValueIfExists):
            yield from condition
            yield _bind(column, value.if_exists)
            yield _bind(column, value.if_missing)
        else:
            yield _bind(column, value) if name in table.json_columns else value


def resolve_counts(query: Insert, affected: Sequence[int]) -> list[Row]:
    """Replace each `RowCount` in the rows; `affected` counts the rows of earlier queries."""
    if not any(RowCount in map(type, row.values()) for row in query.rows):
        return [dict(row) for row in query.rows]
    return [
        {name: affected[v.query_index] if isinstance(v, RowCount) else v for name, v in row.items()}
        for row in query.rows
    ]


def update_statement(query: Update, dialect: Dialect) -> Statement:
    """Return the statement that updates and returns the matching rows."""
    if not query.values:
        raise Problem("invalid", "values: must name at least one column")
    columns = [column_of(query.table, name) for name in query.values]
    settings = ", ".join(f"{quote(column.name)} = ?" for column in columns)
    where = _required_where(query, dialect)
    values = (_bind(column, query.values[column.name]) for column in columns)
    text = f"UPDATE {quote(query.table.name)} SET {settings}{where.text}{_returning(query.table)}"
    return Statement(dialect.format_placeholders(text), (*values, *where.parameters))


def delete_statement(query: Delete, dialect: Dialect) -> Statement:
    """Return the statement that deletes and returns the matching rows."""
    where = _required_where(query, dialect)
    text = f"DELETE FROM {quote(query.table.name)}{where.text}{_returning(query.table)}"
    return Statement(dialect.format_placeholders(text), where.parameters)


def count_matches_statement(query: Update | Delete, most: int, dialect: Dialect) -> Statement:
    """Return the statement that counts the matching rows, up to one more than `most`."""
    where = _required_where(query, dialect)
    text = (
        f"SELECT count(*) FROM (SELECT 1 FROM {quote(query.table.name)}{where.text} LIMIT ?) "
        "AS matching"
    )
    return Statement(dialect.format_placeholders(text), (*where.parameters, most + 1))


def quote(name: str) -> str:
    """Return a declared name as an SQL identifier."""
    return f'"{name}"'


def match_trigrams(words: Iterable[str]) -> str:
    """Return the FTS5 query for rows with every trigram of the words (FTS5, section 3.1)."""
    found = {word[at : at + 3] for word in words for at in range(len(word) - 2)}
    return " ".join('"' + each.replace('"', '""') + '"' for each in sorted(found))


def column_of(table: Table, name: str) -> Column:
    """Return a declared column. Raises Problem `invalid` when the table has none of that name."""
    try:
        return table.columns[name]
    except KeyError:
        raise unknown_column(table, name) from None


@lru_cache(STATEMENT_CACHE_SIZE)
def _names(table: Table, names: tuple[str, ...]) -> str:
    return ", ".join(quote(column_of(table, name).name) for name in names)


def _returning(table: Table) -> str:
    return f" RETURNING {_names(table, tuple(table.columns))}"


def _required_where(query: Update | Delete, dialect: Dialect) -> Statement:
    if not query.where:
        raise Problem("invalid", "match: must name at least one column", sqlstate="21000")
    return _where(query.table, query.where, dialect)


def _where(table: Table, where: Where, dialect: Dialect) -> Statement:
    if not where:
        return Statement("")
    parts = [_condition(table, condition, dialect) for condition in where]
    text = " AND ".join(part.text for part in parts)
    return Statement(f" WHERE {text}", [value for part in parts for value in part.parameters])


def _condition(table: Table, condition: Filter, dialect: Dialect) -> Statement:
    if condition.operator == "any" and isinstance(condition.value, tuple):
        parts = [_condition(table, f, dialect) for f in condition.value if isinstance(f, Filter)]
        text = " OR ".join(part.text for part in parts)
        return Statement(f"({text})", [value for part in parts for value in part.parameters])
    column = column_of(table, condition.column)
    if condition.operator in ("like", "ilike"):
        try:
            Pattern(str(condition.value))  # raises before any row is read
        except ValueError as error:
            raise Problem("invalid", f"{condition.column}: {error}", sqlstate="22025") from None
    operator, value = condition.operator, condition.value
    if isinstance(value, str) and "\0" in value and operator in _NUL_COMPARISONS:
        operation, operands = _NUL_COMPARISONS[operator], ()
    else:
        given: object = value
        if isinstance(value, tuple):
            given = tuple(each for each in value if "\0" not in str(each))
        convert = dialect.operands.get(operator, lambda each: (each,))
        operation, operands = dialect.operations[operator], convert(given)
    text = _operation(operation, table, column.name)
    return Statement(f"NOT ({text})" if condition.negated else text, operands)


@lru_cache(STATEMENT_CACHE_SIZE)
def _operation(operation: str, table: Table, column: str) -> str:
    joined = " || ' ' || ".join(table.searched)
    return operation.format(column=quote(column), table=table.name, joined=joined)


_NUL_COMPARISONS = {"eq": "{column} <> {column}", "neq": "{column} = {column}"}
"""The SQL of a comparison with a text that has a NUL: no column contains one, and not every
engine takes one as a parameter."""


@lru_cache(STATEMENT_CACHE_SIZE)
def _order(table: Table, orders: tuple[Order, ...]) -> str:
    """Return the terms of ORDER BY; the key is one of them, so that no two rows are equal.

    It has the direction of the term before it, like the indexes that end in it. So for a deep
    offset an engine walks such an index instead of sorting the whole table.
    """
    if all(order.column != table.key for order in orders):
        orders = (*orders, Order(table.key, bool(orders) and orders[-1].descending))
    # Only for nullable columns, since NULLS FIRST or LAST may keep an index from being used.
    return ", ".join(
        f"{quote(column.name)} {'DESC' if order.descending else 'ASC'}"
        + (f" NULLS {'FIRST' if order.nulls_first else 'LAST'}" if column.nullable else "")
        for order in orders
        for column in [column_of(table, order.column)]
    )


def _bind(column: Column, value: Any) -> Any:
    return value if value is None or column.kind is not ColumnType.JSON else write_json(value)
