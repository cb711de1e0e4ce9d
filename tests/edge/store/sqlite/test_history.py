"""The schema's steps, taken on an empty file, against the tables as they are declared today."""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edge_api.db import migrations
from edge_api.db.errors import StoreRefusal
from edge_api.db.migrations import MIGRATIONS, Migration
from edge_api.db.query import Insert
from edge_api.db.sql import create_statements, insert_statement
from edge_api.db.sqlite import opening
from edge_api.db.sqlite.connection import SQLITE, connect
from edge_api.db.sqlite.opening import create_file, migrate
from edge_api.db.sqlite.search_index import SQLITE_SCHEMA
from edge_api.db.table import Table
from edge_api.db.tables import EMAIL_SEND_STATE, LEADS, SUPPRESSED_EMAILS, TABLES
from tests.edge.store.row_cases import BREACHES, INSTANT, minimal_values
from tests.edge.store.samples import make_row

SCHEMA = """
    SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL
    AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
"""
"""All but the tables in which FTS5 keeps an index."""


@pytest.fixture
def stepped(path: Path) -> Iterator[sqlite3.Connection]:
    """Return a connection to a file that has seen every step."""
    create_file(path)
    migrate(path, INSTANT)
    with closing(connect(path, writes=True)) as connection:
        yield connection


def definitions(statements: Iterable[str]) -> dict[str, list[str]]:
    """Return the parts of each definition, in an order that does not depend on their history."""
    plain = [re.sub(r'["`]', "", " ".join(statement.split())) for statement in statements]
    return {text.partition("(")[0].strip(): sorted(parts(text)) for text in plain}


def parts(text: str) -> Iterator[str]:
    """Yield the parts between the commas of the outermost parentheses, and what follows them.

    Of a text without any that is all of it.
    """
    start = text.find("(") + 1
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if (text[at] == "," and depth == 1) or (text[at] == ")" and depth == 0):
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()


def insert(connection: sqlite3.Connection, table: Table, row: dict[str, Any]) -> None:
    """Store a row past all checks but those of the schema itself."""
    values = [row[name] for name in table.columns]
    text, _ = insert_statement(Insert(table, [row]), [row], SQLITE)
    connection.execute(text, values)


def test_the_steps_add_up_to_the_declared_tables(stepped: sqlite3.Connection) -> None:
    """Every column with its rules and every index is there, and nothing else."""
    made = stepped.execute(SCHEMA)

    assert definitions(text for (text,) in made) == definitions(
        create_statements(TABLES.values(), SQLITE_SCHEMA)
    )


def test_a_difference_between_steps_and_tables_would_show(stepped: sqlite3.Connection) -> None:
    """A column more, a rule less and an index of another order are all differences."""
    declared = [*create_statements(TABLES.values(), SQLITE_SCHEMA)]
    for change in (
        "ALTER TABLE leads ADD COLUMN colour TEXT",
        "DROP INDEX leads_recent",
        "CREATE INDEX leads_recent ON leads (created_at, id)",
    ):
        stepped.execute(change)
        made = stepped.execute(SCHEMA)

        assert definitions(text for (text,) in made) != definitions(declared)


def test_a_column_that_a_later_step_adds_is_the_declared_one() -> None:
    """A column that ALTER TABLE appends is recognized, wherever the declaration has it."""
    before = "CREATE TABLE t (\n  a TEXT NOT NULL CHECK (a IN ('x', 'y')),\n  c TEXT\n) STRICT"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(before)
        connection.execute("ALTER TABLE t ADD COLUMN b TEXT CHECK (length(b) BETWEEN 1 AND 3)")
        (text,) = connection.execute("SELECT sql FROM sqlite_schema").fetchone()
    declared = (
        "CREATE TABLE \"t\" (\"a\" TEXT NOT NULL CHECK (a IN ('x', 'y')), "
        "b TEXT CHECK (length(b) BETWEEN 1 AND 3), c TEXT) STRICT"
    )

    assert definitions([text]) == definitions([declared])


def test_the_dispatcher_of_mail_has_its_row(stepped: sqlite3.Connection) -> None:
    """The one row of email_send_state is there from the start, with the defaults."""
    expected = make_row(EMAIL_SEND_STATE, {"id": 1})
    found = stepped.execute("SELECT * FROM email_send_state").fetchall()

    assert found == [tuple({**expected, "updated_at": INSTANT}.values())]


@pytest.mark.parametrize("name", TABLES)
def test_a_row_that_the_declaration_passes_is_stored(
    stepped: sqlite3.Connection, name: str
) -> None:
    """The rules of the file are not narrower than those of the row's model."""
    table = TABLES[name]
    stepped.execute("DELETE FROM email_send_state")
    insert(stepped, table, make_row(table, minimal_values(name)))

    assert stepped.execute(f"SELECT count(*) FROM {name}").fetchone() == (1,)  # noqa: S608


@pytest.mark.parametrize(("name", "breach"), BREACHES)
def test_a_row_that_breaks_a_rule_is_refused(
    stepped: sqlite3.Connection, name: str, breach: dict[str, Any]
) -> None:
    """SQLite refuses what slips past the checks of the service."""
    table = TABLES[name]
    stepped.execute("DELETE FROM email_send_state")
    with pytest.raises(sqlite3.IntegrityError):
        insert(stepped, table, {**make_row(table, minimal_values(name)), **breach})


@pytest.mark.parametrize("table", [LEADS, SUPPRESSED_EMAILS])
def test_lengths_count_characters(stepped: sqlite3.Connection, table: Table) -> None:
    """A character beyond the Basic Multilingual Plane is one, in Python as in the file."""
    column = "name" if table is LEADS else "email"
    _, most = table.columns[column].bounds
    row = make_row(table, {**minimal_values(table.name), column: "🦊" * (most or 0)})
    insert(stepped, table, row)

    with pytest.raises(sqlite3.IntegrityError):
        insert(stepped, table, {**row, "id": "0" * 36, column: "🦊" * ((most or 0) + 1)})


def test_every_step_says_what_it_is_for() -> None:
    """Somebody who migrates a store can read what happens to it."""
    heads = {
        file.name: file.read_text("utf-8").partition("\n\n")[0].splitlines()
        for file in Path(migrations.__file__).parent.glob("step_*.sql")
    }
    assert {name for name, lines in heads.items() if not lines[0].startswith("-- ")} == set()
    assert {name for name, lines in heads.items() if len(" ".join(lines).split()) < 4} == set()


def test_a_step_that_fails_leaves_a_store_that_is_not_called_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is restored over a sound store: the version of before can go on with it."""
    create_file(path)
    migrate(path, INSTANT)
    failing = Migration(("ALTER TABLE leads ADD COLUMN name TEXT",), ())
    adding = Migration(("CREATE TABLE added (id TEXT)",), ())
    monkeypatch.setattr(opening, "MIGRATIONS", (*MIGRATIONS, adding, failing))
    number = len(MIGRATIONS) + 2

    with pytest.raises(StoreRefusal, match=rf"is unchanged: step {number} of its schema failed"):
        migrate(path, INSTANT)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert (
            connection.execute("SELECT name FROM sqlite_schema WHERE name = 'added'").fetchone()
            is None
        )
