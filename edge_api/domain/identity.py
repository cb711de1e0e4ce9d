"""Identifiers of new rows: UUIDs of version 7 (RFC 9562, section 5.7), in order of time.

Rows that are made one after another lie beside one another in the primary key.
"""

import os
from datetime import UTC, datetime, timedelta
from struct import unpack
from typing import Final
from uuid import UUID

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DRAWN: Final = 512
"""Numbers drawn at once: while the system draws, other threads take the interpreter, and to get it
back costs more than all the rest of an identifier."""

_stock: list[int] = []
"""Random numbers of 64 bits, each used once."""


def new_id(now: datetime) -> str:
    """Return an identifier that sorts after every one made for an earlier microsecond.

    The twelve bits behind the milliseconds hold their fraction (RFC 9562, section 6.2, method 3);
    the other 62 are random.
    """
    milliseconds, microseconds = divmod((now - _EPOCH) // _MICROSECOND, 1000)
    fraction = (microseconds << 12) // 1000
    bits = milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | _draw() >> 2
    return str(UUID(int=bits))


def _draw() -> int:
    try:
        return _stock.pop()
    except IndexError:
        _stock.extend(unpack(f"{_DRAWN}Q", os.urandom(8 * _DRAWN)))
        return _stock.pop()


if hasattr(os, "register_at_fork"):  # no two processes may use the same numbers
    os.register_at_fork(after_in_child=_stock.clear)
