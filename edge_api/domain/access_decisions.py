"""What whoever runs the service does with requests for access: look at them, approve, deny."""

from edge_api.domain.access_requests import alive, credential_types, pending
from edge_api.domain.actor import OPERATOR, Clock
from edge_api.domain.audit import Change, audit_entry
from edge_api.domain.keys import KeyOrder, make_credential
from edge_api.domain.mail.outbox import Outbox
from edge_api.schema.kinds import parse_uuid, spell_instant
from edge_api.schema.oauth_tables import ACCESS_REQUESTS
from edge_api.schema.problems import Problem
from edge_api.schema.scopes import UNVETTED_SCOPES
from edge_api.schema.table import Row
from edge_api.store.plan import AffectedBy, Condition, Order, Read, Store, Update


class AccessDecisions:
    """The requests in one store, before somebody who decides; `outbox` tells those who asked."""

    def __init__(self, store: Store, clock: Clock, outbox: Outbox | None = None) -> None:
        self._store = store
        self._clock = clock
        self._outbox = outbox

    async def all(self) -> list[Row]:
        """Return every request that is not over, the newest first."""
        order = (Order("created_at", descending=True), Order("id", descending=True))
        where = alive(spell_instant(self._clock()))
        (outcome,) = await self._store.run(Read(ACCESS_REQUESTS, where=where, order=order))
        return outcome.rows

    async def count_pending(self) -> int:
        """Return how many wait for a decision."""
        where = pending(spell_instant(self._clock()))
        plan = Read(ACCESS_REQUESTS, ("id",), where, limit=1, counted=True)
        (outcome,) = await self._store.run(plan)
        return outcome.total or 0

    async def approve(self, request_id: str, scopes: tuple[str, ...] = ()) -> Row:
        """Let the holder of the claim token fetch the credential; return the request as it is now.

        Without `scopes` it gets those that it asked for, as far as they are in `UNVETTED_SCOPES`.
        Raises Problem `not_found`, `invalid` for scopes that cannot be, `conflict` for a request
        that is decided already.
        """
        row = await self._find(request_id)
        given = scopes or tuple(name for name in row["scopes"].split() if name in UNVETTED_SCOPES)
        if not given:
            raise Problem("invalid", f"scopes: name those to give; it asks for {row['scopes']}")
        for kind in credential_types(row):  # are they sound?
            make_credential(KeyOrder(row["name"], kind, given), self._clock())
        return await self._decide(row, "approve", {"status": "approved", "scopes": " ".join(given)})

    async def deny(self, request_id: str) -> Row:
        """Refuse a request, also an approved one that was not claimed yet; return it as it is now.

        Raises Problem `not_found`, and `conflict` for one that is denied or claimed already.
        """
        row = await self._find(request_id)
        return await self._decide(row, "deny", {"status": "denied"})

    async def _decide(self, row: Row, verb: str, values: dict[str, str]) -> Row:
        now = self._clock()
        open_states = ("pending",) if verb == "approve" else ("pending", "approved")
        values = {**values, "decided_at": spell_instant(now)}
        where = (Condition("id", "eq", row["id"]), Condition("status", "in", open_states))
        update = Update(ACCESS_REQUESTS, values, where, at_least=1)
        change = Change(verb, ACCESS_REQUESTS, AffectedBy(0), ("id",))
        try:
            told = self._outbox.decision(row) if self._outbox else ()
            await self._store.run(update, audit_entry(OPERATOR, change, now), *told)
        except Problem as problem:
            if problem.code != "conflict":
                raise
            status = (await self._find(row["id"]))["status"]
            raise Problem("conflict", f"The request {row['id']} is {status} already") from None
        return {**row, **values}

    async def _find(self, request_id: str) -> Row:
        missing = Problem("not_found", f"There is no request {request_id}, or its time is over")
        try:
            where = (Condition("id", "eq", parse_uuid(request_id)),)
        except ValueError:
            raise missing from None
        now = spell_instant(self._clock())
        (outcome,) = await self._store.run(Read(ACCESS_REQUESTS, where=(*where, *alive(now))))
        if not outcome.rows:
            raise missing
        return outcome.rows[0]
