"""What the operations of the administrative tables do, for any table: ask the domain, reply.

The replies speak PostgREST's dialect: bare arrays, `Content-Range`, forms by `Accept`.
"""

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from edge_api.api.operation import Ask
from edge_api.api.reply import Reply
from edge_api.api.representation import CSV, OBJECT, chosen_form
from edge_api.api.service import Service
from edge_api.domain.actor import Actor
from edge_api.domain.rows import Page
from edge_api.domain.spreadsheet import to_csv
from edge_api.schema.problems import Problem
from edge_api.schema.table import Table

COUNT_EXACT: Final = "count=exact"
"""The one preference (RFC 7240) that is heeded."""


class Removal(BaseModel):
    """The body of a deletion."""

    model_config = ConfigDict(extra="forbid", strict=True)

    match: dict[str, Any]


class Change(Removal):
    """The body of an update."""

    values: dict[str, Any]


def _as_rows(value: Any) -> Any:
    if not isinstance(value, dict | list):
        raise ValueError("must be an object or an array of objects")  # noqa: TRY004  for pydantic
    return [value] if isinstance(value, dict) else value


NewRows = Annotated[list[dict[str, Any]], BeforeValidator(_as_rows)]


async def read_rows(table: Table, service: Service, ask: Ask) -> Reply:
    """Give rows in the form that was asked for, and say which they are among how many."""
    counted = wants_count(ask.headers.get("Prefer"))
    version = service.store.version() if service.store.version_is_exact else None
    page = await service.rows.read(table, ask.pairs, counted=counted)
    headers = {"Content-Range": content_range(page)}
    if counted:
        headers["Preference-Applied"] = COUNT_EXACT
    form = chosen_form(ask.headers.get("Accept"))
    if form == CSV:
        sheet = to_csv(page.names, page.rows).encode()
        return Reply(sheet, headers=headers, media_type=f"{CSV}; charset=utf-8")
    if form == OBJECT:
        return Reply(sole_row(page), headers=headers, media_type=OBJECT)
    return Reply(page.json, headers=headers, stands_at=version)


async def insert_rows(table: Table, service: Service, ask: Ask) -> Reply:
    """Store the rows of the body."""
    return Reply(await service.rows.insert(table, ask.body, _actor(ask)), status=201)


async def update_rows(table: Table, service: Service, ask: Ask) -> Reply:
    """Change the rows that the body matches."""
    change: Change = ask.body
    rows = await service.rows.update(table, change.match, change.values, _actor(ask))
    return Reply(rows)


async def delete_rows(table: Table, service: Service, ask: Ask) -> Reply:
    """Delete the rows that the body matches."""
    return Reply(await service.rows.delete(table, ask.body.match, _actor(ask)))


def _actor(ask: Ask) -> Actor:
    assert ask.actor is not None  # noqa: S101  these operations require a credential
    return ask.actor


def wants_count(prefer: str | None) -> bool:
    """Tell whether a Prefer header (RFC 7240) asks for the number of all rows that match."""
    members = (prefer or "").replace(" ", "").replace('"', "").lower().split(",")
    return any(member.partition(";")[0] == COUNT_EXACT for member in members)


def content_range(page: Page) -> str:
    """Return which rows of how many an answer holds, in PostgREST's words: `0-9/42`."""
    total = "*" if page.total is None else str(page.total)
    if not page.count:
        return f"*/{total}"
    return f"{page.offset}-{page.offset + page.count - 1}/{total}"


def sole_row(page: Page) -> dict[str, Any]:
    """Return the only row. Raises Problem `not_acceptable` (PGRST116) for none or several."""
    if page.count != 1:
        raise Problem(
            "not_acceptable",
            "One object was asked for, and the result is not exactly one row",
            details=f"The result contains {page.count} rows",
        )
    (row,) = page.rows
    return row


def admit(table: Table, actor: Actor) -> None:
    """Raise Problem `table_not_allowed` unless the credential may touch the table."""
    if actor.tables is not None and table.name not in actor.tables:
        raise Problem("table_not_allowed")
