"""Table declarations: a row model with indexes, privacy and retention.

From this one declaration come the checks of inserts and updates, typed filters, the DDL, JSON
Schema, the columns of the administrative interface and their page in the documentation, and what
export, erasure, retention and restore do with its rows.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from edge_api.db.problems import Problem, format_validation_error
from edge_api.db.types import VALUE_SQLSTATES, ColumnOptions, ColumnType, Content

Row = dict[str, Any]
"""A row: values by column name, each in the canonical form of its column's kind."""


class RowModel(BaseModel):
    """The parent of every row model: no coercion, no unknown member."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@dataclass(frozen=True, slots=True)
class Column:
    """One column, derived from the row model."""

    name: str
    kind: ColumnType
    nullable: bool
    default: Any
    """The literal default; `None` where there is none or where the column is nullable."""
    generated: Literal["", "id", "now"]
    on_update_now: bool
    content: Content
    choices: tuple[str, ...]
    """The allowed texts, where the column is an enumeration."""
    bounds: tuple[int | None, int | None]
    """Minimum and maximum length of a text (code points), or value of an integer."""
    description: str
    validator: TypeAdapter[Any] = field(repr=False, compare=False)

    @property
    def required(self) -> bool:
        """Return whether a new row must have a value for the column."""
        return not self.nullable and not self.generated and self.default is None


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
    """Tables whose rows are about a person; their keys are in columns of `subject`."""
    withheld_columns: frozenset[str] = frozenset()
    """Columns that an export omits: secrets, and data that is not about the person."""
    cleared_columns: tuple[str, ...] = ()
    """Columns that an erasure sets to NULL where it keeps the row."""
    kept_reason: str = ""
    """A sentence on what an erasure keeps of a row, and why; without it the row is deleted."""
    mailed_column: str = ""
    """The column whose address gets mail, so that its unsubscribe token is kept too."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The rule by which rows are deleted without a request; if it is empty, special code does so.

    Raises ValueError if only one of `since` and `setting` is given.
    """

    since: str = ""
    """The column with the instant from which the days of `setting` count."""
    setting: (
        Literal[
            "retain_leads_days", "retain_mail_log_days", "retain_audit_days", "retain_undo_days"
        ]
        | None
    ) = None
    cascade_from: tuple[str, str] | None = None
    """A column and a table: a row is deleted with the row of that table whose key it has."""

    def __post_init__(self) -> None:
        if bool(self.since) != bool(self.setting):
            raise ValueError("retention: declare since and setting together")


@dataclass(frozen=True, slots=True)
class IrreversibleChange:
    """A change of a row that a restore of an older state must not undo."""

    columns: tuple[str, ...]
    """The columns that a restore carries over. The first is NULL until the change."""
    value: str | None = None
    """The value of the first column after the change, if NULL does not show it."""
    former_values: tuple[str, ...] = ()
    """The values of the first column that `value` replaces."""
    replaces: bool = False
    """Whether the first column always has a value, and each new value is such a change."""


OnRestore = Literal["saved", "compared", "added", "removed", "delivered"]
"""The action of a restore on whole rows; it carries over irreversible changes of rows as well.

- `saved`: they are as in the backup.
- `compared`: as `saved`; the restore reports how many came and how many were deleted since.
- `added`: rows that came since are added, since they say what must not happen (again).
- `removed`: rows that were deleted since are deleted, since what they allow was revoked.
- `delivered`: rows that were deleted since are deleted, since they have been sent.
"""


@dataclass(frozen=True, eq=False)
class Table:
    """One table: its row, key, indexes, visibility, and the rules for deleting its rows.

    Each is declared once, so tables are compared by identity: statements are cached by table, and a
    lookup need not compare all fields.

    Raises ValueError for a declaration that names no column of the row, or that does not declare
    what happens to personal data.
    """

    name: str
    row: type[RowModel]
    description: str = ""
    """A sentence for users of the administrative interface."""
    indexes: tuple[Index, ...] = ()
    key: str = "id"
    hidden: frozenset[str] = frozenset()
    """Columns that no interface shows, filters by or sorts by."""
    case_insensitive: frozenset[str] = frozenset()
    """Text columns that are stored in lower case."""
    searched: tuple[str, ...] = ()
    """Text columns that the filter `search` searches, by an index of their trigrams."""
    administrative: bool = False
    """Whether the administrative interface gives access to it."""
    singleton: bool = False
    """Whether the table holds one row at the most, whose key is 1."""
    personal: PersonalData | None = field(kw_only=True)
    """The personal data in its rows; `None` for none. It has no default on purpose."""
    retention: Retention | None = field(default=None, kw_only=True)
    """The retention of its rows; by default until somebody deletes them."""
    on_restore: OnRestore | None = field(default=None, kw_only=True)
    """The action of a restore on its rows; by default `saved`."""
    irreversible_changes: tuple[IrreversibleChange, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        named = [name for change in self.irreversible_changes for name in change.columns]
        if data := self.personal:
            named += [*data.subject, *data.withheld_columns, *data.cleared_columns]
            named.append(data.mailed_column)
        if rule := self.retention:
            named += [rule.since, *(rule.cascade_from or ())[:1]]
        unknown = set(named) - {"", *self.row.model_fields}
        if unknown:
            raise ValueError(f"{self.name}: no such column: {', '.join(sorted(unknown))}")
        subject = self.personal.subject if self.personal else ()
        for name in self.row.model_fields:
            if re.search(r"(?:^|_)e?_?mail(?:_address)?$", name) and name not in subject:
                raise ValueError(
                    f"{self.name}: {name} is an e-mail address, so its rows are personal data: "
                    f'declare personal=PersonalData(("{name}",)), retention=... and on_restore=...'
                )
        if self.personal and (self.retention is None or self.on_restore is None):
            raise ValueError(
                f"{self.name}: its rows are personal data: declare how long they are kept "
                "(retention=...) and what a restore does with them (on_restore=...)"
            )

    @property
    def parents(self) -> tuple[str, ...]:
        """The names of the tables whose keys its rows have, for personal data and retention."""
        through = self.personal.through if self.personal else ()
        cascade = (self.retention and self.retention.cascade_from) or ()
        return (*through, *cascade[1:])

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Every column by name, in the order of declaration."""
        return find_columns(self.row)

    @cached_property
    def json_columns(self) -> frozenset[str]:
        """The names of the columns that hold JSON."""
        return frozenset(
            name for name, column in self.columns.items() if column.kind is ColumnType.JSON
        )

    @cached_property
    def _defaults(self) -> Row:
        return {name: column.default for name, column in self.columns.items()}

    @cached_property
    def _generated(self) -> Sequence[tuple[str, str]]:
        """The columns that get a generated value, and its kind."""
        return [(each.name, each.generated) for each in self.columns.values() if each.generated]

    @cached_property
    def readable(self) -> tuple[str, ...]:
        """The names of the columns that interfaces show, in the order of declaration."""
        return tuple(name for name in self.columns if name not in self.hidden)

    def new_row(self, given: Mapping[str, Any], now: str, new_id: Callable[[], str]) -> Row:
        """Return the row of the values `given`, validated, with defaults filled in.

        Raises Problem `invalid`, naming the first faulty column.
        """
        try:
            checked = self.row.model_validate({**self._generate(given, now, new_id), **given})
        except ValidationError as error:
            raise _as_problem(error, self) from None
        return self._fold(dict(vars(checked)))

    def trusted_row(self, given: Mapping[str, Any], now: str, new_id: Callable[[], str]) -> Row:
        """Return the row as `new_row` does, but trust that the values `given` are valid.

        Validation costs as much as all else that is done for a row. The store refuses values that
        break a bound, a choice or a NOT NULL; the caller answers for the rest. Raises KeyError for
        a name that is no column.
        """
        row = {**self._defaults, **self._generate(given, now, new_id), **given}
        if len(row) != len(self.columns):
            raise KeyError(*(row.keys() - self.columns.keys()))
        return self._fold(row)

    def _generate(self, given: Mapping[str, Any], now: str, new_id: Callable[[], str]) -> Row:
        """Return the generated values of columns that are not given."""
        return {
            name: new_id() if generated == "id" else now
            for name, generated in self._generated
            if name not in given
        }

    def new_values(self, given: Mapping[str, Any], now: str) -> Row:
        """Return the validated values of an update, with the instants that each update sets.

        Raises Problem `invalid` for an unknown column, an invalid value, or the key.
        """
        values: Row = {}
        for name, value in given.items():
            column = self.columns.get(name)
            if column is None or name in self.hidden:
                raise unknown_column(self, name)
            if name == self.key:
                raise Problem("invalid", f"{name}: cannot be changed", sqlstate="428C9")
            try:
                values[name] = column.validator.validate_python(value, strict=True)
            except ValidationError as error:
                raise _as_problem(error, self, name) from None
        touched = {name: now for name, column in self.columns.items() if column.on_update_now}
        return self._fold({**touched, **values})

    def _fold(self, row: Row) -> Row:
        """Put the values of `case_insensitive` columns into lower case."""
        for name in self.case_insensitive:
            value = row.get(name)
            if isinstance(value, str):
                row[name] = value.lower()
        return row


def unknown_column(table: Table, name: str) -> Problem:
    """Return the problem of a column that `table` does not show."""
    return Problem(
        "invalid",
        f"{name}: no such column in {table.name}; it has {', '.join(table.readable)}",
        sqlstate="42703",
    )


def find_columns(model: type[BaseModel]) -> Mapping[str, Column]:
    """Return the columns of a model by name, in order; fields that are no columns are left out."""
    found = {name: _read_column(name, info) for name, info in model.model_fields.items()}
    return MappingProxyType({name: column for name, column in found.items() if column})


def _read_column(name: str, info: FieldInfo) -> Column | None:
    inner = [part for part in get_args(info.annotation) if part is not type(None)]
    nullable = type(None) in get_args(info.annotation)
    plain = FieldInfo.from_annotation(inner[0]) if nullable else info
    metadata = (*plain.metadata, *info.metadata)
    choices = get_args(plain.annotation) if get_origin(plain.annotation) is Literal else ()
    # A Literal needs no ColumnOptions: it is a text with choices.
    options = [ColumnOptions(ColumnType.TEXT)] if choices else []
    options += [mark for mark in metadata if isinstance(mark, ColumnOptions)]
    if not options:
        return None
    return Column(
        name=name,
        kind=options[-1].kind,
        nullable=nullable,
        default=None if info.default is PydanticUndefined else info.default,
        generated=options[-1].generated,
        on_update_now=options[-1].on_update_now,
        content=options[-1].content,
        choices=choices,
        bounds=(
            max(_limits(metadata, "ge", "min_length"), default=None),
            min(_limits(metadata, "le", "max_length"), default=None),
        ),
        description=info.description or "",
        validator=TypeAdapter(info.rebuild_annotation()),
    )


def _limits(metadata: Iterable[Any], *names: str) -> Iterator[int]:
    """Yield the limits of length or value that items of metadata have in these attributes."""
    found = (getattr(item, name, None) for item in metadata for name in names)
    yield from (limit for limit in found if limit is not None)


def _as_problem(error: ValidationError, table: Table, column: str = "") -> Problem:
    """Return the problem of the first error of a ValidationError; its message names the column."""
    first = error.errors(include_url=False)[0]
    name = column or str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return unknown_column(table, name)
    sqlstates = {
        "missing": "23502",
        "string_type": "22P02",
        "int_type": "22P02",
        "value_error": VALUE_SQLSTATES.get(table.columns[name].kind, "22P02"),
    }
    sqlstate = "23502" if first["input"] is None else sqlstates.get(first["type"], "23514")
    return Problem("invalid", f"{name}: {format_validation_error(first)}", sqlstate=sqlstate)
