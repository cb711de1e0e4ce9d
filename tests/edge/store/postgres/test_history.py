"""The schema's steps, taken in an empty database, against the tables as they are declared today."""

# ruff: noqa: S608  names of declared tables

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from edge_api.db.migrations import MIGRATIONS
from edge_api.db.postgres.connection import (
    POSTGRESQL,
    POSTGRESQL_SCHEMA,
    SCHEMA,
    PostgresConnection,
)
from edge_api.db.query import Insert
from edge_api.db.sql import create_statements, insert_statement
from edge_api.db.sqlite.opening import create_file, migrate
from edge_api.db.tables import EMAIL_SEND_STATE, LEADS, TABLES
from tests.edge.store.row_cases import BREACHES, INSTANT, minimal_values
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.size("test")

CATALOGUE = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            l.collname, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'
        LEFT JOIN pg_collation l ON l.oid = a.attcollation
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relnamespace = to_regnamespace($1) AND a.attnum > 0 AND NOT a.attisdropped
    """,
    "rules": """
        SELECT c.relname, r.conname, pg_get_constraintdef(r.oid)
        FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid
        WHERE r.connamespace = to_regnamespace($1)
    """,
    "indexes": """
        SELECT tablename, indexname, replace(indexdef, schemaname || '.', '')
        FROM pg_indexes WHERE schemaname = $1
    """,
}
"""PostgreSQL's catalogue of the tables of a schema."""
FILE_COLUMNS = """
    SELECT t.name, c.name, c.type, c."notnull" FROM pragma_table_list t, pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT GLOB 'sqlite_*' AND t.name NOT GLOB '*_search_keys'
"""
"""The columns of a SQLite file, but for those of the index of searched columns."""
OF_POSTGRESQL = ("schema_steps", "write_marks")
"""Tables that the other engine does not need: a file has its version in its header."""
TAKEN = [
    "469bc7285f8d17ca",
    "1ea6f74ec67b3d92",
    "52ea12959a1edf06",
    "95732f57d3a019c8",
]
"""The beginnings of the SHA-256 of the statements of each step, as they were released."""


async def described(session: PostgresConnection, schema: str) -> dict[str, set[tuple[Any, ...]]]:
    """Return all that is defined in a schema, but for what belongs to this engine alone."""
    found = {name: await session.fetch(text, schema) for name, text in CATALOGUE.items()}
    return {
        name: {tuple(row) for row in rows if row[0] not in OF_POSTGRESQL}
        for name, rows in found.items()
    }


@pytest.fixture
async def declared(rival: PostgresConnection) -> dict[str, set[tuple[Any, ...]]]:
    """Return what the declared tables come to, made in a schema of their own."""
    await rival.execute("CREATE SCHEMA declared; SET search_path = declared")
    for statement in create_statements(TABLES.values(), POSTGRESQL_SCHEMA):
        await rival.execute(statement)
    made = await described(rival, "declared")
    await rival.execute(f"SET search_path = {SCHEMA}")
    return made


async def test_the_steps_add_up_to_the_declared_tables(
    rival: PostgresConnection, declared: dict[str, set[tuple[Any, ...]]]
) -> None:
    """Every column with its rules and every index is there, and nothing else."""
    stepped = await described(rival, SCHEMA)

    assert stepped == declared
    assert len(stepped["columns"]) == sum(len(table.columns) for table in TABLES.values())


async def test_both_engines_have_the_same_tables_and_columns(
    rival: PostgresConnection, tmp_path: Path
) -> None:
    """A column of one engine is in the other, of the same kind, and both or neither take NULL."""
    create_file(tmp_path / "edge.db")
    migrate(tmp_path / "edge.db", INSTANT)
    with closing(sqlite3.connect(tmp_path / "edge.db")) as file:
        in_file = set(file.execute(FILE_COLUMNS))
    in_database = {
        (table, column, "INTEGER" if kind == "bigint" else "TEXT", not_null)
        for table, column, kind, not_null, *_ in await rival.fetch(CATALOGUE["columns"], SCHEMA)
    }

    assert {each for each in in_database if each[0] not in OF_POSTGRESQL} == in_file
    assert {each[0] for each in in_file} == {*TABLES}


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE leads ADD COLUMN colour text",
        "ALTER TABLE leads ALTER COLUMN notes TYPE text",
        "ALTER TABLE leads DROP CONSTRAINT leads_name_check",
        "ALTER TABLE leads ALTER COLUMN status DROP DEFAULT",
        "DROP INDEX leads_recent; CREATE INDEX leads_recent ON leads (created_at, id)",
    ],
)
async def test_a_difference_between_steps_and_tables_would_show(
    rival: PostgresConnection, declared: dict[str, set[tuple[Any, ...]]], change: str
) -> None:
    """A column more, a rule less, another order of text and another index are differences."""
    await rival.execute(change)

    assert await described(rival, SCHEMA) != declared


async def test_every_rule_is_known_by_its_column(rival: PostgresConnection) -> None:
    """A broken constraint is reported by its name, which names its column."""
    rules = await rival.fetch(
        "SELECT conrelid::regclass::text, conname, attname FROM pg_constraint "
        "JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey) WHERE contype = 'c'"
    )

    assert rules
    assert [rule for rule in rules if rule[1] != f"{rule[0]}_{rule[2]}_check"] == []


async def test_the_dispatcher_of_mail_has_its_row(rival: PostgresConnection) -> None:
    """The one row of email_send_state is there from the start, with the defaults."""
    expected = make_row(EMAIL_SEND_STATE, {"id": 1})
    found = await rival.fetch("SELECT * FROM email_send_state")

    assert [dict(row) for row in found] == [{**expected, "updated_at": INSTANT}]


@pytest.fixture
async def emptied(rival: PostgresConnection) -> PostgresConnection:
    """Return a connection to a store without any row."""
    await rival.execute("DELETE FROM email_send_state")
    return rival


async def insert(session: PostgresConnection, name: str, row: dict[str, Any]) -> None:
    """Store a row past all checks but those of the schema itself."""
    table = TABLES[name]
    text, _ = insert_statement(Insert(table, [row]), [row], POSTGRESQL)
    await session.execute(text, *(row[column] for column in table.columns))


async def test_a_row_that_the_declaration_passes_is_stored(emptied: PostgresConnection) -> None:
    """The rules of the database are not narrower than those of the row's model."""
    for name, table in TABLES.items():
        await insert(emptied, name, make_row(table, minimal_values(name)))

        assert await emptied.fetchval(f"SELECT count(*) FROM {name}") == 1


async def test_a_row_that_breaks_a_rule_is_refused(emptied: PostgresConnection) -> None:
    """The database refuses what slips past the checks of the service."""
    for name, breach in BREACHES:
        row = {**make_row(TABLES[name], minimal_values(name)), **breach}
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
            await insert(emptied, name, row)

        assert await emptied.fetchval(f"SELECT count(*) FROM {name}") == 0, breach


async def test_lengths_count_characters(emptied: PostgresConnection) -> None:
    """A character beyond the Basic Multilingual Plane is one, in Python as in the database."""
    row = make_row(LEADS, {**minimal_values("leads"), "name": "🦊" * 100})
    await insert(emptied, "leads", row)

    with pytest.raises(asyncpg.CheckViolationError):
        await insert(emptied, "leads", {**row, "id": "0" * 36, "name": "🦊" * 101})


def test_every_step_is_taken_on_both_engines() -> None:
    """A step that one engine lacks would leave its tables behind; 13 changes PostgreSQL alone."""
    steps = enumerate(MIGRATIONS, start=1)
    assert [number for number, step in steps if not (step.sqlite and step.postgresql)] == [13]


def test_no_step_has_changed() -> None:
    """Stores have taken these steps as they were."""
    texts = [
        "\n".join(" ".join(statement.split()) for statement in (*step.sqlite, *step.postgresql))
        for step in MIGRATIONS
    ]
    assert [sha256(text.encode()).hexdigest()[:16] for text in texts][: len(TAKEN)] == TAKEN
