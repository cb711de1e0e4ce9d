"""Administrative rows that are read again: never older than what was answered elsewhere."""

import asyncio

import pytest

from edge_api.admin.rows import Rows
from edge_api.db.tables import LEADS
from tests.edge.engines import Opener
from tests.edge.rows.samples import ACTOR, LEAD, Ticking, everything

pytestmark = pytest.mark.each_engine


async def test_a_read_that_comes_again_gives_the_same(rows: Rows) -> None:
    """In each form that was asked for: counted or not, another selection, another table's rows."""
    (row,) = await rows.insert(LEADS, [LEAD], ACTOR)

    for _ in range(2):
        assert (await rows.read(LEADS, [("select", "id")])).rows == [{"id": row["id"]}]
        assert (await rows.read(LEADS, [("select", "name")])).rows == [{"name": "Ada"}]
        assert (await rows.read(LEADS, [])).total is None
        assert (await rows.read(LEADS, [], with_total=True)).total == 1


async def test_a_change_of_another_edge_is_seen_at_once(
    rows: Rows, open_another: Opener, clock: Ticking
) -> None:
    """A row that is changed by one edge and read by another is changed."""
    others = Rows(await open_another(), clock)
    (row,) = await rows.insert(LEADS, [LEAD], ACTOR)

    for number in range(20):
        await others.update(LEADS, {"id": row["id"]}, {"notes": str(number)}, ACTOR)
        assert [found["notes"] for found in await everything(rows, LEADS)] == [str(number)]


async def test_reads_beside_changes_are_never_older(rows: Rows) -> None:
    """However many ask meanwhile, what is read after a change was answered holds it."""
    (row,) = await rows.insert(LEADS, [LEAD], ACTOR)

    async def ask() -> None:
        while not done.is_set():
            await everything(rows, LEADS)
            await asyncio.sleep(0)  # what is kept is given without a pause

    done = asyncio.Event()
    asking = [asyncio.create_task(ask()) for _ in range(4)]
    try:
        for number in range(50):
            await rows.update(LEADS, {"id": row["id"]}, {"notes": str(number)}, ACTOR)
            assert [found["notes"] for found in await everything(rows, LEADS)] == [str(number)]
    finally:
        done.set()
        await asyncio.gather(*asking)
