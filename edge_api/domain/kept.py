"""What was read from the store and is believed until the store changes.

All who ask meanwhile share one read, so that a crowd costs the store no more than one does.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final, Generic, TypeVar

from edge_api.store.plan import Store

T = TypeVar("T")

ANSWERS_MOST: Final = 4 * 1024 * 1024
"""Bytes of answers that are kept at a time."""
ANSWER_LEAST: Final = 16 * 1024
"""Bytes that each counts for at least, with what holds it."""


class KeptAnswers(Generic[T]):
    """Answers by their questions, of which `weigh` gives the bytes; the oldest make room."""

    def __init__(self, store: Store, weigh: Callable[[T], int], most: int = ANSWERS_MOST) -> None:
        self._store = store
        self._weigh = weigh
        self._most = most
        self._version: int | None = None
        self._answers: dict[Hashable, asyncio.Future[T]] = {}
        self._waiting: Counter[asyncio.Future[T]] = Counter()
        self._weights: dict[Hashable, int] = {}

    async def get(self, question: Hashable, read: Callable[[], Awaitable[T]], length: int = 0) -> T:
        """Return the answer: what `read` gives, unless the store is as it was when it was given.

        `length` is how many bytes the question itself takes, where it may be long. The read
        is cancelled when its last waiting caller is cancelled. Raises what `read` raises, and
        Problem as `Store.version` does.
        """
        version = self._store.version()  # before the rows, so that no change is missed
        if version != self._version:
            self._version, self._answers, self._weights = version, {}, {}
        answer = self._answers.get(question)
        if answer is None:
            answer = self._answers[question] = asyncio.ensure_future(read())
            answer.add_done_callback(partial(self._settle, question, length))
        self._waiting[answer] += 1
        try:
            return await asyncio.shield(answer)
        finally:
            self._leave(question, answer)

    def _leave(self, question: Hashable, answer: "asyncio.Future[T]") -> None:
        """Count one less who waits; end a read for nobody, so that who asks next begins anew."""
        self._waiting[answer] -= 1
        if self._waiting[answer]:
            return
        del self._waiting[answer]
        if not answer.done():
            answer.cancel()
            if self._answers.get(question) is answer:
                del self._answers[question]

    def _settle(self, question: Hashable, length: int, answer: "asyncio.Future[T]") -> None:
        """Keep what was read, as far as there is room; forget a failure."""
        has_failed = answer.cancelled() or answer.exception() is not None
        if self._answers.get(question) is not answer:
            return  # the store has changed meanwhile
        if has_failed:
            del self._answers[question]
            return
        weight = self._weigh(answer.result()) + length
        if weight > self._most:
            del self._answers[question]
            return
        self._weights[question] = max(weight, ANSWER_LEAST)
        while sum(self._weights.values()) > self._most:
            oldest = next(iter(self._weights))
            del self._weights[oldest], self._answers[oldest]


class Kept(Generic[T]):
    """The answer to the one question that `read` answers."""

    def __init__(self, store: Store, read: Callable[[], Awaitable[T]]) -> None:
        self._answers = KeptAnswers[T](store, lambda _: ANSWER_LEAST)
        self._read = read

    async def get(self) -> T:
        """Return the answer. Raises as `KeptAnswers.get` does."""
        return await self._answers.get(None, self._read)
