"""Writes on a real file: all or nothing, and what a refusal says."""

import asyncio
from typing import Any

import pytest

from edge_api.db.problems import Problem
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    InsertFromRead,
    Order,
    Query,
    Read,
    RowCount,
    Store,
    Update,
    ValueIfExists,
)
from edge_api.db.table import Row
from edge_api.db.tables import (
    AUDIT_LOG,
    EMAIL_SEND_LOG,
    EMAIL_SEND_STATE,
    EMAIL_UNSUBSCRIBE_TOKENS,
    LEADS,
    SUPPRESSED_EMAILS,
)
from tests.edge.store.samples import make_entry, make_lead, make_row

pytestmark = pytest.mark.each_engine

ANY = Filter("id", "is", None, negated=True)
SMALL = (Filter("budget_tier", "eq", "small"),)
AUDIT = {"actor": "a", "verb": "update", "table_name": "leads", "columns": "", "rows": 0}


async def rows_of(store: Store, plan: Read) -> list[Row]:
    """Return the rows of one read."""
    (result,) = await store.run(plan)
    return result.rows


async def refusal_of(store: Store, *plans: Query) -> Problem:
    """Return the problem that the plans meet."""
    with pytest.raises(Problem) as refusal:
        await store.run(*plans)
    return refusal.value


async def test_an_insert_gives_back_the_rows_that_are_stored(store: Store) -> None:
    """A caller gets what is read afterwards, column by column."""
    rows = [make_lead(name=name, spam_reasons=["link"]) for name in ("Ada", "Bo")]
    (result,) = await store.run(Insert(LEADS, rows))

    assert result.rows == rows
    assert await rows_of(store, Read(LEADS)) == rows


async def test_inserting_no_rows_stores_none(store: Store) -> None:
    """An empty list is fine."""
    (result,) = await store.run(Insert(LEADS, []))

    assert result.rows == []


async def test_a_change_gives_back_the_rows_by_key(store: Store) -> None:
    """Rows come as they are after the change, deleted ones as they were, in a fixed order."""
    rows = [make_lead(name=str(number)) for number in range(20)]
    await store.run(Insert(LEADS, rows[::-1]))
    (changed,) = await store.run(Update(LEADS, {"status": "won"}, SMALL))
    (deleted,) = await store.run(Delete(LEADS, SMALL))

    assert changed.rows == deleted.rows == [{**row, "status": "won"} for row in rows]
    assert await rows_of(store, Read(LEADS)) == []


async def test_a_change_that_matches_nothing_is_no_fault(store: Store) -> None:
    """The answer is an empty list."""
    results = await store.run(Update(LEADS, {"status": "won"}, SMALL), Delete(LEADS, SMALL))

    assert [result.rows for result in results] == [[], []]


async def test_json_is_set_and_cleared(store: Store) -> None:
    """An update writes JSON as an insert does."""
    await store.run(Insert(LEADS, [make_lead()]))
    for value in ({"a": [None]}, None):
        (result,) = await store.run(Update(LEADS, {"spam_reasons": value}, SMALL))

        assert result.rows[0]["spam_reasons"] == value


async def test_a_plan_sees_what_earlier_ones_did(store: Store) -> None:
    """Plans of one transaction run one after the other; a read among writes sees them."""
    lead = make_lead()
    _, read, _, empty = await store.run(
        Insert(LEADS, [lead]), Read(LEADS, with_total=True), Delete(LEADS, SMALL), Read(LEADS)
    )

    assert (read.rows, read.total) == ([lead], 1)
    assert empty.rows == []


async def test_a_value_may_be_the_number_of_rows_of_an_earlier_plan(store: Store) -> None:
    """So an audit entry tells how many rows changed, in the transaction of the change."""
    await store.run(Insert(LEADS, [make_lead() for _ in range(3)]))
    entry = {**make_row(AUDIT_LOG, AUDIT), "rows": RowCount(0)}
    _, audit = await store.run(Update(LEADS, {"status": "won"}, SMALL), Insert(AUDIT_LOG, [entry]))

    assert audit.rows[0]["rows"] == 3
    assert (await rows_of(store, Read(AUDIT_LOG)))[0]["rows"] == 3


async def test_a_value_may_depend_on_the_rows_before(store: Store) -> None:
    """So a row says what the store knew when it was stored, be it by a row of the same group."""

    def lead(number: int) -> Insert:
        judged = {"spam_score": ValueIfExists(7, 0), "spam_reasons": ValueIfExists(["seen"], None)}
        return Insert(LEADS, [{**make_lead(name=str(number)), **judged}], condition=SMALL)

    await store.run(lead(0))
    await asyncio.gather(*(store.run(lead(number)) for number in range(1, 9)))
    await store.run(Delete(LEADS, SMALL))
    await asyncio.gather(*(store.run(lead(number)) for number in range(9)))

    rows = await rows_of(store, Read(LEADS, order=(Order("spam_score"),)))
    assert [(row["spam_score"], row["spam_reasons"]) for row in rows] == [
        (0, None),
        *[(7, ["seen"])] * 8,
    ]


async def test_rows_follow_from_what_the_transaction_reads(store: Store) -> None:
    """Those of each caller from what is there at its turn, though a group reads only once."""

    def copies(number: int) -> InsertFromRead:
        def insert(rows: list[Row]) -> Insert:
            return Insert(LEADS, [make_lead(name=f"{number} {row['reason']}") for row in rows])

        return InsertFromRead(Read(SUPPRESSED_EMAILS), insert)

    bounce = make_row(SUPPRESSED_EMAILS, {"email": "a@b", "reason": "bounce"})
    *_, last = await asyncio.gather(
        store.run(copies(0)),
        store.run(Insert(SUPPRESSED_EMAILS, [bounce]), copies(1)),
        store.run(copies(2)),
        store.run(Update(SUPPRESSED_EMAILS, {"reason": "complaint"}, (ANY,)), copies(3)),
        store.run(Delete(SUPPRESSED_EMAILS, (ANY,)), copies(4)),
    )

    rows = await rows_of(store, Read(LEADS, order=(Order("name"),)))
    assert [row["name"] for row in rows] == ["1 bounce", "2 bounce", "3 complaint"]
    assert last[1].rows == []


async def test_one_of_a_group_fails_alone(store: Store) -> None:
    """Whichever statement it shares with others: each is stored, or gets its error."""
    rows = [make_row(SUPPRESSED_EMAILS, {"email": "a@b", "reason": "bounce"}) for _ in range(3)]
    leads = [make_lead(name=str(number)) for number in range(4)]
    results = await asyncio.gather(
        *(
            store.run(Insert(LEADS, [lead]), Insert(SUPPRESSED_EMAILS, [row]))
            for lead, row in zip(leads, rows, strict=False)
        ),
        store.run(Insert(LEADS, [leads[3]])),
        store.run(Insert(LEADS, [{**make_lead(), "email": ""}])),
        return_exceptions=True,
    )

    assert [getattr(result, "code", "stored") for result in results] == [
        "stored",
        "conflict",
        "conflict",
        "stored",
        "invalid",
    ]
    kept = await rows_of(store, Read(LEADS, order=(Order("name"),)))
    assert [row["name"] for row in kept] == ["0", "3"]


async def test_a_transaction_is_whole_or_not_at_all(store: Store) -> None:
    """A plan that is refused undoes those before it, also rows of its own."""
    token = {"token": "t" * 32, "email": "a@b"}
    same = [make_row(EMAIL_UNSUBSCRIBE_TOKENS, token) for _ in range(2)]
    problem = await refusal_of(
        store, Insert(LEADS, [make_lead()]), Insert(EMAIL_UNSUBSCRIBE_TOKENS, same)
    )

    assert problem.code == "conflict"
    assert await rows_of(store, Read(LEADS)) == []
    assert await rows_of(store, Read(EMAIL_UNSUBSCRIBE_TOKENS)) == []


async def test_a_value_that_exists_is_a_conflict_in_words_of_postgresql(store: Store) -> None:
    """The column and the value are named, for people and for PostgREST's clients."""
    row = make_row(SUPPRESSED_EMAILS, {"email": "a@b", "reason": "bounce"})
    other = make_row(SUPPRESSED_EMAILS, {"email": "c@d", "reason": "bounce"})
    await store.run(Insert(SUPPRESSED_EMAILS, [row]))
    third = make_row(SUPPRESSED_EMAILS, {"email": "a@b", "reason": "complaint"})
    problem = await refusal_of(store, Insert(SUPPRESSED_EMAILS, [other, third]))

    assert (problem.code, problem.status, problem.sqlstate) == ("conflict", 409, "23505")
    assert problem.message == "email: a row with this value exists already"
    assert problem.details == "Key (email)=(a@b) already exists."


@pytest.mark.parametrize(
    ("plan", "details"),
    [
        (Insert(EMAIL_SEND_STATE, [make_row(EMAIL_SEND_STATE, {})]), "Key (id)=(1)"),
        (
            Insert(EMAIL_SEND_LOG, [make_entry(message_id="m", status="sent")]),
            "Key (message_id)=(m)",
        ),
        (
            Update(EMAIL_SEND_LOG, {"message_id": "m"}, (Filter("status", "eq", "sent"),)),
            "Key (message_id)=(m)",
        ),
        (
            Update(EMAIL_SEND_LOG, {"status": "sent"}, (Filter("message_id", "eq", "m"),)),
            "Key (message_id)",
        ),
    ],
)
async def test_every_kind_of_uniqueness_is_a_conflict(
    store: Store, plan: Insert | Update, details: str
) -> None:
    """Keys, partial indexes, inserts and updates; a value is named where it is known."""
    seen = [("m", "sent"), ("n", "sent"), ("m", "pending")]
    rows = [make_entry(message_id=message, status=status) for message, status in seen]
    await store.run(Insert(EMAIL_SEND_LOG, rows))
    problem = await refusal_of(store, plan)

    assert problem.code == "conflict"
    assert problem.details == f"{details} already exists."


@pytest.mark.parametrize(
    ("values", "sqlstate", "column"),
    [
        ({"status": "lukewarm"}, "23514", "status"),
        ({"name": "x" * 101}, "23514", "name"),
        ({"spam_score": 10**18 + 1}, "23514", "spam_score"),
        ({"name": None}, "23502", "name"),
    ],
)
async def test_a_broken_rule_is_invalid_and_names_its_column(
    store: Store, values: dict[str, Any], sqlstate: str, column: str
) -> None:
    """Values that slip past the service's own checks are a fault of the request all the same."""
    await store.run(Insert(LEADS, [make_lead()]))
    plans: tuple[Query, ...] = (
        Insert(LEADS, [{**make_lead(), **values}]),
        Update(LEADS, values, SMALL),
    )
    for plan in plans:
        problem = await refusal_of(store, plan)

        assert (problem.code, problem.sqlstate) == ("invalid", sqlstate)
        assert problem.message == f"{column}: breaks a rule of leads"


@pytest.mark.parametrize(
    "make", [Update(LEADS, {"status": "won"}, SMALL, 5), Delete(LEADS, SMALL, 5)]
)
async def test_more_rows_than_allowed_are_left_alone(store: Store, make: Update | Delete) -> None:
    """One row too many and nothing is changed; just as many as allowed are."""
    rows = [make_lead() for _ in range(6)]
    await store.run(Insert(LEADS, rows))
    problem = await refusal_of(store, Insert(LEADS, [make_lead(name="Bo")]), make)

    assert (problem.code, problem.sqlstate) == ("invalid", "54000")
    assert "more than 5 rows" in problem.message
    assert await rows_of(store, Read(LEADS)) == rows

    await store.run(Delete(LEADS, (Filter("id", "eq", rows[0]["id"]),)))
    (result,) = await store.run(make)
    assert len(result.rows) == 5


@pytest.mark.parametrize("plan", [Update(LEADS, {"status": "won"}, ()), Delete(LEADS, ())])
async def test_a_change_of_every_row_is_refused(store: Store, plan: Query) -> None:
    """A condition that was forgotten must not wipe a table."""
    lead = make_lead()
    await store.run(Insert(LEADS, [lead]))
    problem = await refusal_of(store, plan)

    assert (problem.code, problem.sqlstate) == ("invalid", "21000")
    assert await rows_of(store, Read(LEADS)) == [lead]


async def test_text_is_stored_as_it_is(store: Store) -> None:
    """Quotes, SQL, wildcards, line ends and emoji are nothing but text."""
    texts = [
        "'",
        '"',
        "'); DROP TABLE leads;--",
        "%_\\*",
        "\r\n\t",
        "🦊é\u202e",
        "null",
        "?1 :a @b",
    ]
    await store.run(Insert(LEADS, [make_lead(notes=text) for text in texts]))

    assert [row["notes"] for row in await rows_of(store, Read(LEADS))] == texts
    for text in texts:
        where = (Filter("notes", "eq", text),)
        assert len(await rows_of(store, Read(LEADS, where=where))) == 1
