"""The operations of the administrative tables: read, insert, update and delete for each.

Rows are declared in `db.tables`, filters in `admin.filters`; `admin.rows` does the work.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pydantic import TypeAdapter

from edge_api.admin.filters import OPERATORS
from edge_api.admin.handlers import (
    COUNT_EXACT,
    CSV,
    MINIMAL,
    PREFIX,
    SINGLE,
    DeleteBody,
    NewRows,
    UpdateBody,
    check_query_names,
    delete_rows,
    insert_rows,
    read_rows,
    update_rows,
)
from edge_api.admin.rows import (
    DEFAULT_LIMIT,
    MAX_CHANGES,
    MAX_INSERT_ROWS,
    MAX_LIMIT,
    order_pattern,
    selection_pattern,
)
from edge_api.admin.schemas import (
    array_of,
    component_prefix,
    delete_schema,
    filters_schema,
    match_sample,
    new_row_sample,
    new_rows_schema,
    row_schema,
    selected_row_schema,
    update_schema,
    values_sample,
)
from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem
from edge_api.db.table import Table
from edge_api.db.tables import ADMINISTRATIVE
from edge_api.operation.model import (
    JSON,
    AnyOperation,
    Body,
    Method,
    Operation,
    OperationRequest,
    OperationResult,
    Parameter,
    Service,
    SuccessResponse,
    Tool,
)

TABLE_PATH = f"{PREFIX}/{{table}}"

TABLES_PATH_ITEM: dict[str, Any] = {
    "summary": "Row access to the administrative tables",
    "description": "Each table has a path of its own below, since their columns differ. "
    "Any other name answers 403, Table not allowed.",
    "parameters": [
        {
            "name": "table",
            "in": "path",
            "required": True,
            "schema": {"type": "string", "enum": list(ADMINISTRATIVE)},
        }
    ],
}
TAG: Final = "admin"
MAX_BODY_BYTES: Final = 1024 * 1024  # size limit of a write's body

_OPERATOR_LIST: Final = "\n".join(
    f"- `{name}`: {operator.description}" for name, operator in OPERATORS.items()
)
TAG_DESCRIPTION: Final = f"""\
Rows are read with filters: a column's name, and `[not.]operator.value`. All filters hold, repeated
ones too. Text is taken literally: nothing is trimmed, nothing unquoted. A comparison with NULL is
never true, negated or not: only `is` finds it. `like` and `ilike` are for columns of text; a JSON
column takes `is` alone.

{_OPERATOR_LIST}

Rows are changed and deleted by `match` in the body; a filter in the query is refused then.

The answer to a write is described here as an array of whole rows. `select` in its query chooses
their members, as in a read, and `Accept: {CSV}` gives a table. With `Accept: {SINGLE}` it is one
object, and nothing is written unless it is exactly one row; with `Prefer: {MINIMAL}` the body is
empty. `handling=strict` beside other preferences refuses those that are not supported.

A read takes `Range: 0-24`, with `Range-Unit: items` or without it, in place of `limit` and
`offset`. Words of PostgREST's that are not supported are refused by their names."""
"""The OpenAPI description of the tag that the operations of all tables share."""


async def deny_table(_service: Service, _request: OperationRequest[None, None]) -> OperationResult:
    """Raise the problem of a table that is not administrative."""
    raise Problem("table_not_allowed")


UNKNOWN_TABLE_OPERATIONS: tuple[AnyOperation, ...] = tuple(
    Operation(
        name=f"{method.lower()}_other_table",
        method=method,
        path=TABLE_PATH,
        summary="Refuse a table that is not administrative",
        handler=deny_table,
        responses=(),
        credential="required",
        problems=("table_not_allowed",),
        error_format="postgrest",
    )
    for method in ("GET", "POST", "PATCH", "DELETE")
)


def check_table(table: Table, actor: Actor) -> None:
    """Raise Problem `table_not_allowed` unless the credential may use the table."""
    if not actor.may_use(table.name):
        raise Problem("table_not_allowed")


def _operation(table: Table, verb: str, **parts: Any) -> AnyOperation:
    """Return an operation of a table, with the members that all four operations share."""
    return Operation(
        name=f"admin_{verb}_{table.name}",
        path=f"{PREFIX}/{table.name}",
        tag=TAG,
        credential="required",
        problems=("table_not_allowed", *parts.pop("problems", ())),
        error_format="postgrest",
        check_actor=partial(check_table, table),
        **parts,
    )


def _parameters(table: Table) -> tuple[Parameter, ...]:
    columns = [table.columns[name] for name in table.readable]
    return (
        Parameter(
            "select",
            "query",
            {"type": "string", "pattern": selection_pattern(table), "default": "*"},
            "Columns, separated by commas: `*`, `column`, `alias:column`, `column::text`.",
            example="*",
            component=f"{component_prefix(table)}Select",
        ),
        Parameter(
            "limit",
            "query",
            {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
            "How many rows at the most.",
            example=10,
            component="RowLimit",
        ),
        Parameter(
            "offset",
            "query",
            {"type": "integer", "minimum": 0, "default": 0},
            "How many rows to pass over.",
            example=0,
            component="RowOffset",
        ),
        Parameter(
            "order",
            "query",
            {"type": "string", "pattern": order_pattern(table)},
            "`column[.asc|.desc][.nullsfirst|.nullslast]`, by commas. NULLs are the "
            "greatest; the primary key decides between equals.",
            example=f"{table.key}.desc",
        ),
        # One exploded object, which is sent as parameters named by columns. Some tools put the `id`
        # of an answer into any parameter called `id`, but here its value is a filter.
        Parameter(
            "filters",
            "query",
            filters_schema(columns),
            "Parameters named by columns, each of them a filter.",
            example={column.name: "not.is.null" for column in columns if column.required},
        ),
        Parameter(
            "Prefer",
            "header",
            {"type": "string"},
            f"`{COUNT_EXACT}` puts the number of all rows that match into `Content-Range` "
            "(RFC 7240).",
            example=COUNT_EXACT,
            component="RowCount",
        ),
    )


def _read_responses(table: Table) -> tuple[SuccessResponse, ...]:
    """Return the responses with the rows of a read, one for each media type."""
    row = selected_row_schema(table)
    headers = {
        "Content-Range": "`first-last/total`; `*` for no row, or a total not asked for.",
        "Link": 'The next rows, with `rel="next"`, where the total is known and more follow.',
        "Preference-Applied": "The preferences that were applied.",
    }
    return (
        SuccessResponse(200, "The rows", array_of(row), media_types=(JSON,), headers=headers),
        SuccessResponse(200, "The only row", row, media_types=(SINGLE,)),
        SuccessResponse(200, "A table", {"type": "string"}, media_types=(CSV,)),
    )


def _write_response(
    table: Table, description: str, status: int = 200, **more: Any
) -> SuccessResponse:
    """Return the response of a write: its rows as JSON; `TAG_DESCRIPTION` has the other forms."""
    return SuccessResponse(status, description, array_of(row_schema(table)), **more)


def _write_operation(table: Table, verb: str, method: Method, **parts: Any) -> AnyOperation:
    """Return a write operation of a table, with the members that all writes share."""
    return _operation(
        table,
        verb,
        method=method,
        scope="admin:write",
        check_query_names=partial(check_query_names, method),
        problems=("not_acceptable", *parts.pop("problems", ())),
        **parts,
    )


def _table_operations(table: Table) -> tuple[AnyOperation, ...]:
    """Return the four operations of a table."""
    match, values = match_sample(table), values_sample(table)
    unique = any(index.unique for index in table.indexes)
    # Links to change or delete the first stored row.
    stored = {table.key: f"$response.body#/0/{table.key}"}
    links = {
        "change_it": {
            "operationId": f"admin_update_{table.name}",
            "requestBody": {"match": stored, "values": values},
        },
        "delete_it": {
            "operationId": f"admin_delete_{table.name}",
            "requestBody": {"match": stored},
        },
    }
    return (
        _operation(
            table,
            "read",
            summary=f"Rows of {table.name}. {table.description}",
            handler=partial(read_rows, table),
            scope="admin:read",
            parameters=_parameters(table),
            responses=_read_responses(table),
            problems=("not_acceptable",),
            cancel_on_disconnect=True,
            tools=(_QUERY_TOOL,),
        ),
        _write_operation(
            table,
            "insert",
            "POST",
            summary=f"Insert rows into {table.name}",
            description=f"One row or up to {MAX_INSERT_ROWS}: all, or none. Members left out take "
            "the default. `columns`, which PostgREST's clients send, must name the members; "
            "`Prefer: resolution` is refused: no row is changed.",
            handler=partial(insert_rows, table),
            body=_body(NewRows, new_rows_schema(table), {"one": new_row_sample(table), "none": []}),
            responses=(_write_response(table, "The rows as stored", 201, links=links),),
            problems=("conflict",),
        ),
        _write_operation(
            table,
            "update",
            "PATCH",
            summary=f"Change rows of {table.name}",
            description=f"Up to {MAX_CHANGES} rows, or none are changed. `match` chooses them.",
            handler=partial(update_rows, table),
            body=_body(
                UpdateBody, update_schema(table), {"one": {"match": match, "values": values}}
            ),
            responses=(_write_response(table, "The rows as changed"),),
            problems=("conflict",) if unique else (),
        ),
        _write_operation(
            table,
            "delete",
            "DELETE",
            summary=f"Delete rows of {table.name}",
            description=f"Up to {MAX_CHANGES} rows, or none are deleted. `match` chooses them.",
            handler=partial(delete_rows, table),
            body=_body(DeleteBody, delete_schema(table), {"one": {"match": match}}),
            responses=(_write_response(table, "The rows as they were before they were deleted"),),
        ),
    )


def _body(model: Any, schema: Mapping[str, Any], examples: Mapping[str, Any]) -> Body[Any]:
    return Body(
        TypeAdapter(model),
        schema,
        examples,
        MAX_BODY_BYTES,
        requires_media_type=False,
        refuses_inexact_numbers=True,
    )


_QUERY_TOOL: Final = Tool(
    name="query_table",
    title="Query an administrative table",
    description="Read rows of one of the administrative tables. Each member of `filters` is named "
    "by a column and has `[not.]operator.value`, or several of these; all of them hold. Where as "
    "many rows come as `limit` says, ask again with a larger `offset`.\n\n"
    + _OPERATOR_LIST
    + "\n\n"
    + "\n".join(
        f"- {table.name}: {table.description} Columns: {', '.join(table.readable)}."
        for table in ADMINISTRATIVE.values()
    ),
    discriminator="table",
    schemas={
        "select": {
            "type": "string",
            "default": "*",
            "description": "Columns, separated by commas: `column` or `alias:column`.",
        },
        "order": {
            "type": "string",
            "description": "`column.asc` or `column.desc`, several separated by commas.",
        },
        "filters": {
            "type": "object",
            "description": 'Such as {"status": "eq.new", "created_at": "gte.2026-01-01"}.',
            "additionalProperties": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
            },
        },
    },
    to_result=lambda rows: {"rows": rows, "count": len(rows)},
    output={
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object"}, "description": "As selected."},
            "count": {"type": "integer", "minimum": 0, "description": "Rows in this answer."},
        },
        "required": ["rows", "count"],
    },
)

OPERATIONS: tuple[AnyOperation, ...] = tuple(
    operation for table in ADMINISTRATIVE.values() for operation in _table_operations(table)
)
