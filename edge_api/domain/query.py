"""The query string of an administrative read: decoded pairs in PostgREST's dialect to a plan.

Pure: no row is looked at here. Every fault is named, none is passed over: a misspelt filter that
counted for nothing would show every row.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from edge_api.domain.filters import parse_filter, readable_column, split_list
from edge_api.domain.selection import Selection, parse_selection
from edge_api.schema.operators import COMPARABLE
from edge_api.schema.problems import Problem
from edge_api.schema.table import Table
from edge_api.store.plan import Order, Read

RESERVED: Final = ("select", "limit", "offset", "order")
"""The published names of parameters that are no column."""
LIMIT_MOST: Final = 1000
FILTERS_MOST: Final = 100
"""Engines refuse expressions that are much deeper."""
LIMIT_DEFAULT: Final = 100
OFFSET_MOST: Final = 10**15
"""No table is as long: a larger offset gives the same empty answer, and engines count to 2**63."""

_INTEGER: Final = re.compile(r"(-?)0*([0-9]+)")

Pairs = Sequence[tuple[str, str]]
_ELEMENT: Final = re.compile(
    r"(?P<column>[^.]+)(?:\.(?P<direction>asc|desc))?(?:\.(?P<nulls>nullsfirst|nullslast))?"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What a query string asks: rows to read, and how to show them."""

    read: Read
    selection: Selection


def parse_query(
    table: Table, pairs: Pairs, *, counted: bool = False, seconds: float | None = None
) -> Question:
    """Return what decoded query parameters ask of a table. Raises Problem `invalid`."""
    filters = [(name, text) for name, text in pairs if name not in RESERVED]
    if len(filters) > FILTERS_MOST:
        raise Problem("invalid", f"filters: at most {FILTERS_MOST} are taken", sqlstate="54001")
    reserved = given_once(pairs, RESERVED)
    selection = parse_selection(table, reserved.get("select", ""))
    read = Read(
        table,
        columns=tuple(dict.fromkeys(output.column for output in selection)),
        where=tuple(parse_filter(table, name, text) for name, text in filters),
        order=parse_order(table, reserved["order"]) if "order" in reserved else (),
        limit=_limit(reserved.get("limit", str(LIMIT_DEFAULT))),
        offset=_offset(reserved.get("offset", "0")),
        counted=counted,
        seconds=seconds,
    )
    return Question(read, selection)


def given_once(pairs: Pairs, names: Sequence[str]) -> Mapping[str, str]:
    """Return the parameters of these names. Raises Problem `invalid` for one given twice."""
    found: dict[str, str] = {}
    for name, text in pairs:
        if name in found:
            raise Problem("invalid", f"{name}: stands more than once")
        if name in names:
            found[name] = text
    return MappingProxyType(found)


def check_columns(text: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise Problem `invalid` unless `columns` of an insert names the members of the rows.

    PostgREST's clients send it with arrays: the names, which may be quoted, of all members.
    """
    members = {name for row in rows for name in row}
    listed = ", ".join(sorted(members))
    named = {name.strip(" ") for name in split_list(f"({text})") or ()}
    if named != members:
        raise Problem(
            "invalid",
            f"columns: must name the members of the rows in the body ({listed}), or be left out",
        )


def _limit(text: str) -> int:
    number = _integer("limit", text)
    if not 1 <= number <= LIMIT_MOST:
        raise Problem("invalid", f"limit: must be from 1 to {LIMIT_MOST}")
    return number


def _offset(text: str) -> int:
    number = _integer("offset", text)
    if number < 0:
        raise Problem("invalid", "offset: must be 0 or more")
    return min(number, OFFSET_MOST)


def _integer(name: str, text: str) -> int:
    """Return the integer; of a very long one the first digits, which are as good as too many."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise Problem("invalid", f"{name}: must be an integer", sqlstate="22P02")
    return int(found[1] + found[2][: len(str(OFFSET_MOST)) + 1])


def parse_order(table: Table, text: str) -> tuple[Order, ...]:
    """Return what PostgREST's `order`, a comma list, asks for.

    NULLs stand as they do in PostgreSQL unless it says so.

    A column counts where it stands first. Raises Problem `invalid` for an unknown column (42703),
    one that has no order (42883), and what is no element (PGRST100).
    """
    terms: dict[str, Order] = {}
    for element in text.split(","):
        term = _parse_element(table, element.strip(" "))
        terms.setdefault(term.column, term)
    return tuple(terms.values())


def _parse_element(table: Table, text: str) -> Order:
    found = _ELEMENT.fullmatch(text)
    if found is None:
        raise Problem(
            "invalid",
            "order: must be a list of column[.asc|.desc][.nullsfirst|.nullslast]",
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
    return Order(column.name, descending, nulls_first)
