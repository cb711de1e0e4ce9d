"""Connections to PostgreSQL are cut at random bytes; what clients hear of their leads is true."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from aiohttp import ClientSession, ClientTimeout

from tests.drills.cutter import Cutter
from tests.drills.machines import greeted, launched, quiet_port
from tests.edge.edge_process import Installation
from tests.edge.ledger import stored_leads
from tests.edge.load import LEAD, LEADS, LIMITS
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.postgres.proxy import Proxy
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

CUTS = scaled(test=20, ci=60, judge=200)
CLIENTS = 8
FORM = {**LEAD, "message": "Call me.", "_gotcha": ""}
SCRIPT = {"Accept": "application/json"}


@asynccontextmanager
async def serving(folder: Path, database: str, *words: str) -> AsyncIterator[str]:
    """Serve leads on a database, and yield the origin; it has to end in order."""
    settings = {
        **dict.fromkeys(LIMITS, "0"),
        "PORT": str(quiet_port()),
        "DATABASE_URL": database,
        "SECRET_KEY": "a secret of thirty-two characters",
        "BUILD_DIR": str(folder / "build"),
    }
    with launched(Installation(folder, settings), "serve", *words) as process:
        await greeted(process)
        yield f"http://127.0.0.1:{settings['PORT']}"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0


class Clients:
    """Programs without an Idempotency-Key: each sends a lead once, then the next one."""

    def __init__(self, origin: str) -> None:
        self._url = f"{origin}{LEADS}"
        self.answers: dict[str, tuple[int, str]] = {}
        """By the message of a lead: the status, and its id or the error."""

    async def run(self, until: asyncio.Event) -> None:
        """Send leads until an event is set."""
        async with ClientSession(timeout=ClientTimeout(total=60)) as session:
            await asyncio.gather(*(self._send(session, until) for _ in range(CLIENTS)))

    async def _send(self, session: ClientSession, until: asyncio.Event) -> None:
        while not until.is_set():
            message = str(uuid4())
            async with session.post(self._url, json={**LEAD, "message": message}) as answer:
                body = await answer.json()
            self.answers[message] = answer.status, body["id" if answer.status == 201 else "error"]


@pytest.mark.size("test", grows=True)
async def test_answers_are_true_whatever_is_cut(
    tmp_path: Path, postgresql: PostgreSQL, capsys: pytest.CaptureFixture[str]
) -> None:
    """No lead that is stored is answered with 503, none is lost, and none is there twice."""
    url = postgresql.make_store()
    async with Cutter(url, CUTS) as cutter, serving(tmp_path, cutter.url, "--workers", "2") as edge:
        clients = Clients(edge)
        await clients.run(cutter.done)
    stored = stored_leads(postgresql, url)
    refused = {
        message: error for message, (status, error) in clients.answers.items() if status != 201
    }
    taken = {message: row for message, (status, row) in clients.answers.items() if status == 201}
    with capsys.disabled():
        print(  # noqa: T201  what a person wants of a drill
            f"\n{cutter.cuts.total()} cuts ({dict(cutter.cuts)}): {len(taken)} leads acknowledged, "
            f"{len(refused)} answers were 503, of which {len(refused.keys() & stored.keys())} were "
            f"stored: {dict(Counter(refused.values()))}"
        )

    assert {status for status, _ in clients.answers.values()} <= {201, 503}
    assert refused.keys() & stored.keys() == set()
    assert {message: [row] for message, row in taken.items()} == stored
    assert len(set(cutter.cuts)) == 5


async def test_a_form_that_is_sent_again_after_a_503_is_one_lead(
    tmp_path: Path, postgresql: PostgreSQL
) -> None:
    """Nobody knew whether the first press had arrived: the page says so in words for a person."""
    url = postgresql.make_store()
    async with Proxy(url) as way, serving(tmp_path, way.url) as edge, ClientSession() as session:

        async def press(**edited: str) -> tuple[int, str]:
            form = {**FORM, **edited}
            async with session.post(f"{edge}/contact/", data=form, headers=SCRIPT) as answer:
                return answer.status, str((await answer.json()).get("error", ""))

        assert await press(message="Something else.") == (201, "")
        way.last_word = b"COMMIT"
        way.refuse_new()
        first = asyncio.create_task(press())
        await way.refused.wait()
        second = asyncio.create_task(press())  # impatient, as by a double click
        uncertain = await asyncio.gather(first, second)
        way.last_word = b""
        way.fix()
        for _ in range(100):
            answer = await press()
            if answer[0] != 503:
                break
            await asyncio.sleep(0.2)

    assert [status for status, _ in uncertain] == [503, 409]
    assert {error.partition(";")[0] for _, error in uncertain} == {
        "It is not certain that your message arrived"
    }
    assert answer == (201, "")
    assert {message: len(rows) for message, rows in stored_leads(postgresql, url).items()} == {
        "Something else.": 1,
        "Call me.": 1,
    }
