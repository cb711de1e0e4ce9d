"""The database's server is ended and killed, again and again, under load, and nothing is lost."""

import asyncio
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.drills.machines import greeted, launched, quiet_port
from tests.edge.edge_process import Installation
from tests.edge.ledger import Difference, compare, stored_leads
from tests.edge.load import LIMITS, Outcome, Writers
from tests.edge.postgresql import PostgreSQL
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

RESTARTS = scaled(test=5, ci=20, judge=100)
HASTY_RESTARTS = 20
"""At the most: each has a good chance to fall between an early answer and the commit."""
HOW = (signal.SIGINT, signal.SIGQUIT)
"""The server is ended in order, and as in a crash."""
WHOLE_TURN_SECONDS = 6.0
"""Longer than any of the edge's loops that work on the store waits for its next turn."""
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
                    outcome = Outcome(dict(writers.outcome.acknowledged))
                    await asyncio.to_thread(self.postgresql.start)
                    await writers.acknowledge_more(BETWEEN)
                    if until_lost and self._compare(outcome).lost:
                        break
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 30) == 0
        return writers.outcome, self._compare(writers.outcome)

    def _compare(self, outcome: Outcome) -> Difference:
        url = self.installation.settings["DATABASE_URL"]
        return compare(outcome, stored_leads(self.postgresql, url))


@pytest.mark.size("test", grows=True)
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


@pytest.mark.size("ci")
async def test_an_outage_is_two_lines_in_the_log(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    """One when the server goes, one when it is back, whoever meets it meanwhile, and no trace."""
    mail = {"SMTP_URL": f"maildir:{installation.folder}/mail", "OWNER_EMAIL": "owner@keepers.net"}
    installation = installation.changed(**mail)
    origin, log = f"http://127.0.0.1:{installation.settings['PORT']}", installation.folder / "log"
    with launched(installation, "serve") as process:
        await greeted(process)
        async with Writers([origin]) as writers:
            for number in range(2):
                await writers.acknowledge_more(BETWEEN)
                await asyncio.to_thread(postgresql.end, HOW[number])
                await asyncio.sleep(WHOLE_TURN_SECONDS)
                await asyncio.to_thread(postgresql.start)
                await asyncio.to_thread(await_line, log, "available again", number + 1)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 30) == 0

    assert writers.outcome.answers[503] > 2
    lines = log.read_text().splitlines()
    states = [line for line in lines if "the store is " in line]
    assert ["available again" in line for line in states] == [False, True] * 2, lines
    for line in states[1::2]:
        words = re.search(r"available again after ([0-9.]+) s; ([0-9]+) attempts failed", line)
        assert words
        assert float(words[1]) > WHOLE_TURN_SECONDS / 2
        assert int(words[2]) > 2
    others = [line for line in lines if line not in states and " INFO " not in line]
    assert [line for line in others if "which could not be written down" not in line] == []


def await_line(log: Path, words: str, times: int) -> None:
    """Return when words are in a log so often; a minute is more than it takes."""
    for _ in range(1200):
        if log.read_text().count(words) >= times:
            return
        time.sleep(0.05)
    raise AssertionError(log.read_text())


@pytest.mark.size("ci")
async def test_an_edge_that_answers_before_the_commit_is_caught(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    """One that answers an instant too early loses leads in the same drill."""
    drill, hasty = Drill(installation, postgresql), "tests.drills.hasty_postgres"
    _, difference = await drill.run(HASTY_RESTARTS, "serve", module=hasty, until_lost=True)

    assert difference.lost
