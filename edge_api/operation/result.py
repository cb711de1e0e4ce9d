"""Results of operations, and documents that are sent as they are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """Bytes for many requests, with a strong ETag (RFC 9110, 8.8.3); cached by identity."""

    body: bytes
    media_type: str = JSON
    cache_control: str = "public, max-age=300"
    headers: tuple[tuple[str, str], ...] = ()
    is_cached: bool = True
    """Whether its responses are cached, since later requests get the same object."""
    varies: tuple[str, ...] = ()
    """Request headers that the representation depends on, for `Vary`."""
    etag: str = field(init=False)
    """Quoted; made from the body."""

    def __post_init__(self) -> None:
        """Compute the ETag."""
        object.__setattr__(self, "etag", f'"{sha256(self.body).hexdigest()[:24]}"')


FORM: Final = "application/x-www-form-urlencoded"
HTML: Final = "text/html; charset=utf-8"
MARKDOWN: Final = "text/markdown; charset=utf-8"

REVALIDATE: Final = "public, no-cache"
"""Cached, but revalidated each time, so that changes show at once."""
NEGOTIATED: Final = "private, no-store"
"""Many caches ignore `Vary`: what depends on `Accept` is not left to them."""
NO_STORE = "no-store"
"""For leads, administrative rows and tokens (RFC 9111, section 5.2.2.5)."""


@dataclass(slots=True)
class OperationResult:
    """The result of an operation: a Document, encoded bytes, or a value for JSON."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON
    cache_control: str = NO_STORE


@dataclass(slots=True)
class HtmlResult(OperationResult):
    """A page for a person, or a redirect of the browser."""

    media_type: str = HTML
    is_private: bool = False
    """Whether it is for the owner alone: compressed, and its address sent to no other site."""
    form_action: tuple[str, ...] = ()
    """Allowed targets of the page's form besides its own origin; browsers apply it to redirects."""


_SPECIAL: Final = re.compile(r"([\\\[\]`*_<>#&|~])")


def escape(text: str) -> str:
    """Return plain text escaped for Markdown."""
    return _SPECIAL.sub(r"\\\1", text)
