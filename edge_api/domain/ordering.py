"""By what an answer is sorted: PostgREST's `order`."""

import re
from typing import Final

from edge_api.domain.filters import readable_column
from edge_api.schema.operators import COMPARABLE
from edge_api.schema.problems import Problem
from edge_api.schema.table import Table
from edge_api.store.plan import Order

_ELEMENT: Final = re.compile(
    r"(?P<column>[^.]+)(?:\.(?P<direction>asc|desc))?(?:\.(?P<nulls>nullsfirst|nullslast))?"
)


def parse_order(table: Table, text: str) -> tuple[Order, ...]:
    """Return what the comma list asks for; NULLs stand as they do in PostgreSQL unless it says so.

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
