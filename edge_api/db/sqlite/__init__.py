"""The embedded engine: a store in one SQLite file, and nobody beside it who serves from it."""
