"""From a declared table to the DDL that makes it: tables and indexes, in PostgreSQL's dialect.

Past schema steps are literal (`schema.history`); this says what they have to add up to. A value
has the same spelling as in the embedded engine, so that it sorts and compares alike: text by code
point, whatever the locale of the database. Declared names are plain words and stand unquoted.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from edge_api.schema.kinds import Kind
from edge_api.schema.table import Column, Index, Table

TYPES: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.TEXT: 'text COLLATE "C"',
        Kind.UUID: 'text COLLATE "C"',
        Kind.TIMESTAMP: 'text COLLATE "C"',
        Kind.INTEGER: "bigint",
        Kind.JSON: "json",
    }
)
SHAPES: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.UUID: "________-____-____-____-____________",
        Kind.TIMESTAMP: "____-__-__T__:__:__.______Z",
    }
)
"""LIKE patterns, in which an underscore is one character."""


def create_all(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the statements that make every table with its indexes."""
    return tuple(statement for table in tables for statement in _create(table))


def _create(table: Table) -> Iterator[str]:
    columns = ",\n".join(f"    {_column(table, column)}" for column in table.columns.values())
    yield f"CREATE TABLE {table.name} (\n{columns}\n)"
    for index in table.indexes:
        yield _create_index(table, index)


def _create_index(table: Table, index: Index) -> str:
    unique = "UNIQUE " if index.unique else ""
    terms = ", ".join(map(_index_term, index.columns))
    text = f"CREATE {unique}INDEX {index.name} ON {table.name} ({terms})"
    if index.where is None:
        return text
    column, value = index.where
    return f"{text} WHERE {column} = {_literal(value)}"


def _index_term(name: str) -> str:
    return f"{name.removeprefix('-')} DESC" if name.startswith("-") else name


def _column(table: Table, column: Column) -> str:
    words = [column.name, TYPES[column.kind]]
    if not column.nullable:
        words.append("NOT NULL")
    if column.name == table.key:
        words.append("PRIMARY KEY")
    if column.default is not None:
        words.append(f"DEFAULT {_literal(column.default)}")
    rules = " AND ".join(_rules(table, column))
    if rules:
        words.append(f"CHECK ({rules})")
    return " ".join(words)


def _rules(table: Table, column: Column) -> Iterator[str]:
    """Yield what has to hold of every value; NULL passes, and JSON is seen to by its type."""
    name = column.name
    if column.choices:
        yield f"{name} IN ({', '.join(map(_literal, column.choices))})"
    elif column.kind is Kind.TEXT:
        yield from _range(f"length({name})", column.bounds)
    elif column.kind is Kind.INTEGER:
        yield from _range(name, column.bounds)
    elif column.kind in SHAPES:
        yield f"{name} LIKE {_literal(SHAPES[column.kind])}"
    if column.name in table.folded:
        yield f"{name} = lower({name})"


def _range(measure: str, bounds: tuple[int | None, int | None]) -> Iterator[str]:
    least, most = bounds
    if least is not None and least == most:
        yield f"{measure} = {least}"
    elif least is not None and most is not None:
        yield f"{measure} BETWEEN {least} AND {most}"
    elif least is not None:
        yield f"{measure} >= {least}"
    elif most is not None:
        yield f"{measure} <= {most}"


def _literal(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"
