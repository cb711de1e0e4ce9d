"""The shared parts of the service, made once at the start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from edge_api.auth.actor import Clock
from edge_api.auth.credentials import Authenticator
from edge_api.auth.rate_limits import Limiter
from edge_api.db.query import Store
from edge_api.operation.reference.values import ReferencePage
from edge_api.operation.result import Document
from edge_api.schema.page_templates import Form, PageName
from edge_api.settings import Settings


@dataclass(frozen=True, slots=True)
class ApiDocuments:
    """The service's own documents, made from the declarations of its operations."""

    description: Document
    api_catalog: Document
    openapi: Callable[[str | None], Document]
    """Takes the slug of an existing post, for the examples."""
    reference: Callable[[str | None], tuple[ReferencePage, ...]]
    """The API reference for people; takes the same slug."""


class PageRenderer(Protocol):
    """Renders pages in the site's design for one request."""

    async def render(self, name: PageName, title: str, **values: Any) -> bytes:
        """Return a whole page. Raises Problem `unavailable` if the build has no template for it."""

    async def render_form(self, form: Form, **values: Any) -> bytes:
        """Return the contact page with one of its forms filled in. Raises as `render`."""


Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Service:
    """The dependencies of operations; `service[Leads]` is the part of that class."""

    settings: Settings
    clock: Clock
    store: Store
    authenticator: Authenticator
    """Checks credentials and their scopes."""
    limiter: Limiter
    documents: ApiDocuments
    pages: PageRenderer
    parts: Mapping[type[Any], Any]

    def __getitem__(self, kind: type[Part]) -> Part:
        """Return the part of exactly this class. Raises KeyError."""
        return cast("Part", self.parts[kind])
