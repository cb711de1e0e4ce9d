"""A synchronous standby takes over, again and again; two edges with two workers write."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Sized
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.drills.test_cuts import Clients, serving
from tests.edge.ledger import Difference, compare, stored_leads
from tests.edge.load import Writers
from tests.edge.postgresql import PostgreSQL
from tests.patience import patience
from tests.sizes import scaled

pytestmark = pytest.mark.size("ci")

PROMOTIONS = scaled(ci=1, judge=5)
"""Of each kind."""
SOME = 40
"""Leads that are acknowledged between two promotions, at the least."""
Fault = Literal["crash", "vanishes", "shutdown", "not fenced"]
"""What becomes of the former primary; the last one goes on as if it were one."""
FAULTS = [
    "vanishes",
    "not fenced",
    pytest.param("crash", marks=pytest.mark.size("judge")),
    pytest.param("shutdown", marks=pytest.mark.size("judge")),
]
DURABLE: dict[str, Any] = {"fsync": "on", "full_page_writes": "on", "wal_keep_size": "256MB"}
STILL_THERE = (
    "SELECT FROM pg_stat_activity WHERE application_name = 'fore-edge'"
    " AND wait_event IS DISTINCT FROM 'SyncRep' AND query NOT LIKE '%rate_hits%'"
)
"""Sessions of edges, but for commits that wait, whose clients have left, and for idle ones that
count rate limits, which leave when they are used again."""
IN_STEP = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"


class Cluster:
    """A primary with one synchronous standby, whose places change with each promotion."""

    def __init__(self) -> None:
        self.primary = PostgreSQL(**DURABLE)
        self.name = self.primary.make_store().rpartition("/")[2]
        self.standby = PostgreSQL(self.primary, **DURABLE)
        self.url = (
            f"postgresql://postgres@127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
            f"/{self.name}?target_session_attrs=read-write"
        )
        self.be_synchronous()

    def be_synchronous(self) -> None:
        """Let each commit wait for the standby from now on."""
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")

    def promote(self, fault: Fault) -> None:
        """Let the primary fail, and the standby take its place."""
        if fault == "vanishes":
            self.primary.freeze()
        elif fault != "not fenced":
            self.primary.end(signal.SIGQUIT if fault == "crash" else signal.SIGINT)
        self.standby.execute("SELECT pg_promote()")

    def replace_former(self, fault: Fault) -> None:
        """Make the former primary a standby of the present one, from a new base backup."""
        former, self.primary = self.primary, self.standby
        if fault == "vanishes":
            former.freeze(signal.SIGCONT)
        former.remove()
        self.standby = PostgreSQL(self.primary, former.port, **DURABLE)
        self.be_synchronous()

    def remove(self) -> None:
        """End both servers."""
        self.standby.remove()
        self.primary.remove()


def is_longer(acknowledged: Sized, number: int) -> bool:
    """Return whether so many leads are acknowledged."""
    return len(acknowledged) >= number


async def come_to(holds: Callable[[], object]) -> None:
    """Return when something holds."""
    for _ in range(round(patience(120) / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError


@pytest.mark.size("ci", grows=True)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_promoted_standby_has_all_that_was_acknowledged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: Fault
) -> None:
    """No lead is lost or doubled, with an Idempotency-Key or without, and writes come back."""
    away: list[float] = []
    async with AsyncExitStack() as stack:
        cluster = await asyncio.to_thread(Cluster)
        stack.callback(cluster.remove)
        edges = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            words = (tmp_path / name, cluster.url, "--workers", "2")
            edges.append(await stack.enter_async_context(serving(*words)))
        clients, over = [Clients(each) for each in edges], asyncio.Event()
        running = [asyncio.create_task(each.run(over)) for each in clients]
        async with Writers(edges) as writers:
            acknowledged = writers.outcome.acknowledged
            for _ in range(PROMOTIONS):
                await come_to(lambda: cluster.primary.execute(IN_STEP))
                await writers.acknowledge_more(SOME)
                began = time.monotonic()
                await asyncio.to_thread(cluster.promote, fault)
                before = len(acknowledged)
                await come_to(partial(is_longer, acknowledged, before + 5))
                away.append(time.monotonic() - began)
                if fault == "not fenced":
                    await come_to(lambda: cluster.primary.execute(STILL_THERE) == [])
                await asyncio.to_thread(cluster.replace_former, fault)
            await writers.acknowledge_more(SOME)
        over.set()
        await asyncio.gather(*running)
        stored = await asyncio.to_thread(
            stored_leads, cluster.primary, cluster.url.partition("?")[0]
        )
    answers = {key: answer for each in clients for key, answer in each.answers.items()}
    taken = {key: row for key, (status, row) in answers.items() if status == 201}
    refused = {key: error for key, (status, error) in answers.items() if status != 201}
    without_key = {key: rows for key, rows in stored.items() if key in answers}
    with_key = {key: rows for key, rows in stored.items() if key not in answers}
    difference = compare(writers.outcome, with_key)
    lost = [key for key, row in taken.items() if stored.get(key) != [row]]
    doubled = len(difference.doubled) + sum(len(rows) > 1 for rows in without_key.values())
    with capsys.disabled():
        print(  # noqa: T201  what a person wants of a drill
            f"\n{PROMOTIONS} promotions, {fault}: {len(acknowledged)} leads with a key and "
            f"{len(taken)} without acknowledged, {len(difference.lost) + len(lost)} lost, "
            f"{doubled} doubled; writes back after {[round(each, 1) for each in away]} s; "
            f"refused without a key: {dict(Counter(refused.values()))}"
        )

    assert difference == Difference()
    assert lost == []
    assert {status for status, _ in answers.values()} <= {201, 503}
    for key, error in refused.items():
        assert "it is not known" in error or key not in stored
    assert max(map(len, stored.values())) == 1
