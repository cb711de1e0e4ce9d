"""The store as a command opens it: for as long as the command works."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from edge_api.commands.clock import system_clock
from edge_api.settings import Settings
from edge_api.store.plan import Store
from edge_api.store.sqlite import open_store


@asynccontextmanager
async def opened(settings: Settings, *, create: bool = False) -> AsyncIterator[Store]:
    """Open the store, and let go of it whatever happens.

    Without `create` a missing one is refused: who only looks makes nothing. Raises StoreRefusal.
    """
    store = await open_store(settings.database_path, system_clock, create=create)
    try:
        yield store
    finally:
        await store.close()
