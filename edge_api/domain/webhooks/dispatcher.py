"""Telling endpoints what happened: each new lead, once for each endpoint, until it has arrived.

What is to be told stands in the store, so that it survives the process; several processes may
tell at once. An endpoint that is slow or away holds no other up.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.kept import ANSWER_LEAST, KeptAnswers
from edge_api.domain.sealing import Wrapping
from edge_api.domain.webhooks.attempts import claim, drop_forgotten, give_back, settle, tidy
from edge_api.domain.webhooks.events import Answer, Messenger, lead_deliveries
from edge_api.domain.webhooks.signature import sign
from edge_api.domain.webhooks.standing import enabled, find, secrets_of
from edge_api.schema.outbox_tables import WEBHOOK_DELIVERIES
from edge_api.schema.problems import Problem, is_unavailable
from edge_api.schema.table import Row
from edge_api.store.plan import Insert, Plan, Store

REST_SECONDS: Final = 5.0
"""How often it is looked whether anything is due, when nobody says so."""
ENDING_SECONDS: Final = 8.0
"""How long the attempts under way may take when the service ends."""
FAILED: Final = Answer(None, "the attempt failed: see the log of the service")
"""Stands for an attempt that raised what nobody foresaw."""

_log = logging.getLogger(__name__)


class Dispatcher:
    """Tells the endpoints of one store; `wrapping` is that of their secrets."""

    patience: float = ENDING_SECONDS
    """Seconds for the attempts under way when it is told to end."""

    def __init__(
        self, store: Store, clock: Clock, wrapping: Wrapping, messenger: Messenger
    ) -> None:
        self._store = store
        self._clock = clock
        self._wrapping = wrapping
        self._messenger = messenger
        self._enabled = KeptAnswers[list[Row]](store, lambda _: ANSWER_LEAST)
        """The endpoints that new leads are for: looked at with each of them."""
        self._awake = asyncio.Event()
        self._is_ending = False
        self._telling: dict[str, asyncio.Task[None]] = {}
        """Who tells an endpoint something now, by its id."""

    async def plans(self, lead: Row) -> tuple[Plan, ...]:
        """Return what keeps a new lead until every endpoint has heard of it. Raises Problem."""
        if lead["status"] == "spam":
            return ()
        ids = [row["id"] for row in await self._enabled.get(None, partial(enabled, self._store))]
        if not ids:
            return ()
        return (Insert(WEBHOOK_DELIVERIES, lead_deliveries(lead, ids, self._clock())),)

    def wake(self) -> None:
        """Look at once whether anything is due."""
        self._awake.set()

    async def run(self) -> None:
        """Tell what is due, now and whenever more comes, until cancelled.

        Attempts under way are finished first: an event that was cut off would be told twice.
        """
        self._is_ending = False
        try:
            while True:
                self._awake.clear()
                try:
                    await self._begin()
                except Problem as problem:
                    if not is_unavailable(problem):  # the store logs itself that it is away
                        _log.warning("webhooks wait: %s", problem.sentence)
                except Exception:  # noqa: BLE001  the next turn may succeed
                    _log.exception("webhooks: nothing can be looked up; it is tried again")
                with suppress(TimeoutError):
                    async with asyncio.timeout(REST_SECONDS):
                        await self._awake.wait()
        finally:
            await self._end()

    async def turn(self) -> None:
        """Tell what is due now; return when all of it has been tried. Raises Problem."""
        await asyncio.gather(*await self._begin())

    async def _begin(self) -> list[asyncio.Task[None]]:
        """Begin to tell each endpoint that is not being told already; return who does."""
        await tidy(self._store, self._clock())
        ids = [row["id"] for row in await enabled(self._store)]
        return [self._begin_with(each) for each in ids if each not in self._telling]

    def _begin_with(self, endpoint_id: str) -> asyncio.Task[None]:
        self._telling[endpoint_id] = asyncio.create_task(self._drain(endpoint_id))
        return self._telling[endpoint_id]

    async def _end(self) -> None:
        """Let what is under way be told and written; what is late is due after its lease."""
        self._is_ending = True
        under_way = set(self._telling.values())
        if not under_way:
            return
        try:
            await asyncio.wait(under_way, timeout=self.patience)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.wait(under_way, timeout=1)

    async def _drain(self, endpoint_id: str) -> None:
        """Tell an endpoint until nothing is due there, or nothing is to be told to it."""
        try:
            while not self._is_ending and await self._tell_batch(endpoint_id):
                pass
        except Problem as problem:  # what was claimed is due again after its lease
            if not is_unavailable(problem):
                _log.warning("webhooks: %s waits: %s", endpoint_id, problem.sentence)
        except Exception:  # noqa: BLE001  as above
            _log.exception("webhooks: telling %s was cut short; it goes on", endpoint_id)
        finally:
            self._telling.pop(endpoint_id, None)

    async def _tell_batch(self, endpoint_id: str) -> bool:
        """Tell an endpoint what can be claimed for it; tell whether there may be more."""
        claimed = await claim(self._store, endpoint_id, self._clock())
        rows = await drop_forgotten(self._store, claimed) if claimed else []
        endpoint = await find(self._store, endpoint_id)  # which may have changed
        if endpoint is None or endpoint["disabled_at"]:
            return False
        if self._is_ending:
            await give_back(self._store, rows, self._clock())
            return False
        await asyncio.gather(*(self._attempt(endpoint, row) for row in rows))
        return bool(claimed)

    async def _attempt(self, endpoint: Row, delivery: Row) -> None:
        """Tell one event once, and write down what came of it; nothing is raised."""
        what = delivery["id"], endpoint["id"], delivery["attempts"] + 1
        try:
            answer = await self._tell(endpoint, delivery)
            if not answer.is_taken:
                _log.warning("webhook %s to endpoint %s, attempt %d: %s", *what, answer.sentence)
            plans = settle(delivery, answer, self._clock())
        except Exception:  # noqa: BLE001  whatever it was, it counts as a failure
            _log.exception("webhook %s to endpoint %s, attempt %d", *what)
            plans = settle(delivery, FAILED, self._clock())
        await self._write(plans, what)

    async def _write(self, plans: tuple[Plan, ...], what: tuple[str, str, int]) -> None:
        """Write down what came of an attempt; nothing is raised."""
        try:
            await self._store.run(*plans)
        except Problem as problem:
            # A conflict: somebody else has it by now. A store that is away logs that itself.
            if problem.code not in ("conflict", "unavailable"):
                _log.warning("webhook %s to endpoint %s, attempt %d: %s", *what, problem.sentence)
        except Exception:  # noqa: BLE001  one delivery must not hold up the others
            _log.exception("webhook %s to endpoint %s, attempt %d", *what)

    async def _tell(self, endpoint: Row, delivery: Row) -> Answer:
        now, body = self._clock(), delivery["body"].encode()
        try:
            given = secrets_of(endpoint, self._wrapping, now)
        except Problem as problem:
            return Answer(None, problem.sentence)
        return await self._messenger.post(
            endpoint["url"], body, sign(given, delivery["id"], now, body)
        )
