"""Which rows a change is for: the `match` object of PATCH and DELETE, as conditions of a plan."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from edge_api.domain.filters import readable_column
from edge_api.schema.faults import sentence_of
from edge_api.schema.kinds import VALUE_FAULTS, Integer, Kind, Text, Timestamp, Uuid
from edge_api.schema.problems import Problem
from edge_api.schema.table import Column, Table
from edge_api.store.plan import Condition, Value, Where

_STRICT: Final = ConfigDict(strict=True)
_CHECKS: Mapping[Kind, TypeAdapter[Any]] = MappingProxyType(
    {
        Kind.TEXT: TypeAdapter(Text, config=_STRICT),
        Kind.INTEGER: TypeAdapter(Integer, config=_STRICT),
        Kind.UUID: TypeAdapter(Uuid, config=_STRICT),
        Kind.TIMESTAMP: TypeAdapter(Timestamp, config=_STRICT),
    }
)
"""A value of each kind, without a column's further bounds: what cannot be stored is not found."""


def parse_match(table: Table, match: Mapping[str, Any]) -> Where:
    """Return conditions that all hold: equality, NULL for `null`, any of an array's values.

    Raises Problem `invalid` for an empty object (21000), an unknown column (42703) and a value
    that is none of the column's kind (22P02, ...).
    """
    if not match:
        raise Problem(
            "invalid",
            "match: must name at least one column",
            sqlstate="21000",
            hint="No change is made to a whole table by leaving out what to match",
        )
    return tuple(_condition(table, name, value) for name, value in match.items())


def _condition(table: Table, name: str, value: Any) -> Condition:
    column = readable_column(table, name)
    if value is None:
        return Condition(name, "is", None)
    if column.kind == Kind.JSON:
        raise Problem("invalid", f"match.{name}: a JSON column can only be null", sqlstate="42883")
    if isinstance(value, list):
        return Condition(name, "in", tuple(_value(table, column, item) for item in value))
    return Condition(name, "eq", _value(table, column, value))


def _value(table: Table, column: Column, value: Any) -> Value:
    try:
        checked: Value = _CHECKS[column.kind].validate_python(value)
    except ValidationError as error:
        sentence = sentence_of(error.errors(include_url=False)[0])
        sqlstate = VALUE_FAULTS[column.kind]
        raise Problem("invalid", f"match.{column.name}: {sentence}", sqlstate=sqlstate) from None
    if isinstance(checked, str) and column.name in table.folded:
        return checked.lower()
    return checked
