"""Clients that nobody looked at: those that register themselves, and those of a document."""

from typing import Any

import orjson
import pytest
from joserfc.jwk import ECKey, KeySet

from edge_api.db.internal_tables import OAUTH_CLIENTS
from edge_api.oauth import clients as rows_module
from edge_api.oauth.client import is_document_id
from edge_api.oauth.consents import ConsentRequest
from tests.edge.oauth.conftest import REDIRECT, World, new_verifier, refusal

pytestmark = pytest.mark.one_engine

URL = "https://client.example/oauth/metadata.json"


async def test_a_client_that_registers_itself_is_public_and_capped(world: World) -> None:
    """For any request; the answer says what it got (RFC 7591, section 3.2.1)."""
    asked = {
        "redirect_uris": [REDIRECT, "http://127.0.0.1/callback"],
        "client_name": "Agent",
        "token_endpoint_auth_method": "client_secret_basic",
        "scope": "posts:read admin:write",
        "unknown": [1],
    }
    registered = await world.oauth.clients.register_dynamic(asked)

    assert registered["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in registered
    assert registered["scope"] == "posts:read"
    assert registered["grant_types"] == ["authorization_code", "refresh_token"]
    verifier = new_verifier()
    code = await world.code(registered["client_id"], verifier)
    assert (await world.redeem(registered["client_id"], code, verifier))["scope"] == "posts:read"


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": REDIRECT}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://client.example/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{REDIRECT}#x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT] * 21}, "invalid_redirect_uri"),
        ({"redirect_uris": [7]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT], "client_name": 7}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "x" * 201}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "a\x00"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "a\nb"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": " "}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "response_types": ["token"]}, "invalid_client_metadata"),
        ([], "invalid_client_metadata"),
    ],
)
async def test_faulty_metadata_is_refused(world: World, metadata: Any, error: str) -> None:
    """With the code of RFC 7591, section 3.2.2, naming the member."""
    problem = await refusal(world.oauth.clients.register_dynamic(metadata))

    assert (problem.status, problem.oauth) == (400, error)
    assert await world.rows(OAUTH_CLIENTS) == []


async def test_dynamic_registrations_are_limited(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest that never got a token make room; where all have tokens, others come back."""
    monkeypatch.setattr(rows_module, "MAX_UNVETTED_CLIENTS", 2)
    monkeypatch.setattr(rows_module, "DELETE_BATCH", 1)
    ids = []
    for _ in range(3):
        world.clock.move(seconds=1)
        registered = await world.oauth.clients.register_dynamic({"redirect_uris": [REDIRECT]})
        ids.append(registered["client_id"])
    assert {row["id"] for row in await world.rows(OAUTH_CLIENTS)} == set(ids[1:])

    for client in ids[1:]:
        verifier = new_verifier()
        await world.redeem(client, await world.code(client, verifier), verifier)
    more = world.oauth.clients.register_dynamic({"redirect_uris": [REDIRECT]})
    assert (await refusal(more)).code == "unavailable"


async def test_strangers_that_get_no_token_are_forgotten(world: World) -> None:
    """After a day; one that does is kept, and so is every client of the operator's."""
    unused = await world.oauth.clients.register_dynamic({"redirect_uris": [REDIRECT]})
    used = await world.oauth.clients.register_dynamic({"redirect_uris": [REDIRECT]})
    own = await world.public_client()
    verifier = new_verifier()
    await world.redeem(used["client_id"], await world.code(used["client_id"], verifier), verifier)
    world.clock.move(days=1, seconds=1)
    await world.delete_expired()

    kept = {row["id"] for row in await world.rows(OAUTH_CLIENTS)}
    assert kept == {used["client_id"], own}
    assert unused["client_id"] not in kept
    world.clock.move(days=181)
    await world.delete_expired()
    assert {row["id"] for row in await world.rows(OAUTH_CLIENTS)} == {own}


def document(**changes: Any) -> bytes:
    """Return a client's document."""
    given = {"client_id": URL, "client_name": "App", "redirect_uris": [REDIRECT], **changes}
    return orjson.dumps(given)


async def test_a_client_may_be_known_by_its_document(world: World) -> None:
    """It is fetched once an hour; what it says now counts."""
    world.fetched.documents[URL] = document()
    verifier = new_verifier()
    code = await world.code(URL, verifier)
    assert (await world.redeem(URL, code, verifier))["access_token"]
    assert world.fetched.count == 1

    world.fetched.documents[URL] = document(redirect_uris=["https://client.example/new"])
    world.clock.move(hours=1)
    gone = world.ask(new_verifier(), URL)
    assert (await refusal(gone)).code == "forbidden"
    assert isinstance(
        await world.ask(verifier, URL, redirect_uri="https://client.example/new"), ConsentRequest
    )
    assert world.fetched.count == 2


async def test_a_document_that_is_away_is_believed_for_a_day(world: World) -> None:
    """Not longer."""
    world.fetched.documents[URL] = document()
    assert await world.oauth.clients.find(URL)
    world.fetched.documents.clear()
    world.clock.move(hours=24)
    assert await world.oauth.clients.find(URL)
    world.clock.move(hours=2)
    assert (await refusal(world.oauth.clients.find(URL))).code == "invalid"


async def test_a_document_may_hold_public_keys(world: World) -> None:
    """For a client that signs for itself; a private key, a shared one or none is refused."""
    key = ECKey.generate_key("P-256", auto_kid=True)
    method = {"token_endpoint_auth_method": "private_key_jwt"}
    world.fetched.documents[URL] = document(jwks=KeySet([key]).as_dict(private=False), **method)
    client = await world.oauth.clients.find(URL)
    assert client is not None
    assert client.keys.keys[0].thumbprint() == key.thumbprint()

    private = KeySet([key]).as_dict(private=True)
    shared = {"keys": [{"kty": "oct", "k": "c2VjcmV0" * 4}]}
    faulty: list[Any] = [private, shared, {"keys": []}, {}, {"keys": 7}, None]
    for jwks in faulty:
        world.clock.move(hours=26)
        world.fetched.documents[URL] = document(jwks=jwks, **method)
        assert (await refusal(world.oauth.clients.find(URL))).oauth == "invalid_client_metadata"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        document(client_id="https://other.example/x"),
        document(client_secret="s"),
        document(redirect_uris=[]),
        document(token_endpoint_auth_method="client_secret_basic"),
    ],
)
async def test_a_faulty_document_makes_no_client(world: World, body: bytes) -> None:
    """It says what is wrong with it."""
    world.fetched.documents[URL] = body

    assert (await refusal(world.oauth.clients.find(URL))).code == "invalid"
    assert await world.rows(OAUTH_CLIENTS) == []


@pytest.mark.parametrize(
    ("client_id", "is_one"),
    [
        (URL, True),
        ("https://client.example:8443/x", True),
        ("https://client.example", False),
        ("https://client.example/", False),
        ("http://client.example/x", False),
        ("https://user@client.example/x", False),
        ("https://client.example/x#y", False),
        ("https://client.example/a/../b", False),
        ("https://client.example:port/x", False),
        ("https:///x", False),
        ("client", False),
    ],
)
def test_urls_that_may_name_a_client_document(client_id: str, *, is_one: bool) -> None:
    """An https URL with a path, and nothing that could be read in two ways."""
    assert is_document_id(client_id) is is_one


async def test_a_client_that_was_revoked_does_not_come_back(world: World) -> None:
    """However long nobody uses it, and whatever its document says."""
    world.fetched.documents[URL] = document()
    assert await world.oauth.clients.find(URL)
    await world.oauth.clients.revoke(URL)
    for days in (2, 200):
        world.clock.move(days=days)
        await world.delete_expired()
        assert await world.oauth.clients.find(URL) is None
