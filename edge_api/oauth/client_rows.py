"""The rows of clients in one store: found, added, changed. Each change is in the audit log.

What makes a client fit to be added is not known here.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from edge_api.auth.actor import SERVICE, Actor, Change, Clock, audit_entry, new_id
from edge_api.db.oauth_tables import OAUTH_CLIENTS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    Order,
    Read,
    RowCount,
    Store,
    Update,
    Where,
)
from edge_api.db.table import Row
from edge_api.db.types import spell_instant
from edge_api.oauth.authlib_server import client_actor
from edge_api.oauth.client import Client

STRANGERS_MOST: Final = 10_000
"""Clients that nobody looked at; beyond that the oldest ones without a token make room."""
ROOM: Final = 100
"""How many make room at once."""
STRANGERS: Final = Filter("kind", "in", ("dynamic", "document"))
UNUSED: Final = (
    STRANGERS,
    Filter("revoked_at", "is", None),  # who was revoked must stay so
    Filter("last_used_at", "is", None),
)


class ClientRows:
    """The rows of one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def find(self, client_id: str) -> Row | None:
        """Return a client, revoked or not. Raises Problem."""
        where = (Filter("id", "eq", client_id),)
        (outcome,) = await self._store.run(Read(OAUTH_CLIENTS, where=where))
        return outcome.rows[0] if outcome.rows else None

    async def known(self, client_id: str) -> Row:
        """Return a client. Raises Problem `not_found`."""
        row = await self.find(client_id)
        if row is None:
            raise Problem("not_found", f"There is no client {client_id}")
        return row

    async def all(self) -> list[Row]:
        """Return every client, newest first."""
        order = (Order("created_at", descending=True), Order("id"))
        (outcome,) = await self._store.run(Read(OAUTH_CLIENTS, order=order))
        return outcome.rows

    async def add(self, given: Row, actor: Actor) -> Row:
        """Store a new client, of which `given` has the given columns, and return it whole.

        Where another request was faster with the same id, that client is returned.
        """
        now = self._clock()
        row = OAUTH_CLIENTS.new_row(given, spell_instant(now), partial(new_id, now))
        audit = audit_entry(actor, Change("register", OAUTH_CLIENTS, 1), now)
        try:
            await self._store.run(Insert(OAUTH_CLIENTS, [row]), audit)
        except Problem as problem:
            if problem.code != "conflict":
                raise
            return await self.known(row["id"])
        return row

    async def add_stranger(self, given: Row) -> Row:
        """Store a client that nobody looked at. Raises Problem `unavailable` without room."""
        await self._make_room()
        return await self.add(given, client_actor(Client({**given, "scopes": ""})))

    async def change(
        self, client_id: str, verb: str, values: Mapping[str, Any], actor: Actor
    ) -> None:
        """Change a client that is not revoked. Raises Problem `conflict` for one that is."""
        where = (Filter("id", "eq", client_id), Filter("revoked_at", "is", None))
        change = Change(verb, OAUTH_CLIENTS, RowCount(0), ("id",))
        audit = audit_entry(actor, change, self._clock())
        try:
            await self._store.run(Update(OAUTH_CLIENTS, values, where, at_least=1), audit)
        except Problem as problem:
            if problem.code != "conflict":
                raise
            raise Problem("conflict", f"The client {client_id} is revoked") from None

    async def _make_room(self) -> None:
        """Forget the oldest strangers that never got a token, where there are too many.

        An honest client gets one within minutes, so that nobody can fill all places for long.
        """
        count = Read(OAUTH_CLIENTS, ("id",), (STRANGERS,), limit=1, counted=True)
        (outcome,) = await self._store.run(count)
        if (outcome.total or 0) < STRANGERS_MOST:
            return
        oldest = Read(OAUTH_CLIENTS, ("id",), UNUSED, (Order("created_at"),), limit=ROOM)
        (outcome,) = await self._store.run(oldest)
        if not outcome.rows:
            sentence = "Too many clients made themselves known lately: try again tomorrow"
            raise Problem("unavailable", sentence, headers={"Retry-After": "3600"})
        chosen = Filter("id", "in", tuple(row["id"] for row in outcome.rows))
        await forget(self._store, (*UNUSED, chosen), self._clock())


async def forget(store: Store, where: Where, now: datetime) -> None:
    """Delete clients, and note how many. Raises Problem."""
    forgotten = Change("forget", OAUTH_CLIENTS, RowCount(0))
    await store.run(Delete(OAUTH_CLIENTS, where), audit_entry(SERVICE, forgotten, now))
