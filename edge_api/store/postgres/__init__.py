"""The engine for more than one machine: a store in a PostgreSQL database, many edges on it."""

from edge_api.store.postgres.engine import PostgresStore, open_store
from edge_api.store.postgres.windows import StoredWindows, open_windows

__all__ = ["PostgresStore", "StoredWindows", "open_store", "open_windows"]
