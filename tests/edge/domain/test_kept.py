import asyncio
from functools import partial
from typing import Any

import pytest

from edge_api.domain.kept import Kept
from edge_api.schema.problems import Problem
from edge_api.schema.tables import SUPPRESSED_EMAILS
from edge_api.store.plan import Insert, Outcome, Read
from edge_api.store.sqlite import SQLiteStore

READ = Read(SUPPRESSED_EMAILS, ("email",))


async def suppress(store: SQLiteStore, email: str) -> None:
    """Change the store by one row."""
    given = {"email": email, "reason": "bounce"}
    number = abs(hash(email)) % 10**12
    row = SUPPRESSED_EMAILS.new_row(
        given,
        "2026-06-01T12:00:00.000000Z",
        partial(str, f"01981a2b-3c4d-7e5f-8a6b-{number:012}"),
    )
    await store.run(Insert(SUPPRESSED_EMAILS, [row]))


def kept(watched: Any) -> Kept[list[Outcome]]:
    """Return what is kept of a table."""
    return Kept(watched, partial(watched.run, READ))


async def test_a_crowd_shares_one_read(watched: Any) -> None:
    """However many ask while the store stays as it is, it is read once."""
    value = kept(watched)

    await asyncio.gather(*(value.get() for _ in range(20)))
    await value.get()

    assert watched.runs == 1


async def test_a_change_is_seen_by_whoever_asks_next(watched: Any, store: SQLiteStore) -> None:
    """What was kept is not believed any longer than the store is as it was."""
    value = kept(watched)
    assert (await value.get())[0].rows == []

    await suppress(store, "ada@example.org")

    assert (await value.get())[0].rows == [{"email": "ada@example.org"}]


async def test_a_failure_is_not_kept(watched: Any) -> None:
    """Once the store is back, the next who asks is answered."""
    value = kept(watched)
    watched.away = True
    with pytest.raises(Problem):
        await value.get()

    watched.away = False

    assert (await value.get())[0].rows == []


async def test_one_who_leaves_ends_no_read(watched: Any) -> None:
    """A caller that is cancelled leaves the others their answer."""
    value = kept(watched)
    leaving, staying = (asyncio.create_task(value.get()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()

    assert (await staying)[0].rows == []
    assert watched.runs == 1
