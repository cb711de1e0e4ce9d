"""Requests that are run once, however often they are sent: the Idempotency-Key.

This implements draft-ietf-httpapi-idempotency-key-header. The answer is stored in the transaction
of the work. Of simultaneous requests one runs: within a process by a lock, and between processes by
the unique key of the stored answer.
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
from weakref import WeakValueDictionary

from edge_api.auth.actor import Clock
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Query, Store, find_row
from edge_api.db.tables import IDEMPOTENCY_KEYS
from edge_api.db.types import format_instant

_KEY: Final = re.compile(r"[!-~]{1,255}")  # visible ASCII characters


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with a key: the digest of the key with its owner, and that of the request."""

    id: str
    request_digest: str


StoreResponse = Callable[[str], tuple[Query, ...]]
"""Returns the queries that store an answer."""
Work = Callable[[StoreResponse], Awaitable[str]]
"""Runs the request together with the queries that store its answer, and returns the answer."""


def identify_request(secret: bytes, owner: str, key: str, request: bytes) -> IdempotentRequest:
    """Return the identity of a request; `owner` is the sender of the key. Raises Problem `invalid`.

    Its id is a keyed hash, so that the store does not reveal the sender (RFC 2104).
    """
    if _KEY.fullmatch(key) is None:
        raise Problem("invalid", "Idempotency-Key: must have 1 to 255 visible ASCII characters")
    request_id = hmac.digest(secret, f"{owner}\n{key}".encode(), "sha256").hex()
    return IdempotentRequest(request_id, sha256(request).hexdigest())


class Idempotency:
    """Runs each request once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        timeout: float = 5.0,
        retention: timedelta = timedelta(hours=24),
        status: int = 201,
    ) -> None:
        """`status` is that of the stored answers (RFC 9110, section 15.3.2).

        A repeated request waits for the first one for `timeout` seconds.
        """
        self._store = store
        self._clock = clock
        self._timeout = timeout
        self._retention = retention
        self._status = status
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run_once(self, identity: IdempotentRequest, work: Work) -> tuple[str, bool]:
        """Return the answer, and whether it is a stored one.

        Raises Problem `idempotency_mismatch` for a key of another request, `in_progress` when the
        first one takes too long, and whatever `work` raises.
        """
        lock = self._locks.setdefault(identity.id, asyncio.Lock())
        try:
            async with asyncio.timeout(self._timeout):
                await lock.acquire()
        except TimeoutError:
            raise Problem("in_progress", headers={"Retry-After": "1"}) from None
        try:  # if the first one fails, the next runs
            return await self._answer(identity, work)
        finally:
            lock.release()

    async def _answer(self, identity: IdempotentRequest, work: Work) -> tuple[str, bool]:
        stored = await self._find(identity)
        if stored is not None:
            return stored, True
        try:
            return await work(partial(self._store_queries, identity)), False
        except Problem as problem:
            stored = await self._find(identity) if problem.code == "conflict" else None
            if stored is None:
                raise
            return stored, True

    async def _find(self, identity: IdempotentRequest) -> str | None:
        """Return the stored answer. Raises Problem `idempotency_mismatch` for another request's."""
        valid = Filter("expires_at", "gt", format_instant(self._clock()))
        row = await find_row(self._store, IDEMPOTENCY_KEYS, identity.id, valid)
        if row and row["request_digest"] != identity.request_digest:
            raise Problem("idempotency_mismatch")
        return row["response"] if row else None

    def _store_queries(self, identity: IdempotentRequest, response: str) -> tuple[Query, ...]:
        now = self._clock()
        row = {
            "id": identity.id,
            "request_digest": identity.request_digest,
            "status": self._status,
            "response": response,
            "created_at": format_instant(now),
            "expires_at": format_instant(now + self._retention),
        }
        expired = (Filter("expires_at", "lte", format_instant(now)),)
        return Delete(IDEMPOTENCY_KEYS, expired), Insert(IDEMPOTENCY_KEYS, [row])
