"""What an operation gives back: a value with a status, or a document that is sent as it stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from edge_api.operation.document import JSON, Document

__all__ = [
    "FORM",
    "HTML",
    "JSON",
    "MARKDOWN",
    "NEGOTIATED",
    "NO_STORE",
    "REVALIDATED",
    "Document",
    "Page",
    "Reply",
]

FORM: Final = "application/x-www-form-urlencoded"
HTML: Final = "text/html; charset=utf-8"
MARKDOWN: Final = "text/markdown; charset=utf-8"

REVALIDATED: Final = "public, no-cache"
"""Kept, but asked for each time: what is new counts at once, and a 304 costs next to nothing."""
NEGOTIATED: Final = "private, no-store"
"""Many caches ignore `Vary`: what depends on `Accept` is not left to them."""
NO_STORE = "no-store"
"""For leads, administrative rows and tokens (RFC 9111, section 5.2.2.5)."""


@dataclass(slots=True)
class Reply:
    """The outcome of an operation, before it is encoded.

    `value` is a Document, or bytes already encoded as `media_type`, or what JSON can say.
    """

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON
    cache_control: str = NO_STORE


@dataclass(slots=True)
class Page(Reply):
    """A page for a person, or where the browser is sent on to."""

    media_type: str = HTML
    form_action: tuple[str, ...] = ()
    """Where a form of the page may lead, beside its own origin: browsers hold redirects to it."""
