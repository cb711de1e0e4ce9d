"""From a plan to SQL: pure functions from plans to text and parameters, in SQLite's dialect.

Names come from the declared tables and are quoted; values are only ever parameters. It opens
nothing and carries nothing out.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from edge_api.schema.kinds import Kind
from edge_api.schema.problems import Problem
from edge_api.schema.table import Column, Table, unknown_column
from edge_api.store.json_text import write_json
from edge_api.store.matching import Pattern
from edge_api.store.plan import (
    AffectedBy,
    Condition,
    Delete,
    Depending,
    Insert,
    Order,
    Read,
    Update,
    Where,
)

LIKE: Final = "like_text"
ILIKE: Final = "ilike_text"
"""Functions that every connection brings; SQLite's own LIKE folds ASCII letters only."""

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "eq": "{column} = ?",
        "neq": "{column} <> ?",
        "gt": "{column} > ?",
        "gte": "{column} >= ?",
        "lt": "{column} < ?",
        "lte": "{column} <= ?",
        "like": f"{LIKE}({{column}}, ?)",
        "ilike": f"{ILIKE}({{column}}, ?)",
        # One parameter however long the list. An empty one matches nothing, and its negation
        # everything, NULL included, as in PostgreSQL.
        "in": "{column} IN (SELECT value FROM json_each(?))",
        "is": "{column} IS NULL",
    }
)
"""What each filter operator asks, in SQL."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with the values for its question marks."""

    text: str
    parameters: Sequence[Any] = ()


def read_rows(plan: Read) -> Statement:
    """Return the statement that reads the rows."""
    names = _names(plan.table, plan.columns or plan.table.columns)
    where = _where(plan.table, plan.where)
    source = f"SELECT {names} FROM {quote(plan.table.name)}{where.text}"
    limit = -1 if plan.limit is None else plan.limit
    parameters = (*where.parameters, limit, plan.offset)
    return Statement(f"{source} ORDER BY {_order(plan)} LIMIT ? OFFSET ?", parameters)


def count_rows(plan: Read) -> Statement:
    """Return the statement that counts what matches, whatever limit and offset."""
    where = _where(plan.table, plan.where)
    text = f"SELECT count(*) FROM {quote(plan.table.name)}{where.text}"
    return Statement(text, where.parameters)


@cache
def insert_row(table: Table) -> str:
    """Return the text of the statement that stores one whole row."""
    marks = ", ".join("?" * len(table.columns))
    names = _names(table, table.columns)
    return f"INSERT INTO {quote(table.name)} ({names}) VALUES ({marks})"


def insert_parameters(plan: Insert, affected: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return the parameters of `insert_row` for each row of the plan.

    `affected` says how many rows each earlier plan of the transaction read or changed.
    """
    columns = plan.table.columns.values()
    return [
        tuple(_bind(column, _resolve(row[column.name], affected)) for column in columns)
        for row in plan.rows
    ]


def update_rows(plan: Update) -> Statement:
    """Return the statement that changes the rows that match, and gives them back."""
    if not plan.values:
        raise Problem("invalid", "values: must name at least one column")
    columns = [column_of(plan.table, name) for name in plan.values]
    settings = ", ".join(f"{quote(column.name)} = ?" for column in columns)
    where = _where_needed(plan)
    values = (_bind(column, plan.values[column.name]) for column in columns)
    text = f"UPDATE {quote(plan.table.name)} SET {settings}{where.text}{_returning(plan.table)}"
    return Statement(text, (*values, *where.parameters))


def delete_rows(plan: Delete) -> Statement:
    """Return the statement that deletes the rows that match, and gives them back."""
    where = _where_needed(plan)
    text = f"DELETE FROM {quote(plan.table.name)}{where.text}{_returning(plan.table)}"
    return Statement(text, where.parameters)


def count_matches(plan: Update | Delete, most: int) -> Statement:
    """Return the statement that counts the rows that match, and stops at one more than `most`."""
    where = _where_needed(plan)
    matching = f"SELECT 1 FROM {quote(plan.table.name)}{where.text} LIMIT ?"
    return Statement(f"SELECT count(*) FROM ({matching})", (*where.parameters, most + 1))


def quote(name: str) -> str:
    """Return a declared name as an SQL identifier."""
    return f'"{name}"'


def column_of(table: Table, name: str) -> Column:
    """Return a declared column. Raises Problem `invalid` when the table has none of that name."""
    try:
        return table.columns[name]
    except KeyError:
        raise unknown_column(table, name) from None


def _names(table: Table, names: Iterable[str]) -> str:
    return ", ".join(quote(column_of(table, name).name) for name in names)


def _returning(table: Table) -> str:
    return f" RETURNING {_names(table, table.columns)}"


def _where_needed(plan: Update | Delete) -> Statement:
    if not plan.where:
        raise Problem("invalid", "match: must name at least one column", sqlstate="21000")
    return _where(plan.table, plan.where)


def _where(table: Table, where: Where) -> Statement:
    if not where:
        return Statement("")
    parts = [_condition(table, condition) for condition in where]
    text = " AND ".join(part.text for part in parts)
    return Statement(f" WHERE {text}", [value for part in parts for value in part.parameters])


def _condition(table: Table, condition: Condition) -> Statement:
    column = column_of(table, condition.column)
    text = OPERATIONS[condition.operator].format(column=quote(column.name))
    return Statement(f"NOT ({text})" if condition.negated else text, _operands(condition))


def _operands(condition: Condition) -> tuple[Any, ...]:
    match condition.operator:
        case "is":
            return ()
        case "in":
            return (json.dumps(condition.value),)
        case "like" | "ilike":
            return (_checked_pattern(condition),)
        case _:
            return (condition.value,)


def _checked_pattern(condition: Condition) -> str:
    """Return the pattern; a malformed one is refused before any row is looked at."""
    pattern = str(condition.value)
    try:
        Pattern(pattern)
    except ValueError as error:
        raise Problem("invalid", f"{condition.column}: {error}", sqlstate="22025") from None
    return pattern


def _order(plan: Read) -> str:
    """Return the terms to sort by; with the key among them no two rows are equal.

    The key goes the way of the term before it, as the indexes do that end in it: a deep offset
    walks such an index, and would else sort the whole table.
    """
    orders = plan.order
    if all(order.column != plan.table.key for order in orders):
        orders = (*orders, Order(plan.table.key, bool(orders) and orders[-1].descending))
    return ", ".join(_order_term(plan.table, order) for order in orders)


def _order_term(table: Table, order: Order) -> str:
    column = column_of(table, order.column)
    term = f"{quote(column.name)} {'DESC' if order.descending else 'ASC'}"
    if not column.nullable:
        # There is no NULL to place, and a term that places it may keep an index from being used.
        return term
    return f"{term} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


def _bind(column: Column, value: Any) -> Any:
    return write_json(value) if column.kind is Kind.JSON and value is not None else value


def _resolve(value: Any, affected: Sequence[int]) -> Any:
    match value:
        case AffectedBy(step):
            return affected[step]
        case Depending(step, some, none):
            return some if affected[step] else none
    return value
