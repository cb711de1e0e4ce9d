"""Table declarations: a row model with indexes, privacy and retention.

From this one declaration come the checks of inserts and updates, typed filters, the DDL, JSON
Schema, the columns of the administrative interface and their page in the documentation, and what
export, erasure, retention and restore do with its rows.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from edge_api.db.problems import Problem, format_validation_error
from edge_api.db.types import VALUE_FAULTS, ColumnOptions, ColumnType

Row = dict[str, Any]
"""A row on its way in or out: column name to value, in the canonical form of its kind."""


class RowModel(BaseModel):
    """The parent of every row model: no coercion, no unknown member."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@dataclass(frozen=True, slots=True)
class Column:
    """One column, as read off the row model."""

    name: str
    kind: ColumnType
    nullable: bool
    default: Any
    """The literal default; `None` where there is none or where the column is nullable."""
    filled: Literal["", "id", "now"]
    on_update_now: bool
    choices: tuple[str, ...]
    """The allowed texts, where the column is an enumeration."""
    bounds: tuple[int | None, int | None]
    """Least and greatest length of a text (code points), or value of an integer."""
    description: str
    check: TypeAdapter[Any] = field(repr=False, compare=False)

    @property
    def required(self) -> bool:
        """Return whether a new row must bring the column."""
        return not self.nullable and not self.filled and self.default is None


@dataclass(frozen=True, slots=True)
class Index:
    """An index over columns, in order; `-name` is descending."""

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    where: tuple[str, str] | None = None
    """For a partial index: the column and the text that it must equal."""


@dataclass(frozen=True, slots=True)
class PersonalData:
    """The data subject of a table's rows (GDPR, Article 4(1)), and their rights to these rows.

    `privacy export` shows such rows (Article 15), `privacy erase` deletes them (Article 17).
    """

    subject: tuple[str, ...]
    """Columns that name the data subject: by their e-mail address, alone or within a text, or by
    the key (a UUID) of a row about them in one of the tables `through`."""
    through: tuple[str, ...] = ()
    withheld: frozenset[str] = frozenset()
    """Columns that an export leaves out: secrets, and what says nothing about the person."""
    cleared: tuple[str, ...] = ()
    """Columns that an erasure sets to NULL where the row is `kept`."""
    kept: str = ""
    """What an erasure keeps of a row, and why; without it the row is deleted."""
    mailed: str = ""
    """The column whose address gets mail: it keeps the address's unsubscribe token."""


RetentionSetting = Literal["retain_leads_days", "retain_mail_log_days", "retain_audit_days"]


@dataclass(frozen=True, slots=True)
class Retention:
    """When rows are deleted without a request; with no member given, by code of their own.

    Raises ValueError for an instant without a setting, or a setting without an instant.
    """

    since: str = ""
    """The column with the instant from which the days of `setting` count."""
    setting: RetentionSetting | None = None
    row_of: tuple[str, str] | None = None
    """A column and a table: a row goes with the row of that table whose key the column has."""

    def __post_init__(self) -> None:
        if bool(self.since) != bool(self.setting):
            raise ValueError("retention: declare since and setting together")


@dataclass(frozen=True, slots=True)
class IrreversibleChange:
    """A change of a row that a restore of an older state must not undo."""

    columns: tuple[str, ...]
    """What is carried over. The first one says that it happened: it is no longer NULL."""
    value: str | None = None
    """Where the first column says it by a value: this one."""
    before: tuple[str, ...] = ()
    """The values of the first column that `value` replaces."""
    replaces: bool = False
    """Whether the first column is replaced by another value, and never NULL again."""


Restored = Literal["saved", "compared", "added", "removed", "delivered"]
"""What a restore does with whole rows, beside the endings of single ones.

- `saved`: they are as in the backup.
- `compared`: likewise, and it reports how many came and how many were deleted since.
- `added`: rows that came since are added, since they say what must not happen (again).
- `removed`: rows that were deleted since are deleted, since what they allow was taken back.
- `delivered`: likewise, since they waited to be sent and have been.
"""


@dataclass(frozen=True, eq=False)
class Table:
    """One table: its row, its key, what must be unique, who may see it, and how its rows end.

    Each is declared once, so two are the same only if they are one object: statements are kept by
    the tables that they are for, and to look one up takes no look at all that a table says.

    Raises ValueError for a declaration that names no column of the row, or that leaves unsaid what
    becomes of personal data.
    """

    name: str
    row: type[RowModel]
    description: str
    indexes: tuple[Index, ...] = ()
    key: str = "id"
    hidden: frozenset[str] = frozenset()
    """Columns that no interface shows, filters by or sorts by."""
    case_insensitive: frozenset[str] = frozenset()
    """Text columns that are stored in lower case."""
    administrative: bool = False
    """Whether the administrative interface reaches it."""
    singleton: bool = False
    """Whether the table holds one row at the most, whose key is 1."""
    personal: PersonalData | None = field(kw_only=True)
    """Whose personal data its rows are; `None` for nobody's. It has no default on purpose."""
    retention: Retention | None = field(default=None, kw_only=True)
    """When its rows go; by default when somebody deletes them."""
    restored: Restored | None = field(default=None, kw_only=True)
    """What a restore does with its rows; by default `saved`."""
    irreversible_changes: tuple[IrreversibleChange, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        unknown = set(self._named()) - self.row.model_fields.keys()
        if unknown:
            raise ValueError(f"{self.name}: no such column: {', '.join(sorted(unknown))}")
        subject = self.personal.subject if self.personal else ()
        for name in filter(_ADDRESS.search, self.row.model_fields):
            if name not in subject:
                raise ValueError(
                    f"{self.name}: {name} is an e-mail address, so its rows are personal data: "
                    f'declare personal=PersonalData(("{name}",)), retention=... and restored=...'
                )
        if self.personal and (self.retention is None or self.restored is None):
            raise ValueError(
                f"{self.name}: its rows are personal data: declare how long they are kept "
                "(retention=...) and what a restore does with them (restored=...)"
            )

    def _named(self) -> Iterator[str]:
        """Yield the columns that declarations about rows name."""
        if data := self.personal:
            yield from (*data.subject, *data.withheld, *data.cleared, *filter(None, [data.mailed]))
        if rule := self.retention:
            yield from filter(None, (rule.since, *(rule.row_of or ())[:1]))
        yield from chain.from_iterable(ending.columns for ending in self.irreversible_changes)

    @property
    def parents(self) -> tuple[str, ...]:
        """The tables whose keys its rows hold, for personal data and retention."""
        through = self.personal.through if self.personal else ()
        row_of = (self.retention and self.retention.row_of) or ()
        return (*through, *row_of[1:])

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Every column by name, in the order of declaration."""
        fields = self.row.model_fields.items()
        return MappingProxyType({name: _read_column(name, info) for name, info in fields})

    @cached_property
    def json_columns(self) -> frozenset[str]:
        """The columns that hold JSON."""
        return frozenset(
            name for name, column in self.columns.items() if column.kind is ColumnType.JSON
        )

    @cached_property
    def readable(self) -> tuple[str, ...]:
        """The columns that interfaces show, in the order of declaration."""
        return tuple(name for name in self.columns if name not in self.hidden)

    def new_row(self, given: Mapping[str, Any], now: str, new_id: Callable[[], str]) -> Row:
        """Return the whole row that `given` describes, checked, with defaults filled in.

        Raises Problem `invalid`, naming the first faulty column.
        """
        try:
            checked = self.row.model_validate({**self._fill(given, now, new_id), **given})
        except ValidationError as error:
            raise _as_problem(error, self) from None
        return self._fold(dict(vars(checked)))

    def trusted_row(self, given: Mapping[str, Any], now: str, new_id: Callable[[], str]) -> Row:
        """Return the same, without a check: `given` was checked before, or made by the service.

        Checking again costs as much as all else that is done for a row. The store refuses what
        breaks a bound, a choice or a NOT NULL; the rest is the caller's word. Raises KeyError for
        a name that is no column.
        """
        row = {**self._defaults, **self._fill(given, now, new_id), **given}
        if len(row) != len(self.columns):
            raise KeyError(*(row.keys() - self.columns.keys()))
        return self._fold(row)

    def _fill(self, given: Mapping[str, Any], now: str, new_id: Callable[[], str]) -> Row:
        """Return what the service fills in where nothing is given."""
        return {
            name: new_id() if kind == "id" else now
            for name, kind in self._filled.items()
            if name not in given
        }

    @cached_property
    def _filled(self) -> Mapping[str, str]:
        """What the service fills in, by column."""
        return {name: column.filled for name, column in self.columns.items() if column.filled}

    @cached_property
    def _defaults(self) -> Row:
        """Every column in its order, with its default if it has one."""
        return {name: column.default for name, column in self.columns.items()}

    def new_values(self, given: Mapping[str, Any], now: str) -> Row:
        """Return the checked values of an update, touching what an update touches.

        Raises Problem `invalid` for an unknown column, a value out of its kind, or the key.
        """
        values: Row = {}
        for name, value in given.items():
            column = self._writable(name)
            try:
                values[name] = column.check.validate_python(value, strict=True)
            except ValidationError as error:
                raise _as_problem(error, self, name) from None
        touched = {name: now for name, column in self.columns.items() if column.on_update_now}
        return self._fold({**touched, **values})

    def _writable(self, name: str) -> Column:
        column = self.columns.get(name)
        if column is None or name in self.hidden:
            raise unknown_column(self, name)
        if name == self.key:
            raise Problem("invalid", f"{name}: cannot be changed", sqlstate="428C9")
        return column

    def _fold(self, row: Row) -> Row:
        for name in self.case_insensitive:
            value = row.get(name)
            if isinstance(value, str):
                row[name] = value.lower()
        return row


def unknown_column(table: Table, name: str) -> Problem:
    """Return the problem of a column that `table` does not show."""
    known = ", ".join(table.readable)
    return Problem(
        "invalid",
        f"{name}: no such column in {table.name}; it has {known}",
        sqlstate="42703",
    )


def _read_column(name: str, info: FieldInfo) -> Column:
    plain, inner = _unwrap(info.annotation)
    marks = (*inner, *info.metadata)
    trait = next(mark for mark in reversed(marks) if isinstance(mark, ColumnOptions))
    return Column(
        name=name,
        kind=trait.kind,
        nullable=plain is not info.annotation,
        default=None if info.default is PydanticUndefined else info.default,
        filled=trait.filled,
        on_update_now=trait.on_update_now,
        choices=get_args(plain) if get_origin(plain) is Literal else (),
        bounds=_bounds(marks),
        description=info.description or "",
        check=TypeAdapter(_whole(info)),
    )


def _whole(info: FieldInfo) -> Any:
    """Return the annotation with the constraints that pydantic took out of it."""
    annotation: Any = info.annotation
    for mark in info.metadata:
        annotation = Annotated[annotation, mark]
    return annotation


def _unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type without `| None` and `Annotated`, and the marks that stood on it."""
    if type(None) not in get_args(annotation):
        return annotation, ()
    inner = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(inner) is Annotated:
        plain, *marks = get_args(inner)
        return plain, tuple(chain.from_iterable(map(_constraints, marks)))
    return inner, ()


def _constraints(mark: Any) -> tuple[Any, ...]:
    """Return the constraints that a mark stands for: `Field(...)` carries several."""
    return tuple(mark.metadata) if isinstance(mark, FieldInfo) else (mark,)


def _bounds(marks: tuple[Any, ...]) -> tuple[int | None, int | None]:
    """Return the tightest least and greatest length or value among the marks."""
    least = [
        getattr(mark, name) for mark in marks for name in ("ge", "min_length") if _has(mark, name)
    ]
    most = [
        getattr(mark, name) for mark in marks for name in ("le", "max_length") if _has(mark, name)
    ]
    return max(least, default=None), min(most, default=None)


def _has(mark: Any, name: str) -> bool:
    return getattr(mark, name, None) is not None


def _as_problem(error: ValidationError, table: Table, column: str = "") -> Problem:
    """Return the first fault of a pydantic error as a sentence that names the column."""
    fault = error.errors(include_url=False)[0]
    name = column or str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return unknown_column(table, name)
    sqlstate = _sqlstate(fault["type"], fault["input"], table.columns[name].kind)
    return Problem("invalid", f"{name}: {format_validation_error(fault)}", sqlstate=sqlstate)


def _sqlstate(fault: str, value: Any, kind: ColumnType) -> str:
    """Return PostgreSQL's code for a value that a column of the kind does not take."""
    if value is None:
        return "23502"
    if fault == "value_error":
        return VALUE_FAULTS.get(kind, "22P02")
    return _SQLSTATES.get(fault, "23514")


_ADDRESS = re.compile(r"(?:^|_)e?_?mail(?:_address)?$")
"""The names of columns that hold e-mail addresses."""
_SQLSTATES = {
    "missing": "23502",
    "string_type": "22P02",
    "int_type": "22P02",
}
