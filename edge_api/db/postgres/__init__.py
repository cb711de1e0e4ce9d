"""The engine for more than one machine: a store in a PostgreSQL database, many edges on it."""

from edge_api.db.postgres.engine import PostgresStore, open_store
from edge_api.db.postgres.rate_limits import PostgresLimits, open_limits

__all__ = ["PostgresLimits", "PostgresStore", "open_limits", "open_store"]
