"""The parts that operations work with, made once at the start and passed to each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from edge_api.api.reference.values import Page
from edge_api.api.reply import Document
from edge_api.domain.access import Access
from edge_api.domain.access_requests import AccessRequests
from edge_api.domain.actor import Clock
from edge_api.domain.analysis.analyst import Analyst
from edge_api.domain.edition import Shelf
from edge_api.domain.health import Health
from edge_api.domain.leads import Leads
from edge_api.domain.limits import Limiter
from edge_api.domain.mail.suppressions import Feedback, UnsubscribeLinks
from edge_api.domain.oauth.server import OAuthServer
from edge_api.domain.rows import Rows
from edge_api.settings import Settings
from edge_api.store.plan import Store


@dataclass(frozen=True, slots=True)
class Papers:
    """What the service says of itself, made from the declarations of its operations."""

    description: Document
    api_catalog: Document
    openapi: Callable[[str | None], Document]
    """Takes the slug of a post that exists, to stand as an example."""
    reference: Callable[[str | None], tuple[Page, ...]]
    """The same in pages for people; takes the same slug."""


PageName = Literal["consent", "notice", "search", "unsubscribe"]
"""Those that operations answer with."""


class Pages(Protocol):
    """Pages in the look of the site that are made for one request."""

    async def render(self, name: PageName, title: str, **values: Any) -> bytes:
        """Return a whole page. Raises Problem `unavailable` where the build has none such."""


@dataclass(frozen=True, slots=True)
class Service:
    """Everything an operation may use; each part takes what it needs at its own birth."""

    settings: Settings
    clock: Clock
    store: Store
    shelf: Shelf
    """The edition of the journal that is served now."""
    access: Access
    """Who holds a credential, and what it may do."""
    limiter: Limiter
    health: Health
    papers: Papers
    leads: Leads
    access_requests: AccessRequests
    """Requests for a credential, of those who have none."""
    rows: Rows
    """The administrative tables."""
    oauth: OAuthServer
    analyst: Analyst
    pages: Pages
    unsubscribe_links: UnsubscribeLinks
    feedback: Feedback
    """What a mail service says came of messages."""
