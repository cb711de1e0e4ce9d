"""PostgREST's dialect: filters (`[not.]operator.operand`) and selected columns.

The SQL of each operator is in `db/sql.py`; `rows.py` has the grammar as regular expressions.
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal

from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store, Value, read_all
from edge_api.db.table import Column, Row, Table, unknown_column
from edge_api.db.types import PARSERS, VALUE_SQLSTATES, ColumnType
from edge_api.operation.sheets import format_value

COMPARABLE = frozenset({ColumnType.TEXT, ColumnType.INTEGER, ColumnType.UUID, ColumnType.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator: the form of its operand, the column types that it applies to, a description."""

    operand_form: Literal["value", "pattern", "list", "state"]
    kinds: frozenset[ColumnType]
    description: str


OPERATORS: Mapping[str, Operator] = {
    "eq": Operator("value", COMPARABLE, "equal to the value"),
    "neq": Operator("value", COMPARABLE, "not equal to the value, and not null"),
    "gt": Operator("value", COMPARABLE, "greater than the value"),
    "gte": Operator("value", COMPARABLE, "greater than the value or equal to it"),
    "lt": Operator("value", COMPARABLE, "less than the value"),
    "lte": Operator("value", COMPARABLE, "less than the value or equal to it"),
    "like": Operator(
        "pattern",
        frozenset({ColumnType.TEXT}),
        "like the pattern: `*` and `%` stand for any run, `_` for one character, "
        "a backslash escapes; upper and lower case differ",
    ),
    "ilike": Operator(
        "pattern", frozenset({ColumnType.TEXT}), "like the pattern, whatever the case of letters"
    ),
    "in": Operator("list", COMPARABLE, 'one of the values: `in.(a,b,"c,d")`'),
    "is": Operator("state", frozenset(ColumnType), "`is.null` or `is.not_null`"),
}


NEGATION: Final = "not."
IS_VALUES: Final = ("null", "not_null")  # the operands of `is`, in upper or lower case

_ELEMENT: Final = re.compile(r'(?P<quoted>"(?:[^"\\]|\\.)*"(?=[,)]))|[^,)]*', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPE_OR_STAR: Final = re.compile(r"\\.|\*", re.DOTALL)
_UNESCAPED_PLUS: Final = re.compile(r"[0-9] [0-9]{2}(?::?[0-9]{2})?")
"""The offset of a timestamp whose `+` was decoded to a space."""

_UNSUPPORTED_NAMES: Mapping[str, str] = {
    r"(?:.*\.)?or": "send a request for each condition; in.(a,b) is any of several values",
    r"(?:.*\.)?and": "send each filter as a parameter of its own: all of them hold",
    "columns|on_conflict": "filters choose rows, and select their members",
    ".*->.*": "JSON is read whole: select the column itself",
    '".*': "write names without quotes",
    r"count|.*[.(].*": "tables are not embedded and rows not aggregated: read each table by itself",
}
"""Patterns of PostgREST's parameter names that are not supported, with what to do instead."""
_UNSUPPORTED_OPERATORS: Mapping[str, str] = {
    **dict.fromkeys(("fts", "plfts", "phfts", "wfts"), "use ilike.*word*"),
    **dict.fromkeys(("match", "imatch"), "use like or ilike, where * stands for any run"),
    **dict.fromkeys(("cs", "cd", "ov"), "no column is an array, and JSON takes is alone"),
    **dict.fromkeys(("sl", "sr", "nxr", "nxl", "adj"), "no column is a range: use gte and lt"),
    "isdistinct": "use neq, and is.null in a request of its own",
    **dict.fromkeys(
        OPERATORS, "repeat the filter for (all); for (any) ask for each, or take in.(a,b)"
    ),
}
"""PostgREST's operators that are not supported, alone or with `(any)` and `(all)`, with what to do
instead."""


def readable_column(table: Table, name: str) -> Column:
    """Return a column by its name. Raises Problem `invalid` (42703) if it is unknown or hidden."""
    column = table.columns.get(name)
    if column is None or name in table.hidden:
        for pattern, advice in _UNSUPPORTED_NAMES.items():
            if re.fullmatch(pattern, name, re.DOTALL):
                raise Problem("invalid", f"{name}: is not supported; {advice}")
        raise unknown_column(table, name)
    return column


def operators_for(kind: ColumnType) -> tuple[str, ...]:
    """Return the names of the operators that apply to a column type."""
    return tuple(name for name, item in OPERATORS.items() if kind in item.kinds)


def parse_filter(table: Table, name: str, text: str) -> Filter:
    """Return the filter of a query parameter.

    Raises Problem `invalid`, with PostgREST's code: for an unknown column (42703), an unknown
    operator (PGRST100) or one that does not apply to the column (42883), and a malformed operand
    (PGRST100, 22P02, ...).
    """
    column = readable_column(table, name)
    negated = text.startswith(NEGATION)
    word, dot, operand = text.removeprefix(NEGATION).partition(".")
    operator = _operator_for(column, word if dot else "")
    if operator.operand_form == "state":
        if operand.lower() not in IS_VALUES:
            raise Problem("invalid", f"{name}: is takes null or not_null")
        return Filter(name, word, None, negated != (operand.lower() == "not_null"))
    return Filter(name, word, _OPERAND_READERS[operator.operand_form](column, operand), negated)


def _operator_for(column: Column, word: str) -> Operator:
    operator = OPERATORS.get(word)
    if operator is None and (advice := _UNSUPPORTED_OPERATORS.get(word.partition("(")[0])):
        raise Problem("invalid", f"{column.name}: {word} is not supported; {advice}")
    if operator is None:
        raise Problem(
            "invalid",
            f"{column.name}: must begin with an operator and a dot, as in {column.name}=is.null",
            details=f"The operators are {', '.join(OPERATORS)}; not. may stand before each",
        )
    if column.kind not in operator.kinds:
        raise Problem(
            "invalid",
            f"{column.name}: {word} does not apply to a column of kind {column.kind}",
            sqlstate="42883",
            hint=f"It can be filtered by {', '.join(operators_for(column.kind))}",
        )
    return operator


def _read_value(column: Column, text: str) -> Value:
    try:
        return PARSERS[column.kind](text if column.kind == ColumnType.TEXT else text.strip(" "))
    except ValueError as error:
        is_unescaped = column.kind == ColumnType.TIMESTAMP and _UNESCAPED_PLUS.search(text)
        raise Problem(
            "invalid",
            f"{column.name}: {error}",
            sqlstate=VALUE_SQLSTATES[column.kind],
            hint="In a query string a plus sign is written %2B" if is_unescaped else None,
        ) from None


def _read_pattern(column: Column, text: str) -> Value:
    """Return the pattern with `%` for each `*` that is not escaped."""
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise Problem(
            "invalid",
            f"{column.name}: the pattern must not end with a lone backslash",
            sqlstate="22025",
            hint="A backslash that is meant itself is written twice",
        )
    pattern = _ESCAPE_OR_STAR.sub(lambda found: "%" if found[0] == "*" else found[0], text)
    return _read_value(column, pattern)


def _read_list(column: Column, text: str) -> tuple[Value, ...]:
    elements = split_list(text)
    if elements is None:
        raise Problem(
            "invalid",
            f'{column.name}: in takes a list in parentheses, as in in.(a,b,"c,d")',
            details="Nothing may stand before the opening or behind the closing parenthesis",
        )
    return tuple(_read_value(column, element) for element in elements)


def split_list(text: str) -> tuple[str, ...] | None:
    r"""Return the elements of `(a,b,"c,d")`, or `None` if the text is no such list.

    Quotation marks around an element are removed if a comma or the closing parenthesis follows:
    between them `\x` means x. Any other element ends before the next comma or closing parenthesis.
    Spaces after either parenthesis are ignored, and a list of nothing else is empty.
    """
    body = text.strip(" ") if text.startswith("(") else ""
    if body.endswith(")") and not body[1:-1].strip(" "):
        return ()
    elements, position = [], len(body) - len(body[1:].lstrip(" "))
    while True:
        found = _ELEMENT.match(body, position)
        assert found is not None  # noqa: S101  an element may be empty
        elements.append(found[0] if found["quoted"] is None else _ESCAPE.sub(r"\1", found[0][1:-1]))
        if body[found.end() : found.end() + 1] != ",":
            return tuple(elements) if body[found.end() :] == ")" else None
        position = found.end() + 1


_OPERAND_READERS: Mapping[str, Callable[[Column, str], Value | tuple[Value, ...]]] = {
    "value": _read_value,
    "pattern": _read_pattern,
    "list": _read_list,
}


ALIAS: Final = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
"""The pattern of an alias: at most 63 characters, like a name in PostgreSQL."""

_SELECTED: Final = re.compile(
    rf"(?:(?P<alias>{ALIAS}):(?!:))?(?P<column>[^:]*)(?:::(?P<cast>[^:]*))?"
)


CASTS: Mapping[str, frozenset[ColumnType]] = {
    "text": frozenset(ColumnType),
    "int": frozenset({ColumnType.INTEGER}),
}
"""The column types that each cast is allowed for; only an integer can be cast to `int`."""


@dataclass(frozen=True, slots=True)
class SelectItem:
    """A selected member of the returned rows: its name, the column, and the cast."""

    name: str
    column: str
    cast: str | None = None

    def value_of(self, row: Row) -> Any:
        """Return the member's value for a stored row; NULL stays NULL whatever the cast."""
        value = row[self.column]
        return value if self.cast != "text" or value is None else format_value(value)


SelectItems = tuple[SelectItem, ...]

MAX_SELECT_ELEMENTS: Final = 200  # in one `select`; each costs time for every row


def parse_selection(table: Table, text: str = "") -> SelectItems:
    """Return the selected members: every readable column if `text` is blank.

    Of two members with the same name the last one counts. Raises Problem `invalid` for too many
    (54011), an unknown column (42703), an unknown cast (42704), a cast that the column does not
    allow (42846), and anything else that is no element (PGRST100).
    """
    if not text.strip(" "):
        return _all_columns(table)
    elements = text.split(",")
    if len(elements) > MAX_SELECT_ELEMENTS:
        raise Problem(
            "invalid", f"select: takes at most {MAX_SELECT_ELEMENTS} elements", sqlstate="54011"
        )
    chosen = (_parse_element(table, element.strip(" ")) for element in elements)
    return tuple({output.name: output for outputs in chosen for output in outputs}.values())


def _all_columns(table: Table) -> SelectItems:
    return tuple(SelectItem(name, name) for name in table.readable)


def _parse_element(table: Table, text: str) -> SelectItems:
    if text == "*":
        return _all_columns(table)
    found = _SELECTED.fullmatch(text)
    if "(" in text:
        readable_column(table, f"{text.partition('(')[0]}(...)")
    if found is None or not found["column"]:
        raise Problem(
            "invalid", "select: must be a list of column, alias:column or column::text, or *"
        )
    column = readable_column(table, found["column"])
    cast = found["cast"]
    if cast is not None and cast not in CASTS:
        known = " or ".join(f"::{known}" for known in CASTS)
        raise Problem(
            "invalid", f"select: {column.name} can only be cast by {known}", sqlstate="42704"
        )
    if cast is not None and column.kind not in CASTS[cast]:
        raise Problem(
            "invalid",
            f"select: {column.name} holds {column.kind} and cannot be cast to {cast}",
            sqlstate="42846",
        )
    return (SelectItem(found["alias"] or column.name, column.name, cast),)


def apply_selection(rows: list[Row], selection: SelectItems) -> list[Row]:
    """Return rows with the selected members, from rows with at least the selected columns."""
    names = [each.name for each in selection if each.name == each.column and each.cast is None]
    if not rows or (len(names) == len(selection) and list(rows[0]) == names):
        return rows  # the usual case: copying the rows would take a fifth of the read's time
    return [{output.name: output.value_of(row) for output in selection} for row in rows]


ROWS_AT_A_TIME: Final = 500  # rows of a stream that are in memory at once


async def read_selected(
    store: Store, table: Table, keys: Iterable[Any], selection: SelectItems
) -> AsyncGenerator[Sequence[Row], None]:
    """Yield pages of the rows with these keys, in that order, as selected. Raises Problem.

    Each page is read when it is needed: a row that has changed since the keys were read is yielded
    with its changes, and one that was deleted since is left out.
    """
    columns = tuple(dict.fromkeys((table.key, *(output.column for output in selection))))
    rest = iter(keys)
    while part := tuple(islice(rest, ROWS_AT_A_TIME)):
        read = Read(table, columns, (Filter(table.key, "in", part),), limit=ROWS_AT_A_TIME)
        rows = {row[table.key]: row for row in await read_all(store, read)}
        yield apply_selection([rows[key] for key in part if key in rows], selection)
