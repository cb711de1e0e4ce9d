"""Clients that send leads without a pause, each with a key of its own, until it is acknowledged."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout

LEADS: Final = "/api/public/v1/leads"
LEAD: Final = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x"}
LIMITS: Final = ("RATE_LEADS", "RATE_LEADS_ATTEMPTS", "RATE_AUTHENTICATED", "RATE_FAILED_AUTH")
PATIENCE_SECONDS: Final = 15.0
"""Seconds that a client waits for an answer before it sends the lead again, to another edge."""
PAUSE_SECONDS: Final = 0.02
"""After a failure, before the same lead is sent again."""


@dataclass
class Outcome:
    """The outcome of all requests."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    """The id of each lead that was acknowledged, by its idempotency key."""
    answers: Counter[int] = field(default_factory=Counter)
    """The number of answers of each status."""
    refused: int = 0
    """Connections that nobody took."""
    cut: int = 0
    """Requests whose connection ended before they were answered."""
    silent: int = 0
    """Requests that were not answered in time."""


class Writers:
    """So many clients of edges, each known by its origin; they change after a failure.

    Connections are kept, as browsers and proxies do, and every third lead has one of its own.
    """

    def __init__(
        self, origins: Sequence[str], number: int = 8, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.outcome = Outcome()
        self._patience = ClientTimeout(total=patience)
        self._origins = origins
        self._number = number
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    async def __aenter__(self) -> Self:
        self._session = ClientSession(timeout=self._patience)
        self._tasks = [asyncio.create_task(self._write(number)) for number in range(self._number)]
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._stopping = True
        for task in self._tasks:
            if error:
                task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=bool(error))
        await self._session.close()
        assert error or set(results) == {None}

    async def acknowledge_more(self, number: int) -> None:
        """Return when so many more leads were acknowledged; a minute is more than it takes."""
        enough = len(self.outcome.acknowledged) + number
        for _ in range(1200):
            if len(self.outcome.acknowledged) >= enough:
                return
            await asyncio.sleep(0.05)
        answers = dict(self.outcome.answers)
        raise AssertionError(f"{len(self.outcome.acknowledged)} of {enough}; {answers}")

    async def _write(self, first: int) -> None:
        """Send one lead after the other; each until it is acknowledged, the last one too."""
        edges = count(first)
        for lead in count():
            if self._stopping:
                return
            key, closes = str(uuid4()), lead % 3 == 0
            for number in edges:
                if await self._is_acknowledged(self._origin(number), key, closes=closes):
                    break
                await asyncio.sleep(PAUSE_SECONDS)

    def _origin(self, number: int) -> str:
        return self._origins[number % len(self._origins)]

    async def _is_acknowledged(self, origin: str, key: str, *, closes: bool) -> bool:
        headers = {"Idempotency-Key": key, **({"Connection": "close"} if closes else {})}
        lead = {**LEAD, "message": key}
        try:
            async with self._session.post(f"{origin}{LEADS}", json=lead, headers=headers) as answer:
                body = await answer.json()
        except ClientConnectorError:
            self.outcome.refused += 1
            return False
        except ClientError:
            self.outcome.cut += 1
            return False
        except TimeoutError:
            self.outcome.silent += 1
            return False
        self.outcome.answers[answer.status] += 1
        if answer.status == 201:
            self.outcome.acknowledged[key] = body["id"]
        return answer.status == 201
