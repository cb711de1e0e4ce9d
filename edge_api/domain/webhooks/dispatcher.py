"""Telling endpoints what happened, each new lead once, and what is written about that.

What is to be told stands in the store, so that it survives the process; several processes may
tell at once. An endpoint that is slow or away holds no other up.
"""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from random import SystemRandom
from typing import Final

from edge_api.domain.actor import SERVICE, Change, Clock, audit_entry
from edge_api.domain.kept import ANSWER_LEAST, KeptAnswers
from edge_api.domain.sealing import Wrapping
from edge_api.domain.webhooks.events import (
    ENABLED,
    LEAD_CREATED,
    WAITING,
    Answer,
    Messenger,
    enabled,
    find,
    lead_deliveries,
    secrets_of,
    sign,
)
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.schema.problems import Problem, is_unavailable
from edge_api.schema.table import Row
from edge_api.schema.tables import LEADS
from edge_api.store.plan import (
    AffectedBy,
    Condition,
    Delete,
    Insert,
    Order,
    Plan,
    Read,
    Store,
    Update,
    Where,
)

LEASE: Final = timedelta(seconds=60)
"""Four times as long as an attempt may take."""
AT_ONCE: Final = 8
"""How many deliveries to one endpoint are under way together."""
TIDIED_AT_ONCE: Final = 500
"""How many deliveries without an endpoint are mended in one turn."""
GONE: Final = "it answered 410 Gone"
PAUSES: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""After the first failure, the second, and so on; after one more the delivery is given up."""
PAUSE_LONGEST: Final = timedelta(hours=24)
"""A receiver that asks for a longer one is asked again after this."""
JITTER: Final = 0.2
"""The most by which a pause grows, as a part of it: what failed together is not tried together."""

_random: Final = SystemRandom()


async def claim(store: Store, endpoint_id: str, now: datetime) -> list[Row]:
    """Return deliveries that are due at an endpoint and are ours alone for the lease.

    Others may have read the same rows as due: the update meets those that nobody else has met.
    Raises Problem.
    """
    due = (WAITING, Condition("due_at", "lte", spell_instant(now)))
    where = (*due, Condition("endpoint_id", "eq", endpoint_id))
    reading = Read(WEBHOOK_DELIVERIES, ("id",), where, (Order("due_at"),), AT_ONCE)
    (found,) = await store.run(reading)
    if not found.rows:
        return []
    ids = tuple(row["id"] for row in found.rows)
    values = {"lease": secrets.token_hex(16), "due_at": spell_instant(now + LEASE)}
    (claimed,) = await store.run(
        Update(WEBHOOK_DELIVERIES, values, (*due, Condition("id", "in", ids)))
    )
    return claimed.rows


def settle(delivery: Row, answer: Answer, now: datetime) -> tuple[Plan, ...]:
    """Return what is to be written of an attempt, if the delivery is still claimed for it.

    Where it is not, nothing is written: what refuses for good meets with a conflict.
    """
    if answer.is_taken:
        return (Delete(WEBHOOK_DELIVERIES, _ours(delivery)),)
    if answer.is_refused_for_good:
        return _disable(delivery, now)
    failures = delivery["attempts"] + 1
    again = next_attempt(failures, answer.retry_after, now)
    values = {
        "attempts": failures,
        "last_answer": answer.sentence,
        "lease": None,
        "due_at": spell_instant(again or now),
        "dead_at": None if again else spell_instant(now),
    }
    return (Update(WEBHOOK_DELIVERIES, values, _ours(delivery)),)


async def drop_forgotten(store: Store, deliveries: Sequence[Row]) -> list[Row]:
    """Return the claimed deliveries that may be told; forget those of leads that are gone.

    An administrator deletes a lead alone, without what waits to be told of it. Raises Problem.
    """
    leads = {row["subject_id"] for row in deliveries if row["event"] == LEAD_CREATED}
    (found,) = await store.run(Read(LEADS, ("id",), (Condition("id", "in", tuple(leads)),)))
    gone = leads - {row["id"] for row in found.rows}
    forgotten = [row for row in deliveries if row["subject_id"] in gone]
    if forgotten:
        await store.run(*(Delete(WEBHOOK_DELIVERIES, _ours(row)) for row in forgotten))
    return [row for row in deliveries if row["subject_id"] not in gone]


async def give_back(store: Store, deliveries: Sequence[Row], now: datetime) -> None:
    """Let claimed deliveries, of which nothing was told, be due again. Raises Problem."""
    values = {"lease": None, "due_at": spell_instant(now)}
    await store.run(*(Update(WEBHOOK_DELIVERIES, values, _ours(row)) for row in deliveries))


async def tidy(store: Store, now: datetime) -> None:
    """Give up what waits for disabled endpoints, and forget what waits for removed ones.

    Such rows come of a lead that was stored in the moment in which its endpoint went.
    Raises Problem.
    """
    told = tuple(row["id"] for row in await enabled(store))
    where = (WAITING, Condition("endpoint_id", "in", told, negated=True))
    reading = Read(WEBHOOK_DELIVERIES, ("id", "endpoint_id"), where, limit=TIDIED_AT_ONCE)
    (idle,) = await store.run(reading)
    if idle.rows:  # nothing is written for nothing
        await _put_away(store, idle.rows, now)


async def _put_away(store: Store, idle: Sequence[Row], now: datetime) -> None:
    """Give up or forget those of the deliveries whose endpoint is still disabled or unknown.

    It may have been added or enabled since it was looked for: whoever has a delivery is known by
    now, unless it is gone for ever.
    """
    named = (Condition("id", "in", tuple({row["endpoint_id"] for row in idle})),)
    (found,) = await store.run(Read(WEBHOOK_ENDPOINTS, ("id", "disabled_at"), named))
    is_disabled = {row["id"]: row["disabled_at"] is not None for row in found.rows}
    stray = tuple(row["id"] for row in idle if row["endpoint_id"] not in is_disabled)
    stuck = tuple(row["id"] for row in idle if is_disabled.get(row["endpoint_id"]))
    if stray:
        await store.run(Delete(WEBHOOK_DELIVERIES, (WAITING, Condition("id", "in", stray))))
    if stuck:
        given_up = (WAITING, Condition("id", "in", stuck))
        await store.run(_give_up(given_up, spell_instant(now)))


def _disable(delivery: Row, now: datetime) -> tuple[Plan, ...]:
    """Return the plans that tell an endpoint nothing more, and give up what waits for it.

    They meet with a conflict where the delivery is ours no more, be it that another one has
    disabled the endpoint: an operator who has enabled it since must not be overruled.
    """
    present = spell_instant(now)
    endpoint_id = delivery["endpoint_id"]
    counted = {"attempts": delivery["attempts"] + 1}
    values = {"disabled_at": present, "disabled_for": GONE}
    where = (Condition("id", "eq", endpoint_id), ENABLED)
    waiting = (Condition("endpoint_id", "eq", endpoint_id), WAITING)
    entry = Change("disable", WEBHOOK_ENDPOINTS, AffectedBy(1), ("id",))
    return (
        Update(WEBHOOK_DELIVERIES, counted, _ours(delivery), at_least=1),
        Update(WEBHOOK_ENDPOINTS, values, where, at_least=1),
        _give_up(waiting, present),
        audit_entry(SERVICE, entry, now),
    )


def _give_up(where: Where, present: str) -> Update:
    values = {"dead_at": present, "lease": None, "last_answer": "the endpoint is disabled"}
    return Update(WEBHOOK_DELIVERIES, values, where)


def _ours(delivery: Row) -> Where:
    own = Condition("id", "eq", delivery["id"])
    return own, WAITING, Condition("lease", "eq", delivery["lease"])


def next_attempt(failures: int, retry_after: str, now: datetime) -> datetime | None:
    """Return when to try again after so many failures; `None`: not any more.

    `retry_after` is that header of the last answer (RFC 9110, section 10.2.3); it makes the pause
    longer, never shorter.
    """
    if failures > len(PAUSES):
        return None
    wanted = min(_read_retry_after(retry_after, now), PAUSE_LONGEST)
    pause = max(PAUSES[failures - 1], wanted)
    return now + pause * _random.uniform(1, 1 + JITTER)


def _read_retry_after(text: str, now: datetime) -> timedelta:
    """Return the pause that is asked for; none where that cannot be read."""
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:9]), PAUSE_LONGEST.total_seconds()))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError, IndexError):  # the last two in some releases
        return timedelta()
    return (until if until.tzinfo else until.replace(tzinfo=UTC)) - now


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
