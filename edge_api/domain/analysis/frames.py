"""How the edge and its workers tell where a message ends: its length, four bytes, before it."""

from struct import Struct
from typing import Final

_LENGTH: Final = Struct(">I")
HEAD: Final = _LENGTH.size
"""Bytes before a message."""


def frame(message: bytes) -> bytes:
    """Return a message as it is sent."""
    return _LENGTH.pack(len(message)) + message


def read_length(head: bytes) -> int:
    """Return the bytes of the message that follows."""
    return int(_LENGTH.unpack(head)[0])
