"""What many clients get alike: bytes made once, with their validator."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """Bytes that many requests get: made once, validated by a strong ETag (RFC 9110, 8.8.3).

    One object is one representation; identity is what caches of its wire form go by.
    """

    body: bytes
    media_type: str = JSON
    cache_control: str = "public, max-age=300"
    headers: tuple[tuple[str, str], ...] = ()
    is_lasting: bool = True
    """Whether others will ask for this very object; one made for a single request is not kept."""
    varies: tuple[str, ...] = ()
    """Request headers that another representation would have been chosen by."""
    etag: str = field(init=False)
    """Quoted; made from the body."""

    def __post_init__(self) -> None:
        """Give the document its ETag."""
        object.__setattr__(self, "etag", f'"{sha256(self.body).hexdigest()[:24]}"')
