"""The addresses that events are told to, as their operator changes them; each change is audited.

A secret is returned once, and lies in the store encrypted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from edge_api.domain.actor import OPERATOR, Change, Clock, audit_entry, new_id
from edge_api.domain.sealing import Wrapping
from edge_api.domain.webhooks.events import (
    GIVEN_UP,
    TEST,
    WAITING,
    Answer,
    Messenger,
    count,
    enabled,
    find,
    new_secret,
    secrets_of,
    sign,
    spell_event,
)
from edge_api.schema.kinds import parse_uuid, spell_instant
from edge_api.schema.outbox_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row
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

OVERLAP: Final = timedelta(hours=24)
"""How long a secret that was replaced signs beside its successor, unless its operator says."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """An endpoint with its secret, to be shown once."""

    row: Row
    secret: str


@dataclass(frozen=True, slots=True)
class Standing:
    """An endpoint, and what has not arrived there."""

    row: Row
    waiting: int
    given_up: int


class Endpoints:
    """The endpoints of one store; `wrapping` is for their secrets, `messenger` makes a sender."""

    def __init__(
        self, store: Store, clock: Clock, wrapping: Wrapping, messenger: Callable[[], Messenger]
    ) -> None:
        self._store = store
        self._clock = clock
        self._wrapping = wrapping
        self._make_messenger = messenger

    async def add(self, url: str) -> Keyed:
        """Store a new endpoint. Raises Problem `invalid`, and `conflict` for one that is known."""
        await self._make_messenger().check(url)
        secret, now = new_secret(), self._clock()
        given = {"url": url, "secret": self._wrapping.wrap(secret.encode())}
        row = WEBHOOK_ENDPOINTS.new_row(given, spell_instant(now), partial(new_id, now))
        try:
            await self._run("add", Insert(WEBHOOK_ENDPOINTS, [row]))
        except Problem as problem:
            if problem.code != "conflict":
                raise
            raise Problem("conflict", f"There is an endpoint for {url} already") from None
        return Keyed(row, secret)

    async def all(self) -> list[Standing]:
        """Return every endpoint, oldest first."""
        (outcome,) = await self._store.run(
            Read(WEBHOOK_ENDPOINTS, order=(Order("created_at"), Order("id")))
        )
        return [
            Standing(row, await self._count(row, WAITING), await self._count(row, GIVEN_UP))
            for row in outcome.rows
        ]

    async def remove(self, endpoint_id: str) -> None:
        """Delete an endpoint with all that was to be told to it. Raises Problem `not_found`."""
        row = await self._find(endpoint_id)
        waiting = Delete(WEBHOOK_DELIVERIES, (Condition("endpoint_id", "eq", row["id"]),))
        await self._run("remove", Delete(WEBHOOK_ENDPOINTS, _is(row["id"])), waiting)

    async def enable(self, endpoint_id: str) -> None:
        """Tell an endpoint of what happens from now on. Raises Problem `not_found`."""
        row = await self._find(endpoint_id)
        values = {"disabled_at": None, "disabled_for": None}
        await self._run("enable", Update(WEBHOOK_ENDPOINTS, values, _is(row["id"])))

    async def rotate(self, endpoint_id: str, overlap: timedelta = OVERLAP) -> Keyed:
        """Give an endpoint a new secret; the present one signs as well until `overlap` is over.

        One that was replaced before signs no more. Raises Problem `not_found`.
        """
        row, secret = await self._find(endpoint_id), new_secret()
        values = {
            "secret": self._wrapping.wrap(secret.encode()),
            "former_secret": row["secret"] if overlap else None,
            "former_until": spell_instant(self._clock() + overlap) if overlap else None,
        }
        untouched = Condition("secret", "eq", row["secret"])
        update = Update(WEBHOOK_ENDPOINTS, values, (*_is(row["id"]), untouched), at_least=1)
        await self._run("rotate", update)
        return Keyed({**row, **values}, secret)

    async def retry(self, endpoint_id: str | None = None) -> int:
        """Queue again what was given up, of one endpoint or of all; return how many.

        Raises Problem `not_found`, and `conflict` where the endpoint is disabled.
        """
        rows = [await self._find(endpoint_id)] if endpoint_id else await enabled(self._store)
        if endpoint_id and rows[0]["disabled_at"]:
            raise Problem("conflict", f"The endpoint {endpoint_id} is disabled: enable it first")
        due = spell_instant(self._clock())
        values = {"dead_at": None, "due_at": due, "attempts": 0, "lease": None}
        ids = tuple(row["id"] for row in rows)
        where = (Condition("endpoint_id", "in", ids), GIVEN_UP)
        return await self._run("retry", Update(WEBHOOK_DELIVERIES, values, where))

    async def discard(self, endpoint_id: str) -> int:
        """Delete what was given up of an endpoint; return how many. Raises Problem `not_found`."""
        row = await self._find(endpoint_id)
        where = (Condition("endpoint_id", "eq", row["id"]), GIVEN_UP)
        return await self._run("discard", Delete(WEBHOOK_DELIVERIES, where))

    async def test(self, endpoint_id: str) -> Answer:
        """Tell an endpoint, disabled or not, that it is tried. Raises Problem `not_found`."""
        row, now = await self._find(endpoint_id), self._clock()
        body = spell_event(TEST, spell_instant(now), {}).encode()
        headers = sign(secrets_of(row, self._wrapping, now), new_id(now), now, body)
        return await self._make_messenger().post(row["url"], body, headers)

    async def _run(self, verb: str, change: Plan, *more: Plan) -> int:
        """Carry out a change with its entry in the audit log; return how many rows it met."""
        assert not isinstance(change, Read)  # noqa: S101  what only looks is not audited
        columns = () if isinstance(change, Insert) else _named(change.where)
        entry = Change(verb, change.table, AffectedBy(0), columns)
        changed, *_ = await self._store.run(
            change, *more, audit_entry(OPERATOR, entry, self._clock())
        )
        return len(changed.rows)

    async def _count(self, endpoint: Row, state: Condition) -> int:
        where = (Condition("endpoint_id", "eq", endpoint["id"]), state)
        return await count(self._store, WEBHOOK_DELIVERIES, where)

    async def _find(self, endpoint_id: str) -> Row:
        missing = Problem("not_found", f"There is no webhook endpoint {endpoint_id}")
        try:
            key = parse_uuid(endpoint_id)
        except ValueError:
            raise missing from None
        row = await find(self._store, key)
        if row is None:
            raise missing
        return row


def _is(endpoint_id: str) -> Where:
    return (Condition("id", "eq", endpoint_id),)


def _named(where: Where) -> tuple[str, ...]:
    return tuple(condition.column for condition in where)
