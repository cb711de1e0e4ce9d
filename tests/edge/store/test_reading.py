"""Reads on a real file: what NULL, order, limits and patterns come to."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_api.db.query import Filter, Insert, Order, Read, Store, Where, ilike, like
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS, SUPPRESSED_EMAILS
from tests.edge.engines import ENGINES, open_store, placed
from tests.edge.store.samples import clock, make_entry, make_lead, make_row
from tests.sizes import scaled

pytestmark = pytest.mark.each_engine

TEXTS = ("a", "b", None, "A", "")
"""Values of `message_id` in the five rows of the table, in the order of their keys."""


@pytest.fixture
async def filled(store: Store) -> Store:
    """Return a store with five entries in the log of mail."""
    rows = [make_entry(id=f"{number:08}-0000-4000-8000-000000000000") for number in range(5)]
    entries = [{**row, "message_id": text} for row, text in zip(rows, TEXTS, strict=True)]
    await store.run(Insert(EMAIL_SEND_LOG, entries))
    return store


async def texts(store: Store, where: Where = (), **more: Any) -> list[str | None]:
    """Return what column `message_id` holds in the rows that are read."""
    (result,) = await store.run(Read(EMAIL_SEND_LOG, ("message_id",), where, **more))
    return [row["message_id"] for row in result.rows]


@pytest.mark.parametrize(
    ("operator", "value", "found", "others"),
    [
        ("eq", "a", ["a"], ["b", "A", ""]),
        ("neq", "a", ["b", "A", ""], ["a"]),
        ("gt", "a", ["b"], ["a", "A", ""]),
        ("gte", "a", ["a", "b"], ["A", ""]),
        ("lt", "a", ["A", ""], ["a", "b"]),
        ("lte", "a", ["a", "A", ""], ["b"]),
        ("like", "%", ["a", "b", "A", ""], []),
        ("like", "a", ["a"], ["b", "A", ""]),
        ("ilike", "a", ["a", "A"], ["b", ""]),
        ("in", ("a", "b"), ["a", "b"], ["A", ""]),
        ("in", (), [], ["a", "b", None, "A", ""]),
        ("is", None, [None], ["a", "b", "A", ""]),
        ("eq", "a\0", [], ["a", "b", "A", ""]),
        ("neq", "a\0", ["a", "b", "A", ""], []),
        ("in", ("a\0", "a"), ["a"], ["b", "A", ""]),
    ],
)
async def test_only_is_and_an_empty_list_see_null(
    filled: Store, operator: str, value: Any, found: list[str], others: list[str]
) -> None:
    """A row without a value is in neither answer: not to the question, not to its negation."""
    assert await texts(filled, (Filter("message_id", operator, value),)) == found
    assert await texts(filled, (Filter("message_id", operator, value, True),)) == others  # noqa: FBT003


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order("message_id"), ["", "A", "a", "b", None]),
        (Order("message_id", nulls_first=True), [None, "", "A", "a", "b"]),
        (Order("message_id", descending=True), ["b", "a", "A", "", None]),
        (Order("message_id", descending=True, nulls_first=True), [None, "b", "a", "A", ""]),
    ],
)
async def test_nulls_are_sorted_first_or_last_as_requested(
    filled: Store, order: Order, expected: list[str | None]
) -> None:
    """Text sorts by code point, and NULL before or after all of it."""
    assert await texts(filled, order=(order,)) == expected


async def test_text_sorts_by_code_point(store: Store) -> None:
    """Letters beyond ASCII and beyond the Basic Multilingual Plane come in their own order."""
    names = ["z", "Z", "é", "e", "ﬀ", "🦊", "日", " "]
    await store.run(Insert(LEADS, [make_lead(name=name) for name in names]))
    (result,) = await store.run(Read(LEADS, ("name",), order=(Order("name"),)))

    assert [row["name"] for row in result.rows] == sorted(names)


async def test_equal_rows_come_by_key_in_the_direction_of_the_order(filled: Store) -> None:
    """Pages of equal rows never overlap, whichever way they are sorted."""
    assert await texts(filled, order=(Order("status"),)) == list(TEXTS)
    assert await texts(filled, order=(Order("status", descending=True),)) == list(TEXTS[::-1])


@pytest.mark.parametrize(
    ("limit", "offset", "expected"),
    [(None, 0, 5), (None, 3, 2), (2, 0, 2), (2, 4, 1), (0, 0, 0), (3, 9, 0)],
)
async def test_a_count_is_of_all_that_matches(
    filled: Store, limit: int | None, offset: int, expected: int
) -> None:
    """Limit and offset cut the rows, never the total; without being asked there is no total."""
    where = (Filter("status", "eq", "pending"),)
    plan = Read(EMAIL_SEND_LOG, where=where, limit=limit, offset=offset, with_total=True)
    counted, plain = await filled.run(plan, Read(EMAIL_SEND_LOG))

    assert (len(counted.rows), counted.total) == (expected, 5)
    assert (len(plain.rows), plain.total) == (5, None)


async def test_integers_compare_as_numbers(store: Store) -> None:
    """9 is less than 10, in comparisons, lists and order."""
    await store.run(Insert(LEADS, [make_lead(spam_score=score) for score in (10, 9, -1)]))

    async def scores(*where: Filter) -> list[int]:
        (result,) = await store.run(Read(LEADS, where=where, order=(Order("spam_score"),)))
        return [row["spam_score"] for row in result.rows]

    assert await scores() == [-1, 9, 10]
    assert await scores(Filter("spam_score", "lt", 10)) == [-1, 9]
    assert await scores(Filter("spam_score", "in", (9, 11))) == [9]


@pytest.mark.parametrize(
    "value", [None, {}, [], {"ä": [1, 2.5, True, None, "x"]}, "text", 7, False, 2**64 - 1]
)
async def test_json_comes_back_as_it_went_in(store: Store, value: Any) -> None:
    """A JSON column holds values; only `None` is NULL to a filter."""
    given = {"email": "a@b", "reason": "bounce", "metadata": value}
    row = make_row(SUPPRESSED_EMAILS, given)
    (stored,) = await store.run(Insert(SUPPRESSED_EMAILS, [row]))
    read, missing = await store.run(
        Read(SUPPRESSED_EMAILS),
        Read(SUPPRESSED_EMAILS, where=(Filter("metadata", "is", None),)),
    )

    assert stored.rows == read.rows == [row]
    assert bool(missing.rows) is (value is None)


async def test_the_columns_asked_for_come_in_their_order(filled: Store) -> None:
    """A read gives what it was asked for; without columns, all of them."""
    some, every = await filled.run(
        Read(EMAIL_SEND_LOG, ("status", "id"), limit=1), Read(EMAIL_SEND_LOG, limit=1)
    )

    assert list(some.rows[0]) == ["status", "id"]
    assert list(every.rows[0]) == list(EMAIL_SEND_LOG.columns)


async def test_a_list_may_be_long(store: Store) -> None:
    """It is one parameter, however many values there are."""
    await store.run(Insert(LEADS, [make_lead(name=str(number)) for number in range(20)]))
    many = tuple(str(number) for number in range(10, 40_000))
    (result,) = await store.run(Read(LEADS, where=(Filter("name", "in", many),)))

    assert len(result.rows) == 10


async def test_nothing_asked_is_nothing_done(store: Store) -> None:
    """A transaction of no plans has no outcomes."""
    assert await store.run() == []


class Notes:
    """A store of leads with notes, on a loop of its own, for tests that are no coroutines."""

    notes = ("", "a", "A", "Ä", "ä%", "a_b", "axb", "a\\b", "Straße", "STRASSE", "x\ny", "🦊")

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._store = self._runner.run(open_store(url, clock))
        rows = [make_lead(notes=note) for note in (*self.notes, None)]
        self._runner.run(self._store.run(Insert(LEADS, rows)))

    def find(self, condition: Filter) -> set[str | None]:
        """Return the notes of the leads that match."""
        (result,) = self._runner.run(self._store.run(Read(LEADS, where=(condition,))))
        return {row["notes"] for row in result.rows}

    def close(self) -> None:
        """Let go of the store and the loop."""
        self._runner.run(self._store.close())
        self._runner.close()


@pytest.fixture(scope="module", params=ENGINES)
def notes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notes]:
    """Return leads with the notes of `Notes.notes`, and one without any."""
    with placed(request.param, request, tmp_path_factory.mktemp("notes")) as url:
        opened = Notes(url)
        try:
            yield opened
        finally:
            opened.close()


PIECES = st.sampled_from(["a", "A", "ä", "%", "*", "_", r"\%", r"\_", "\\\\", "s", "ß", "SS", "🦊"])


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=300))
@given(pieces=st.lists(PIECES, max_size=6), folds=st.booleans(), negated=st.booleans())
def test_patterns_mean_the_same_in_the_engine(
    notes: Notes,
    pieces: list[str],
    folds: bool,  # noqa: FBT001  drawn by hypothesis
    negated: bool,  # noqa: FBT001  drawn by hypothesis
) -> None:
    """No habit of the engine's own LIKE shows, on any text; NULL is in no answer."""
    pattern = "".join(pieces)
    matches = ilike if folds else like
    expected = {note for note in Notes.notes if matches(note, pattern) is not negated}

    found = notes.find(Filter("notes", "ilike" if folds else "like", pattern, negated))

    assert found == expected
