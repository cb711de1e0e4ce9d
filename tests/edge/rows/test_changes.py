"""Administrative rows that are changed and deleted: which, how, and what is written down."""

from datetime import timedelta

import pytest

from edge_api.admin.rows import MAX_CHANGES, Rows
from edge_api.db.query import Insert, Store
from edge_api.db.table import Row
from edge_api.db.tables import (
    EMAIL_UNSUBSCRIBE_TOKENS,
    LEADS,
    SUPPRESSED_EMAILS,
)
from tests.edge.rows.samples import (
    ACTOR,
    HIDDEN,
    ID,
    LEAD,
    Ticking,
    audited,
    everything,
    problem_of,
)

pytestmark = pytest.mark.each_engine


async def test_a_change_touches_what_matches(rows: Rows, clock: Ticking) -> None:
    """An update changes all matching rows, and its instant is their `updated_at`."""
    given = [{**LEAD, "notes": note} for note in (None, "a", "b")]
    await rows.insert(LEADS, given, ACTOR)
    clock.now += timedelta(days=1)

    changed = await rows.update(LEADS, {"notes": ["a", "b"]}, {"status": "won"}, ACTOR)

    assert {(row["notes"], row["status"]) for row in changed} == {("a", "won"), ("b", "won")}
    assert {row["updated_at"] for row in changed} == {"2026-06-02T12:00:00.000000Z"}
    assert {row["created_at"] for row in changed} == {"2026-06-01T12:00:00.000000Z"}
    assert [row["notes"] for row in await everything(rows, LEADS) if row["status"] == "new"] == [
        None
    ]


async def test_a_change_may_set_the_touched_time_itself(rows: Rows) -> None:
    """An `updated_at` that a client sends is stored."""
    await rows.insert(LEADS, [LEAD], ACTOR)

    (row,) = await rows.update(LEADS, {"name": "Ada"}, {"updated_at": "2020-01-01"}, ACTOR)

    assert row["updated_at"] == "2020-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ({"notes": None}, {"n"}),
        ({"notes": "eq.a"}, {"e"}),
        ({"notes": "a*"}, set()),
        ({"notes": ["", "eq.a"]}, {"e", "s"}),
        ({"notes": []}, set()),
        ({"notes": "' OR '1'='1"}, set()),
        ({"spam_score": 3}, {"e", "s"}),
        ({"spam_score": [3, 4]}, {"e", "s"}),
        ({"spam_score": 3.0}, {"e", "s"}),
        ({"spam_score": 3, "notes": ""}, {"s"}),
        ({"created_at": "2026-06-01T14:00:00+02:00"}, {"n", "e", "s"}),
        ({"spam_reasons": None}, {"n", "e"}),
        ({"name": None}, set()),
        ({"id": "00000000-0000-4000-8000-0000000000FF"}, set()),
    ],
)
async def test_a_match_is_equality(rows: Rows, match: Row, found: set[str]) -> None:
    """Members of a match all hold: a value literally, null for NULL, any of an array."""
    given: list[Row] = [
        {**LEAD, "name": "n", "notes": None},
        {**LEAD, "name": "e", "notes": "eq.a", "spam_score": 3},
        {**LEAD, "name": "s", "notes": "", "spam_score": 3, "spam_reasons": ["x"]},
    ]
    await rows.insert(LEADS, given, ACTOR)

    assert {row["name"] for row in await rows.delete(LEADS, match, ACTOR)} == found
    assert {row["name"] for row in await everything(rows, LEADS)} == {"n", "e", "s"} - found


MATCH_FAULTS = [
    ({}, "21000"),
    ({"nope": 1}, "42703"),
    (HIDDEN, "42703"),
    ({"dedupe_hash": None}, "42703"),
    ({"rowid": 1}, "42703"),
    ({"name": 1}, "22021"),
    ({"name": {"a": 1}}, "22021"),
    ({"name": ["a", None]}, "22021"),
    ({"name": [["a"]]}, "22021"),
    ({"name": "a\0"}, "22021"),
    ({"spam_score": "3"}, "22P02"),
    ({"spam_score": True}, "22P02"),
    ({"spam_score": 3.5}, "22P02"),
    ({"spam_score": 10**19}, "22P02"),
    ({"id": "5"}, "22P02"),
    ({"created_at": "x"}, "22007"),
    ({"spam_reasons": ["x"]}, "42883"),
    ({"name": "Ada", "nope": 1}, "42703"),
]


@pytest.mark.parametrize(("match", "code"), MATCH_FAULTS)
async def test_a_faulty_match_changes_nothing(
    rows: Rows, store: Store, match: Row, code: str
) -> None:
    """A match that names no column, or a value of another kind, is refused for both verbs."""
    (row,) = await rows.insert(LEADS, [LEAD], ACTOR)

    for work in (
        rows.update(LEADS, match, {"status": "won"}, ACTOR),
        rows.delete(LEADS, match, ACTOR),
    ):
        problem = await problem_of(work)
        assert (problem.code, problem.sqlstate) == ("invalid", code)
        assert "match" in problem.message or code == "42703"

    assert await everything(rows, LEADS) == [row]
    assert len(await audited(store)) == 1


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, "PGRST100"),
        ({"nope": 1}, "42703"),
        (HIDDEN, "42703"),
        ({"id": ID}, "428C9"),
        ({"name": None}, "23502"),
        ({"name": ""}, "23514"),
        ({"name": 5}, "22P02"),
        ({"status": "old"}, "23514"),
        ({"spam_score": 1.5}, "22P02"),
        ({"status": "won", "nope": 1}, "42703"),
    ],
)
async def test_faulty_values_change_nothing(
    rows: Rows, store: Store, values: Row, code: str
) -> None:
    """Values that name no column, the key, a hidden column or another kind are refused."""
    (row,) = await rows.insert(LEADS, [LEAD], ACTOR)

    problem = await problem_of(rows.update(LEADS, {"name": "Ada"}, values, ACTOR))

    assert (problem.code, problem.sqlstate) == ("invalid", code)
    assert await everything(rows, LEADS) == [row]
    assert len(await audited(store)) == 1


async def test_an_empty_match_says_what_to_fix(rows: Rows) -> None:
    """The error says that the match must name a column."""
    problem = await problem_of(rows.delete(LEADS, {}, ACTOR))

    assert problem.message == "match: must name at least one column"


async def test_a_value_can_be_set_to_null(rows: Rows) -> None:
    """A nullable column takes null."""
    await rows.insert(LEADS, [{**LEAD, "notes": "x", "spam_reasons": ["y"]}], ACTOR)

    (row,) = await rows.update(LEADS, {"notes": "x"}, {"notes": None, "spam_reasons": None}, ACTOR)

    assert (row["notes"], row["spam_reasons"]) == (None, None)


async def test_a_change_that_breaks_a_uniqueness_changes_nothing(rows: Rows) -> None:
    """None of several rows that would become equal is changed."""
    given = [{"email": f"{name}@b.c", "token": name * 32} for name in "xy"]
    await rows.insert(EMAIL_UNSUBSCRIBE_TOKENS, given, ACTOR)
    match = {"used_at": None}

    problem = await problem_of(
        rows.update(EMAIL_UNSUBSCRIBE_TOKENS, match, {"email": "Z@b.c"}, ACTOR)
    )

    assert problem.code == "conflict"
    stored = await everything(rows, EMAIL_UNSUBSCRIBE_TOKENS)
    assert sorted(row["email"] for row in stored) == ["x@b.c", "y@b.c"]


async def test_every_write_is_audited(rows: Rows, store: Store) -> None:
    """Verb, table, columns of the match and number of rows are in the log; values are not."""
    await rows.insert(LEADS, [LEAD, LEAD], ACTOR)
    await rows.update(LEADS, {"name": "Ada", "notes": None}, {"status": "won"}, ACTOR)
    await rows.update(LEADS, {"name": "nobody"}, {"status": "lost"}, ACTOR)
    await rows.delete(LEADS, {"status": ["won", "lost"]}, ACTOR)

    assert sorted(await audited(store)) == [
        ("delete", "leads", "status", 2),
        ("insert", "leads", "", 2),
        ("update", "leads", "name", 0),
        ("update", "leads", "name,notes", 2),
    ]


async def test_a_change_of_too_many_rows_changes_none(rows: Rows, store: Store) -> None:
    """Ten thousand rows are changed in one call; one more is refused and none is changed."""
    await store.run(
        Insert(
            SUPPRESSED_EMAILS,
            [
                SUPPRESSED_EMAILS.new_row(
                    {"email": f"{number}@b.c", "reason": "bounce"},
                    "2026-01-01T00:00:00.000000Z",
                    lambda number=number: f"00000000-0000-4000-8000-{number:012}",  # type: ignore[misc]
                )
                for number in range(MAX_CHANGES + 1)
            ],
        )
    )
    match = {"reason": "bounce"}

    for work in (
        rows.update(SUPPRESSED_EMAILS, match, {"reason": "complaint"}, ACTOR),
        rows.delete(SUPPRESSED_EMAILS, match, ACTOR),
    ):
        assert (await problem_of(work)).code == "invalid"
    page = await rows.read(SUPPRESSED_EMAILS, [("reason", "eq.bounce")], with_total=True)
    assert page.total == MAX_CHANGES + 1
    assert await audited(store) == []

    await rows.delete(SUPPRESSED_EMAILS, {"email": "7@b.c"}, ACTOR)
    assert len(await rows.delete(SUPPRESSED_EMAILS, match, ACTOR)) == MAX_CHANGES
