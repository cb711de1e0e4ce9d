"""The database's server is ended and killed, again and again, under load, and nothing is lost."""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.drills.machines import greeted, launched, quiet_port
from tests.edge.edge_process import Installation
from tests.edge.ledger import Difference, compare, stored_leads
from tests.edge.load import LIMITS, Outcome, Writers
from tests.edge.postgresql import PostgreSQL

RESTARTS = int(os.environ.get("DRILL_RESTARTS", "20"))
HASTY_RESTARTS = 20
"""At the most: each has a good chance to fall between an early answer and the commit."""
HOW = (signal.SIGINT, signal.SIGQUIT)
"""The server is ended in order, and as in a crash."""
BETWEEN = 20
"""Leads that are acknowledged between two restarts, at the least."""


@pytest.fixture
def installation(tmp_path: Path, postgresql: PostgreSQL) -> Installation:
    """Return an installation without a build: leads are all that it takes."""
    settings = {
        **dict.fromkeys(LIMITS, "0"),
        "PORT": str(quiet_port()),
        "DATABASE_URL": postgresql.make_store(),
        "SECRET_KEY": "a secret of thirty-two characters",
        "BUILD_DIR": str(tmp_path / "build"),
    }
    return Installation(tmp_path, settings)


@dataclass
class Drill:
    """An edge under eight writers, while the server of its database comes and goes."""

    installation: Installation
    postgresql: PostgreSQL

    async def run(
        self, restarts: int, *words: str, module: str = "edge_api", until_lost: bool = False
    ) -> tuple[Outcome, Difference]:
        """Restart the server so many times; `until_lost` ends it at the first loss."""
        origin = f"http://127.0.0.1:{self.installation.settings['PORT']}"
        with launched(self.installation, *words, module=module) as process:
            await greeted(process)
            async with Writers([origin]) as writers:
                await writers.acknowledge_more(BETWEEN)
                for number in range(restarts):
                    await asyncio.to_thread(self.postgresql.end, HOW[number % len(HOW)])
                    told = Outcome(dict(writers.outcome.acknowledged))
                    await asyncio.to_thread(self.postgresql.start)
                    await writers.acknowledge_more(BETWEEN)
                    if until_lost and self._compare(told).lost:
                        break
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 30) == 0
        return writers.outcome, self._compare(writers.outcome)

    def _compare(self, told: Outcome) -> Difference:
        url = self.installation.settings["DATABASE_URL"]
        return compare(told, stored_leads(self.postgresql, url))


async def test_restarts_of_the_server_lose_nothing(
    installation: Installation, postgresql: PostgreSQL, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two workers write; every second restart is a crash; each lead is there, and once."""
    drill = Drill(installation, postgresql)
    outcome, difference = await drill.run(RESTARTS, "serve", "--workers", "2")
    with capsys.disabled():
        print(  # noqa: T201  what a person wants of a drill
            f"\n{RESTARTS} restarts of PostgreSQL: {len(outcome.acknowledged)} leads acknowledged, "
            f"{len(difference.lost)} lost, {len(difference.doubled)} doubled; "
            f"{outcome.answers[503]} answers were 503"
        )

    assert difference == Difference()
    assert (outcome.refused, outcome.cut, outcome.silent) == (0, 0, 0)
    assert len(outcome.acknowledged) >= BETWEEN * RESTARTS


async def test_an_edge_that_answers_before_the_commit_is_caught(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    """One that answers an instant too early loses leads in the same drill."""
    drill, hasty = Drill(installation, postgresql), "tests.drills.hasty_postgres"
    _, difference = await drill.run(HASTY_RESTARTS, "serve", module=hasty, until_lost=True)

    assert difference.lost
