"""Handlers of the administrative operations, in PostgREST's dialect.

The replies speak PostgREST's dialect: bare arrays, `Content-Range`, forms by `Accept`.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator

from edge_api.admin.filters import format_value, parse_selection
from edge_api.admin.query import check_columns, single_values
from edge_api.admin.rows import ReturnOptions, Rows, RowsPage
from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem, not_one_row
from edge_api.db.table import Row, Table
from edge_api.operation.model import OperationRequest
from edge_api.operation.negotiation import media_weight, preferences
from edge_api.operation.result import JSON, OperationResult
from edge_api.operation.service import Service

CSV: Final = "text/csv"
SINGLE: Final = "application/vnd.pgrst.object+json"
"""PostgREST's media type of one row without an array."""
FORMULA_PREFIXES: Final = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of formulas in spreadsheet programs."""


@lru_cache(512)
def negotiate_media_type(accept: str | None) -> str:
    """Return JSON, CSV or SINGLE: the one with most weight (RFC 9110, section 12.5.1).

    JSON wins among equals, stands for every wildcard, and is the answer to any other wish.
    """
    wanted = accept or "*/*"
    weights = {JSON: media_weight(wanted, JSON), CSV: 0.0, SINGLE: 0.0}
    for name, _, weight in preferences(wanted):
        if name in (CSV, SINGLE):
            weights[name] = max(weights[name], weight)
    return max(weights, key=lambda media_type: weights[media_type])


def to_csv(names: Sequence[str], rows: Iterable[Row]) -> str:
    """Return CSV (RFC 4180): a line of names and a line for each row; NULL is an empty cell.

    A spreadsheet program opens it without running anything in it: a cell that begins like a formula
    gets an apostrophe before it, which marks text.
    """
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return sheet.getvalue()


def _cell(value: Any) -> str:
    text = "" if value is None else format_value(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


COUNT_EXACT: Final = "count=exact"
"""The one preference (RFC 7240) that is supported."""
WRITE_PARAMETERS: Mapping[str, Sequence[str]] = {
    "POST": ("select", "columns"),
    "PATCH": ("select",),
    "DELETE": ("select",),
}
"""The query parameters of each write. Any other is refused: a filter that was ignored would
change more rows than its sender meant."""
_HINTS: Mapping[str, str] = {
    "POST": "POST only inserts rows; change rows that exist with PATCH",
    "PATCH": "rows are chosen by `match` in the body",
    "DELETE": "rows are chosen by `match` in the body",
}


class DeleteBody(BaseModel, extra="forbid", strict=True):
    """The body of a deletion."""

    match: dict[str, Any]


class UpdateBody(DeleteBody):
    """The body of an update."""

    values: dict[str, Any]


def _as_rows(value: Any) -> Any:
    if not isinstance(value, dict | list):
        raise ValueError("must be an object or an array of objects")  # noqa: TRY004  for pydantic
    return [value] if isinstance(value, dict) else value


NewRows = Annotated[list[dict[str, Any]], BeforeValidator(_as_rows)]


async def read_rows(
    table: Table, service: Service, request: OperationRequest[None, None]
) -> OperationResult:
    """Return rows in the negotiated media type, with their range and perhaps the total."""
    with_total = wants_count(request.headers.get("Prefer"))
    page = await service[Rows].read(table, request.pairs, with_total=with_total)
    headers = {"Content-Range": content_range(page)}
    if with_total:
        headers["Preference-Applied"] = COUNT_EXACT
    media_type = negotiate_media_type(request.headers.get("Accept"))
    if media_type == JSON:
        return OperationResult(page.json, headers=headers)
    return _encode(media_type, page.names, page.rows, headers=headers)


async def insert_rows(
    table: Table, service: Service, request: OperationRequest[None, list[dict[str, Any]]]
) -> OperationResult:
    """Store the rows of the body."""
    options = _options(table, request, "POST")
    columns = single_values(request.pairs, ("columns",)).get("columns")
    if columns is not None:
        check_columns(columns, request.body)
    rows = await service[Rows].insert(table, request.body, _actor(request), options)
    return _write_result(request, options, rows, status=201)


async def update_rows(
    table: Table, service: Service, request: OperationRequest[None, UpdateBody]
) -> OperationResult:
    """Change the rows that the body matches."""
    change = request.body
    options = _options(table, request, "PATCH")
    rows = await service[Rows].update(table, change.match, change.values, _actor(request), options)
    return _write_result(request, options, rows)


async def delete_rows(
    table: Table, service: Service, request: OperationRequest[None, DeleteBody]
) -> OperationResult:
    """Delete the rows that the body matches."""
    options = _options(table, request, "DELETE")
    rows = await service[Rows].delete(table, request.body.match, _actor(request), options)
    return _write_result(request, options, rows)


def check_query_names(method: str, names: Iterable[str]) -> None:
    """Raise Problem `invalid` for a query parameter that the write does not support."""
    for name in names:
        if name not in WRITE_PARAMETERS[method]:
            raise Problem("invalid", f"{name}: {method} takes no such parameter; {_HINTS[method]}")


def _options(table: Table, request: OperationRequest[Any, Any], method: str) -> ReturnOptions:
    """Return the options of a write's response. Raises Problem `invalid`."""
    if any(each.startswith("resolution=") for each in _preferences(request.headers.get("Prefer"))):
        raise Problem("invalid", f"Prefer: resolution is not supported; {_HINTS[method]}")
    selection = parse_selection(table, single_values(request.pairs, ("select",)).get("select", ""))
    return ReturnOptions(
        selection, single=negotiate_media_type(request.headers.get("Accept")) == SINGLE
    )


def _write_result(
    request: OperationRequest[Any, Any], options: ReturnOptions, rows: Sequence[Row], **more: Any
) -> OperationResult:
    names = [output.name for output in options.selection]
    return _encode(negotiate_media_type(request.headers.get("Accept")), names, rows, **more)


def _encode(kind: str, names: Sequence[str], rows: Sequence[Row], **more: Any) -> OperationResult:
    """Return rows in the media type. Raises Problem as `singleton` does."""
    if kind == CSV:
        sheet = to_csv(names, rows).encode()
        return OperationResult(sheet, media_type=f"{CSV}; charset=utf-8", **more)
    if kind == SINGLE:
        return OperationResult(singleton(rows), media_type=SINGLE, **more)
    return OperationResult(rows, **more)


def _actor(request: OperationRequest[Any, Any]) -> Actor:
    assert request.actor is not None  # noqa: S101  these operations require a credential
    return request.actor


def wants_count(prefer: str | None) -> bool:
    """Return whether a Prefer header (RFC 7240) asks for the number of all rows that match."""
    return COUNT_EXACT in _preferences(prefer)


def _preferences(prefer: str | None) -> list[str]:
    members = (prefer or "").replace(" ", "").replace('"', "").lower().split(",")
    return [member.partition(";")[0] for member in members]


def content_range(page: RowsPage) -> str:
    """Return the `Content-Range` of a page in PostgREST's format: `0-9/42`."""
    total = "*" if page.total is None else str(page.total)
    if not page.count:
        return f"*/{total}"
    return f"{page.offset}-{page.offset + page.count - 1}/{total}"


def singleton(rows: Sequence[Row]) -> Row:
    """Return the only row. Raises Problem `not_acceptable` (PGRST116) for none or several."""
    if len(rows) != 1:
        raise not_one_row(len(rows))
    return rows[0]


def check_table(table: Table, actor: Actor) -> None:
    """Raise Problem `table_not_allowed` unless the credential may use the table."""
    if actor.tables is not None and table.name not in actor.tables:
        raise Problem("table_not_allowed")
