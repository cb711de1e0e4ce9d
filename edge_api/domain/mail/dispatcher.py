"""The dispatcher: claims what is due in batches and has it delivered, for as long as it runs.

Several may run at once, in one process or in many: what one has claimed the others leave alone.
"""

import asyncio
import logging
from collections import deque
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.mail.claims import Claims
from edge_api.domain.mail.compose import Transport
from edge_api.domain.mail.delivery import Delivery, Line
from edge_api.domain.mail.entry import READ_STATE, Entry, SendState, state_of
from edge_api.schema.problems import Problem, is_unavailable
from edge_api.store.plan import Store

TICK_SECONDS: Final = 5.0
"""How often the outbox is looked at though nobody said that there is something."""
ENDING_SECONDS: Final = 8.0
"""How long the message under way may take when the service ends."""

_log = logging.getLogger(__name__)


class Dispatcher:
    """Sends from one store through one relay."""

    beat: datetime | None = None
    """When it last did anything; `None` while it does not run."""
    patience: float = ENDING_SECONDS
    """Seconds for the message under way when it is told to end."""

    def __init__(
        self, store: Store, clock: Clock, transport: Transport, delivery: Delivery
    ) -> None:
        self._store = store
        self._clock = clock
        self._transport = transport
        self._delivery = delivery
        self._claims = Claims(store, clock)
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()

    def wake(self) -> None:
        """Have the outbox looked at now."""
        self._woken.set()

    async def run(self) -> None:
        """Dispatch until cancelled; the message under way is finished first."""
        try:
            while True:
                self._woken.clear()
                if not await self._take_turn():
                    await _await_event(self._woken, TICK_SECONDS)
        finally:
            self.beat = None

    async def tick(self) -> bool:
        """Send one batch of what is due; tell whether there may be more of it.

        Raises Problem `unavailable`.
        """
        now = self._clock()
        (found,) = await self._store.run(READ_STATE)
        state = state_of(found.rows, now)
        if state.is_paused(now):
            return False
        batch = await self._claims.take(state.batch_size)
        return await self._send(batch.entries, state) and not batch.is_all

    async def _take_turn(self) -> bool:
        turn = asyncio.create_task(self._turn())
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            await self._end(turn)
            raise

    async def _turn(self) -> bool:
        self.beat = self._clock()
        try:
            return await self.tick()
        except Problem as problem:
            if not is_unavailable(problem):  # the store logs itself that it is away
                _log.warning("mail waits: %s", problem.sentence)
        except Exception as error:  # noqa: BLE001  the next turn may succeed
            # Neither words nor trace: an address may stand in them.
            _log.error("mail waits: %s", type(error).__name__)
        return False

    async def _send(self, entries: list[Entry], state: SendState) -> bool:
        """Deliver one after the other; tell whether all of them had their turn."""
        waiting = deque(entries)
        try:
            async with AsyncExitStack() as stack:
                line = Line(self._transport, stack)
                while waiting and not self._ending.is_set():
                    if not await self._delivery.deliver(waiting.popleft(), state, line):
                        return False
                    self.beat = self._clock()
                    if waiting:
                        await _await_event(self._ending, state.send_delay)
        finally:
            with suppress(Problem):  # the end of the lease does the same
                await self._claims.give_back(waiting)
        return not self._ending.is_set()

    async def _end(self, turn: asyncio.Task[bool]) -> None:
        self._ending.set()
        _, late = await asyncio.wait({turn}, timeout=self.patience)
        if late:
            turn.cancel()
            await asyncio.wait({turn}, timeout=1)


async def _await_event(event: asyncio.Event, seconds: float) -> None:
    """Return when the event is set, or after so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
