"""Full-text search in the posts of one build, by SQLite's FTS5, whatever engine keeps rows."""

from edge_api.db.fts.index import (
    MAX_SNIPPET_LENGTH,
    Search,
    build_search,
    open_existing,
    open_search,
    renew_search,
)

__all__ = [
    "MAX_SNIPPET_LENGTH",
    "Search",
    "build_search",
    "open_existing",
    "open_search",
    "renew_search",
]
