"""Telling endpoints what happened: each new lead, once for each endpoint, until it has arrived.

What is to be told stands in the store, so that it survives the process; several processes may
tell at once. An endpoint that is slow or away holds no other up.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.sealing import Wrapping
from edge_api.domain.webhooks.attempts import claim, settle, tidy
from edge_api.domain.webhooks.events import lead_deliveries
from edge_api.domain.webhooks.messenger import Answer, Messenger
from edge_api.domain.webhooks.signature import sign
from edge_api.domain.webhooks.standing import enabled, find, secrets_of
from edge_api.schema.outbox_tables import WEBHOOK_DELIVERIES
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
from edge_api.store.plan import Insert, Plan, Store

REST_SECONDS: Final = 5.0
"""How often it is looked whether anything is due, when nobody says so."""

_log = logging.getLogger(__name__)


class Dispatcher:
    """Tells the endpoints of one store; `wrapping` is that of their secrets."""

    def __init__(
        self, store: Store, clock: Clock, wrapping: Wrapping, messenger: Messenger
    ) -> None:
        self._store = store
        self._clock = clock
        self._wrapping = wrapping
        self._messenger = messenger
        self._awake = asyncio.Event()
        self._busy: set[str] = set()
        """The endpoints that are being told something now."""

    async def plans(self, lead: Row) -> tuple[Plan, ...]:
        """Return what keeps a new lead until every endpoint has heard of it. Raises Problem."""
        if lead["status"] == "spam":
            return ()
        ids = [row["id"] for row in await enabled(self._store)]
        rows = lead_deliveries(lead, ids, self._clock())
        return (Insert(WEBHOOK_DELIVERIES, rows),) if rows else ()

    def wake(self) -> None:
        """Look at once whether anything is due."""
        self._awake.set()

    async def run(self) -> None:
        """Tell what is due, now and whenever more comes, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._awake.clear()
                try:
                    await self._begin(group)
                except Exception:  # noqa: BLE001  the next turn may succeed
                    _log.exception("webhooks: the store cannot be looked at; it is tried again")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._awake.wait(), REST_SECONDS)

    async def turn(self) -> None:
        """Tell what is due now; return when all of it has been tried. Raises Problem."""
        async with asyncio.TaskGroup() as group:
            await self._begin(group)

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        """Begin to tell each endpoint that is not being told already."""
        await tidy(self._store, self._clock())
        for endpoint in await enabled(self._store):
            if endpoint["id"] not in self._busy:
                self._busy.add(endpoint["id"])
                group.create_task(self._drain(endpoint["id"]))

    async def _drain(self, endpoint_id: str) -> None:
        """Tell an endpoint until nothing is due there, or nothing is to be told to it."""
        try:
            while rows := await claim(self._store, endpoint_id, self._clock()):
                endpoint = await find(self._store, endpoint_id)  # which may have changed
                if endpoint is None:
                    return
                await asyncio.gather(*(self._attempt(endpoint, row) for row in rows))
        except Exception:  # noqa: BLE001  what was claimed is due again after its lease
            _log.exception("webhooks: telling %s was cut short; it goes on", endpoint_id)
        finally:
            self._busy.discard(endpoint_id)

    async def _attempt(self, endpoint: Row, delivery: Row) -> None:
        """Tell one event once, and write down what came of it."""
        answer = await self._tell(endpoint, delivery)
        what = delivery["id"], endpoint["id"], delivery["attempts"] + 1, answer.sentence
        if not answer.is_taken:
            _log.warning("webhook %s to endpoint %s, attempt %d: %s", *what)
        try:
            await self._store.run(*settle(delivery, answer, self._clock()))
        except Problem as problem:
            _log.warning("webhook %s to endpoint %s, attempt %d: %s", *what[:3], problem.sentence)
        except Exception:  # noqa: BLE001  one delivery must not hold up the others
            _log.exception("webhook %s to endpoint %s, attempt %d", *what[:3])

    async def _tell(self, endpoint: Row, delivery: Row) -> Answer:
        now, body = self._clock(), delivery["body"].encode()
        try:
            given = secrets_of(endpoint, self._wrapping, now)
        except Problem as problem:
            return Answer(None, problem.sentence)
        return await self._messenger.post(
            endpoint["url"], body, sign(given, delivery["id"], now, body)
        )
