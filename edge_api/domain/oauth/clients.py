"""The clients of one store: found, registered by the operator or by themselves, revoked.

Each change is in the audit log. A secret is returned once and kept as a digest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal
from uuid import uuid4

from edge_api.domain.actor import OPERATOR, SERVICE, Actor, Clock
from edge_api.domain.audit import Change, audit_entry
from edge_api.domain.identity import new_id
from edge_api.domain.oauth.client import SECRET_METHODS, Client
from edge_api.domain.oauth.client_metadata import (
    check_keys,
    public_client,
    read_metadata,
    registration_answer,
)
from edge_api.domain.oauth.documents import STALE_FOR, Fetch, fetch_client, is_document_id
from edge_api.domain.oauth.grants import GRANTS
from edge_api.domain.oauth.judge import client_actor
from edge_api.domain.oauth.redirects import refusal_of
from edge_api.domain.oauth.revocation import end_grants
from edge_api.domain.secrets import digest_of, last_four, mint
from edge_api.schema.kinds import spell_instant
from edge_api.schema.oauth_tables import OAUTH_CLIENTS
from edge_api.schema.problems import Problem
from edge_api.schema.scopes import SCOPES
from edge_api.schema.table import Row
from edge_api.store.plan import (
    AffectedBy,
    Condition,
    Delete,
    Insert,
    Order,
    Read,
    Store,
    Update,
)

STRANGERS_MOST: Final = 10_000
"""Clients that nobody looked at; more are refused until unused ones are forgotten."""
UNUSED_FOR: Final = timedelta(days=1)
"""How long a client that registered itself is kept without ever getting a token."""
IDLE_FOR: Final = timedelta(days=180)
"""How long one that had tokens is kept without getting another."""

Method = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]


@dataclass(frozen=True, slots=True)
class ClientOrder:
    """What the operator wants of a new client."""

    name: str
    auth_method: Method
    grant_types: tuple[str, ...]
    scopes: tuple[str, ...]
    redirect_uris: tuple[str, ...] = ()
    jwks: Any = None
    """A JWK set of public keys, for `private_key_jwt`."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A new client: its row, and its secret, to be shown once, if it has one."""

    row: Row
    secret: str | None


class Clients:
    """The clients of one store. `schemes` are private-use schemes that redirects may have."""

    def __init__(
        self, store: Store, clock: Clock, fetch: Fetch, schemes: tuple[str, ...] = ()
    ) -> None:
        self._store = store
        self._clock = clock
        self._fetch = fetch
        self._schemes = schemes

    async def look_up(self, client_id: str) -> Client | None:
        """Return a client that is known and may be used; nothing is fetched. Raises Problem."""
        row = await self._row(client_id)
        return Client(row) if row is not None and row["revoked_at"] is None else None

    async def find(self, client_id: str) -> Client | None:
        """Return a client that may be used; a document is fetched when the last look is old.

        Raises Problem `invalid` for a document that is none.
        """
        row, now = await self._row(client_id), self._clock()
        if row is not None and row["revoked_at"] is not None:
            return None
        if is_document_id(client_id) and not _is_fresh(row, now):
            row = await self._refetch(client_id, row)
        return Client(row) if row else None

    async def register(self, order: ClientOrder) -> Registered:
        """Store a client of the operator's. Raises Problem `invalid`, naming what is wrong."""
        _check(order, self._schemes)
        secret = mint("client_secret") if order.auth_method in SECRET_METHODS else None
        given = {
            "id": str(uuid4()),
            "kind": "registered",
            "name": order.name,
            "auth_method": order.auth_method,
            "secret_digest": digest_of(secret) if secret else None,
            "secret_last_four": last_four(secret) if secret else None,
            "redirect_uris": " ".join(order.redirect_uris),
            "grant_types": " ".join(order.grant_types),
            "scopes": " ".join(order.scopes),
            "jwks": order.jwks,
        }
        return Registered(await self._store_new(given, OPERATOR), secret)

    async def register_itself(self, metadata: Any) -> Mapping[str, Any]:
        """Store a public client that asks for it, and return what it is told (RFC 7591, 3.2.1).

        Raises Problem with the codes of section 3.2.2, and `unavailable` when there are too many.
        """
        checked = read_metadata(metadata, self._schemes)
        await self._refuse_too_many()
        row = public_client(str(uuid4()), checked)
        stored = await self._store_new(row, client_actor(Client({**row, "scopes": ""})))
        return registration_answer(stored, int(self._clock().timestamp()))

    async def all(self) -> list[Row]:
        """Return every client, newest first."""
        order = (Order("created_at", descending=True), Order("id"))
        (outcome,) = await self._store.run(Read(OAUTH_CLIENTS, order=order))
        return outcome.rows

    async def rotate(self, client_id: str) -> Registered:
        """Give a client a new secret; the old one ends at once.

        Raises Problem `not_found`, `invalid` where there is no secret, and `conflict` for one that
        is revoked.
        """
        row = await self._known(client_id)
        if row["auth_method"] not in SECRET_METHODS:
            raise Problem("invalid", f"{client_id} has no secret")
        secret = mint("client_secret")
        values = {"secret_digest": digest_of(secret), "secret_last_four": last_four(secret)}
        await self._change(client_id, "rotate", values, OPERATOR)
        return Registered({**row, **values}, secret)

    async def revoke(self, client_id: str) -> None:
        """End a client with all that it was granted; a revoked one stays as it is.

        Raises Problem `not_found`.
        """
        await self._known(client_id)
        now = self._clock()
        present = spell_instant(now)
        where = (Condition("id", "eq", client_id), Condition("revoked_at", "is", None))
        change = Change("revoke", OAUTH_CLIENTS, AffectedBy(0), ("id",))
        await self._store.run(
            Update(OAUTH_CLIENTS, {"revoked_at": present}, where),
            end_grants(Condition("client_id", "eq", client_id), present),
            audit_entry(OPERATOR, change, now),
        )

    async def forget_unused(self) -> None:
        """Delete strangers that never got a token, or none for long. Raises Problem."""
        now = self._clock()
        strangers = Condition("kind", "in", ("dynamic", "document"))
        in_force = Condition("revoked_at", "is", None)  # who was revoked must stay so
        never = (
            strangers,
            in_force,
            Condition("last_used_at", "is", None),
            Condition("created_at", "lt", spell_instant(now - UNUSED_FOR)),
        )
        idle = (strangers, in_force, Condition("last_used_at", "lt", spell_instant(now - IDLE_FOR)))
        for where in (never, idle):
            (outcome,) = await self._store.run(Read(OAUTH_CLIENTS, ("id",), where, limit=1))
            if outcome.rows:  # nothing is written for nothing
                forgotten = Change("forget", OAUTH_CLIENTS, AffectedBy(0))
                audit = audit_entry(SERVICE, forgotten, now)
                await self._store.run(Delete(OAUTH_CLIENTS, where), audit)

    async def _refuse_too_many(self) -> None:
        """Raise Problem `unavailable` when there is no room for another stranger."""
        strangers = (Condition("kind", "in", ("dynamic", "document")),)
        count = Read(OAUTH_CLIENTS, ("id",), strangers, limit=1, counted=True)
        (outcome,) = await self._store.run(count)
        if (outcome.total or 0) >= STRANGERS_MOST:
            sentence = "Too many clients made themselves known lately: try again tomorrow"
            raise Problem("unavailable", sentence, headers={"Retry-After": "3600"})

    async def _refetch(self, url: str, known: Row | None) -> Row | None:
        """Return the client as its document has it now, or as it was known where it is away."""
        now = self._clock()
        try:
            given = await fetch_client(self._fetch, url, self._schemes, now)
        except Problem:
            if known is not None and _is_fresh(known, now - STALE_FOR):
                return known
            raise
        if known is None:
            await self._refuse_too_many()
            return await self._store_new(given, client_actor(Client(given)))
        values = {name: given[name] for name in given if name != "id"}
        await self._change(url, "update", values, SERVICE)
        return {**known, **given}

    async def _store_new(self, given: Row, actor: Actor) -> Row:
        now = self._clock()
        row = OAUTH_CLIENTS.new_row(given, spell_instant(now), partial(new_id, now))
        audit = audit_entry(actor, Change("register", OAUTH_CLIENTS, 1), now)
        try:
            await self._store.run(Insert(OAUTH_CLIENTS, [row]), audit)
        except Problem as problem:
            if problem.code != "conflict":
                raise
            return await self._known(row["id"])  # another request was faster with the same
        return row

    async def _change(
        self, client_id: str, verb: str, values: Mapping[str, Any], actor: Actor
    ) -> None:
        """Change a client that is not revoked. Raises Problem `conflict` for one that is."""
        where = (Condition("id", "eq", client_id), Condition("revoked_at", "is", None))
        change = Change(verb, OAUTH_CLIENTS, AffectedBy(0), ("id",))
        audit = audit_entry(actor, change, self._clock())
        try:
            await self._store.run(Update(OAUTH_CLIENTS, values, where, at_least=1), audit)
        except Problem as problem:
            if problem.code != "conflict":
                raise
            raise Problem("conflict", f"The client {client_id} is revoked") from None

    async def _row(self, client_id: str) -> Row | None:
        where = (Condition("id", "eq", client_id),)
        (outcome,) = await self._store.run(Read(OAUTH_CLIENTS, where=where))
        return outcome.rows[0] if outcome.rows else None

    async def _known(self, client_id: str) -> Row:
        row = await self._row(client_id)
        if row is None:
            raise Problem("not_found", f"There is no client {client_id}")
        return row


def _is_fresh(row: Row | None, now: datetime) -> bool:
    return row is not None and (row["fresh_until"] or "") > spell_instant(now)


def _check(order: ClientOrder, schemes: tuple[str, ...]) -> None:
    for name in order.scopes:
        if name not in SCOPES:
            raise Problem("invalid", f"scopes: there is no scope {name!r}")
    for name in order.grant_types:
        if name not in GRANTS:
            raise Problem("invalid", f"grants: there is no grant {name!r}")
    for uri in order.redirect_uris:
        refusal = refusal_of(uri, schemes)
        if refusal is not None:
            raise Problem("invalid", f"redirect URI {uri}: {refusal}")
    if "authorization_code" in order.grant_types and not order.redirect_uris:
        raise Problem("invalid", "redirect URI: codes need at least one")
    if "client_credentials" in order.grant_types and order.auth_method == "none":
        raise Problem("invalid", "A client that acts for itself must authenticate")
    if order.auth_method == "private_key_jwt":
        check_keys(order.jwks)
