"""The search index of leads: its entries, and those of an index that is made anew."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import asyncpg

from edge_api.db.postgres.connection import SCHEMA
from edge_api.db.query import fold_accents
from edge_api.db.tables import LEADS
from tests.edge.engines import SQLITE_PREFIX

Entries = set[tuple[str, str]]
"""The id of a lead, and a trigram of one of its searched texts."""
_COLUMNS: Final = ", ".join(LEADS.searched)
_TRIGRAMS: Final = f"search_trigrams({' || chr(32) || '.join(LEADS.searched)})".replace(
    "chr(32)", "' '"
)
_BY_INDEX: Final = (
    "SELECT id, trigram FROM (SELECT DISTINCT unnest(search_trigrams(l.name || ' ' || l.email || "  # noqa: S608
    "' ' || l.message)) AS trigram FROM leads AS l) AS wanted, "
    f"LATERAL (SELECT id FROM leads WHERE {_TRIGRAMS} @> ARRAY[trigram]) AS found"
)


def read_file(path: Path) -> tuple[Entries, Entries]:
    """Return the entries of the index in a file, and those of one made of the file's leads."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO leads_search (leads_search) VALUES ('integrity-check')")
        connection.rollback()
        schema = "SELECT sql FROM sqlite_schema WHERE name = 'leads_search'"
        ((create,),) = connection.execute(schema).fetchall()
        keys = dict(connection.execute("SELECT number, row_id FROM leads_search_keys").fetchall())
        leads = connection.execute(f"SELECT id, {_COLUMNS} FROM leads").fetchall()  # noqa: S608
        kept = {(keys[number], term) for number, term in _terms(connection)}
    assert len({*keys.values()}) == len(keys) == len(leads)
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute(create)
        marks = ", ".join("?" * (1 + len(LEADS.searched)))
        insert = f"INSERT INTO leads_search (rowid, {_COLUMNS}) VALUES ({marks})"  # noqa: S608
        for number, (_, *texts) in enumerate(leads):
            made.execute(insert, (number, *map(fold_accents, texts)))
        return kept, {(leads[number][0], term) for number, term in _terms(made)}


def _terms(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    connection.execute(
        "CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'leads_search', 'instance')"
    )
    return connection.execute("SELECT doc, term FROM terms").fetchall()


async def read_index(url: str) -> tuple[Entries, Entries]:
    """Return the entries of the index of the store at a URL, and those of one made anew."""
    if url.startswith(SQLITE_PREFIX):
        return read_file(Path(url.removeprefix(SQLITE_PREFIX)))
    session = await asyncpg.connect(url, server_settings={"search_path": SCHEMA})
    try:
        await session.execute("SET enable_seqscan = off")
        plan = "\n".join(line for (line,) in await session.fetch(f"EXPLAIN {_BY_INDEX}"))
        assert "Bitmap Index Scan on leads_search" in plan
        kept = {tuple(record) for record in await session.fetch(_BY_INDEX)}
        await session.execute("REINDEX INDEX leads_search")
        return kept, {tuple(record) for record in await session.fetch(_BY_INDEX)}
    finally:
        await session.close()
