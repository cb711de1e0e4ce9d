"""Rows that the tests of administrative rows write, and ways to look at the result."""

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

import pytest

from edge_api.admin.rows import Rows
from edge_api.auth.actor import Actor, recent_entries
from edge_api.db.problems import Problem
from edge_api.db.query import Store
from edge_api.db.table import Row, Table

ACTOR = Actor("k-1", "test", "api_key", frozenset({"admin:write"}))
LEAD = {"name": "Ada", "email": "Ada@Example.org", "budget_tier": "x", "message": "m"}
ID = "00000000-0000-4000-8000-000000000001"
HIDDEN = {"dedupe_hash": "h"}


class Ticking:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 6, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the instant."""
        return self.now


async def problem_of(work: Awaitable[Any]) -> Problem:
    """Return the problem that a call ends with."""
    with pytest.raises(Problem) as raised:
        await work
    return raised.value


async def everything(rows: Rows, table: Table) -> list[Row]:
    """Return all rows of a table."""
    return (await rows.read(table, [("limit", "1000")])).rows


async def audited(store: Store) -> list[tuple[Any, ...]]:
    """Return verb, table, columns and number of rows of each audit entry, newest first."""
    entries = await recent_entries(store, 100)
    assert {entry["actor"] for entry in entries} <= {"credential:k-1"}
    return [(e["verb"], e["table_name"], e["columns"], e["rows"]) for e in entries]
