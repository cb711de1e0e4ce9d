"""The kinds of value that a column can hold: how text becomes one, and its one spelling.

A value has the same Python type everywhere behind the door: text, integers, UUIDs and timestamps
as `str` or `int` in their canonical spelling, JSON as what `json.loads` gives.
"""

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, WithJsonSchema


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    UUID = "uuid"
    TIMESTAMP = "timestamp"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Trait:
    """What a column is, beyond what its pydantic annotation can say."""

    kind: Kind
    filled: Literal["", "id", "now"] = ""
    """What the service puts in when a new row leaves the member out."""
    touched: bool = False
    """Set to the present instant by each update that does not set it."""


TIMESTAMP_WIDTH = 27
"""`2026-01-31T08:05:09.000000Z`: of one width, so that text order is order in time."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def spell_instant(instant: datetime) -> str:
    """Return the canonical spelling of an aware instant: UTC, six digits, `Z` (RFC 3339)."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(TIMESTAMP_WIDTH, "0")


def parse_timestamp(text: str) -> str:
    """Return the canonical spelling of an ISO 8601 instant; without a zone it is UTC.

    Raises ValueError for anything else.
    """
    try:
        instant = datetime.fromisoformat(text.strip())
        return spell_instant(instant if instant.tzinfo else instant.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ValueError("is not an ISO 8601 instant such as 2026-01-31T08:05:09Z") from None


def parse_uuid(text: str) -> str:
    """Return the canonical spelling of a UUID (RFC 9562). Raises ValueError."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise ValueError("is not a UUID") from None


def parse_integer(text: str) -> int:
    """Return the integer that `text` spells, up to 18 digits. Raises ValueError."""
    if _INTEGER.fullmatch(text) is None:
        raise ValueError("is not an integer")
    return int(text)


def refuse_nul(text: str) -> str:
    """Return `text`, which no engine can store with a NUL in it. Raises ValueError."""
    if "\x00" in text:
        raise ValueError("must not contain NUL")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must be valid Unicode, without lone surrogates")
    return text


PARSERS: dict[Kind, Callable[[str], str | int]] = {
    Kind.TEXT: refuse_nul,
    Kind.INTEGER: parse_integer,
    Kind.UUID: parse_uuid,
    Kind.TIMESTAMP: parse_timestamp,
}
"""How the text of a filter becomes a value of the column's kind. JSON columns have no filter."""

Text = Annotated[str, AfterValidator(refuse_nul), Trait(Kind.TEXT)]
Integer = Annotated[int, Field(ge=-(10**18), le=10**18), Trait(Kind.INTEGER)]
Uuid = Annotated[
    str,
    StringConstraints(max_length=64),
    AfterValidator(parse_uuid),
    Trait(Kind.UUID),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
Timestamp = Annotated[
    str,
    StringConstraints(max_length=64),
    AfterValidator(parse_timestamp),
    Trait(Kind.TIMESTAMP),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
NewId = Annotated[Uuid, Trait(Kind.UUID, filled="id")]
Now = Annotated[Timestamp, Trait(Kind.TIMESTAMP, filled="now")]
Touched = Annotated[Timestamp, Trait(Kind.TIMESTAMP, filled="now", touched=True)]


def _refuse_nul_within(value: Any) -> Any:
    match value:
        case str():
            refuse_nul(value)
        case list():
            for item in value:
                _refuse_nul_within(item)
        case dict():
            for name, item in value.items():
                refuse_nul(name)
                _refuse_nul_within(item)
    return value


Json = Annotated[JsonValue, AfterValidator(_refuse_nul_within), Trait(Kind.JSON)]
