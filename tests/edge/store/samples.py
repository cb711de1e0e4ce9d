"""Rows that tests put into a store, and the instant at which they do so."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from edge_api.auth.actor import new_id
from edge_api.db.errors import RecoveringStore
from edge_api.db.table import Row, Table
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from edge_api.db.types import format_instant

NOW = datetime(2026, 1, 31, 8, 5, 9, tzinfo=UTC)
EMPTY: Row = {
    **dict.fromkeys(LEADS.columns),
    "status": "new",
    "source": "api",
    "spam_score": 0,
}
"""Values of the empty columns of a lead: a whole row that is expected begins so."""


def clock() -> datetime:
    """Return the instant at which every test takes place."""
    return NOW


def make_row(table: Table, given: dict[str, Any]) -> Row:
    """Return a whole new row of any table."""
    return table.new_row(given, format_instant(NOW), partial(new_id, datetime.now(UTC)))


def make_lead(**given: Any) -> Row:
    """Return a whole new lead."""
    plain = {"name": "Ada", "email": "ada@example.org", "budget_tier": "small", "message": "Hi"}
    return make_row(LEADS, {**plain, **given})


def make_entry(**given: Any) -> Row:
    """Return a whole new entry of the log of mail, the table with the most nullable columns."""
    plain = {"template_name": "t", "recipient_email": "ada@example.org", "status": "pending"}
    return make_row(EMAIL_SEND_LOG, {**plain, **given})


class CheckedStore(RecoveringStore):
    """A store that is nothing but a check of whether it works."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._run_check = check

    async def _check(self) -> None:
        await self._run_check()

    async def _end(self) -> None:
        """There is nothing to end."""
