"""Handlers of the administrative operations, which answer in PostgREST's dialect.

They answer with bare arrays, `Content-Range` and `Link`, in the media type that `Accept` chooses,
and honour `Prefer`. Parts of the dialect that they do not support are refused by name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from pydantic import BaseModel, BeforeValidator

from edge_api.admin.filters import parse_selection, read_selected
from edge_api.admin.rows import (
    MAX_LIMIT,
    Pairs,
    ReturnOptions,
    Rows,
    RowsPage,
    check_columns,
    single_values,
)
from edge_api.auth.actor import Actor
from edge_api.db.problems import Problem, not_one_row
from edge_api.db.table import Row, Table
from edge_api.operation.model import JSON, OperationRequest, OperationResult, Service
from edge_api.operation.negotiation import media_weight, preferences
from edge_api.operation.sheets import CSV_TYPE, stream_csv, to_csv

PREFIX: Final = "/api/public/v1/admin"
CSV: Final = "text/csv"
SINGLE: Final = "application/vnd.pgrst.object+json"  # PostgREST's type of one row as an object
_UNSUPPORTED_TYPES: Final = re.compile(
    r"application/vnd\.pgrst\.(?!(?:object|array)\+json\s*(?:[;,]|$))[^\s;,]*|nulls=stripped"
)
"""Media types of PostgREST that are not supported, such as the plan of a query."""


@lru_cache(512)
def negotiate_media_type(accept: str | None) -> str:
    """Return JSON, CSV or SINGLE: the one with most weight (RFC 9110, section 12.5.1).

    JSON is chosen among equals, for wildcards, and where none of the three is accepted. Raises
    Problem `invalid` for another media type of PostgREST.
    """
    wanted = accept or "*/*"
    if other := _UNSUPPORTED_TYPES.search(wanted.lower()):
        raise Problem("invalid", f"Accept: {other[0][:100]} is not supported; take {JSON} or {CSV}")
    weights = {JSON: media_weight(wanted, JSON), CSV: 0.0, SINGLE: 0.0}
    for name, _, weight in preferences(wanted):
        if name in (CSV, SINGLE):
            weights[name] = max(weights[name], weight)
    return max(weights, key=lambda media_type: weights[media_type])


COUNT_EXACT: Final = "count=exact"
MINIMAL: Final = "return=minimal"
STRICT: Final = "handling=strict"
_WRITE_PREFERENCES: Final = (MINIMAL, "return=representation", "missing=default")
WRITE_PARAMETERS: Mapping[str, Sequence[str]] = {
    "POST": ("select", "columns"),
    "PATCH": ("select",),
    "DELETE": ("select",),
}
"""The query parameters of each write. Any other is refused: a filter that was ignored would
change more rows than its sender meant."""
_WRITE_HINTS: Mapping[str, str] = {
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
    """Return rows in the negotiated media type, with their range.

    The total and the address of the next rows are added for `Prefer: count=exact`, and always to
    CSV, whose reader could not see that rows are missing.
    """
    _refuse_profile(request.headers)
    applied = applied_preferences(request.headers.get("Prefer"), (COUNT_EXACT,))
    media_type = negotiate_media_type(request.headers.get("Accept"))
    pairs = apply_range(request.pairs, request.headers)
    page = await service[Rows].read(
        table,
        pairs,
        with_total=media_type == CSV or COUNT_EXACT in applied,
        only_keys=media_type == CSV,
    )
    headers = {"Content-Range": content_range(page), **_preference_applied_header(applied)}
    end = page.offset + page.count
    if page.count and page.total is not None and end < page.total:
        others = [pair for pair in pairs if pair[0] != "offset"]
        following = urlencode([*others, ("offset", end)])
        headers["Link"] = f'<{PREFIX}/{table.name}?{following}>; rel="next"'
    if media_type == JSON:
        return OperationResult(page.json, headers=headers)
    if media_type == CSV:
        selection = parse_selection(table, dict(pairs).get("select", ""))
        keys = [row[table.key] for row in page.rows]
        rows = read_selected(service.store, table, keys, selection)
        lines = stream_csv([output.name for output in selection], rows)
        return OperationResult(lines, headers=headers, media_type=CSV_TYPE)
    return _encode(media_type, page.names, page.rows, headers=headers)


def apply_range(pairs: Pairs, headers: Mapping[str, str]) -> Pairs:
    """Return the parameters with limit and offset of a `Range` of rows, such as `0-24`.

    A range of other units is ignored (RFC 9110, section 14.2). Raises Problem `invalid`.
    """
    text = headers.get("Range", "").lower().removeprefix("items=")
    if (
        "Range" not in headers
        or "=" in text
        or headers.get("Range-Unit", "items").lower() != "items"
    ):
        return pairs
    found = re.fullmatch(r"([0-9]{1,16})-([0-9]{1,16})?", text)
    first, last = (int(found[1]), found[2]) if found else (0, "")
    count = int(last) - first + 1 if last else 1
    if found is None or not 1 <= count <= MAX_LIMIT:
        raise Problem(
            "invalid", f"Range: must be first-last, such as 0-24, of 1 to {MAX_LIMIT} rows"
        )
    if {"limit", "offset"} & {name for name, _ in pairs}:
        raise Problem("invalid", "Range: leave it out, or leave limit and offset out")
    return (*pairs, ("offset", str(first)), *([("limit", str(count))] if last else []))


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
            raise Problem(
                "invalid", f"{name}: {method} takes no such parameter; {_WRITE_HINTS[method]}"
            )


def _options(table: Table, request: OperationRequest[Any, Any], method: str) -> ReturnOptions:
    """Return the options of a write's response. Raises Problem `invalid`."""
    _refuse_profile(request.headers)
    prefer = request.headers.get("Prefer")
    for each in _parse_prefer(prefer):
        if each.startswith("resolution="):
            raise Problem("invalid", f"Prefer: resolution is not supported; {_WRITE_HINTS[method]}")
        if each == "tx=rollback":
            raise Problem(
                "invalid",
                "Prefer: tx=rollback is not supported: every write is stored; leave it out",
            )
    applied_preferences(prefer, _WRITE_PREFERENCES)
    selection = parse_selection(table, single_values(request.pairs, ("select",)).get("select", ""))
    return ReturnOptions(
        selection, single=negotiate_media_type(request.headers.get("Accept")) == SINGLE
    )


def _write_result(
    request: OperationRequest[Any, Any], options: ReturnOptions, rows: Sequence[Row], **more: Any
) -> OperationResult:
    applied = applied_preferences(request.headers.get("Prefer"), _WRITE_PREFERENCES)
    more["headers"] = _preference_applied_header(applied)
    if MINIMAL in applied:
        return OperationResult(b"", media_type="", **more)
    names = [output.name for output in options.selection]
    return _encode(negotiate_media_type(request.headers.get("Accept")), names, rows, **more)


def _encode(
    media_type: str, names: Sequence[str], rows: Sequence[Row], **more: Any
) -> OperationResult:
    """Return rows in the media type. Raises Problem as `only_row` does."""
    if media_type == CSV:
        return OperationResult(to_csv(names, rows).encode(), media_type=CSV_TYPE, **more)
    if media_type == SINGLE:
        return OperationResult(only_row(rows), media_type=SINGLE, **more)
    return OperationResult(rows, **more)


def _refuse_profile(headers: Mapping[str, str]) -> None:
    for name in ("Accept-Profile", "Content-Profile"):
        if headers.get(name, "public") != "public":
            raise Problem("invalid", f"{name}: there is one schema, public; leave it out")


def _actor(request: OperationRequest[Any, Any]) -> Actor:
    assert request.actor is not None  # noqa: S101  these operations require a credential
    return request.actor


def applied_preferences(prefer: str | None, supported: Sequence[str]) -> list[str]:
    """Return the supported preferences of a Prefer header (RFC 7240), the first of each name.

    Raises Problem `invalid` (PGRST122) for any other beside `handling=strict`.
    """
    given = _parse_prefer(prefer)
    first = {each.partition("=")[0]: each for each in reversed(given)}.values()
    known = (*supported, STRICT, "handling=lenient")
    unknown = [each[:100] for each in given if each and each not in known]
    if STRICT in first and unknown:
        raise Problem(
            "invalid",
            f"Prefer: {', '.join(unknown)} is not supported; leave it or {STRICT} out",
            details=f"Supported here: {', '.join(supported)}",
            sqlstate="PGRST122",
        )
    return [each for each in known if each in first]


def _parse_prefer(prefer: str | None) -> list[str]:
    members = (prefer or "").replace(" ", "").replace('"', "").lower().split(",")
    return [member.partition(";")[0] for member in members]


def _preference_applied_header(preferences: Sequence[str]) -> dict[str, str]:
    return {"Preference-Applied": ", ".join(preferences)} if preferences else {}


def content_range(page: RowsPage) -> str:
    """Return the `Content-Range` of a page in PostgREST's format: `0-9/42`."""
    total = "*" if page.total is None else str(page.total)
    if not page.count:
        return f"*/{total}"
    return f"{page.offset}-{page.offset + page.count - 1}/{total}"


def only_row(rows: Sequence[Row]) -> Row:
    """Return the only row. Raises Problem `not_acceptable` (PGRST116) for none or several."""
    if len(rows) != 1:
        raise not_one_row(len(rows))
    return rows[0]
