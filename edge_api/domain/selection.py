"""Which columns an answer shows, under which names and in which form: PostgREST's `select`."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from edge_api.domain.filters import readable_column
from edge_api.schema.kinds import Kind
from edge_api.schema.problems import Problem
from edge_api.schema.table import Column, Row, Table

ALIAS: Final = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
"""As long as PostgreSQL lets a name be."""

_ELEMENT: Final = re.compile(
    rf"(?:(?P<alias>{ALIAS}):(?!:))?(?P<column>[^:]*)(?:::(?P<cast>[^:]*))?"
)


@dataclass(frozen=True, slots=True)
class Cast:
    """A form that a value can be given, and the kinds of column for which that is possible."""

    kinds: frozenset[Kind]
    change: Callable[[Any], Any]


def spell_value(value: object) -> str:
    """Return a value as text; JSON in its compact form."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


CASTS: Mapping[str, Cast] = MappingProxyType(
    {
        "text": Cast(frozenset(Kind), spell_value),
        "int": Cast(frozenset({Kind.INTEGER}), int),
    }
)


@dataclass(frozen=True, slots=True)
class Output:
    """One member of each row of an answer."""

    name: str
    column: str
    cast: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the member is the column as it is."""
        return self.name == self.column and self.cast is None

    def of(self, row: Row) -> Any:
        """Return what the member holds for a stored row; NULL stays NULL whatever the cast."""
        value = row[self.column]
        return value if self.cast is None or value is None else CASTS[self.cast].change(value)


Selection = tuple[Output, ...]

ELEMENTS_MOST: Final = 200
"""Of one `select`: each is worked out for each row."""


def parse_selection(table: Table, text: str = "") -> Selection:
    """Return the members that `text` asks for: every readable column when it is blank.

    Of two that are called alike the last one counts. Raises Problem `invalid` for too many (54011),
    an unknown column (42703), an unknown cast (42704), a cast that the column does not allow
    (42846), and what is no element at all (PGRST100).
    """
    if not text.strip(" "):
        return _everything(table)
    elements = text.split(",")
    if len(elements) > ELEMENTS_MOST:
        raise Problem(
            "invalid", f"select: takes at most {ELEMENTS_MOST} elements", sqlstate="54011"
        )
    chosen = (_parse_element(table, element.strip(" ")) for element in elements)
    return tuple({output.name: output for outputs in chosen for output in outputs}.values())


def _everything(table: Table) -> Selection:
    return tuple(Output(name, name) for name in table.readable)


def _parse_element(table: Table, text: str) -> Selection:
    if text == "*":
        return _everything(table)
    found = _ELEMENT.fullmatch(text)
    if found is None or not found["column"] or "(" in text:
        raise Problem(
            "invalid",
            "select: must be a list of column, alias:column or column::text, or *",
            details="Other tables cannot be embedded",
        )
    column = readable_column(table, found["column"])
    if found["cast"] is not None:
        _check_cast(column, found["cast"])
    return (Output(found["alias"] or column.name, column.name, found["cast"]),)


def _check_cast(column: Column, name: str) -> None:
    cast = CASTS.get(name)
    if cast is None:
        known = " or ".join(f"::{known}" for known in CASTS)
        raise Problem(
            "invalid", f"select: {column.name} can only be cast by {known}", sqlstate="42704"
        )
    if column.kind not in cast.kinds:
        raise Problem(
            "invalid",
            f"select: {column.name} holds {column.kind} and cannot be cast to {name}",
            sqlstate="42846",
        )


def present(rows: list[Row], selection: Selection) -> list[Row]:
    """Return stored rows, which have at least the columns of the selection, as it shows them."""
    names = [output.name for output in selection if output.is_plain]
    if not rows or (len(names) == len(selection) and list(rows[0]) == names):
        return rows  # as nearly always, and copying them would cost a fifth of the page
    return [{output.name: output.of(row) for output in selection} for row in rows]
