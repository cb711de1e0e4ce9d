"""From plans to SQL: the statement, and that no value of a request is ever in its text."""

# ruff: noqa: S608  the SQL here is what is expected, and goes nowhere

import pytest

from edge_api.admin.filters import OPERATORS
from edge_api.db import sql
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Order, Read, RowCount, Update
from edge_api.db.sqlite.connection import SQLITE
from edge_api.db.tables import EMAIL_SEND_STATE, IDEMPOTENCY_KEYS, LEADS, SUPPRESSED_EMAILS

HOSTILE = "x'); DROP TABLE leads; --\" ? :name"

CONDITIONS = [
    (Filter("name", "eq", "a"), '"name" = ?', ["a"]),
    (Filter("name", "eq", "a", negated=True), 'NOT ("name" = ?)', ["a"]),
    (Filter("name", "neq", "a"), '"name" <> ?', ["a"]),
    (Filter("spam_score", "gt", 3), '"spam_score" > ?', [3]),
    (Filter("spam_score", "gte", 3), '"spam_score" >= ?', [3]),
    (Filter("spam_score", "lt", 3), '"spam_score" < ?', [3]),
    (Filter("spam_score", "lte", -3), '"spam_score" <= ?', [-3]),
    (Filter("name", "like", "a%"), 'like_text("name", ?)', ["a%"]),
    (Filter("name", "ilike", "a%", negated=True), 'NOT (ilike_text("name", ?))', ["a%"]),
    (Filter("notes", "is", None), '"notes" IS NULL', []),
    (Filter("notes", "is", None, negated=True), 'NOT ("notes" IS NULL)', []),
    (
        Filter("name", "in", ("a", 'b"')),
        '"name" IN (SELECT value FROM json_each(?))',
        ['["a", "b\\""]'],
    ),
    (Filter("name", "in", ()), '"name" IN (SELECT value FROM json_each(?))', ["[]"]),
    (Filter("name", "eq", HOSTILE), '"name" = ?', [HOSTILE]),
]

ORDERS = [
    ((), '"id" ASC'),
    ((Order("name"),), '"name" ASC, "id" ASC'),
    ((Order("created_at", descending=True),), '"created_at" DESC, "id" DESC'),
    ((Order("id", descending=True), Order("name")), '"id" DESC, "name" ASC'),
    ((Order("notes"),), '"notes" ASC NULLS LAST, "id" ASC'),
    ((Order("notes", nulls_first=True),), '"notes" ASC NULLS FIRST, "id" ASC'),
    ((Order("notes", descending=True),), '"notes" DESC NULLS LAST, "id" DESC'),
    (
        (Order("notes", descending=True, nulls_first=True), Order("name", nulls_first=True)),
        '"notes" DESC NULLS FIRST, "name" ASC, "id" ASC',
    ),
]


@pytest.mark.parametrize(("condition", "text", "parameters"), CONDITIONS)
def test_a_condition_is_text_of_declared_names_and_parameters(
    condition: Filter, text: str, parameters: list[object]
) -> None:
    """A value is never in the text, whatever it holds."""
    statement = sql.count_statement(Read(LEADS, where=(condition,)), SQLITE)

    assert statement.text == f'SELECT count(*) FROM "leads" WHERE {text}'
    assert list(statement.parameters) == parameters


@pytest.mark.parametrize(("orders", "text"), ORDERS)
def test_an_order_places_nulls_and_ends_with_the_key(orders: tuple[Order, ...], text: str) -> None:
    """NULLs are placed if there can be any, and the key has the direction of the last term."""
    statement = sql.select_statement(Read(LEADS, ("id",), order=orders), SQLITE)

    assert statement.text == f'SELECT "id" FROM "leads" ORDER BY {text} LIMIT ? OFFSET ?'


def test_every_operator_has_its_sql() -> None:
    """The declared operators are those that SQL is known for."""
    own = {"search", "search_newest", "has", "has_wide", "has_key"}
    assert set(SQLITE.operations) == own | set(OPERATORS)


def test_conditions_all_hold() -> None:
    """Conditions are joined by AND, and limit and offset come after their values."""
    where = (Filter("name", "eq", "a"), Filter("spam_score", "lt", 5))
    statement = sql.select_statement(Read(LEADS, ("id", "name"), where, limit=3, offset=6), SQLITE)

    assert statement.text == (
        'SELECT "id", "name" FROM "leads" WHERE "name" = ? AND "spam_score" < ?'
        ' ORDER BY "id" ASC LIMIT ? OFFSET ?'
    )
    assert list(statement.parameters) == ["a", 5, 3, 6]


def test_a_read_without_columns_names_every_column() -> None:
    """Hidden columns are among them: hiding is the business of interfaces."""
    statement = sql.select_statement(Read(EMAIL_SEND_STATE), SQLITE)

    assert statement.text == (
        'SELECT "id", "retry_after_until", "batch_size", "send_delay_ms", '
        '"auth_email_ttl_minutes", "transactional_email_ttl_minutes", "updated_at" '
        'FROM "email_send_state" ORDER BY "id" ASC LIMIT ? OFFSET ?'
    )
    assert list(statement.parameters) == [-1, 0]


def test_an_insert_binds_every_column_of_every_row() -> None:
    """JSON goes in as text, NULL stays NULL, and the number of rows is there on request."""
    row = {"id": "i", "email": "e", "reason": "bounce", "metadata": {"ä": [1]}, "created_at": "t"}
    plan = Insert(SUPPRESSED_EMAILS, [row, {**row, "metadata": None, "reason": RowCount(1)}])

    text, parameters = sql.insert_statement(plan, sql.resolve_counts(plan, [7, 8]), SQLITE)

    assert text == (
        'INSERT INTO "suppressed_emails" ("id", "email", "reason", "metadata", "created_at")'
        " VALUES (?, ?, ?, ?, ?)"
    )
    assert parameters == [
        ("i", "e", "bounce", '{"ä":[1]}', "t"),
        ("i", "e", 8, None, "t"),
    ]


def test_a_change_names_its_rows_and_gives_them_back() -> None:
    """Updates and deletions return whole rows; the count before them stops at one too many."""
    where = (Filter("id", "eq", "i"),)
    columns = '"id", "request_digest", "status", "response", "created_at", "expires_at"'
    update = sql.update_statement(
        Update(IDEMPOTENCY_KEYS, {"status": 201, "response": "r"}, where), SQLITE
    )
    delete = sql.delete_statement(Delete(IDEMPOTENCY_KEYS, where), SQLITE)
    count = sql.count_matches_statement(Delete(IDEMPOTENCY_KEYS, where), 10, SQLITE)

    assert update == sql.Statement(
        'UPDATE "idempotency_keys" SET "status" = ?, "response" = ? WHERE "id" = ?'
        f" RETURNING {columns}",
        (201, "r", "i"),
    )
    assert delete.text == f'DELETE FROM "idempotency_keys" WHERE "id" = ? RETURNING {columns}'
    assert count.text == (
        'SELECT count(*) FROM (SELECT 1 FROM "idempotency_keys" WHERE "id" = ? LIMIT ?) AS matching'
    )
    assert list(count.parameters) == ["i", 11]


@pytest.mark.parametrize(
    ("plan", "sqlstate"),
    [
        (Update(LEADS, {"name": "a"}, ()), "21000"),
        (Delete(LEADS, ()), "21000"),
        (Delete(LEADS, (), at_most=5), "21000"),
        (Update(LEADS, {}, (Filter("id", "eq", "i"),)), "PGRST100"),
        (Update(LEADS, {"colour": "a"}, (Filter("id", "eq", "i"),)), "42703"),
        (Delete(LEADS, (Filter("colour", "eq", "i"),)), "42703"),
        (Delete(LEADS, (Filter('id" = 1 OR "id', "eq", "i"),)), "42703"),
        (Delete(LEADS, (Filter("rowid", "eq", 1),)), "42703"),
        (Delete(LEADS, (Filter("name", "like", "a\\"),)), "22025"),
        (Delete(LEADS, (Filter("name", "ilike", "\\\\\\"),)), "22025"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(plan: Update | Delete, sqlstate: str) -> None:
    """Changing every row, unknown columns and malformed patterns are Problem `invalid`."""
    make = sql.update_statement if isinstance(plan, Update) else sql.delete_statement
    with pytest.raises(Problem) as refusal:
        make(plan, SQLITE)  # type: ignore[arg-type]

    assert (refusal.value.code, refusal.value.sqlstate) == ("invalid", sqlstate)


@pytest.mark.parametrize("plan", [Read(LEADS, ("colour",)), Read(LEADS, order=(Order("colour"),))])
def test_a_read_of_an_unknown_column_is_refused(plan: Read) -> None:
    """Columns to read and to sort by are declared ones too."""
    with pytest.raises(Problem) as refusal:
        sql.select_statement(plan, SQLITE)

    assert refusal.value.sqlstate == "42703"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_a_value_that_json_cannot_say_is_refused(value: object) -> None:
    """It never becomes text that no reader of JSON takes."""
    row = {"id": "i", "email": "e", "reason": "bounce", "metadata": value, "created_at": "t"}
    with pytest.raises(Problem) as refusal:
        sql.insert_statement(Insert(SUPPRESSED_EMAILS, [row]), [row], SQLITE)

    assert (refusal.value.code, refusal.value.sqlstate) == ("invalid", "22P02")
