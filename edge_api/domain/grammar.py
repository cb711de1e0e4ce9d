"""What the parsers of the query string accept, as regular expressions for its description.

They are built from the same declarations as the parsers and read alike by Python and JSON Schema
(ECMA-262). Whatever fits is accepted and whatever does not is refused; but a quoted element of a
list that is no text may, past what is described, carry backslashes.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from edge_api.domain.filters import STATES, operators_of
from edge_api.domain.selection import ALIAS, CASTS
from edge_api.schema.kinds import PATTERNS, Kind
from edge_api.schema.operators import COMPARABLE, OPERATORS
from edge_api.schema.table import Column, Table

_QUOTED: Final = r'"(?:[^"\\\u0000]|\\[^\u0000])*"'
_RAW: Final = r"[^,)\u0000]*"


def filter_pattern(kind: Kind) -> str:
    """Return what a filter of a column of that kind looks like."""
    names: dict[str, list[str]] = {}
    for name in operators_of(kind):
        names.setdefault(OPERATORS[name].operand, []).append(name)
    forms = (rf"{_any(words)}\.{_OPERANDS[form](kind)}" for form, words in names.items())
    return rf"^(?:not\.)?{_any(forms)}$"


def selection_pattern(table: Table) -> str:
    """Return what `select` looks like."""
    columns = [table.columns[name] for name in table.readable]
    chosen = _any(rf"{column.name}(?:::{_any(_casts(column))})?" for column in columns)
    element = rf" *(?:\*|(?:{ALIAS}:)?{chosen}) *"
    return rf"^(?: *|{element}(?:,{element})*)$"


def order_pattern(table: Table) -> str:
    """Return what `order` looks like."""
    columns = (name for name in table.readable if table.columns[name].kind in COMPARABLE)
    element = rf" *{_any(columns)}(?:\.(?:asc|desc))?(?:\.nulls(?:first|last))? *"
    return rf"^{element}(?:,{element})*$"


def _any(forms: Iterable[str]) -> str:
    first, *others = forms
    return f"(?:{'|'.join([first, *others])})" if others else first


def _casts(column: Column) -> list[str]:
    return [name for name, cast in CASTS.items() if column.kind in cast.kinds]


def _value(kind: Kind) -> str:
    return PATTERNS[kind] if kind == Kind.TEXT else f" *{PATTERNS[kind]} *"


def _pattern(_kind: Kind) -> str:
    return r"(?:[^\\\u0000]|\\[^\u0000])*"


def _list(kind: Kind) -> str:
    element = _element(kind)
    return rf"\( *(?:{element}(?:,{element})*)?\) *"


def _element(kind: Kind) -> str:
    """Return one member of a list: what could be read as quoted is not read in another way."""
    if kind == Kind.TEXT:
        return rf"(?:{_QUOTED}(?=[,)])|(?!{_QUOTED}[,)]){_RAW})"
    return rf'(?:{_value(kind)}|"{_value(kind)}")'


def _state(_kind: Kind) -> str:
    return _any(map(_in_any_case, STATES))


def _in_any_case(word: str) -> str:
    letters = (f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in word)
    return "".join(letters)


_OPERANDS: Mapping[str, Callable[[Kind], str]] = MappingProxyType(
    {"value": _value, "pattern": _pattern, "list": _list, "state": _state}
)
