"""What only the embedded engine needs: other engines have programs of their own for it."""

from pathlib import Path

from edge_api.schema.problems import Problem
from edge_api.settings import Settings


def embedded_store(settings: Settings, command: str) -> Path:
    """Return the file of the store. Raises Problem `invalid` where it is no file."""
    if path := settings.database_path:
        return path
    tool = "pg_restore" if command == "restore" else "pg_dump --format=custom"
    raise Problem(
        "invalid",
        f"{command} is for stores in a SQLite file; for PostgreSQL use {tool}, or the backups "
        "of your provider",
    )
