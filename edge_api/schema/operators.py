"""The filter operators of the administrative interface, in PostgREST's words.

What each means in SQL stands with the store; what each means to a person stands here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from edge_api.schema.kinds import Kind

COMPARABLE = frozenset({Kind.TEXT, Kind.INTEGER, Kind.UUID, Kind.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: what follows its dot, for which kinds of column, and what it asks."""

    operand: Literal["value", "pattern", "list", "state"]
    kinds: frozenset[Kind]
    sentence: str


OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        "eq": Operator("value", COMPARABLE, "equal to the value"),
        "neq": Operator("value", COMPARABLE, "not equal to the value, and not null"),
        "gt": Operator("value", COMPARABLE, "greater than the value"),
        "gte": Operator("value", COMPARABLE, "greater than the value or equal to it"),
        "lt": Operator("value", COMPARABLE, "less than the value"),
        "lte": Operator("value", COMPARABLE, "less than the value or equal to it"),
        "like": Operator(
            "pattern",
            frozenset({Kind.TEXT}),
            "like the pattern: `*` and `%` stand for any run, `_` for one character, "
            "a backslash escapes; upper and lower case differ",
        ),
        "ilike": Operator(
            "pattern", frozenset({Kind.TEXT}), "like the pattern, whatever the case of letters"
        ),
        "in": Operator("list", COMPARABLE, 'one of the values: `in.(a,b,"c,d")`'),
        "is": Operator("state", frozenset(Kind), "`is.null` or `is.not_null`"),
    }
)
