"""Who holds a credential, and what it lets them do.

What the store says of a credential is believed until the store changes, so that a revocation
counts from the next request on and yet most requests read nothing.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from edge_api.domain.actor import Actor, Clock
from edge_api.domain.challenge import Challenge
from edge_api.domain.secrets import SecretKind, digest_of, is_well_formed
from edge_api.schema.kinds import spell_instant
from edge_api.schema.problems import Problem
from edge_api.schema.scopes import Scope
from edge_api.schema.table import Row
from edge_api.schema.tables import CREDENTIALS
from edge_api.store.plan import Condition, Read, Store, Update

GRACE: Final = timedelta(seconds=5)
"""How long a credential is honoured while the store cannot be asked about it."""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class _Known:
    """What the store said of a valid credential, and when that was last confirmed."""

    actor: Actor
    expires_at: datetime | None
    version: int
    """The version of the store that said so."""
    confirmed: datetime = _NEVER
    """Its last use while the store could be asked."""
    written: datetime = _NEVER
    """The last use that was written down."""


class Access:
    """Finds the actor behind a secret. `site_url` is the origin that refusals point to."""

    def __init__(self, store: Store, clock: Clock, site_url: str) -> None:
        self._store = store
        self._clock = clock
        self._challenge = Challenge(site_url)
        self._known: dict[str, _Known] = {}
        self._reading: dict[tuple[str, int], asyncio.Task[_Known | None]] = {}

    async def actor_for(self, secret: str, kind: SecretKind = "api_key") -> Actor:
        """Return who holds the secret, which must be of that kind.

        Raises Problem `unauthenticated`, in the same words whatever is wrong with it, and
        `unavailable` when the store could not be asked for longer than `GRACE`.
        """
        now = self._clock()
        digest = digest_of(secret)
        known = self._known.get(digest)
        if known is None and not is_well_formed(secret, kind):
            raise self._challenge.refused()
        try:
            version = self._store.version()
            if known is None or known.version != version:
                known = await self._ask(digest, version)
            is_confirmed = True
        except Problem as problem:
            if problem.code != "unavailable" or known is None or now - known.confirmed >= GRACE:
                raise
            is_confirmed = False
        if known.actor.type != kind or (known.expires_at is not None and known.expires_at <= now):
            raise self._challenge.refused()
        if is_confirmed:
            known.confirmed = now
        return known.actor

    def authorise(self, actor: Actor, scope: Scope) -> None:
        """Raise Problem `insufficient_scope` unless the actor has the scope."""
        if scope not in actor.scopes:
            raise self._challenge.insufficient(scope)

    def no_credential(self) -> Problem:
        """Return the problem of a request that needs a credential and sent none."""
        return self._challenge.missing()

    async def flush(self) -> None:
        """Write down the last use of each credential; what cannot be written now is kept."""
        due = [(known, known.confirmed) for known in self._known.values() if _is_due(known)]
        if not due:
            return
        try:
            await self._store.run(*(_last_use(known.actor, at) for known, at in due))
        except Problem:
            return
        for known, at in due:
            known.written = at

    async def _ask(self, digest: str, version: int) -> _Known:
        """Return what the store says now. Raises Problem `unauthenticated` and `unavailable`."""
        found = await self._read_once(digest, version)
        if found is None:
            self._known.pop(digest, None)
            raise self._challenge.refused()
        return found

    async def _read_once(self, digest: str, version: int) -> _Known | None:
        """Let all who ask the same of the same version share one read; one who leaves ends none."""
        key = digest, version
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.create_task(self._read(digest, version))
            reading.add_done_callback(lambda _: self._reading.pop(key))
        return await asyncio.shield(reading)

    async def _read(self, digest: str, version: int) -> _Known | None:
        """Return the credential unless it is unknown or revoked."""
        plan = Read(CREDENTIALS, where=(Condition("digest", "eq", digest),), limit=1)
        (outcome,) = await self._store.run(plan)
        if not outcome.rows or outcome.rows[0]["revoked_at"] is not None:
            return None
        known = self._known[digest] = _known(outcome.rows[0], version)
        return known


def _known(row: Row, version: int) -> _Known:
    actor = Actor(
        credential_id=row["id"],
        name=row["name"],
        type=row["type"],
        scopes=frozenset(row["scopes"].split()),
        tables=None if row["tables"] is None else frozenset(row["tables"].split()),
    )
    expiry = row["expires_at"]
    return _Known(actor, expiry and datetime.fromisoformat(expiry), version)


def _is_due(known: _Known) -> bool:
    return known.confirmed > known.written


def _last_use(actor: Actor, at: datetime) -> Update:
    where = (Condition("id", "eq", actor.credential_id),)
    return Update(CREDENTIALS, {"last_used_at": spell_instant(at)}, where)
