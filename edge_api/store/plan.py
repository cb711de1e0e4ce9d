"""The question as a value: what to read or change, without a word of SQL or of any engine.

Whoever wants rows builds plans from the declared tables and hands them to a `Store`. Several plans
handed over together are one transaction: all of them happen, or none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from edge_api.schema.table import Row, Table

Value = str | int
"""What a column is compared with, in the canonical spelling of the column's kind."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter: `column operator value`, or its negation.

    `operator` is a name of `schema.operators.OPERATORS`. `value` is one Value, a tuple of them for
    `in`, and `None` for `is` (which asks for NULL; negated, for anything but NULL). Every other
    operator leaves rows out in which the column is NULL, negated or not; but `in` with no value
    at all matches no row, and its negation every row.
    """

    column: str
    operator: str
    value: Value | tuple[Value, ...] | None
    negated: bool = False


Where = tuple[Condition, ...]
"""Conditions that all hold."""


@dataclass(frozen=True, slots=True)
class Order:
    """One column to sort by. Text sorts by code point."""

    column: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Rows of a table. The primary key is the last thing sorted by, in the direction before it."""

    table: Table
    columns: tuple[str, ...] = ()
    """Empty: every column, hidden ones included."""
    where: Where = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    counted: bool = False
    """Whether to count, in the same snapshot, the rows that match without limit and offset."""
    seconds: float | None = None
    """How long it may take: such a read runs apart from quick ones and is ended after that."""


@dataclass(frozen=True, slots=True)
class AffectedBy:
    """Stands for the number of rows that an earlier plan of the same transaction changed."""

    step: int
    """Index of that plan among the plans of the transaction."""


@dataclass(frozen=True, slots=True)
class Depending:
    """Stands for one of two values: whether an earlier plan of the same transaction met a row."""

    step: int
    """Index of that plan among the plans of the transaction."""
    some: Any
    """The value if it read or changed any row."""
    none: Any


@dataclass(frozen=True, slots=True)
class Insert:
    """New rows, whole, as `Table.new_row` gives them.

    A value may be `AffectedBy` or `Depending`.
    """

    table: Table
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Update:
    """New values for the rows that match. An empty `where` is refused."""

    table: Table
    values: Mapping[str, Any]
    where: Where
    at_most: int | None = None
    """More matching rows than this: Problem `invalid`, and nothing is changed."""
    at_least: int = 0
    """Fewer matching rows than this: Problem `conflict`, and nothing is changed.

    So a change that was decided on by an earlier read states in `where` what it relied on.
    """
    single: bool = False
    """If not exactly one row matches: Problem `not_acceptable`, and nothing is changed."""


@dataclass(frozen=True, slots=True)
class Delete:
    """The rows that match, gone. An empty `where` is refused."""

    table: Table
    where: Where
    at_most: int | None = None
    single: bool = False


Plan = Read | Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a plan gave: the rows read, stored, changed or deleted."""

    rows: list[Row] = field(default_factory=list)
    total: int | None = None
    """For a counted read: the rows that match without limit and offset."""


class Store(Protocol):
    """Where rows are kept.

    Every method raises Problem `unavailable` (with `Retry-After`) while the engine is locked,
    read-only, full, damaged or gone; nothing acknowledged is lost by that.
    """

    version_is_exact: bool
    """Whether `version` differs at once for what another process changed, or within seconds."""

    async def run(self, *plans: Plan) -> list[Outcome]:
        """Carry out all plans in one transaction and return an outcome for each.

        When it returns, every change is durable: it survives the loss of power. Raises Problem
        `conflict` (a unique value exists already; `details` names the column; `at_least` missed),
        `invalid` (`at_most` exceeded), `not_acceptable` (`single` missed); then nothing is changed.
        """

    def version(self) -> int:
        """Return a number that differs whenever rows may have changed, by whichever process.

        Cheap enough for every request (microseconds, no I/O wait).
        """

    async def scrub(self, *, whole: bool = False) -> bool:
        """Take what was deleted out of the engine's log too; tell whether that was possible.

        It is not while somebody reads an older state: try again. `whole` leaves no trace in the
        engine's files either; that takes as long as copying the store, and writers have to wait.
        Raises Problem.
        """

    async def probe(self) -> None:
        """Return when the store has been read and could be written. Raises Problem."""

    async def close(self) -> None:
        """Finish what is under way and let go of every file and thread."""
