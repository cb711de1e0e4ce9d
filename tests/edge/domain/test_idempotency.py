import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from edge_api import background as background_jobs
from edge_api.auth.actor import system_clock
from edge_api.background import delete_expired
from edge_api.db.problems import Problem
from edge_api.db.query import Read, Store
from edge_api.db.tables import IDEMPOTENCY_KEYS
from edge_api.leads.service import (
    Idempotency,
    IdempotentRequest,
    StoreResponse,
    identify_request,
)
from tests.edge.conftest import EdgeMaker

pytestmark = pytest.mark.each_engine

SECRET = b"of this service"


def claim(key: str = "k", request: bytes = b"body", scope: str = "s") -> IdempotentRequest:
    """Return the claim of a request."""
    return identify_request(SECRET, scope, key, request)


class Doer:
    """Does something that can be counted, as slowly as the test wants."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.done = 0
        self.gate: asyncio.Event | None = None
        self.problem: Problem | None = None

    async def __call__(self, remember: StoreResponse) -> str:
        """Do it, and keep the answer."""
        if self.gate is not None:
            await self.gate.wait()
        if self.problem is not None:
            raise self.problem
        answer = f"answer {self.done + 1}"
        await self._store.run(*remember(answer))
        self.done += 1
        return answer


@pytest.fixture
def doer(store: Store) -> Doer:
    """Return what does the work."""
    return Doer(store)


@pytest.fixture
def idempotency(store: Store, clock: Any) -> Idempotency:
    """Return one as it is in service."""
    return Idempotency(store, clock)


async def problem_of(awaitable: Awaitable[Any]) -> Problem:
    """Return the problem that something ends with."""
    with pytest.raises(Problem) as caught:
        await awaitable
    return caught.value


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other tasks bring about."""
    for turn in range(20_000):
        if condition():
            return
        await asyncio.sleep(0 if turn < 1_000 else 0.001)  # another process may have to answer
    pytest.fail("it never happened")


async def test_the_same_request_gets_the_same_answer(idempotency: Idempotency, doer: Doer) -> None:
    """Done once; said to be a repetition from the second time on."""
    answers = [await idempotency.run_once(claim(), doer) for _ in range(3)]

    assert answers == [("answer 1", False), ("answer 1", True), ("answer 1", True)]
    assert doer.done == 1


async def test_a_key_used_for_another_request_is_refused(
    idempotency: Idempotency, doer: Doer
) -> None:
    """422, and the first answer stays."""
    await idempotency.run_once(claim(), doer)

    problem = await problem_of(idempotency.run_once(claim(request=b"other"), doer))
    assert (problem.code, problem.status) == ("idempotency_mismatch", 422)
    assert await idempotency.run_once(claim(), doer) == ("answer 1", True)


async def test_keys_and_scopes_are_kept_apart(idempotency: Idempotency, doer: Doer) -> None:
    """The same key of somebody else is another key."""
    for other in (claim(), claim(key="l"), claim(scope="t")):
        assert (await idempotency.run_once(other, doer))[1] is False

    assert doer.done == 3


async def test_a_restart_forgets_nothing(
    idempotency: Idempotency, doer: Doer, store: Store, clock: Any
) -> None:
    """The answer is in the store, not in memory."""
    await idempotency.run_once(claim(), doer)

    assert await Idempotency(store, clock).run_once(claim(), doer) == ("answer 1", True)


async def test_an_answer_is_kept_for_24_hours(
    idempotency: Idempotency, doer: Doer, clock: Any, store: Store
) -> None:
    """After that the key is new, and what has expired is gone from the store."""
    await idempotency.run_once(claim(), doer)
    await idempotency.run_once(claim(key="another"), doer)
    clock.move(hours=23, minutes=59)
    assert await idempotency.run_once(claim(), doer) == ("answer 1", True)
    clock.move(minutes=1)

    assert await idempotency.run_once(claim(), doer) == ("answer 3", False)
    (result,) = await store.run(Read(IDEMPOTENCY_KEYS))
    assert [row["id"] for row in result.rows] == [claim().id]


async def test_expired_idempotency_keys_are_deleted(
    idempotency: Idempotency, doer: Doer, clock: Any, store: Store
) -> None:
    """An answer says who sent what: it goes when its time is over, whether or not others come."""
    await idempotency.run_once(claim(), doer)
    clock.move(hours=12)
    await idempotency.run_once(claim(key="another"), doer)
    clock.move(hours=12)

    await delete_expired(store, clock)

    (result,) = await store.run(Read(IDEMPOTENCY_KEYS))
    assert [row["id"] for row in result.rows] == [claim(key="another").id]


class FailingClock:
    """Tells the time a day later, and fails the first times that it is asked."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def __call__(self) -> datetime:
        """Return the instant."""
        if self.failures > 0:
            self.failures -= 1
            raise Problem("unavailable")
        return system_clock() + timedelta(days=1, seconds=1)


async def test_a_running_edge_deletes_expired_idempotency_keys(
    make_edge: EdgeMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a request, from time to time; a time that fails is followed by the next."""
    clock, stored = FailingClock(failures=3), asyncio.Event()

    async def expire(store: Store, _clock: object) -> None:
        if stored.is_set():  # only this job's clock goes forward
            await delete_expired(store, clock)

    monkeypatch.setattr(background_jobs, "DELETE_EXPIRED_SECONDS", 0.01)
    monkeypatch.setattr(background_jobs, "delete_expired", expire)
    async with make_edge() as edge:
        store = edge.service.store
        idempotency = Idempotency(store, system_clock)
        await idempotency.run_once(claim(), Doer(store))
        stored.set()
        for _ in range(1000):
            (result,) = await store.run(Read(IDEMPOTENCY_KEYS))
            if not result.rows:
                break
            await asyncio.sleep(0.01)

    assert (result.rows, clock.failures) == ([], 0)


async def test_fifty_concurrent_requests_run_once(idempotency: Idempotency, doer: Doer) -> None:
    """Forty-nine wait for the first and get its answer."""
    answers = await asyncio.gather(*(idempotency.run_once(claim(), doer) for _ in range(50)))

    assert sorted(answers) == [("answer 1", False)] + [("answer 1", True)] * 49
    assert doer.done == 1


async def test_a_waiting_request_with_another_body_is_refused(
    idempotency: Idempotency, doer: Doer
) -> None:
    """It learns so as soon as the first is done."""
    first, second = await asyncio.gather(
        idempotency.run_once(claim(), doer),
        idempotency.run_once(claim(request=b"other"), doer),
        return_exceptions=True,
    )

    assert first == ("answer 1", False)
    assert isinstance(second, Problem)
    assert second.code == "idempotency_mismatch"


async def test_waiting_for_the_first_request_times_out(
    store: Store, clock: Any, doer: Doer
) -> None:
    """409, with the time after which to come again; the first one is not disturbed."""
    idempotency = Idempotency(store, clock, timeout=0.1)
    doer.gate = asyncio.Event()
    first = asyncio.create_task(idempotency.run_once(claim(), doer))
    await asyncio.sleep(0)

    problem = await problem_of(idempotency.run_once(claim(), doer))
    assert (problem.code, problem.status) == ("in_progress", 409)
    assert dict(problem.headers) == {"Retry-After": "1"}
    doer.gate.set()
    assert await first == ("answer 1", False)


async def test_when_the_first_fails_the_next_takes_its_place(
    idempotency: Idempotency, doer: Doer
) -> None:
    """A failure is no answer: it is not kept, and whoever waited tries for itself."""
    doer.gate, doer.problem = asyncio.Event(), Problem("unavailable")
    first = asyncio.create_task(idempotency.run_once(claim(), doer))
    await asyncio.sleep(0)
    second = asyncio.create_task(idempotency.run_once(claim(), doer))
    await asyncio.sleep(0)
    doer.gate.set()

    assert (await problem_of(first)).code == "unavailable"
    doer.problem = None
    assert await second == ("answer 1", False)


async def test_when_the_first_is_cancelled_the_next_takes_its_place(
    idempotency: Idempotency, doer: Doer
) -> None:
    """Its client hung up before anything was done."""
    doer.gate = asyncio.Event()
    first = asyncio.create_task(idempotency.run_once(claim(), doer))
    await asyncio.sleep(0)
    second = asyncio.create_task(idempotency.run_once(claim(), doer))
    await asyncio.sleep(0)
    first.cancel()
    doer.gate.set()

    assert await second == ("answer 1", False)
    assert doer.done == 1


async def test_between_processes_the_unique_key_decides(
    store: Store, doer: Doer, clock: Any
) -> None:
    """Two that know nothing of one another: one is done, the other gets its answer."""
    doer.gate = asyncio.Event()
    here, there = Idempotency(store, clock), Idempotency(store, clock)
    tasks = [asyncio.create_task(side.run_once(claim(), doer)) for side in (here, there)]
    await until(lambda: len(doer.gate._waiters) == 2)  # type: ignore[union-attr]  # noqa: SLF001  both have looked
    doer.gate.set()

    answers = await asyncio.gather(*tasks)
    assert sorted(answers) == [("answer 1", False), ("answer 1", True)]
    assert doer.done == 1


async def test_another_conflict_is_not_taken_for_a_repetition(
    idempotency: Idempotency, doer: Doer
) -> None:
    """It reaches whoever asked."""
    doer.problem = Problem("conflict", "something else is there")

    assert (
        await problem_of(idempotency.run_once(claim(), doer))
    ).message == "something else is there"


@pytest.mark.parametrize("key", ["!", "~", "x" * 255, '"8e03978e-40d5-43dd-bc93-6894a57f9324"'])
def test_a_key_is_1_to_255_visible_characters(key: str) -> None:
    """Its claim shows neither key nor scope."""
    made = claim(key=key)

    assert (len(made.id), len(made.request_digest)) == (64, 64)
    assert identify_request(b"of another service", "s", key, b"body").id != made.id


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "\u00e9", "a\x7f", "a\n", "\udcff"])
def test_an_invalid_idempotency_key_is_refused(key: str) -> None:
    """The header is named."""
    with pytest.raises(Problem) as caught:
        claim(key=key)
    assert (caught.value.code, caught.value.message) == (
        "invalid",
        "Idempotency-Key: must have 1 to 255 visible ASCII characters",
    )
