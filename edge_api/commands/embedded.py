"""What only the embedded engine needs: other engines have programs of their own for it."""

from edge_api.schema.problems import Problem
from edge_api.settings import Settings

_SQLITE = "sqlite:"


def is_embedded(settings: Settings) -> bool:
    """Tell whether the store is a SQLite file."""
    return settings.database_url.startswith(_SQLITE)


def require_embedded(settings: Settings, command: str) -> None:
    """Return where the store is a SQLite file; else raise Problem `invalid`, with the mend."""
    if is_embedded(settings):
        return
    tool = "pg_restore" if command == "restore" else "pg_dump --format=custom"
    raise Problem(
        "invalid",
        f"{command} is for stores in a SQLite file; for PostgreSQL use {tool}, or the backups "
        "of your provider",
    )
