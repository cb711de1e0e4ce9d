"""One filter of PostgREST's dialect: from `[not.]operator.operand` to a Condition, or a Problem.

What each operator is called and which kinds it fits stands in `schema.operators`; here is how its
operand is written. `domain.grammar` says the same as regular expressions.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from edge_api.schema.kinds import PARSERS, VALUE_FAULTS, Kind
from edge_api.schema.operators import OPERATORS, Operator
from edge_api.schema.problems import Problem
from edge_api.schema.table import Column, Table, unknown_column
from edge_api.store.plan import Condition, Value

NEGATION: Final = "not."
STATES: Final = ("null", "not_null")
"""What stands behind `is.`, in any case."""

_ELEMENT: Final = re.compile(r'(?P<quoted>"(?:[^"\\]|\\.)*"(?=[,)]))|[^,)]*', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_OR_STAR: Final = re.compile(r"\\.|\*", re.DOTALL)
_LOST_PLUS: Final = re.compile(r"[0-9] [0-9]{2}(?::?[0-9]{2})?")


def readable_column(table: Table, name: str) -> Column:
    """Return the column. Raises Problem `invalid` (42703) for one that is unknown or hidden."""
    column = table.columns.get(name)
    if column is None or name in table.hidden:
        raise unknown_column(table, name)
    return column


def operators_of(kind: Kind) -> tuple[str, ...]:
    """Return the names of the operators that fit columns of that kind."""
    return tuple(name for name, item in OPERATORS.items() if kind in item.kinds)


def parse_filter(table: Table, name: str, text: str) -> Condition:
    """Return the condition that a query parameter states.

    Raises Problem `invalid` for an unknown column (42703), an operator that does not exist
    (PGRST100) or does not fit the column (42883), and a malformed operand (PGRST100, 22P02, ...).
    """
    column = readable_column(table, name)
    negated = text.startswith(NEGATION)
    word, dot, operand = text.removeprefix(NEGATION).partition(".")
    operator = _operator_for(column, word if dot else "")
    value = _READERS[operator.operand](column, operand)
    if operator.operand == "state":
        return Condition(name, word, None, negated != (value == "not_null"))
    return Condition(name, word, value, negated)


def _operator_for(column: Column, word: str) -> Operator:
    operator = OPERATORS.get(word)
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
            hint=f"It can be filtered by {', '.join(operators_of(column.kind))}",
        )
    return operator


def _read_value(column: Column, text: str) -> Value:
    try:
        return PARSERS[column.kind](text if column.kind == Kind.TEXT else text.strip(" "))
    except ValueError as error:
        raise Problem(
            "invalid",
            f"{column.name}: {error}",
            sqlstate=VALUE_FAULTS[column.kind],
            hint=_hint(column, text),
        ) from None


def _hint(column: Column, text: str) -> str | None:
    """Return the mend of a common slip: in a query string a plain plus sign means a space."""
    if column.kind == Kind.TIMESTAMP and _LOST_PLUS.search(text):
        return "In a query string a plus sign is written %2B"
    return None


def _read_pattern(column: Column, text: str) -> Value:
    """Return the pattern with `%` for each `*` that no backslash stands before."""
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise Problem(
            "invalid",
            f"{column.name}: the pattern must not end with a lone backslash",
            sqlstate="22025",
            hint="A backslash that is meant itself is written twice",
        )
    pattern = _ESCAPED_OR_STAR.sub(lambda found: "%" if found[0] == "*" else found[0], text)
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
    r"""Return the elements of `(a,b,"c,d")`, or `None` when the text is no such list.

    An element that starts with a quotation mark is quoted when its closing one is followed by a
    comma or the parenthesis: in it `\x` stands for x. Any other runs to the next of these two.
    Spaces are dropped right behind both parentheses; with nothing between them the list is empty.
    """
    body = text.strip(" ") if text.startswith("(") else ""
    if body.endswith(")") and not body[1:-1].strip(" "):
        return ()
    start = len(body) - len(body[1:].lstrip(" "))
    elements, end = _scan(body, start)
    return elements if body[end:] == ")" else None


def _scan(text: str, position: int) -> tuple[tuple[str, ...], int]:
    """Return the elements from `position` on, and where the last of them ends."""
    elements = []
    while True:
        found = _ELEMENT.match(text, position)
        assert found is not None  # noqa: S101  an element may be empty
        elements.append(found[0] if found["quoted"] is None else _unquote(found[0]))
        if text[found.end() : found.end() + 1] != ",":
            return tuple(elements), found.end()
        position = found.end() + 1


def _unquote(text: str) -> str:
    return _ESCAPE.sub(r"\1", text[1:-1])


def _read_state(column: Column, text: str) -> Value:
    if text.lower() not in STATES:
        raise Problem("invalid", f"{column.name}: is takes null or not_null")
    return text.lower()


_READERS: Mapping[str, Callable[[Column, str], Value | tuple[Value, ...]]] = MappingProxyType(
    {
        "value": _read_value,
        "pattern": _read_pattern,
        "list": _read_list,
        "state": _read_state,
    }
)
