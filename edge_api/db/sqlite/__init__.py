"""The embedded engine: a store in one SQLite file, and nobody beside it who serves from it."""

from edge_api.db.sqlite.engine import SQLiteStore, open_store

__all__ = ["SQLiteStore", "open_store"]
