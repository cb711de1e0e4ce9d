"""Requests that are run once, however often they are sent: the Idempotency-Key.

After draft-ietf-httpapi-idempotency-key-header. The answer is stored in the transaction of the
work; a unique key decides between processes, a future within one.
"""

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Final

from edge_api.auth.actor import Clock
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Query, Read, Store
from edge_api.db.tables import IDEMPOTENCY_KEYS
from edge_api.db.types import format_instant

KEPT_FOR: Final = timedelta(hours=24)
WAIT_SECONDS: Final = 5.0
"""How long a repeated request waits for the first one."""
RETRY_SECONDS: Final = 1
"""When a request that waited in vain may come again."""
CREATED: Final = 201
"""The status of stored answers, unless another is given (RFC 9110, section 15.3.2)."""

_KEY: Final = re.compile(r"[!-~]{1,255}")  # visible ASCII characters


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request that carries a key: which one, within its scope, and what it asks for."""

    id: str
    request_digest: str


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An answer, with what had been asked for."""

    request_digest: str
    response: str


Remember = Callable[[str], tuple[Query, ...]]
"""Takes the answer and returns the queries that keep it."""
Act = Callable[[Remember], Awaitable[str]]
"""Does what was asked for, together with the queries that keep its answer, and returns that."""


def identify_request(secret: bytes, scope: str, key: str, request: bytes) -> IdempotentRequest:
    """Return the claim of a request; `scope` says whose key it is. Raises Problem `invalid`.

    Its id is a keyed hash, so that the store does not reveal the sender (RFC 2104).
    """
    if _KEY.fullmatch(key) is None:
        raise Problem("invalid", "Idempotency-Key: must have 1 to 255 visible ASCII characters")
    claim_id = hmac.digest(secret, f"{scope}\n{key}".encode(), "sha256").hex()
    return IdempotentRequest(claim_id, sha256(request).hexdigest())


class Idempotency:
    """Carries each claim out once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        patience: float = WAIT_SECONDS,
        kept_for: timedelta = KEPT_FOR,
        status: int = CREATED,
    ) -> None:
        self._store = store
        self._clock = clock
        self._patience = patience
        self._kept_for = kept_for
        self._status = status
        self._running: dict[str, asyncio.Future[StoredResponse | None]] = {}

    async def once(self, claim: IdempotentRequest, act: Act) -> tuple[str, bool]:
        """Return the answer, and whether it was given before.

        Raises Problem `idempotency_mismatch` for a key of another request, `in_progress` when the
        first one takes too long, and whatever `act` raises.
        """
        kept, replayed = await self._wait(claim), True
        if kept is None:
            kept, replayed = await self._go_first(claim, act)
        if kept.request_digest != claim.request_digest:
            raise Problem("idempotency_mismatch")
        return kept.response, replayed

    async def _wait(self, claim: IdempotentRequest) -> StoredResponse | None:
        deadline = asyncio.get_running_loop().time() + self._patience
        while running := self._running.get(claim.id):
            try:
                async with asyncio.timeout_at(deadline):
                    kept = await asyncio.shield(running)
            except TimeoutError:
                headers = {"Retry-After": str(RETRY_SECONDS)}
                raise Problem("in_progress", headers=headers) from None
            if kept is not None:
                return kept
        return None

    async def _go_first(self, claim: IdempotentRequest, act: Act) -> tuple[StoredResponse, bool]:
        """Answer while others with the same key wait; if this fails, the next of them goes."""
        done = self._running[claim.id] = asyncio.get_running_loop().create_future()
        kept = None
        try:
            kept, replayed = await self._answer(claim, act)
            return kept, replayed
        finally:
            del self._running[claim.id]
            done.set_result(kept)

    async def _answer(self, claim: IdempotentRequest, act: Act) -> tuple[StoredResponse, bool]:
        kept = await self._find(claim)
        if kept is not None:
            return kept, True
        try:
            response = await act(partial(self._remember, claim))
        except Problem as problem:
            kept = await self._find(claim) if problem.code == "conflict" else None
            if kept is None:
                raise
            return kept, True
        return StoredResponse(claim.request_digest, response), False

    async def delete_expired(self) -> None:
        """Delete answers whose time is over: they say who sent what. Raises Problem."""
        expired = self._expired()
        (outcome,) = await self._store.run(Read(IDEMPOTENCY_KEYS, ("id",), expired, limit=1))
        if outcome.rows:  # nothing is written for nothing
            await self._store.run(Delete(IDEMPOTENCY_KEYS, expired))

    async def _find(self, claim: IdempotentRequest) -> StoredResponse | None:
        now = format_instant(self._clock())
        where = (Filter("id", "eq", claim.id), Filter("expires_at", "gt", now))
        (outcome,) = await self._store.run(Read(IDEMPOTENCY_KEYS, where=where))
        kept = (StoredResponse(row["request_digest"], row["response"]) for row in outcome.rows)
        return next(kept, None)

    def _remember(self, claim: IdempotentRequest, response: str) -> tuple[Query, ...]:
        now = self._clock()
        row = {
            "id": claim.id,
            "request_digest": claim.request_digest,
            "status": self._status,
            "response": response,
            "created_at": format_instant(now),
            "expires_at": format_instant(now + self._kept_for),
        }
        return Delete(IDEMPOTENCY_KEYS, self._expired()), Insert(IDEMPOTENCY_KEYS, [row])

    def _expired(self) -> tuple[Filter, ...]:
        return (Filter("expires_at", "lte", format_instant(self._clock())),)
