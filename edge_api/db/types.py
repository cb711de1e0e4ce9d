"""Column types: the parsers of their values, and the canonical form of each value.

A value has the same Python type everywhere once it is read: text, integers, UUIDs and timestamps
are `str` or `int` in their canonical form, JSON is what `json.loads` returns.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
)


class ColumnType(StrEnum):
    """The type of a column."""

    TEXT = "text"
    INTEGER = "integer"
    UUID = "uuid"
    TIMESTAMP = "timestamp"
    JSON = "json"


VALUE_SQLSTATES: Mapping[ColumnType, str] = {
    ColumnType.TEXT: "22021",
    ColumnType.INTEGER: "22P02",
    ColumnType.UUID: "22P02",
    ColumnType.TIMESTAMP: "22007",
}
"""PostgreSQL's error code for text that is not a valid value of the type."""


Content = Literal["line", "lines", "address"]
"""The form of a text: one line, several, or an e-mail address."""


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """The options of a column that its pydantic annotation cannot express."""

    kind: ColumnType
    generated: Literal["", "id", "now"] = ""
    """The value that the service generates when a new row lacks one."""
    on_update_now: bool = False
    """Whether an update that does not set the column sets it to the current time."""
    content: Content = "line"
    """The form of a text that people may send."""


MAX_EMAIL_LENGTH = 255
"""The published bound, one above the maximum of RFC 5321, section 4.5.3.1.3."""
MAX_INTEGER = 10**18  # the maximum of all integer columns; its negative is the minimum

MAX_JSON_DEPTH = 64  # far below the limits of JSON libraries (orjson: 254)
MIN_JSON_NUMBER, MAX_JSON_NUMBER = 1 - 2**63, 2**64 - 1
"""The bounds of numbers in JSON columns: orjson reads integers beyond them as floats, which may be
other numbers. -2**63 is excluded, since -2**63 - 1 is read as a float that equals it."""

_DATE = (
    r"(?:[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-29)"
)
_HOUR = r"(?:[01][0-9]|2[0-3])"
_TIME = rf"{_HOUR}:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?"
_ZONE = rf"(?:[Zz]|[+-]{_HOUR}(?::?[0-5][0-9])?)"

PATTERNS: Mapping[ColumnType, str] = {
    ColumnType.TEXT: r"[^\u0000]*",
    ColumnType.INTEGER: r"[+-]?[0-9]{1,18}",
    ColumnType.UUID: r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    # Reject a zone that moves the first or the last day out of the years 1000 to 9999.
    ColumnType.TIMESTAMP: (
        rf"(?!1000-01-01[^,]*\+|9999-12-31[^,]*-){_DATE}(?:[Tt ]{_TIME}{_ZONE}?)?"
    ),
}
"""The form of a value's text: regular expressions that Python and JSON Schema
(ECMA-262) read alike. Text that matches is a valid value, and its date exists in the calendar.
JSON columns have no pattern."""


def format_instant(instant: datetime) -> str:
    """Return the canonical form of an aware instant: UTC, six digits, `Z` (RFC 3339).

    All instants have the same length, so that their order as text is their order in time.
    """
    return f"{instant.astimezone(UTC).isoformat(timespec='microseconds').removesuffix('+00:00')}Z"


def parse_timestamp(text: str) -> str:
    """Return the canonical form of an instant (RFC 3339); without a zone it is UTC.

    The time of day is optional, and so are the seconds. Digits beyond the microsecond are dropped.
    Raises ValueError for anything else.
    """
    if not re.fullmatch(PATTERNS[ColumnType.TIMESTAMP], text):
        raise ValueError("is not an instant such as 2026-01-31T08:05:09Z")
    instant = datetime.fromisoformat(text.upper())
    return format_instant(instant if instant.tzinfo else instant.replace(tzinfo=UTC))


def parse_uuid(text: str) -> str:
    """Return the canonical form of a UUID (RFC 9562, section 4). Raises ValueError."""
    if not re.fullmatch(PATTERNS[ColumnType.UUID], text):
        raise ValueError("is not a UUID")
    return text.lower()


def parse_integer(text: str) -> int:
    """Return the integer in `text`, of up to 18 digits. Raises ValueError."""
    if not re.fullmatch(PATTERNS[ColumnType.INTEGER], text):
        raise ValueError("is not an integer")
    return int(text)


def check_text(text: str) -> str:
    """Return `text`. Raises ValueError for NUL and lone surrogates, which columns cannot hold."""
    if "\x00" in text:
        raise ValueError("must not contain NUL")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must be valid Unicode, without lone surrogates")
    return text


PARSERS: dict[ColumnType, Callable[[str], str | int]] = {
    ColumnType.TEXT: check_text,
    ColumnType.INTEGER: parse_integer,
    ColumnType.UUID: parse_uuid,
    ColumnType.TIMESTAMP: parse_timestamp,
}
"""Parsers of the text in a filter, by the type of the column. JSON columns have no filters."""


def whole_float_to_int(value: Any) -> Any:
    """Convert a float such as 3.0 to the integer: JSON Schema counts both as the same integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Text = Annotated[str, AfterValidator(check_text), ColumnOptions(ColumnType.TEXT)]
Lines = Annotated[Text, ColumnOptions(ColumnType.TEXT, content="lines")]
Address = Annotated[
    Text,
    Field(min_length=3, max_length=MAX_EMAIL_LENGTH),
    ColumnOptions(ColumnType.TEXT, content="address"),
]
Integer = Annotated[
    int,
    BeforeValidator(whole_float_to_int),
    Field(ge=-MAX_INTEGER, le=MAX_INTEGER),
    ColumnOptions(ColumnType.INTEGER),
]
Uuid = Annotated[
    str,
    StringConstraints(max_length=64),
    AfterValidator(parse_uuid),
    ColumnOptions(ColumnType.UUID),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
Timestamp = Annotated[
    str,
    StringConstraints(max_length=64),
    AfterValidator(parse_timestamp),
    ColumnOptions(ColumnType.TIMESTAMP),
    WithJsonSchema({"type": "string", "pattern": f"^{PATTERNS[ColumnType.TIMESTAMP]}$"}),
]
NewId = Annotated[Uuid, ColumnOptions(ColumnType.UUID, generated="id")]
Now = Annotated[Timestamp, ColumnOptions(ColumnType.TIMESTAMP, generated="now")]
OnUpdateNow = Annotated[
    Timestamp, ColumnOptions(ColumnType.TIMESTAMP, generated="now", on_update_now=True)
]


def _check_json(value: Any, levels: int = MAX_JSON_DEPTH) -> Any:
    if isinstance(value, list | dict) and levels == 0:
        raise ValueError(f"must not be nested deeper than {MAX_JSON_DEPTH} levels")
    match value:
        case int() | float() if not MIN_JSON_NUMBER <= value <= MAX_JSON_NUMBER:
            raise ValueError(
                f"numbers must be from {MIN_JSON_NUMBER} to {MAX_JSON_NUMBER}: "
                "send any other as a string"
            )
        case str():
            check_text(value)
        case list():
            for item in value:
                _check_json(item, levels - 1)
        case dict():
            for name, item in value.items():
                check_text(name)
                _check_json(item, levels - 1)
    return value


_FRACTION = re.compile(rb'"(?:[^"\\]++|\\.)*+"|(-?[0-9]++[.eE][0-9.eE+-]*+)|[0-9]++', re.DOTALL)
_MAX_EXACT_LENGTH = 16
"""The length, point included, up to which a float keeps every fraction without an exponent."""


def refuse_inexact(raw: bytes) -> None:
    """Raise ValueError for valid JSON with a fraction that would be stored as another number."""
    for text in filter(None, map(bytes.decode, _FRACTION.findall(raw))):
        if len(text) <= _MAX_EXACT_LENGTH and "e" not in text.lower():
            continue
        try:
            is_kept = Decimal(text) == Decimal(repr(float(text)))
        except ArithmeticError:  # the exponent is beyond the range of Decimal
            is_kept = False
        if not is_kept:
            raise ValueError(f"{text[:40]} would become another number: send it as a string")


Json = Annotated[JsonValue, BeforeValidator(_check_json), ColumnOptions(ColumnType.JSON)]
