"""What an operation gives back: a value with a status, or a document that is sent as it stands."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any

JSON = "application/json"
NO_STORE = "no-store"
"""For leads, administrative rows and tokens (RFC 9111, section 5.2.2.5)."""


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """Bytes that many requests get: made once, validated by a strong ETag (RFC 9110, 8.8.3).

    One object is one representation; identity is what caches of its wire form go by.
    """

    body: bytes
    media_type: str = JSON
    cache_control: str = "public, max-age=300"
    headers: tuple[tuple[str, str], ...] = ()
    etag: str = ""
    """Quoted; made from the body when left empty."""

    def __post_init__(self) -> None:
        """Give the document its ETag."""
        if not self.etag:
            object.__setattr__(self, "etag", f'"{sha256(self.body).hexdigest()[:24]}"')


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of an operation, before it is encoded.

    `value` is a Document, or bytes already encoded as `media_type`, or what JSON can say.
    """

    value: Any
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    media_type: str = JSON
    cache_control: str = NO_STORE
