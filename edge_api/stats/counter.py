"""The counter of views: what each request adds in memory, until it is named and stored."""

from edge_api.auth.actor import Clock
from edge_api.db.query import Store
from edge_api.journal.builds import BuildManager
from edge_api.settings import Settings


class Stats:
    """The counts of this process, which are added to the store every ten seconds."""

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, builds: BuildManager
    ) -> None:
        raise NotImplementedError

    def today(self) -> str:
        """Return the day in the journal's time zone, as rows have it (YYYY-MM-DD)."""
        raise NotImplementedError

    async def flush(self) -> None:
        """Name and store what was counted so far. Raises Problem, and then keeps it."""
        raise NotImplementedError
