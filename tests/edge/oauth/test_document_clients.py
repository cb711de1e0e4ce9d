"""Documents of clients are looked at seldom, and believed neither too long nor when faulty."""

import asyncio
from typing import Any

import orjson
import pytest
from joserfc.jwk import ECKey, KeySet

from edge_api.oauth import clients as module
from edge_api.oauth.clients import Clients
from tests.edge.oauth.conftest import REDIRECT, World, new_verifier, refusal

URL = "https://client.example/oauth/metadata.json"
SIGNING = {"token_endpoint_auth_method": "private_key_jwt"}


def document(**changes: Any) -> bytes:
    """Return a client's document."""
    return orjson.dumps({"client_id": URL, "redirect_uris": [REDIRECT], **changes})


def verification_keys() -> dict[str, Any]:
    """Return a set of one new public key."""
    return dict(KeySet([ECKey.generate_key("P-256")]).as_dict(private=False))


async def connected(world: World) -> str:
    """Let a client of a document have tokens; return the refresh token."""
    world.fetched.documents[URL] = document()
    verifier = new_verifier()
    tokens = await world.redeem(URL, await world.code(URL, verifier), verifier)
    return str(tokens["refresh_token"])


async def test_concurrent_requests_share_one_fetch(world: World) -> None:
    """However many ask for the same document."""
    world.fetched.documents[URL] = document()
    found = await asyncio.gather(*(world.oauth.clients.find(URL) for _ in range(20)))

    assert {client.client_id for client in found if client} == {URL}
    assert world.fetched.count == 1


async def test_a_failed_fetch_is_cached(world: World) -> None:
    """For half a minute; then it is looked again."""
    for _ in range(3):
        assert (await refusal(world.oauth.clients.find(URL))).code == "invalid"
    assert world.fetched.count == 1

    world.clock.move(seconds=31)
    world.fetched.documents[URL] = document()
    assert await world.oauth.clients.find(URL)


async def test_few_failures_are_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the newest addresses: made-up ones cost no memory."""
    monkeypatch.setattr(module, "MAX_CACHED_FAILURES", 2)
    clients = Clients(world.store, world.clock, world.fetched)
    for number in (0, 1, 2, 3, 3):
        await refusal(clients.find(f"{URL}?{number}"))
    assert world.fetched.count == 4

    await refusal(clients.find(f"{URL}?0"))
    assert world.fetched.count == 5


async def test_a_document_that_became_faulty_is_believed_no_more(world: World) -> None:
    """It is there, so what it said before is not what it says now."""
    await connected(world)
    world.fetched.documents[URL] = document(client_id="https://other.example/x")
    world.clock.move(hours=2)

    assert (await refusal(world.oauth.clients.find(URL))).code == "invalid"


async def test_a_cancelled_request_leaves_the_fetch_to_the_others(world: World) -> None:
    """One of two requests is cancelled while both wait."""
    begun, go = asyncio.Event(), asyncio.Event()

    async def fetch(_: str) -> bytes:
        begun.set()
        await go.wait()
        return document()

    clients = Clients(world.store, world.clock, fetch)
    one, two = (asyncio.create_task(clients.find(URL)) for _ in range(2))
    await begun.wait()
    one.cancel()
    go.set()

    found = await two
    assert found
    assert found.client_id == URL
    with pytest.raises(asyncio.CancelledError):
        await one


async def test_a_client_that_shows_a_token_is_looked_at_again(world: World) -> None:
    """Its document counts as it is now, and nothing is fetched for those who show nothing."""
    token = await connected(world)
    world.clock.move(hours=2)
    await refusal(world.refresh(URL, "fe_rt_made_up"))
    assert world.fetched.count == 1

    assert (await world.refresh(URL, token))["access_token"]
    assert world.fetched.count == 2


async def test_a_document_that_is_gone_ends_the_client_after_a_day(world: World) -> None:
    """Also for whoever has a refresh token, which stays good if the document comes back."""
    token = await connected(world)
    world.fetched.documents.clear()
    world.clock.move(hours=26)
    problem = await refusal(world.refresh(URL, token))
    assert (problem.status, problem.oauth) == (401, "invalid_client")

    world.fetched.documents[URL] = document()
    world.clock.move(minutes=1)
    assert (await world.refresh(URL, token))["access_token"]


async def test_a_client_that_now_has_keys_has_to_sign(world: World) -> None:
    """A token alone is not enough any more."""
    token = await connected(world)
    world.fetched.documents[URL] = document(jwks=verification_keys(), **SIGNING)
    world.clock.move(hours=2)

    assert (await refusal(world.refresh(URL, token))).oauth == "invalid_client"


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "RSA", "n": "A" * 1000, "e": "AQAB", "d": "A" * 1000},
        {"kty": "RSA", "n": "A" * 5000, "e": "AQAB"},
        {"kty": "RSA", "n": "A" * 300, "e": "A" * 300},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "EC", "crv": "P-256", "x": "A", "y": "A", "d": "A"},
        {"kty": "EC", "crv": "P-256"},
        {"kty": ["RSA"]},
        "RSA",
    ],
)
async def test_a_key_that_is_private_or_huge_is_not_worked_with(world: World, key: Any) -> None:
    """A key with which a library would compute for hours is refused by its size."""
    world.fetched.documents[URL] = document(jwks={"keys": [key]}, **SIGNING)
    problem = await refusal(world.oauth.clients.find(URL))

    assert problem.code == "invalid"
    assert problem.message.startswith("jwks: ")


async def test_a_set_has_few_keys(world: World) -> None:
    """Eleven are refused, ten are not."""
    keys = verification_keys()["keys"]
    world.fetched.documents[URL] = document(jwks={"keys": keys * 11}, **SIGNING)
    assert (await refusal(world.oauth.clients.find(URL))).code == "invalid"

    world.clock.move(minutes=1)
    world.fetched.documents[URL] = document(jwks={"keys": keys * 10}, **SIGNING)
    assert await world.oauth.clients.find(URL)


async def test_a_client_without_a_name_is_called_by_its_address(world: World) -> None:
    """As much of it as there is room for."""
    url = f"https://client.example/{'a' * 300}"
    world.fetched.documents[url] = document(client_id=url)
    client = await world.oauth.clients.find(url)

    assert client is not None
    assert client.row["name"] == url[:200]
