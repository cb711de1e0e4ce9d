"""New rows: the service's own are what checked ones are, without being checked a second time."""

import pytest

from edge_api.schema.table import Row, Table
from edge_api.schema.tables import LEADS, TABLES
from tests.edge.store.rows_of_every_kind import bare_row, full_row

NOW = "2026-01-31T08:05:09.000000Z"
ID = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"


def given_rows(table: Table) -> list[Row]:
    """Return rows as they are given: whole, bare, and only with what must be there."""
    full = full_row(table, 1)
    needed = {name: full[name] for name, column in table.columns.items() if column.required}
    return [full, bare_row(table, 2), needed]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_own_row_is_what_a_checked_one_is(table: Table) -> None:
    """Values, defaults, what is filled in, and the order of the columns: all alike."""
    for given in given_rows(table):
        checked = table.new_row(given, NOW, lambda: ID)
        own = table.own_row(given, NOW, lambda: ID)

        assert list(own.items()) == list(checked.items())


def test_an_own_row_folds_what_is_stored_in_lower_case() -> None:
    """What is looked up by a folded text has to be found."""
    for table in TABLES.values():
        for name in table.folded:
            given = {**full_row(table, 1), name: "ADA@EXAMPLE.ORG"}
            assert table.own_row(given, NOW, lambda: ID)[name] == "ada@example.org"


def test_defaults_are_not_shared_between_rows() -> None:
    """A row may be changed without changing the next."""
    given = given_rows(LEADS)[-1]
    first = LEADS.own_row(given, NOW, lambda: ID)
    first["status"] = "spam"

    assert LEADS.own_row(given, NOW, lambda: ID)["status"] == "new"
