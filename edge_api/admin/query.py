"""The query string of an administrative read: its grammar, and its parser.

No row is read here. Every error is reported, since a misspelt filter that was ignored would return
every row.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from edge_api.admin.filters import (
    ALIAS,
    CASTS,
    COMPARABLE,
    IS_VALUES,
    OPERATORS,
    SelectItems,
    operators_for,
    parse_filter,
    parse_selection,
    readable_column,
    split_list,
)
from edge_api.db.problems import Problem
from edge_api.db.query import Order, Read
from edge_api.db.table import Table
from edge_api.db.types import PATTERNS, ColumnType

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
