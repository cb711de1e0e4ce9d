"""New rows: the service's own are what checked ones are, without being checked a second time."""

from datetime import datetime

import pytest

from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.query import Insert
from edge_api.db.table import Row, Table
from edge_api.db.tables import EMAIL_SEND_LOG, TABLES
from edge_api.mail.messages import MESSAGE_TYPES, MessageType
from edge_api.mail.queue import MAX_REASON_LENGTH, log_insert, new_entry
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
        own = table.trusted_row(given, NOW, lambda: ID)

        assert list(own.items()) == list(checked.items())


def test_an_own_row_folds_what_is_stored_in_lower_case() -> None:
    """Rows have to be found by the folded text."""
    for table in TABLES.values():
        for name in table.case_insensitive:
            given = {**full_row(table, 1), name: "ADA@EXAMPLE.ORG"}
            assert table.trusted_row(given, NOW, lambda: ID)[name] == "ada@example.org"


def test_an_own_row_has_no_member_that_is_no_column() -> None:
    """A column that was renamed in one place alone is not lost without a word."""
    with pytest.raises(KeyError, match="error_mesage"):
        EMAIL_SEND_LOG.trusted_row({"error_mesage": "refused"}, NOW, lambda: ID)


@pytest.mark.parametrize("letter", MESSAGE_TYPES.values(), ids=MESSAGE_TYPES)
def test_an_entry_of_the_outbox_passes_the_check(letter: MessageType) -> None:
    """It is made without one, and so is what the log tells of it, whatever became of it."""
    now = datetime.fromisoformat(NOW)
    entry = new_entry(letter, "owner@example.org", ID, now)
    log_rows = [
        log_insert(entry, status, now, reason, {"requeued": True})
        for status in EMAIL_SEND_LOG.columns["status"].choices
        for reason in (None, "refused", "x" * 2 * MAX_REASON_LENGTH)
    ]
    for plan in (Insert(EMAIL_OUTBOX, [entry]), *log_rows):
        for row in plan.rows:
            assert plan.table.new_row(row, NOW, lambda: ID) == row
