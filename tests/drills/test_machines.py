"""Three edges on one database: wires are cut, and no lead is lost, doubled or notified twice."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from edge_api.auth.actor import system_clock
from edge_api.auth.keys import Keys, NewKey
from edge_api.db.postgres.engine import open_store
from tests.drills.machines import POSTS, READINESS, Machine, running
from tests.edge.ledger import Difference, compare, stored_leads
from tests.edge.load import Writers
from tests.edge.postgresql import PostgreSQL
from tests.patience import patience

pytestmark = pytest.mark.size("test")

SOME = 30
"""Leads that are acknowledged between two events, at the least."""
IMPATIENT = 0.6
"""Seconds: a client that does not wait for an edge in trouble, and asks the next."""
HOLDS_LOCK = (
    "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'"
    " AND granted AND state = 'idle in transaction' AND now() - state_change > interval '0.2 s'"
)
COUNT_WAITING = "SELECT count(*) FROM fore_edge.email_outbox"
LEASES = "SELECT id, lease FROM fore_edge.email_outbox WHERE lease IS NOT NULL ORDER BY id"
LET_GO = (
    "UPDATE fore_edge.email_outbox SET due_at = '2026-01-01T00:00:00.000000Z'"
    " WHERE id = '{}' AND lease = '{}'"
)
NOTIFIED = re.compile(rb"^> ([0-9a-f-]{36})$", re.MULTILINE)
"""The message of a lead, which is its key, as the text to its owner quotes it."""


@pytest.fixture
def database(postgresql: PostgreSQL) -> Iterator[str]:
    """Return where an empty store is, whose mail goes without a pause."""
    url = postgresql.make_store()
    name = url.rpartition("/")[2]
    postgresql.execute("UPDATE fore_edge.email_send_state SET send_delay_ms = 0", name)
    try:
        yield url
    finally:
        postgresql.drop(url)


@pytest.fixture
async def machines(tmp_path: Path, database: str) -> AsyncIterator[list[Machine]]:
    """Return three running edges."""
    async with running(tmp_path, database) as found:
        yield found


async def come_to(holds: Callable[[], object]) -> None:
    """Return when something holds, which is looked at in a thread."""
    for _ in range(round(patience() / 0.1)):
        if await asyncio.to_thread(holds):
            return
        await asyncio.sleep(0.1)
    raise AssertionError


async def come_to_readiness(machine: Machine, status: int) -> str:
    """Return what readiness says when it has come to that status."""
    for _ in range(round(patience() / 0.2)):
        found, report = await machine.ask(READINESS)
        if found == status:
            return str(report.get("error", ""))
        await asyncio.sleep(0.2)
    raise AssertionError


async def test_a_cut_edge_loses_and_doubles_nothing(
    machines: list[Machine],
    database: str,
    postgresql: PostgreSQL,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is cut off in silence while it holds the writers' lock, another one is refused.

    The others go on, the cut one says that it is not ready and comes back, and each owner's mail is
    notified once, by whichever edge.
    """
    name = database.rpartition("/")[2]
    first, second, third = machines
    async with Writers([each.front.url for each in machines], 9, IMPATIENT) as writers:
        await writers.acknowledge_more(SOME)
        second.back.cut_at = b"pg_advisory_xact_lock"
        await come_to(lambda: postgresql.execute(HOLDS_LOCK, name))
        await writers.acknowledge_more(SOME)
        assert "the store cannot be read or written" in await come_to_readiness(second, 503)
        assert await come_to_readiness(first, 200) == await come_to_readiness(third, 200) == ""

        third.back.refuse()
        first.front.delay = 0.05
        await writers.acknowledge_more(SOME)
        first.front.refuse()
        third.back.fix()
        await writers.acknowledge_more(SOME)
        for wire in (second.back, first.front):
            wire.fix()
        for machine in machines:
            assert await come_to_readiness(machine, 200) == ""
        await writers.acknowledge_more(SOME)
    outcome = writers.outcome
    difference = compare(outcome, stored_leads(postgresql, database))
    notified = await notified_once_queue_is_empty(postgresql, name, tmp_path / "mail" / "new")
    with capsys.disabled():
        print(  # noqa: T201  what a person wants of a drill
            f"\nthree edges, three cuts: {len(outcome.acknowledged)} leads acknowledged, "
            f"{len(difference.lost)} lost, {len(difference.doubled)} doubled, "
            f"{notified.total() - len(notified)} notified twice; "
            f"{outcome.answers[503]} answers were 503, "
            f"{outcome.refused + outcome.cut} connections broke, {outcome.silent} were silent"
        )

    assert difference == Difference()
    assert notified == Counter(outcome.acknowledged.keys())


async def notified_once_queue_is_empty(
    postgresql: PostgreSQL, name: str, folder: Path
) -> Counter[str]:
    """Return how often each lead was notified, by its key, once no mail waits any more.

    An edge that was cut off as it claimed mail has a lease which nobody uses, for two minutes: what
    has not moved for seconds is let go.
    """
    for _ in range(20):
        before = postgresql.execute(LEASES, name)
        await asyncio.sleep(3)
        if not postgresql.execute(COUNT_WAITING, name)[0][0]:
            break
        stuck = set(before) & set(postgresql.execute(LEASES, name))
        for row, lease in stuck:
            postgresql.execute(LET_GO.format(row, lease), name)
    assert not postgresql.execute(COUNT_WAITING, name)[0][0]
    return await asyncio.to_thread(list_notified_keys, folder)


def list_notified_keys(folder: Path) -> Counter[str]:
    """Return how often each key occurs in the mail of a folder."""
    quoted = (NOTIFIED.search(file.read_bytes()) for file in folder.iterdir())
    return Counter(found[1].decode() for found in quoted if found)


@pytest.mark.size("ci")
async def test_a_key_that_is_revoked_at_one_edge_is_refused_by_all(
    machines: list[Machine], database: str
) -> None:
    """Two seconds later, by those that were asked with it all the time; a cut one answers 503.

    Each names the build that it serves, so that one can see whether the newest has arrived there.
    """
    *_, away = machines
    reports = [(await each.ask(READINESS))[1] for each in machines]
    assert {each["checks"]["index"]["build_id"] for each in reports} == {"build-0001"}
    store = await open_store(database, system_clock)
    keys = Keys(store, system_clock)
    issued = await keys.issue(NewKey("guest"))

    async def keep_asking(machine: Machine) -> None:
        while True:
            await machine.ask(POSTS, issued.secret)

    assert await statuses(machines, issued.secret) == [200, 200, 200]
    asking = [asyncio.create_task(keep_asking(each)) for each in machines]
    await asyncio.sleep(0.5)
    away.back.cut()
    await keys.revoke(issued.row["id"])
    await asyncio.sleep(2.0)  # what a revocation may take
    found = await statuses(machines, issued.secret)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await store.close()

    assert found == [401, 401, 503]
    away.back.fix()
    await come_to_readiness(away, 200)
    assert await statuses(machines, issued.secret) == [401, 401, 401]


async def test_a_limit_is_counted_by_all_edges_together(machines: list[Machine]) -> None:
    """A limit of 30 a minute refuses six of 36 requests from one address, 12 to each edge."""
    asked = await asyncio.gather(*(ask_for_token(each) for each in machines for _ in range(12)))

    assert Counter(status == 429 for status in asked) == {False: 30, True: 6}


@pytest.mark.size("ci")
async def test_a_limit_of_a_credential_holds_on_all_edges(tmp_path: Path, database: str) -> None:
    """It is counted in the memory of each, and sent to the others twice a second."""
    async with running(tmp_path, database, RATE_AUTHENTICATED="30/minute") as machines:
        store = await open_store(database, system_clock)
        issued = await Keys(store, system_clock).issue(NewKey("guest"))
        await store.close()

        taken = [(await each.ask(POSTS, issued.secret))[0] for each in machines for _ in range(10)]
        for _ in range(20):
            await asyncio.sleep(0.5)
            refused = await statuses(machines, issued.secret)
            if refused == [429, 429, 429]:
                break

    assert Counter(taken) == {200: 30}
    assert refused == [429, 429, 429]


async def ask_for_token(machine: Machine) -> int:
    """Return how an edge answers to a request for a token that nobody could grant."""
    form = {"grant_type": "client_credentials"}
    async with (
        ClientSession() as session,
        session.post(f"{machine.front.url}/api/public/oauth/token", data=form) as answer,
    ):
        return answer.status


async def statuses(machines: list[Machine], key: str) -> list[int]:
    """Return how each edge answers to a key, all asked at once."""
    return [status for status, _ in await asyncio.gather(*(m.ask(POSTS, key) for m in machines))]
