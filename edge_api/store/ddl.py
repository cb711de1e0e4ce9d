"""From a declared table to the DDL that makes it: tables and indexes, as an engine spells them.

Past schema steps are literal (`schema.history`); this says what they have to add up to. Declared
names are plain words, none of them reserved, and stand unquoted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from edge_api.schema.kinds import Kind
from edge_api.schema.table import Column, Index, Table


@dataclass(frozen=True, slots=True)
class Spelling:
    """What engines spell differently."""

    types: Mapping[Kind, str]
    rules: Mapping[Kind, str]
    """What holds of every value of a kind, beside what its column declares."""
    ending: str = ""
    """What stands behind a table's columns."""


def create_all(tables: Iterable[Table], spelling: Spelling) -> tuple[str, ...]:
    """Return the statements that make every table with its indexes."""
    return tuple(statement for table in tables for statement in _create(table, spelling))


def _create(table: Table, spelling: Spelling) -> Iterator[str]:
    columns = (_column(table, column, spelling) for column in table.columns.values())
    listed = ",\n".join(f"    {column}" for column in columns)
    yield f"CREATE TABLE {table.name} (\n{listed}\n){spelling.ending}"
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


def _column(table: Table, column: Column, spelling: Spelling) -> str:
    words = [column.name, spelling.types[column.kind]]
    if not column.nullable:
        words.append("NOT NULL")
    if column.name == table.key:
        words.append("PRIMARY KEY")
    if column.default is not None:
        words.append(f"DEFAULT {_literal(column.default)}")
    rules = " AND ".join(_rules(table, column, spelling))
    if rules:
        words.append(f"CHECK ({rules})")
    return " ".join(words)


def _rules(table: Table, column: Column, spelling: Spelling) -> Iterator[str]:
    """Yield what has to hold of every value."""
    name = column.name
    if column.choices:
        yield f"{name} IN ({', '.join(map(_literal, column.choices))})"
    elif column.kind is Kind.TEXT:
        yield from _range(f"length({name})", column.bounds)
    elif column.kind is Kind.INTEGER:
        yield from _range(name, column.bounds)
    elif column.kind in spelling.rules:
        yield spelling.rules[column.kind].format(column=name)
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
