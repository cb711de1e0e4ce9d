"""The parts that operations work with, made once at the start and passed to each of them."""

from dataclasses import dataclass

from edge_api.domain.access import Access
from edge_api.domain.actor import Clock
from edge_api.domain.edition import Shelf
from edge_api.domain.leads import Leads
from edge_api.domain.limits import Limiter
from edge_api.domain.rows import Rows
from edge_api.settings import Settings
from edge_api.store.plan import Store


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
    leads: Leads
    rows: Rows
    """The administrative tables."""
