"""Queries as values, and the patterns of `like`; no SQL and no engine.

A caller builds queries from the declared tables and passes them to a `Store`. Several queries
passed together are one transaction: all of them happen, or none.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, Protocol
from unicodedata import normalize

from edge_api.db.problems import Problem
from edge_api.db.table import Row, Table
from edge_api.db.types import PARSERS

RUN_WILDCARDS: Final = "*%"  # each matches any number of characters
ESCAPE: Final = "\\"


class Pattern:
    """A compiled pattern of `like`. Raises ValueError for a malformed one."""

    def __init__(self, pattern: str) -> None:
        # The segments between `RUN_WILDCARDS`: a regular expression for each character.
        segments: list[list[str]] = [[]]
        for piece in split_pattern(pattern):
            if piece == ESCAPE:
                raise ValueError("the pattern must not end with a single backslash")
            if piece in RUN_WILDCARDS:
                segments.append([])
            else:
                segments[-1].append("." if piece == "_" else re.escape(piece[-1]))
        self._segments = [re.compile("".join(segment), re.DOTALL) for segment in segments]
        self._last_length = len(segments[-1])

    def matches(self, text: str) -> bool:
        """Return whether all of `text` matches the pattern."""
        if len(self._segments) == 1:
            return self._segments[0].fullmatch(text) is not None
        *others, last = self._segments
        position, stop = 0, len(text) - self._last_length
        find = re.Pattern.match
        for segment in others:
            if position > stop or (found := find(segment, text, position, stop)) is None:
                return False
            # The earliest place for each segment leaves the most room for the next.
            position, find = found.end(), re.Pattern.search
        return last.match(text, stop) is not None


def split_pattern(pattern: str) -> Iterator[str]:
    """Yield the characters of a pattern, each with the backslash that escapes it."""
    characters = iter(pattern)
    for character in characters:
        yield character + next(characters, "") if character == ESCAPE else character


def fold(text: str) -> str:
    """Return `text` in simple case folding, which keeps its length (Unicode, section 3.13.3).

    The German eszett stays one character, so that a `_` of a pattern matches it before and after
    folding.
    """
    if text.isascii():
        return text.lower()
    folded = text.casefold()
    # Folding never shortens a character: equal length means that each became exactly one.
    if len(folded) == len(text):
        return folded
    forms = ((letter.casefold(), letter.lower(), letter) for letter in text)
    return "".join(next(form for form in each if len(form) == 1) for each in forms)


# Letters that NFD does not decompose into a base letter and an accent.
_UNDECOMPOSED: Final = str.maketrans(
    {"\u0131": "i", "\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u0127": "h"}
    | {"\u00e6": "ae", "\u0153": "oe", "\u03c2": "\u03c3"}
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")  # not the marks of kana, which make letters


def fold_accents(text: str) -> str:
    """Return `text` case-folded and without accents, as the filter `search` compares it."""
    if text.isascii():
        return text.lower()
    folded = _ACCENTS.sub("", normalize("NFD", normalize("NFD", text).casefold()))
    return normalize("NFC", folded.translate(_UNDECOMPOSED))


_compile = lru_cache(maxsize=64)(Pattern)


@lru_cache(maxsize=64)
def _compile_folded(pattern: str) -> Pattern:
    return Pattern(fold(pattern))


def like(text: str | None, pattern: str) -> bool | None:
    """Return whether `text` matches `pattern`; unknown (`None`) where there is no text."""
    return None if text is None else _compile(pattern).matches(text)


def ilike(text: str | None, pattern: str) -> bool | None:
    """Return whether `text` matches in any case; unknown (`None`) where there is no text."""
    return None if text is None else _compile_folded(pattern).matches(fold(text))


Value = str | int
"""The operand of a filter, in the canonical form of the column's kind."""


MAX_SEARCHED_ROWS: Final = 1000  # the most rows that `search_newest` reads


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter: `column operator value`, or its negation.

    `operator` is a name of `admin.filters.OPERATORS`, or one of these, which only code uses:

    - `search`, on the key: the `Table.searched` columns have every trigram of each word of the
      tuple `value`, so that other rows may match too. The words are folded by `fold_accents`.
    - `search_newest`, on the key: the same, but an engine that would have to read all matching rows
      reads only the `MAX_SEARCHED_ROWS` that were stored last.
    - `any`, on the key: a filter of the tuple `value` is true.
    - `has`, `has_wide`, `has_key`: the column matches an SQL pattern in any case of ASCII letters.
      `has_wide` requires a character beyond ASCII, `has_key` a text longer than a UUID.

    For the others `value` is a Value, a tuple of them for `in`, and `None` for `is`, which matches
    NULL (negated, anything else). Every other operator excludes rows in which the column is NULL,
    negated or not; but `in` with an empty tuple matches no row, and its negation every row.
    """

    column: str
    operator: str
    value: "Value | tuple[Value, ...] | tuple[Filter, ...] | None"
    negated: bool = False


Where = tuple[Filter, ...]
"""Conditions that must all be true."""


def where_id(row_id: str) -> Where:
    """Return the condition for the row with this id; no row matches text that is no id."""
    is_text = row_id.isascii() and row_id.isprintable()
    return (Filter("id", "eq", row_id if is_text else ""),)


@dataclass(frozen=True, slots=True)
class Order:
    """One column to sort by. Text sorts by code point."""

    column: str
    descending: bool = False
    nulls_first: bool = False


NEWEST: Final = (Order("created_at", descending=True),)


@dataclass(frozen=True, slots=True)
class Read:
    """A read of rows, sorted by `order` and then by the key, in the direction of the last term."""

    table: Table
    columns: tuple[str, ...] = ()
    """Empty: every column, hidden ones included."""
    where: Where = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    with_total: bool = False
    """Whether to count, in the same snapshot, the rows that match without limit and offset."""
    timeout: float | None = None
    """The time limit of a slow read, which runs on the slow readers; `None` for a fast read."""
    summed: str = ""
    """A column of integers: then there is a row with its sum for each combination of `columns`, and
    the largest sums come first; `order` and `offset` are ignored."""


@dataclass(frozen=True, slots=True)
class RowCount:
    """The number of rows that an earlier query of the same transaction changed."""

    query_index: int
    """Index of that query among the queries of the transaction."""


@dataclass(frozen=True, slots=True)
class ValueIfExists:
    """A value that depends on whether a row matched `Insert.condition` before the insert."""

    if_exists: Any
    if_missing: Any


@dataclass(frozen=True, slots=True)
class Insert:
    """New rows with every column, as `Table.new_row` returns them.

    A value may be a `RowCount` or, in the same columns of all rows, a `ValueIfExists`. The database
    chooses between its two values, so the result still has the `ValueIfExists`.
    """

    table: Table
    rows: Sequence[Mapping[str, Any]]
    condition: Where = ()
    """The filters of the row whose existence decides a `ValueIfExists`."""
    merge: Literal["", "sum", "largest"] = ""
    """How the column `count` of a row that exists by the first index takes in that of a new row.

    The rows of the result are those of the query, not the merged ones.
    """


@dataclass(frozen=True, slots=True)
class InsertFromRead:
    """New rows that are computed from a read in the same transaction."""

    read: Read
    insert: Callable[[list[Row]], Insert]
    """Returns the insert for the rows read; may be called in another thread, and a second time."""


@dataclass(frozen=True, slots=True)
class Update:
    """New values for the rows that match. An empty `where` is refused."""

    table: Table
    values: Mapping[str, Any]
    where: Where
    at_most: int | None = None
    """If more rows match: Problem `invalid`, and nothing is changed."""
    at_least: int = 0
    """If fewer rows match: Problem `conflict`, and nothing is changed.

    A change that depends on an earlier read repeats in `where` the values that it relies on.
    """
    single: bool = False
    """If not exactly one row matches: Problem `not_acceptable`, and nothing is changed."""


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of the rows that match. An empty `where` is refused."""

    table: Table
    where: Where
    at_most: int | None = None
    single: bool = False


@dataclass(frozen=True, slots=True)
class Procedure:
    """Queries of one transaction, of which each may depend on the results of those before it."""

    start: "Callable[[list[QueryResult]], Iterable[Query]]"
    """Returns the queries one by one; the list gets the result of each before the next is taken. It
    may be called in another thread, and a second time."""


Query = Read | Insert | InsertFromRead | Update | Delete | Procedure


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query: the rows read, stored, changed or deleted."""

    rows: list[Row] = field(default_factory=list)
    total: int | None = None
    """For a read `with_total`: the number of matching rows, without limit and offset."""


class Store(Protocol):
    """The storage of all rows.

    Every method raises Problem `unavailable` (with `Retry-After`) while the engine is locked,
    read-only, full, damaged or gone; nothing acknowledged is lost by that.
    """

    version_is_exact: bool
    """Whether `version` shows a change by another process at once; else within seconds."""

    async def run(self, *queries: Query) -> list[QueryResult]:
        """Run all queries in one transaction and return a result for each.

        When it returns, every change is durable: it survives the loss of power. Raises Problem
        `conflict` (a unique value exists already; `details` names the column; `at_least` missed),
        `invalid` (`at_most` exceeded), `not_acceptable` (`single` missed); then nothing is changed.
        """

    def version(self) -> int:
        """Return a number that is new whenever rows may have changed, in any process.

        Cheap enough for every request (microseconds, no I/O wait).
        """

    async def scrub(self, *, full: bool = False) -> bool:
        """Remove deleted rows from the engine's log too; return whether that was possible.

        It is impossible while a transaction reads an older state: try again later. `full` removes
        their traces from the engine's other files too; that takes as long as copying the store, and
        writers have to wait. Raises Problem.
        """

    async def probe(self) -> None:
        """Check that the store can be read and written. Raises Problem."""

    async def close(self) -> None:
        """Finish the work in progress and close every file and thread."""


async def read_all(store: Store, query: Read) -> list[Row]:
    """Return the rows of one read. Raises Problem as `Store.run`."""
    (result,) = await store.run(query)
    return result.rows


async def read_first(store: Store, query: Read) -> Row | None:
    """Return the first row of one read. Raises Problem as `Store.run`."""
    return next(iter(await read_all(store, query)), None)


async def find_row(store: Store, table: Table, key: str | None, *where: Filter) -> Row | None:
    """Return the row with a key from outside, such as a URL; None for a missing or invalid key."""
    if key is None:
        return None
    try:
        value = PARSERS[table.columns[table.key].kind](key)
    except ValueError:
        return None
    return await read_first(store, Read(table, where=(Filter(table.key, "eq", value), *where)))


async def require_row(store: Store, table: Table, key: str, missing: str, *where: Filter) -> Row:
    """Return the row of `find_row`. Raises Problem `not_found` with the message `missing`."""
    row = await find_row(store, table, key, *where)
    if row is None:
        raise Problem("not_found", missing)
    return row


def count_query(table: Table, *where: Filter) -> Read:
    """Return the read whose total is the number of the rows that match."""
    return Read(table, (table.key,), where, limit=1, with_total=True)


async def count_rows(store: Store, table: Table, *where: Filter) -> int:
    """Return the number of the rows that match. Raises Problem as `Store.run`."""
    (result,) = await store.run(count_query(table, *where))
    return result.total or 0
