"""Administrative reads against a second opinion: the same questions answered in plain Python.

The model knows the published meaning of each filter and nothing of plans or SQL.
"""

import asyncio
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_api.admin.rows import Rows, RowsPage, parse_query
from edge_api.auth.actor import OPERATOR
from edge_api.db.query import Delete, Filter
from edge_api.db.tables import LEADS
from edge_api.db.types import MAX_INTEGER, MAX_JSON_NUMBER, MIN_JSON_NUMBER
from tests.edge.engines import ENGINES, open_store, placed
from tests.sizes import scaled

pytestmark = pytest.mark.each_engine

COLUMNS = ("id", "name", "notes", "spam_score", "consent_at", "spam_reasons")
COMPARABLE = COLUMNS[:-1]
TEXTS = ("name", "notes")
INSTANT = datetime(2026, 1, 1, tzinfo=UTC)
ALPHABET = "aAbB\u00e9\u00c9\u65e5\U0001f98a%_*\\ \",()'.\n"


class RequestedFilter(NamedTuple):
    """One filter as the client means it."""

    column: str
    operator: str
    value: Any
    negated: bool = False


class Sorted(NamedTuple):
    """One column to sort by."""

    column: str
    direction: str = ""
    nulls: str = ""


class Question(NamedTuple):
    """One read as the client means it."""

    filters: list[RequestedFilter]
    order: list[Sorted]
    limit: int
    offset: int


class Tables:
    """A real store on a loop of its own, for tests that cannot be coroutines."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._store = self._runner.run(open_store(url, lambda: INSTANT))
        self.rows = Rows(self._store, lambda: INSTANT)

    def fill(self, rows: list[dict[str, Any]]) -> None:
        """Put these leads in place of all others."""
        everything = Filter("id", "is", None, negated=True)
        self._runner.run(self._store.run(Delete(LEADS, (everything,))))
        self._runner.run(self.rows.insert(LEADS, rows, OPERATOR))

    def read(self, pairs: list[tuple[str, str]]) -> RowsPage:
        """Read leads, counted."""
        return self._runner.run(self.rows.read(LEADS, pairs, with_total=True))

    def read_both_ways(self, pairs: list[tuple[str, str]]) -> list[list[dict[str, Any]]]:
        """Read leads as the engine gives them at once, and one by one."""
        read = parse_query(LEADS, pairs).read
        assert read.limit is not None
        last = read.offset + read.limit
        all_of_them = replace(read, limit=None, offset=0)
        at_once, singly = self._runner.run(self._store.run(read, all_of_them))
        return [at_once.rows, singly.rows[read.offset : last]]

    def close(self) -> None:
        """Close the store and the loop."""
        self._runner.run(self._store.close())
        self._runner.close()


@pytest.fixture(scope="module", params=ENGINES)
def tables(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tables]:
    """Return tables over an empty store."""
    with placed(request.param, request, tmp_path_factory.mktemp("model")) as url:
        opened = Tables(url)
        try:
            yield opened
        finally:
            opened.close()


# What the client means: the model.


def holds(row: dict[str, Any], asked: RequestedFilter) -> bool:
    """Return whether a filter keeps a row: only what is certainly true does."""
    outcome = truth(row[asked.column], asked)
    return outcome is not None and outcome != asked.negated


def truth(held: Any, asked: RequestedFilter) -> bool | None:
    """Return what the bare comparison gives in three-valued logic."""
    if asked.operator == "is":
        return bool((held is None) == (asked.value == "null"))
    if asked.operator == "in" and not asked.value:
        return False
    return None if held is None else bool(MEANINGS[asked.operator](held, asked.value))


def is_like(text: str, pattern: str, flags: int) -> bool:
    """Match by a regular expression that says what the pattern says."""
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"*": ".*", "%": ".*", "_": "."}
    written = "".join(wild.get(piece, re.escape(piece[-1])) for piece in pieces)
    return re.fullmatch(written, text, re.DOTALL | flags) is not None


MEANINGS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda held, values: held in values,
    "like": lambda held, pattern: is_like(held, pattern, 0),
    "ilike": lambda held, pattern: is_like(held, pattern, re.IGNORECASE),
}


def in_order(rows: list[dict[str, Any]], order: list[Sorted]) -> list[dict[str, Any]]:
    """Sort by the key, the way of the last column; then by each, the most important last.

    A column that is named again counts where it is first.
    """
    order = [each for place, each in enumerate(order) if each.column not in named(order[:place])]
    downwards = bool(order) and order[-1].direction == "desc"
    rows = sorted(rows, key=itemgetter("id"), reverse=downwards)
    for column, direction, nulls in reversed(order):
        descending = direction == "desc"
        filled = [row for row in rows if row[column] is not None]
        empty = [row for row in rows if row[column] is None]
        filled.sort(key=itemgetter(column), reverse=descending)
        first = nulls == "nullsfirst" if nulls else descending
        rows = [*empty, *filled] if first else [*filled, *empty]
    return rows


def named(order: list[Sorted]) -> set[str]:
    """Return the columns that an order names."""
    return {each.column for each in order}


# How the client writes it down.


def written(asked: RequestedFilter) -> tuple[str, str]:
    """Return a filter as a query parameter."""
    operand = asked.value
    if asked.operator == "in":
        operand = f"({','.join(quoted(spelled(value)) for value in asked.value)})"
    elif asked.operator != "is":
        operand = spelled(operand)
    return asked.column, f"{'not.' if asked.negated else ''}{asked.operator}.{operand}"


def pairs_of(question: Question) -> list[tuple[str, str]]:
    """Return a read as query parameters."""
    pairs = [("limit", str(question.limit)), ("offset", str(question.offset))]
    if question.order:
        terms = (".".join(filter(None, term)) for term in question.order)
        pairs.append(("order", ",".join(terms)))
    return [*map(written, question.filters), *pairs]


def quoted(text: str) -> str:
    """Return an element of a list as careful clients write it."""
    backslashed = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{backslashed}"'


def spelled(value: Any) -> str:
    """Return a value as text; instants in a zone that is not UTC."""
    if isinstance(value, datetime):
        return (value + timedelta(hours=2)).isoformat().replace("+00:00", "+02:00")
    return str(value)


# What is drawn.

words = st.text(ALPHABET, max_size=4)
numbers = st.integers(-3, 12)
instants = st.integers(0, 3).map(lambda hours: INSTANT + timedelta(hours=hours, microseconds=hours))
keys = st.integers(1, 8).map(lambda number: UUID(int=number << 64))
VALUES = {"id": keys, "name": words, "notes": words, "spam_score": numbers, "consent_at": instants}

leads = st.lists(
    st.fixed_dictionaries(
        {
            "id": keys,
            "name": words.map(lambda text: text or "x"),
            "notes": st.none() | words,
            "spam_score": numbers,
            "consent_at": st.none() | instants,
            "spam_reasons": st.none() | st.just([]) | st.just({"a": "b"}),
        }
    ),
    max_size=8,
    unique_by=lambda row: row["id"],
)


def patterns() -> st.SearchStrategy[str]:
    """Draw patterns that do not end with a lone backslash."""
    pieces = st.sampled_from([*'aAbB\u00e9\u00c9 "%_*', "\\%", "\\_", "\\*", "\\\\", "\\a"])
    return st.lists(pieces, max_size=5).map("".join)


@st.composite
def filters(draw: st.DrawFn) -> RequestedFilter:
    """Draw one filter on any column."""
    column = draw(st.sampled_from(COLUMNS))
    likes = ["like", "ilike"] if column in TEXTS else []
    compared = ["eq", "neq", "gt", "gte", "lt", "lte", "in", *likes]
    word = draw(st.sampled_from(["is", *(compared if column in COMPARABLE else [])]))
    value: Any
    if word == "is":
        value = draw(st.sampled_from(["null", "not_null"]))
    elif word in likes:
        value = draw(patterns())
    elif word == "in":
        value = draw(st.lists(VALUES[column], max_size=4))
    else:
        value = draw(VALUES[column])
    return RequestedFilter(column, word, value, draw(st.booleans()))


orders = st.lists(
    st.builds(
        Sorted,
        st.sampled_from(COMPARABLE),
        st.sampled_from(["", "asc", "desc"]),
        st.sampled_from(["", "nullsfirst", "nullslast"]),
    ),
    max_size=3,
)


def stored(row: dict[str, Any]) -> dict[str, Any]:
    """Return a drawn row as it is sent to be stored."""
    required = {"email": "a@example.org", "budget_tier": "x", "message": "m"}
    sent = {**required, **row, "id": str(row["id"])}
    if row["consent_at"] is not None:
        sent["consent_at"] = row["consent_at"].isoformat()
    return sent


questions = st.builds(
    Question, st.lists(filters(), max_size=3), orders, st.integers(1, 4), st.integers(0, 3)
)


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=250))
@given(leads, questions)
def test_reads_agree_with_the_model(
    tables: Tables, rows: list[dict[str, Any]], question: Question
) -> None:
    """Any filters, order and page over any rows with NULLs give the rows that the model gives."""
    tables.fill([stored(row) for row in rows])
    kept = [row for row in rows if all(holds(row, item) for item in question.filters)]
    first, behind = question.offset, question.offset + question.limit
    expected = [str(row["id"]) for row in in_order(kept, question.order)][first:behind]

    page = tables.read(pairs_of(question))

    assert ([row["id"] for row in page.rows], page.total) == (expected, len(kept))


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(characters, max_size=20)
fractions = st.sampled_from([1e-05, -2.5e-06, 1e16, -0.0, 0.1]) | st.floats(-9e18, 1.8e19)
numbers = st.one_of(st.integers(MIN_JSON_NUMBER, MAX_JSON_NUMBER), fractions)
scalars = st.none() | st.booleans() | numbers | texts
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
odd_leads = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.uuids(),
            "name": texts.map(lambda text: text or "x"),
            "notes": st.none() | texts,
            "spam_score": st.integers(-MAX_INTEGER, MAX_INTEGER),
            "consent_at": st.none() | st.datetimes(datetime(1000, 1, 2), timezones=st.just(UTC)),  # noqa: DTZ001
            "spam_reasons": fractions | documents,
        }
    ),
    max_size=4,
    unique_by=lambda row: row["id"],
)
selections = st.permutations(LEADS.readable).flatmap(
    lambda names: st.integers(1, len(names)).map(lambda most: ",".join(names[:most]))
)


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=100, ci=1000))
@given(odd_leads, questions, selections | st.just("*"))
def test_the_engine_gives_the_same_rows_at_once(
    tables: Tables, rows: list[dict[str, Any]], question: Question, select: str
) -> None:
    """An engine that gives many rows at once gives what it gives one by one."""
    tables.fill([stored(row) for row in rows])

    at_once, singly = tables.read_both_ways([("select", select), *pairs_of(question)])

    assert at_once == singly


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=300))
@given(text=words.map(lambda text: text or "x"), pattern=patterns(), folding=st.booleans())
def test_likes_agree_with_the_model(
    tables: Tables, text: str, pattern: str, *, folding: bool
) -> None:
    """One text is like one pattern exactly when the regular expression of the pattern fits it."""
    tables.fill([stored({"id": UUID(int=1), "name": text, "consent_at": None})])
    word = "ilike" if folding else "like"

    found = tables.read([("name", f"{word}.{pattern}")]).rows

    assert bool(found) == is_like(text, pattern, re.IGNORECASE if folding else 0)
