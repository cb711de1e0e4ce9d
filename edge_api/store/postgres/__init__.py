"""The engine for more than one machine: a store in a PostgreSQL database, many edges on it."""

from edge_api.store.postgres.engine import PostgresStore, open_store

__all__ = ["PostgresStore", "open_store"]
