"""Identifiers of new rows: UUIDs of version 7 (RFC 9562, section 5.7), in order of time.

Rows that are made one after another lie beside one another in the primary key.
"""

from datetime import UTC, datetime, timedelta
from secrets import randbits
from typing import Final
from uuid import UUID

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def new_id(now: datetime) -> str:
    """Return an identifier that sorts after every one made for an earlier microsecond.

    The twelve bits behind the milliseconds hold their fraction (RFC 9562, section 6.2, method 3);
    the other 62 are random.
    """
    milliseconds, microseconds = divmod((now - _EPOCH) // _MICROSECOND, 1000)
    fraction = (microseconds << 12) // 1000
    bits = milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | randbits(62)
    return str(UUID(int=bits))
