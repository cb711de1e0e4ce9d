"""An authorization server over a real store, and somebody who plays its client."""

import base64
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from edge_api.auth.actor import Actor
from edge_api.auth.credentials import Authenticator
from edge_api.auth.keys import Keys, NewKey
from edge_api.background import delete_expired
from edge_api.db.problems import Problem
from edge_api.db.query import Read, Store
from edge_api.oauth.clients import AuthMethod, NewClient
from edge_api.oauth.consents import ConsentRequest
from edge_api.oauth.server import OAuthServer
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, SCOPES
from edge_api.settings import read_settings
from tests.edge.domain.conftest import MovableClock

SITE = "https://journal.example"
SETTINGS = read_settings({"SITE_URL": SITE}, None)
REDIRECT = "https://client.example/callback"
GRANT_TYPES = ("authorization_code", "refresh_token")


@dataclass
class Fetched:
    """Replaces the fetching of client documents: a dictionary in place of the web."""

    documents: dict[str, bytes] = field(default_factory=dict)
    count: int = 0

    async def __call__(self, url: str) -> bytes:
        """Return a document. Raises Problem as the product's own fetcher does."""
        self.count += 1
        if url not in self.documents:
            raise Problem("invalid", "The client's document cannot be fetched")
        return self.documents[url]


@dataclass
class World:
    """A server, its store, and a key whose holder consents."""

    oauth: OAuthServer
    store: Store
    clock: MovableClock
    authenticator: Authenticator
    keys: Keys
    fetched: Fetched

    async def delete_expired(self) -> None:
        """Do what is done every minute."""
        await self.oauth.maintain()
        await delete_expired(self.store, self.clock)

    async def holder(self, *scopes: str) -> tuple[str, Actor]:
        """Return a new API key and who holds it; without scopes, one that may do everything."""
        issued = await self.keys.issue(
            NewKey("holder", scopes=scopes or (*SCOPES, PUBLISH_WITH_ENQUIRIES))
        )
        return issued.secret, await self.authenticator.authenticate(issued.secret)

    async def public_client(self, *redirects: str, **changes: Any) -> str:
        """Return the id of a new public client."""
        order: dict[str, Any] = {
            "name": "Reader",
            "auth_method": "none",
            "grant_types": GRANT_TYPES,
            "scopes": (*SCOPES, PUBLISH_WITH_ENQUIRIES),
            "redirect_uris": redirects or (REDIRECT,),
            **changes,
        }
        return str((await self.oauth.clients.register(NewClient(**order)))["id"])

    async def confidential_client(
        self, method: AuthMethod = "client_secret_basic"
    ) -> tuple[str, str]:
        """Return id and secret of a new client that acts for itself."""
        order = NewClient("Robot", method, ("client_credentials",), ("posts:read", "mcp"))
        registered = await self.oauth.clients.register(order)
        return registered["id"], registered["secret"] or ""

    async def ask(self, verifier: str, client_id: str, /, **changes: str) -> Any:
        """Return what comes of an authorization request."""
        return await self.oauth.consents.read(request_pairs(verifier, client_id, **changes))

    async def code(self, client_id: str, verifier: str, /, **changes: str) -> str:
        """Return a code that the holder of a key with every scope allowed."""
        asked = await self.ask(verifier, client_id, **changes)
        assert isinstance(asked, ConsentRequest)
        _, holder = await self.holder()
        location = await self.oauth.consents.allow(
            asked, holder, (*asked.scopes, PUBLISH_WITH_ENQUIRIES)
        )
        return dict(parse_qsl(urlsplit(location).query))["code"]

    async def token(self, headers: dict[str, str] | None = None, /, **form: str) -> dict[str, Any]:
        """Return the answer of the token endpoint."""
        return await self.oauth.issue(tuple(form.items()), headers or {})

    async def redeem(self, client_id: str, code: str, verifier: str, /, **changes: str) -> Any:
        """Exchange a code."""
        form = {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": code,
            "redirect_uri": REDIRECT,
            "code_verifier": verifier,
            **changes,
        }
        return await self.token(**form)

    async def refresh(self, client_id: str, token: str, /, **changes: str) -> Any:
        """Exchange a refresh token."""
        form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": token}
        return await self.token(**form, **changes)

    async def rows(self, table: Any) -> list[dict[str, Any]]:
        """Return every row of a table."""
        (result,) = await self.store.run(Read(table))
        return result.rows


def new_verifier() -> str:
    """Return a PKCE verifier."""
    return secrets.token_urlsafe(32)


def challenge_of(verifier: str) -> str:
    """Return its S256 challenge (RFC 7636, section 4.2)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def request_pairs(verifier: str, client_id: str, /, **changes: str) -> Sequence[tuple[str, str]]:
    """Return the parameters of an authorization request; an empty change leaves one out."""
    parameters = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": REDIRECT,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "S256",
        "state": "st",
        **changes,
    }
    return [(name, value) for name, value in parameters.items() if value]


def basic(client_id: str, secret: str) -> dict[str, str]:
    """Return the header of HTTP Basic."""
    pair = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


async def refusal(awaited: Any) -> Problem:
    """Return the problem that something awaited raises."""
    with pytest.raises(Problem) as caught:
        await awaited
    return caught.value


@pytest.fixture
def clock() -> MovableClock:
    """Return a clock at noon of 1 June 2026."""
    return MovableClock()


@pytest.fixture
def world(store: Store, clock: MovableClock) -> World:
    """Return a server over an empty store."""
    fetched = Fetched()
    oauth = OAuthServer(SETTINGS, store, clock, b"s" * 32, fetch=fetched)
    authenticator = Authenticator(store, clock, SITE, oauth.token_validator)
    return World(oauth, store, clock, authenticator, Keys(store, clock), fetched)
