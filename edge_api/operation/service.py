"""The input and output of operations: the shared parts of the service, documents, results."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from edge_api.auth.actor import Clock
from edge_api.auth.rate_limits import Limiter
from edge_api.db.query import Store
from edge_api.schema.page_templates import Form, PageName
from edge_api.settings import Settings

if TYPE_CHECKING:  # commands that check no credential do without joserfc
    from edge_api.auth.credentials import Authenticator
    from edge_api.operation.reference.pages import ReferencePage

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A body that many responses share, with a strong ETag (RFC 9110, 8.8.3)."""

    body: bytes
    media_type: str = JSON
    cache_control: str = "public, max-age=300"
    headers: tuple[tuple[str, str], ...] = ()
    is_cached: bool = True
    """Whether responses with this object are cached: later requests get the same object."""
    varies: tuple[str, ...] = ()
    """Request headers that the representation depends on, for `Vary`."""
    etag: str = field(init=False)
    """Quoted; made from the body."""

    def __post_init__(self) -> None:
        """Compute the ETag."""
        object.__setattr__(self, "etag", f'"{sha256(self.body).hexdigest()[:24]}"')


FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
HTML: Final = "text/html; charset=utf-8"
MARKDOWN: Final = "text/markdown; charset=utf-8"

REVALIDATE: Final = "public, no-cache"
"""The Cache-Control of content that caches revalidate each time, so that changes show at once."""
NEGOTIATED: Final = "private, no-store"
"""The Cache-Control of content that depends on `Accept`, since many caches ignore `Vary`."""
NO_STORE = "no-store"
"""The Cache-Control of leads, administrative rows and tokens (RFC 9111, section 5.2.2.5)."""
NOINDEX: Final = {"X-Robots-Tag": "noindex, nofollow"}


@dataclass(slots=True)
class OperationResult:
    """The result of an operation: a Document, bytes, a generator of them, or a value for JSON."""

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
    is_preview: bool = False
    """Whether it is a page of the site that is not published: its forms can be sent nowhere."""


def escape_markdown(text: str) -> str:
    """Return plain text escaped for Markdown."""
    return re.sub(r"([\\\[\]`*_<>#&|~])", r"\\\1", text)


@dataclass(frozen=True, slots=True)
class ApiDocuments:
    """The service's own documents, made from the declarations of its operations."""

    description: Document
    api_catalog: Document
    openapi: Callable[[str | None], Document]
    """Takes the slug of an existing post, for the examples."""
    reference: "Callable[[str | None], tuple[ReferencePage, ...]]"
    """The API reference for people; takes the same slug."""


class PageRenderer(Protocol):
    """Renders pages in the site's design for one request."""

    async def render(self, name: PageName, title: str, **values: Any) -> bytes:
        """Return a whole page. Raises Problem `unavailable` if the build has no template for it."""

    def translate(self, text: str) -> str:
        """Return a sentence in the language of the site; any other text as it is."""

    async def render_form(self, form: Form, **values: Any) -> bytes:
        """Return the contact page with one of its forms filled in. Raises as `render`."""


Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Service:
    """The dependencies of operations; `service[Leads]` is the part of that class."""

    settings: Settings
    clock: Clock
    store: Store
    authenticator: "Authenticator"
    """Checks credentials and their scopes."""
    limiter: Limiter
    documents: ApiDocuments
    pages: PageRenderer
    parts: Mapping[type[Any], Any]

    def __getitem__(self, kind: type[Part]) -> Part:
        """Return the part of exactly this class. Raises KeyError."""
        return cast("Part", self.parts[kind])
