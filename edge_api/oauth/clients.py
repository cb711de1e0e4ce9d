"""The OAuth clients of one store: registration, documents at their URLs (CIMD), revocation.

A secret is returned once and kept as a digest. Each change is in the audit log.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal
from uuid import uuid4

from edge_api.auth.actor import OPERATOR, SERVICE, Actor, Clock, audit_entry, new_id
from edge_api.auth.keys import confirm_scopes, revoke_grants
from edge_api.auth.secrets import hash_secret, last_four, mint
from edge_api.db.caches import SingleFlight, SizedCache
from edge_api.db.internal_tables import OAUTH_CLIENTS
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
    count_rows,
    find_row,
    read_all,
    require_row,
)
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.oauth.authlib_server import GRANT_TYPES
from edge_api.oauth.client import (
    SECRET_METHODS,
    Client,
    Fetch,
    UnreachableError,
    check_keys,
    client_actor,
    fetch_metadata,
    is_document_id,
    public_client_row,
    read_metadata,
)
from edge_api.oauth.request import redirect_uri_error
from edge_api.outbox import run_unless_conflict
from edge_api.schema.credentials import SCOPES

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]

MAX_UNVETTED_CLIENTS: Final = 10_000
"""The most unvetted clients; beyond it the oldest ones without a token are deleted."""
DELETE_BATCH: Final = 100
UNVETTED: Final = Filter("kind", "in", ("dynamic", "document"))
NOT_REVOKED: Final = Filter("revoked_at", "is", None)
UNUSED: Final = (UNVETTED, NOT_REVOKED, Filter("last_used_at", "is", None))
"""The conditions of unvetted clients that never got a token."""

STALE_TTL: Final = timedelta(hours=24)
"""The time for which a stale document may still be used if it is unreachable."""
MAX_CONCURRENT_FETCHES: Final = 8
MAX_CACHED_FAILURES: Final = 1000


@dataclass(frozen=True, slots=True)
class NewClient:
    """The operator's input for a new client."""

    name: str
    auth_method: AuthMethod
    grant_types: tuple[str, ...]
    scopes: tuple[str, ...]
    redirect_uris: tuple[str, ...] = ()
    jwks: Any = None  # a JWK set of public keys, for `private_key_jwt`

    def check(self, schemes: Iterable[str]) -> None:
        """Raise Problem `invalid` for invalid input; `schemes` are allowed private-use schemes."""
        for name in self.scopes:
            if name not in SCOPES:
                raise Problem("invalid", f"scopes: there is no scope {name!r}")
        for name in self.grant_types:
            if name not in GRANT_TYPES:
                raise Problem("invalid", f"grants: there is no grant {name!r}")
        for uri in self.redirect_uris:
            uri_error = redirect_uri_error(uri, schemes)
            if uri_error is not None:
                raise Problem("invalid", f"redirect URI {uri}: {uri_error}")
        if "authorization_code" in self.grant_types and not self.redirect_uris:
            raise Problem("invalid", "redirect URI: codes need at least one")
        if "client_credentials" in self.grant_types and self.auth_method == "none":
            raise Problem("invalid", "A client that acts for itself must authenticate")
        if self.auth_method == "private_key_jwt":
            check_keys(self.jwks)


class Clients:
    """The clients of one store. `schemes` are the private-use schemes allowed in redirects.

    Anybody who opens a consent page can make this service fetch a document, so it fetches seldom:
    one request at a time for each address, few in all, and none for a while after a failure.
    """

    def __init__(
        self, store: Store, clock: Clock, fetch: Fetch, schemes: tuple[str, ...] = ()
    ) -> None:
        self._store = store
        self._clock = clock
        self._fetch = fetch
        self._schemes = schemes
        self._fetches: SingleFlight[Row] = SingleFlight()
        self._failures: SizedCache[tuple[datetime, Problem]] = SizedCache(MAX_CACHED_FAILURES)
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_FETCHES)

    async def require_row(self, client_id: str) -> Row:
        """Return a client's row. Raises Problem `not_found`."""
        missing = f"There is no client {client_id}"
        return await require_row(self._store, OAUTH_CLIENTS, client_id, missing)

    async def all(self) -> list[Row]:
        """Return every client, newest first."""
        order = (Order("created_at", descending=True), Order("id"))
        return await read_all(self._store, Read(OAUTH_CLIENTS, order=order))

    async def add(self, given: Row, actor: Actor) -> Row:
        """Store a new client, unless one with its id is stored; return the stored row."""
        now = self._clock()
        row = OAUTH_CLIENTS.new_row(given, format_instant(now), partial(new_id, now))
        audit = audit_entry(actor, "register", OAUTH_CLIENTS, 1, now)
        is_new = await run_unless_conflict(self._store, Insert(OAUTH_CLIENTS, [row]), audit)
        return row if is_new else await self.require_row(row["id"])

    async def add_unvetted(self, given: Row) -> Row:
        """Store an unvetted client. Raises Problem `unavailable` if there are too many."""
        await self._delete_oldest_unvetted()
        return await self.add(given, client_actor(Client({**given, "scopes": ""})))

    async def change(
        self, client_id: str, verb: str, values: Mapping[str, Any], actor: Actor
    ) -> None:
        """Change a client. Raises Problem `conflict` if it is revoked."""
        update = Update(
            OAUTH_CLIENTS, values, (Filter("id", "eq", client_id), NOT_REVOKED), at_least=1
        )
        audit = audit_entry(actor, verb, OAUTH_CLIENTS, RowCount(0), self._clock(), "id")
        if not await run_unless_conflict(self._store, update, audit):
            raise Problem("conflict", f"The client {client_id} is revoked")

    async def _delete_oldest_unvetted(self) -> None:
        """Delete the oldest unvetted clients without a token if there are too many.

        An honest client gets a token within minutes, so nobody can block others for long.
        """
        if await count_rows(self._store, OAUTH_CLIENTS, UNVETTED) < MAX_UNVETTED_CLIENTS:
            return
        oldest = Read(OAUTH_CLIENTS, ("id",), UNUSED, (Order("created_at"),), limit=DELETE_BATCH)
        (result,) = await self._store.run(oldest)
        if not result.rows:
            raise Problem(
                "unavailable",
                "Too many clients were registered recently: try again tomorrow",
                headers={"Retry-After": "3600"},
            )
        chosen = Filter("id", "in", tuple(row["id"] for row in result.rows))
        await delete_clients(self._store, (*UNUSED, chosen), self._clock())

    async def find_stored(self, client_id: str) -> Client | None:
        """Return a stored client that is not revoked, without fetching. Raises Problem."""
        row = await find_row(self._store, OAUTH_CLIENTS, client_id)
        return Client(row) if row is not None and row["revoked_at"] is None else None

    async def find(self, client_id: str) -> Client | None:
        """Return an unrevoked client; fetch its document if stale. Raises Problem `invalid`."""
        row = await find_row(self._store, OAUTH_CLIENTS, client_id)
        if row is not None and row["revoked_at"] is not None:
            return None
        if is_document_id(client_id):
            row = await self._find_document(client_id, row)
        return Client(row) if row else None

    async def register(self, new: NewClient) -> Row:
        """Store a client of the operator; return it with its new `secret`, which may be `None`.

        Raises Problem `invalid` for invalid input.
        """
        new = replace(new, scopes=confirm_scopes(new.scopes))
        new.check(self._schemes)
        secret = mint("client_secret") if new.auth_method in SECRET_METHODS else None
        given = {
            "id": str(uuid4()),
            "kind": "registered",
            "name": new.name,
            "auth_method": new.auth_method,
            "secret_digest": hash_secret(secret) if secret else None,
            "secret_last_four": last_four(secret) if secret else None,
            "redirect_uris": " ".join(new.redirect_uris),
            "grant_types": " ".join(new.grant_types),
            "scopes": " ".join(new.scopes),
            "jwks": new.jwks,
        }
        return {**await self.add(given, OPERATOR), "secret": secret}

    async def register_dynamic(self, metadata: Any) -> Mapping[str, Any]:
        """Store a public client that registers itself; return the answer (RFC 7591, 3.2.1).

        Raises Problem with the codes of section 3.2.2, and `unavailable` if there are too many.
        """
        checked = read_metadata(metadata, self._schemes)
        row = await self.add_unvetted(public_client_row(str(uuid4()), checked))
        return {
            "client_id": row["id"],
            "client_id_issued_at": int(self._clock().timestamp()),
            "client_name": row["name"],
            "redirect_uris": row["redirect_uris"].split(),
            "token_endpoint_auth_method": row["auth_method"],
            "grant_types": row["grant_types"].split(),
            "response_types": ["code"],
            "scope": row["scopes"],
        }

    async def rotate(self, client_id: str) -> Row:
        """Replace a client's secret. Raises Problem `not_found`, `invalid` or `conflict`."""
        row = await self.require_row(client_id)
        if row["auth_method"] not in SECRET_METHODS:
            raise Problem("invalid", f"{client_id} has no secret")
        secret = mint("client_secret")
        values = {"secret_digest": hash_secret(secret), "secret_last_four": last_four(secret)}
        await self.change(client_id, "rotate", values, OPERATOR)
        return {**row, **values, "secret": secret}

    async def revoke(self, client_id: str) -> None:
        """Revoke a client and all that it was granted. Raises Problem `not_found`."""
        await self.require_row(client_id)
        now = self._clock()
        timestamp = format_instant(now)
        where = (Filter("id", "eq", client_id), NOT_REVOKED)
        await self._store.run(
            Update(OAUTH_CLIENTS, {"revoked_at": timestamp}, where),
            revoke_grants(Filter("client_id", "eq", client_id), timestamp),
            audit_entry(OPERATOR, "revoke", OAUTH_CLIENTS, RowCount(0), now, "id"),
        )

    async def _find_document(self, url: str, stored: Row | None) -> Row:
        """Return the row of the client with the document at `url`, fetched if the row is stale.

        The stored client of an unreachable document is used for `STALE_TTL`. Raises Problem
        `invalid` for an invalid document.
        """
        now = self._clock()
        if stored is not None and _is_fresh(stored, now):
            return stored
        failed = self._failures.get(url)
        try:
            if failed is not None and now < failed[0] + timedelta(seconds=30):
                raise failed[1].with_traceback(None)
            return await self._fetches.run(url, partial(self._fetch_and_store, url, stored))
        except UnreachableError:
            if stored is not None and _is_fresh(stored, self._clock() - STALE_TTL):
                return stored
            raise

    async def _fetch_and_store(self, url: str, stored: Row | None) -> Row:
        """Fetch a document and store its client; do not fetch an invalid one again soon."""
        try:
            async with self._slots:
                given = await fetch_metadata(self._fetch, url, self._schemes)
            given["fresh_until"] = format_instant(self._clock() + timedelta(hours=1))
            if stored is None:
                return await self.add_unvetted(given)
            values = {name: given[name] for name in given if name != "id"}
            await self.change(url, "update", values, SERVICE)
        except Problem as problem:
            if problem.code == "invalid":
                self._failures.put(url, (self._clock(), problem), 1)
            raise
        return {**stored, **given}


async def delete_clients(store: Store, where: Where, now: datetime) -> None:
    """Delete clients, and write their number into the audit log. Raises Problem."""
    audit = audit_entry(SERVICE, "forget", OAUTH_CLIENTS, RowCount(0), now)
    await store.run(Delete(OAUTH_CLIENTS, where), audit)


def _is_fresh(row: Row, now: datetime) -> bool:
    return (row["fresh_until"] or "") > format_instant(now)
