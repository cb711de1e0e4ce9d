"""Administrative rows that are stored and read: what they hold, what is refused."""

import asyncio
import json
from typing import Any

import pytest

from edge_api.admin.rows import MAX_INSERT_ROWS, Rows
from edge_api.db.problems import Problem
from edge_api.db.query import Insert, Store
from edge_api.db.table import Row, Table
from edge_api.db.tables import (
    EMAIL_SEND_LOG,
    EMAIL_SEND_STATE,
    LEADS,
    SUPPRESSED_EMAILS,
)
from tests.edge.rows.samples import ACTOR, HIDDEN, ID, LEAD, audited, everything, problem_of

pytestmark = pytest.mark.each_engine

SENT = {"template_name": "t", "recipient_email": "a@b.c", "status": "sent", "message_id": "m-1"}


async def test_an_insert_fills_in_what_is_left_out(rows: Rows) -> None:
    """A stored row has an id, its times and each column's default; strings stay as sent."""
    (row,) = await rows.insert(LEADS, [{**LEAD, "name": "  \u0065\u0301 "}], ACTOR)

    assert (row["name"], row["email"]) == ("  \u0065\u0301 ", "Ada@Example.org")
    assert (row["status"], row["source"], row["spam_score"], row["notes"]) == (
        "new",
        "api",
        0,
        None,
    )
    assert row["created_at"] == row["updated_at"] == "2026-06-01T12:00:00.000000Z"
    assert tuple(row) == LEADS.readable


async def test_id_and_times_may_be_given(rows: Rows) -> None:
    """An id and an instant that a client brings are stored in their canonical form."""
    given = {**LEAD, "id": ID.upper(), "created_at": "2026-01-01T02:00:00.5+02:00"}

    (row,) = await rows.insert(LEADS, [given], ACTOR)

    assert (row["id"], row["created_at"]) == (ID, "2026-01-01T00:00:00.500000Z")
    assert await everything(rows, LEADS) == [row]


@pytest.mark.parametrize("shape", ['{{"a": {}}}', "[{}]"])
async def test_json_is_stored_as_deep_as_it_may_be(rows: Rows, shape: str) -> None:
    """JSON of 64 levels goes in and comes out; one more is refused before anything chokes on it."""
    value: Any = 1
    for _ in range(64):
        value = json.loads(shape.format(json.dumps(value)))

    (row,) = await rows.insert(LEADS, [{**LEAD, "spam_reasons": value}], ACTOR)
    problem = await problem_of(rows.insert(LEADS, [{**LEAD, "spam_reasons": [value]}], ACTOR))

    assert row["spam_reasons"] == value
    assert problem.message == "spam_reasons: must not be nested deeper than 64 levels"


async def test_rows_may_bring_different_members(rows: Rows) -> None:
    """Each row of an insert takes the defaults of what it leaves out, whatever the others bring."""
    stored = await rows.insert(LEADS, [LEAD, {**LEAD, "notes": "n"}], ACTOR)

    assert [row["notes"] for row in stored] == [None, "n"]


async def test_inserting_nothing_stores_nothing(rows: Rows, store: Store) -> None:
    """An insert of no rows succeeds, gives back none, and is written down all the same."""
    assert await rows.insert(LEADS, [], ACTOR) == []
    assert await audited(store) == [("insert", "leads", "", 0)]


@pytest.mark.parametrize(
    ("table", "faulty", "code"),
    [
        (LEADS, {**LEAD, "nope": 1}, "42703"),
        (LEADS, {**LEAD, **HIDDEN}, "42703"),
        (LEADS, {**LEAD, "rowid": 1}, "42703"),
        (LEADS, {"name": "Ada"}, "23502"),
        (LEADS, {**LEAD, "name": None}, "23502"),
        (LEADS, {**LEAD, "name": 1}, "22P02"),
        (LEADS, {**LEAD, "name": ""}, "23514"),
        (LEADS, {**LEAD, "name": "x" * 101}, "23514"),
        (LEADS, {**LEAD, "name": "a\0b"}, "22021"),
        (LEADS, {**LEAD, "status": "old"}, "23514"),
        (LEADS, {**LEAD, "spam_score": True}, "22P02"),
        (LEADS, {**LEAD, "spam_score": "1"}, "22P02"),
        (LEADS, {**LEAD, "id": "x"}, "22P02"),
        (LEADS, {**LEAD, "created_at": "yesterday"}, "22007"),
        (LEADS, {**LEAD, "created_at": 1}, "22P02"),
        (LEADS, {**LEAD, "spam_reasons": ["a\0"]}, "22P02"),
        (EMAIL_SEND_STATE, {"id": 2}, "23514"),
        (EMAIL_SEND_STATE, {"batch_size": 0}, "23514"),
        (SUPPRESSED_EMAILS, {"email": "a@b.c", "reason": "because"}, "23514"),
    ],
)
async def test_a_faulty_row_stores_nothing(
    rows: Rows, store: Store, table: Table, faulty: Row, code: str
) -> None:
    """One faulty row among good ones is named, and none of them is stored."""
    good = {LEADS: LEAD, SUPPRESSED_EMAILS: {"email": "x@y.z", "reason": "bounce"}}.get(table, {})
    before = await everything(rows, table)

    problem = await problem_of(rows.insert(table, [good, faulty], ACTOR))

    assert (problem.code, problem.sqlstate) == ("invalid", code)
    assert problem.details == "Row 2 of the body"
    assert await everything(rows, table) == before
    assert await audited(store) == []


async def test_a_duplicate_stores_nothing(rows: Rows, store: Store) -> None:
    """A row that breaks a uniqueness is a conflict, and the rows before it are not stored."""
    await rows.insert(SUPPRESSED_EMAILS, [{"email": "a@b.c", "reason": "bounce"}], ACTOR)
    many = [{"email": f"{name}@b.c", "reason": "bounce"} for name in ("x", "A")]

    problem = await problem_of(rows.insert(SUPPRESSED_EMAILS, many, ACTOR))

    assert (problem.code, problem.status, problem.sqlstate) == ("conflict", 409, "23505")
    assert "email" in problem.message
    assert len(await everything(rows, SUPPRESSED_EMAILS)) == 1
    assert len(await audited(store)) == 1


async def test_rows_of_one_call_are_bounded(rows: Rows) -> None:
    """A thousand rows are stored in one call; one more is refused and nothing is stored."""
    problem = await problem_of(rows.insert(LEADS, [LEAD] * (MAX_INSERT_ROWS + 1), ACTOR))

    assert (problem.code, problem.sqlstate) == ("invalid", "54000")
    assert await everything(rows, LEADS) == []
    assert len(await rows.insert(LEADS, [LEAD] * MAX_INSERT_ROWS, ACTOR)) == MAX_INSERT_ROWS


async def test_a_column_that_is_folded_is_folded_in_match_too(rows: Rows) -> None:
    """Addresses are stored in lower case, and matched whatever the case they are sent in."""
    given = {"email": "\u00c4da@Example.ORG", "reason": "bounce"}
    (row,) = await rows.insert(SUPPRESSED_EMAILS, [given], ACTOR)
    match = {"email": ["nobody@example.org", "\u00c4DA@example.org"]}

    assert row["email"] == "\u00e4da@example.org"
    assert await rows.delete(SUPPRESSED_EMAILS, match, ACTOR) == [row]


async def test_a_folded_address_that_grows_is_refused(rows: Rows) -> None:
    """An address that fits as it is sent, but not in lower case, is a fault of the client's."""
    long = "\u0130" * 200 + "@b.c"

    problem = await problem_of(
        rows.insert(SUPPRESSED_EMAILS, [{"email": long, "reason": "bounce"}], ACTOR)
    )

    assert (problem.code, problem.sqlstate) == ("invalid", "23514")


async def test_a_table_of_one_row_refuses_a_second(rows: Rows) -> None:
    """The table of one row refuses a second, and after its deletion takes one with defaults."""
    (row,) = await everything(rows, EMAIL_SEND_STATE)
    assert (await problem_of(rows.insert(EMAIL_SEND_STATE, [{}], ACTOR))).code == "conflict"

    assert await rows.delete(EMAIL_SEND_STATE, {"id": 1}, ACTOR) == [row]
    assert await everything(rows, EMAIL_SEND_STATE) == []
    assert (await problem_of(rows.insert(EMAIL_SEND_STATE, [{}, {}], ACTOR))).code == "conflict"

    (again,) = await rows.insert(EMAIL_SEND_STATE, [{"batch_size": 7}], ACTOR)
    assert (again["id"], again["batch_size"], again["send_delay_ms"]) == (1, 7, 200)


async def test_a_message_is_sent_once(rows: Rows) -> None:
    """A message has one row that says sent, and any number of rows that say something else."""
    await rows.insert(EMAIL_SEND_LOG, [SENT, {**SENT, "status": "failed"}], ACTOR)

    assert (await problem_of(rows.insert(EMAIL_SEND_LOG, [SENT], ACTOR))).code == "conflict"
    change = rows.update(EMAIL_SEND_LOG, {"status": "failed"}, {"status": "sent"}, ACTOR)
    assert (await problem_of(change)).code == "conflict"


async def test_writes_at_the_same_time_do_not_mix(rows: Rows, store: Store) -> None:
    """Many writers at once: each is done whole or refused whole, and the log says how many."""
    given = [[{"email": f"{n % 5}@b.c", "reason": "bounce"}] for n in range(20)]

    outcomes = await asyncio.gather(
        *(rows.insert(SUPPRESSED_EMAILS, item, ACTOR) for item in given), return_exceptions=True
    )

    refused = [outcome for outcome in outcomes if isinstance(outcome, Problem)]
    assert ({problem.code for problem in refused}, len(refused)) == ({"conflict"}, 15)
    assert len(await everything(rows, SUPPRESSED_EMAILS)) == 5
    assert await audited(store) == [("insert", "suppressed_emails", "", 1)] * 5


async def test_no_hidden_column_is_shown(rows: Rows, store: Store) -> None:
    """The value of a hidden column is in no answer, and no filter reaches it."""
    row = LEADS.new_row({**LEAD, **HIDDEN}, "2026-01-01T00:00:00.000000Z", lambda: ID)
    await store.run(Insert(LEADS, [row]))

    assert "dedupe_hash" not in (await everything(rows, LEADS))[0]
    assert "dedupe_hash" not in (await rows.update(LEADS, {"id": ID}, {"notes": "n"}, ACTOR))[0]
    for pairs in (
        [("dedupe_hash", "like.h*")],
        [("order", "dedupe_hash")],
        [("select", "dedupe_hash")],
    ):
        assert (await problem_of(rows.read(LEADS, pairs))).sqlstate == "42703"
    assert "dedupe_hash" not in (await rows.delete(LEADS, {"id": ID}, ACTOR))[0]


async def test_a_page_has_its_offset_and_total(rows: Rows) -> None:
    """A page has the members in the order asked for, its offset, and the total when counted."""
    await rows.insert(LEADS, [{**LEAD, "name": name} for name in "abc"], ACTOR)
    pairs = [("select", "n:name,id"), ("order", "name.desc"), ("limit", "1"), ("offset", "1")]

    page = await rows.read(LEADS, pairs, with_total=True)

    assert (page.names, page.offset, page.total) == (("n", "id"), 1, 3)
    assert [row["n"] for row in page.rows] == ["b"]
    assert (await rows.read(LEADS, pairs)).total is None


async def test_a_long_list_of_values_is_one_condition(rows: Rows) -> None:
    """Tens of thousands of values in a filter or a match are no trouble to the engine."""
    (row,) = await rows.insert(LEADS, [LEAD], ACTOR)
    names = [*(f"n{number}" for number in range(40_000)), "Ada"]

    assert (await rows.read(LEADS, [("name", f"in.({','.join(names)})")])).rows == [row]
    assert await rows.delete(LEADS, {"name": names}, ACTOR) == [row]
