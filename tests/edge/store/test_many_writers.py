"""Many callers at once: each is answered, and none pays for another."""

import asyncio

import pytest

from edge_api.db.problems import Problem
from edge_api.db.query import Insert, QueryResult, Store
from edge_api.db.tables import LEADS, SUPPRESSED_EMAILS
from tests.edge.store.samples import make_lead, make_row

pytestmark = pytest.mark.each_engine


async def test_a_store_with_many_writers_keeps_every_row(store: Store) -> None:
    """Leads of 64 callers at once are all there, and the one that is refused disturbs no other."""
    row = make_row(SUPPRESSED_EMAILS, {"email": "a@b", "reason": "bounce"})
    await store.run(Insert(SUPPRESSED_EMAILS, [row]))

    async def write(number: int) -> list[QueryResult] | Problem:
        again = make_row(SUPPRESSED_EMAILS, {"email": "a@b", "reason": "bounce"})
        plans = [Insert(LEADS, [make_lead(name=str(number))])]
        refused = [Insert(SUPPRESSED_EMAILS, [again])] if number % 8 == 0 else []
        try:
            return await store.run(*plans, *refused)
        except Problem as problem:
            return problem

    results = await asyncio.gather(*map(write, range(64)))

    refused = [number for number, result in enumerate(results) if isinstance(result, Problem)]
    assert refused == list(range(0, 64, 8))
