"""`migrate --print`: the DDL of both engines, as somebody pastes it into a new step."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from edge_api.__main__ import main
from edge_api.db.sqlite.opening import create_file, migrate
from edge_api.db.tables import TABLES
from tests.edge.postgresql import PostgreSQL

pytestmark = pytest.mark.size("test")

CATALOGUE = """
    SELECT c.relname, c.relkind::text, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = to_regnamespace('{}')
    AND c.relname NOT LIKE 'schema_steps%' AND c.relname NOT LIKE 'rate\\_%'
    AND c.relname NOT LIKE 'write_marks%' ORDER BY 1, 3
"""


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """Return what the command prints for each engine, where there is no store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///nowhere/edge.db")

    assert main(["migrate", "--print"]) == 0
    _, sqlite, postgresql = capsys.readouterr().out.replace("-- ", "\0").split("\0")
    assert list(tmp_path.iterdir()) == []
    return dict(part.split("\n", 1) for part in (sqlite, postgresql))


def test_the_printed_schema_makes_the_tables_of_sqlite(
    printed: dict[str, str], tmp_path: Path
) -> None:
    """The same tables and indexes as the steps have made, and nothing else."""
    names = "SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
    create_file(tmp_path / "stepped.db")
    migrate(tmp_path / "stepped.db", "2026-01-31T08:05:09.000000Z")
    with (
        closing(sqlite3.connect(tmp_path / "stepped.db")) as stepped,
        closing(sqlite3.connect(":memory:")) as made,
    ):
        made.executescript(printed["SQLite"])
        assert made.execute(names).fetchall() == stepped.execute(names).fetchall()
        for table in TABLES:
            columns = f"SELECT name, type, \"notnull\" FROM pragma_table_info('{table}') ORDER BY 1"  # noqa: S608
            assert made.execute(columns).fetchall() == stepped.execute(columns).fetchall()


def test_the_printed_schema_makes_the_tables_of_postgresql(
    printed: dict[str, str], postgresql: PostgreSQL
) -> None:
    """The same columns and indexes as the steps have made."""
    url = postgresql.make_store()
    name = url.rpartition("/")[2]
    try:
        postgresql.execute("CREATE SCHEMA printed", name)
        for statement in printed["PostgreSQL"].split(";\n")[:-1]:
            postgresql.execute(
                f"DO $do$BEGIN SET search_path = printed; {statement}; END$do$", name
            )
        made = postgresql.execute(CATALOGUE.format("printed"), name)
        stepped = postgresql.execute(CATALOGUE.format("fore_edge"), name)
    finally:
        postgresql.drop(url)

    assert len(made) > 100
    assert [tuple(row) for row in made] == [tuple(row) for row in stepped]


def test_the_help_of_the_schema_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    """With an example to copy."""
    assert main(["migrate", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())

    assert "Bring the store to the present schema" in said
    assert "Example: python -m edge_api migrate --print" in said
