"""The clients of one store: registered, described by a document at their URL (CIMD), revoked.

A secret is returned once and kept as a digest.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from edge_api.auth.actor import OPERATOR, SERVICE, Change, Clock, audit_entry
from edge_api.auth.keys import end_grants
from edge_api.auth.secrets import digest_of, last_four, mint
from edge_api.db.oauth_tables import CLIENT_ID_LONGEST, OAUTH_CLIENTS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, RowCount, Store, Update
from edge_api.db.table import Row
from edge_api.db.types import spell_instant
from edge_api.db.versioned_cache import SingleFlight, SizedCache
from edge_api.oauth.client import (
    SECRET_METHODS,
    Client,
    check_keys,
    document_client,
    public_client,
    read_metadata,
    registration_answer,
)
from edge_api.oauth.client_rows import ClientRows
from edge_api.oauth.grants import GRANTS
from edge_api.oauth.request import refusal_of
from edge_api.schema.credentials import SCOPES

FRESH_FOR: Final = timedelta(hours=1)
"""How long a document is believed without another look."""
STALE_FOR: Final = timedelta(hours=24)
"""How long a document that cannot be fetched again is believed beyond that."""

Fetch = Callable[[str], Awaitable[bytes]]
"""Returns what stands at a public https address, without following redirects. Raises Problem."""


class Unreachable(Problem):
    """A document is not to be had now, whatever it says."""


_URL: Final = re.compile(r"https://[!#-\[\]-~]+")


def is_document_id(client_id: str) -> bool:
    """Tell whether a client is named by the URL of a document (section 3 of the draft)."""
    if len(client_id) > CLIENT_ID_LONGEST or _URL.fullmatch(client_id) is None:
        return False
    try:
        parts = urlsplit(client_id)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not parts.fragment and "@" not in parts.netloc and bool(parts.hostname)
    has_dots = any(step in (".", "..") for step in parts.path.split("/"))
    return is_plain and parts.path not in ("", "/") and not has_dots


async def fetch_client(fetch: Fetch, url: str, schemes: Iterable[str], now: datetime) -> Row:
    """Return the given columns of the client that the document at `url` describes.

    Raises Problem `invalid` that says what is wrong with the document; Unreachable where there is
    none to be had.
    """
    given = _read(await _body(fetch, url))
    if given.get("client_id") != url:
        raise Problem("invalid", "client_id: the document does not name its own address")
    if "client_secret" in given:
        raise Problem("invalid", "client_secret: a secret in a public document is none")
    row = document_client(url, read_metadata(given, schemes))
    return {**row, "fresh_until": spell_instant(now + FRESH_FOR)}


async def _body(fetch: Fetch, url: str) -> bytes:
    try:
        return await fetch(url)
    except Problem as problem:
        raise Unreachable(problem.code, problem.sentence) from None


def _read(body: bytes) -> dict[str, Any]:
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise Problem("invalid", "The client's document is not a JSON object")
    return given


Method = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]

FETCHES_MOST: Final = 8
"""At the same time."""
FAILED_FOR: Final = timedelta(seconds=30)
"""How long a failure is told again without another look."""
FAILURES_MOST: Final = 1000
"""How many are remembered, the newest ones."""


@dataclass(frozen=True, slots=True)
class NewClient:
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
        self._schemes = schemes
        self._rows = ClientRows(store, clock)
        self._documents = DocumentClients(self._rows, clock, fetch, schemes)

    async def look_up(self, client_id: str) -> Client | None:
        """Return a client that is known and may be used; nothing is fetched. Raises Problem."""
        row = await self._rows.find(client_id)
        return Client(row) if row is not None and row["revoked_at"] is None else None

    async def find(self, client_id: str) -> Client | None:
        """Return a client that may be used; a document is fetched when the last look is old.

        Raises Problem `invalid` for a document that is none.
        """
        row = await self._rows.find(client_id)
        if row is not None and row["revoked_at"] is not None:
            return None
        if is_document_id(client_id):
            row = await self._documents.find(client_id, row)
        return Client(row) if row else None

    async def register(self, order: NewClient) -> Registered:
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
        return Registered(await self._rows.add(given, OPERATOR), secret)

    async def register_itself(self, metadata: Any) -> Mapping[str, Any]:
        """Store a public client that asks for it, and return what it is told (RFC 7591, 3.2.1).

        Raises Problem with the codes of section 3.2.2, and `unavailable` when there are too many.
        """
        checked = read_metadata(metadata, self._schemes)
        row = await self._rows.add_stranger(public_client(str(uuid4()), checked))
        return registration_answer(row, int(self._clock().timestamp()))

    async def all(self) -> list[Row]:
        """Return every client, newest first."""
        return await self._rows.all()

    async def rotate(self, client_id: str) -> Registered:
        """Give a client a new secret; the old one ends at once.

        Raises Problem `not_found`, `invalid` where there is no secret, and `conflict` for one that
        is revoked.
        """
        row = await self._rows.known(client_id)
        if row["auth_method"] not in SECRET_METHODS:
            raise Problem("invalid", f"{client_id} has no secret")
        secret = mint("client_secret")
        values = {"secret_digest": digest_of(secret), "secret_last_four": last_four(secret)}
        await self._rows.change(client_id, "rotate", values, OPERATOR)
        return Registered({**row, **values}, secret)

    async def revoke(self, client_id: str) -> None:
        """End a client with all that it was granted; a revoked one stays as it is.

        Raises Problem `not_found`.
        """
        await self._rows.known(client_id)
        now = self._clock()
        present = spell_instant(now)
        where = (Filter("id", "eq", client_id), Filter("revoked_at", "is", None))
        change = Change("revoke", OAUTH_CLIENTS, RowCount(0), ("id",))
        await self._store.run(
            Update(OAUTH_CLIENTS, {"revoked_at": present}, where),
            end_grants(Filter("client_id", "eq", client_id), present),
            audit_entry(OPERATOR, change, now),
        )


def _check(order: NewClient, schemes: tuple[str, ...]) -> None:
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


class DocumentClients:
    """The clients of one store that documents describe, looked at again when that is old.

    Whoever asks for a consent page makes this service fetch an address, so it does that seldom: one
    request an address at a time, few in all, and after a failure not again for a while.
    """

    def __init__(
        self, rows: ClientRows, clock: Clock, fetch: Fetch, schemes: tuple[str, ...]
    ) -> None:
        self._rows = rows
        self._clock = clock
        self._fetch = fetch
        self._schemes = schemes
        self._fetches: SingleFlight[Row] = SingleFlight()
        self._failures: SizedCache[tuple[datetime, Problem]] = SizedCache(FAILURES_MOST)
        self._places = asyncio.Semaphore(FETCHES_MOST)

    async def find(self, url: str, known: Row | None) -> Row:
        """Return the client as its document has it, or has had it lately.

        A document that is away is believed for a while as it was; a faulty one is not. Raises
        Problem `invalid` that says what is wrong with it.
        """
        if known is not None and _is_fresh(known, self._clock()):
            return known
        try:
            return await self._look(url, known)
        except Unreachable:
            if known is not None and _is_fresh(known, self._clock() - STALE_FOR):
                return known
            raise

    async def _look(self, url: str, known: Row | None) -> Row:
        """Fetch a document, or wait for the request that is fetching it. Raises Problem."""
        failed = self._failures.get(url)
        if failed is not None and self._clock() < failed[0] + FAILED_FOR:
            raise failed[1].with_traceback(None)
        return await self._fetches.run(url, partial(self._take, url, known))

    async def _take(self, url: str, known: Row | None) -> Row:
        """Fetch a document and store its client; remember what is wrong with it."""
        try:
            async with self._places:
                given = await fetch_client(self._fetch, url, self._schemes, self._clock())
            if known is None:
                return await self._rows.add_stranger(given)
            values = {name: given[name] for name in given if name != "id"}
            await self._rows.change(url, "update", values, SERVICE)
        except Problem as problem:
            if problem.code == "invalid":
                self._failures.keep(url, (self._clock(), problem), 1)
            raise
        return {**known, **given}


def _is_fresh(row: Row, now: datetime) -> bool:
    return (row["fresh_until"] or "") > spell_instant(now)
