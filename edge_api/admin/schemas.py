"""JSON Schemas (2020-12) of administrative rows, and example rows, made from the declared columns.

A schema accepts what the service accepts and nothing else; only the depth of nested JSON and the
digits of fractions are bounded by the service alone, since no schema can say that.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from edge_api.admin.filters import operators_for
from edge_api.admin.rows import MAX_INSERT_ROWS, filter_pattern
from edge_api.db.table import Column, Row, Table
from edge_api.db.types import (
    MAX_INTEGER,
    MAX_JSON_NUMBER,
    MIN_JSON_NUMBER,
    PATTERNS,
    ColumnType,
)
from edge_api.operation.model import Schema, component_ref, object_schema

SAMPLE_ID: Final = "01989f3a-7c00-7000-8000-3d2b1c0a9f8e"
SAMPLE_TIME: Final = "2026-01-31T08:05:09.000000Z"

_SAMPLES: Mapping[str, str] = {
    "name": "Ada Lovelace",
    "email": "ada@example.org",
    "recipient_email": "ada@example.org",
    "budget_tier": "growth",
    "message": "We would like to talk about a new journal.",
    "template_name": "lead-acknowledgement",
    "token": "5f1d7a84db00d2fce00b31a7fc73224f",
}
"""Example texts by column name; the example for any other column is its name."""


def new_row_sample(table: Table) -> Row:
    """Return an example of a new row, which has only the required columns."""
    return {name: _sample(column) for name, column in table.columns.items() if column.required}


def stored_row_sample(table: Table) -> Row:
    """Return an example of a stored row, with all readable columns."""
    row = table.new_row(new_row_sample(table), SAMPLE_TIME, lambda: SAMPLE_ID)
    return {name: row[name] for name in table.readable}


def match_sample(table: Table) -> Row:
    """Return an example match: one row by its key."""
    return {table.key: _sample(table.columns[table.key])}


def values_sample(table: Table) -> Row:
    """Return an example update of one column: an enumerated, else a nullable, else any other."""
    writable = [table.columns[name] for name in table.readable if name != table.key]
    enumerated = [column for column in writable if column.choices]
    nullable = [column for column in writable if column.nullable]
    return {column.name: _sample(column) for column in (enumerated or nullable or writable)[:1]}


def _sample(column: Column) -> Any:
    if column.choices:
        return column.choices[-1]
    minimum, maximum = column.bounds
    number = max(1, minimum or 0)
    return {
        ColumnType.TEXT: _SAMPLES.get(column.name, column.name).ljust(minimum or 0, "0")[:maximum],
        ColumnType.INTEGER: number if maximum is None else min(number, maximum),
        ColumnType.UUID: SAMPLE_ID,
        ColumnType.TIMESTAMP: SAMPLE_TIME,
        ColumnType.JSON: {"source": "example"},
    }[column.kind]


_TEXT: Schema = {"type": "string", "pattern": f"^{PATTERNS[ColumnType.TEXT]}$"}
_ANY_JSON: Schema = {"$ref": "#/$defs/JsonValue"}
_REQUEST_SCHEMAS: Mapping[ColumnType, Schema] = {
    ColumnType.TEXT: _TEXT,
    ColumnType.INTEGER: {"type": "integer", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER},
    ColumnType.UUID: component_ref(
        "Uuid",
        {
            "type": "string",
            "pattern": f"^{PATTERNS[ColumnType.UUID]}$",
            "description": "A UUID (RFC 9562), in either case.",
        },
    ),
    ColumnType.TIMESTAMP: component_ref(
        "Instant",
        {
            "type": "string",
            "pattern": f"^{PATTERNS[ColumnType.TIMESTAMP]}$",
            "description": "A date and time (RFC 3339), in UTC where no zone stands.",
        },
    ),
    # It has no `type`, and describes objects by `if` and `then`: client generators then accept any
    # value, but would fail on a recursive union of types.
    ColumnType.JSON: component_ref(
        "JsonValue",
        {
            "description": "Any JSON value without NUL in its strings. Fractions keep 15 digits.",
            "pattern": _TEXT["pattern"],
            "minimum": MIN_JSON_NUMBER,
            "maximum": MAX_JSON_NUMBER,
            "items": _ANY_JSON,
            "if": {"type": "object"},
            "then": {"propertyNames": _TEXT, "additionalProperties": _ANY_JSON},
        },
    ),
}
"""The schema of a value in a request, by kind of column."""
_RESPONSE_SCHEMAS: Mapping[ColumnType, Schema] = {
    ColumnType.TEXT: {"type": "string"},
    ColumnType.INTEGER: {"type": "integer"},
    ColumnType.UUID: {"type": "string", "format": "uuid"},
    ColumnType.TIMESTAMP: {"type": "string", "format": "date-time"},
    ColumnType.JSON: {},
}
"""The schema of a value in a response, by kind of column."""


def filters_schema(columns: Iterable[Column]) -> Schema:
    """Return the schema of an object with a filter for each column."""
    return _columns_schema(columns, _filter_schema)


def _filter_schema(column: Column) -> Schema:
    about = f"`[not.]operator.value`; operators: {', '.join(operators_for(column.kind))}."
    pattern = {"type": "string", "pattern": filter_pattern(column.kind), "description": about}
    return component_ref(f"{column.kind.capitalize()}Filter", pattern)


def new_rows_schema(table: Table) -> Schema:
    """Return the schema of an insert: one row, or an array of rows."""
    columns = [table.columns[name] for name in table.readable]
    schema = _columns_schema(columns, _insert_value_schema)
    schema["required"] = [column.name for column in columns if column.required]
    row = component_ref(f"{component_prefix(table)}NewRow", schema)
    return {"anyOf": [row, {**array_of(row), "maxItems": MAX_INSERT_ROWS}]}


def update_schema(table: Table) -> Schema:
    """Return the schema of an update: a match and the new values."""
    values = {
        **_columns_schema(
            [table.columns[name] for name in table.readable if name != table.key],
            _update_value_schema,
        ),
        "minProperties": 1,
        "description": "The new values of the rows that match.",
    }
    members = {"match": _match_schema(table), "values": values}
    return object_schema(members, *members, additionalProperties=False)


def delete_schema(table: Table) -> Schema:
    """Return the schema of a deletion: a match."""
    return object_schema({"match": _match_schema(table)}, "match", additionalProperties=False)


def row_schema(table: Table) -> Schema:
    """Return the schema of a whole row in an answer."""
    row = {
        **_columns_schema((table.columns[name] for name in table.readable), _row_value_schema),
        "required": list(table.readable),
        "examples": [stored_row_sample(table)],
    }
    return component_ref(f"{component_prefix(table)}Row", row)


def selected_row_schema(table: Table) -> Schema:
    """Return the schema of a row that is read: whole, or with the members that `select` names."""
    chosen = {"type": "object", "description": "The members that `select` asks for."}
    forms = {"anyOf": [row_schema(table), chosen]}
    return component_ref(f"{component_prefix(table)}Answer", forms)


def array_of(schema: Schema) -> Schema:
    """Return the schema of an array whose items have this schema."""
    return {"type": "array", "items": schema}


def _match_schema(table: Table) -> Schema:
    columns = [table.columns[name] for name in table.readable]
    match = {
        **_columns_schema(columns, _match_value_schema),
        "minProperties": 1,
        "description": "What each column must equal: a value, `null`, or one of an array.",
    }
    return component_ref(f"{component_prefix(table)}Match", match)


def component_prefix(table: Table) -> str:
    """Return the prefix of the names of a table's OpenAPI components."""
    return table.name.title().replace("_", "")


def _columns_schema(
    columns: Iterable[Column], schema_of: Callable[[Column], Schema]
) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {column.name: schema_of(column) for column in columns},
        "additionalProperties": False,
    }


def _row_value_schema(column: Column) -> Schema:
    schema = {"enum": list(column.choices)} if column.choices else {}
    return _nullable(column, {**_RESPONSE_SCHEMAS[column.kind], **schema})


def _insert_value_schema(column: Column) -> Schema:
    default = {} if column.default is None else {"default": column.default}
    return {**_update_value_schema(column), **default}


def _update_value_schema(column: Column) -> Schema:
    """Return the schema of a new value, without the default, which generated clients would send."""
    if column.choices:
        return _nullable(column, {"type": "string", "enum": list(column.choices)})
    words = {
        ColumnType.TEXT: ("minLength", "maxLength"),
        ColumnType.INTEGER: ("minimum", "maximum"),
    }.get(column.kind, ())
    bounds = {
        word: bound for word, bound in zip(words, column.bounds, strict=False) if bound is not None
    }
    return _nullable(column, {**_REQUEST_SCHEMAS[column.kind], **bounds})


def _match_value_schema(column: Column) -> Schema:
    if column.kind == ColumnType.JSON:
        return {"type": "null"}
    value = _REQUEST_SCHEMAS[column.kind]
    match_value = {"anyOf": [value, {"type": "null"}, array_of(value)]}
    return component_ref(f"{column.kind.capitalize()}Match", match_value)


def _nullable(column: Column, schema: Schema) -> dict[str, Any]:
    if not column.nullable or column.kind == ColumnType.JSON:
        return dict(schema)
    return {"anyOf": [schema, {"type": "null"}]}
