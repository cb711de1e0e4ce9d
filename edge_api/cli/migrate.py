"""`migrate`: migrate the store to the latest schema, or print that schema."""

from typing import Final

from click import Option

from edge_api.db.postgres.connection import POSTGRESQL_SCHEMA
from edge_api.db.sql import create_statements
from edge_api.db.sqlite.search_index import SQLITE_SCHEMA
from edge_api.db.tables import TABLES
from edge_api.open_store import command_store
from edge_api.schema.commands import Arguments
from edge_api.schema.environment import redact_database
from edge_api.settings import Settings

PARAMS: Final = (
    Option(
        ["--print", "prints"],
        is_flag=True,
        help="print the DDL of all tables for SQLite and for PostgreSQL; open no store",
    ),
)


async def run(arguments: Arguments, settings: Settings) -> int:
    """Open the store, which migrates it, or print the DDL. Returns 0."""
    if arguments.prints:
        for engine, dialect in (("SQLite", SQLITE_SCHEMA), ("PostgreSQL", POSTGRESQL_SCHEMA)):
            statements = (f"{each};" for each in create_statements(TABLES.values(), dialect))
            print(f"-- {engine}\n", *statements, "", sep="\n")
        return 0
    async with command_store(settings, create=True, migrates=True):
        pass
    store = settings.database_path or redact_database(settings.database_url)
    print(f"{store} is at the present schema")
    return 0
