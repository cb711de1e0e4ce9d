"""The keys of access tokens: made, published, rotated and forgotten without an outage."""

import base64
import json
from datetime import timedelta

import pytest

from edge_api.auth.tokens import AccessToken, SigningKeys, read, sign
from edge_api.db.internal_tables import SIGNING_KEYS
from edge_api.oauth.server import OAuthServer
from tests.edge.oauth.conftest import SETTINGS, SITE, World, basic, refusal


async def token(world: World) -> str:
    """Return a new access token."""
    client, secret = await world.confidential_client()
    answer = await world.token(basic(client, secret), grant_type="client_credentials")
    return str(answer["access_token"])


async def test_the_first_token_makes_the_first_key(world: World) -> None:
    """The published set holds its public half alone."""
    await token(world)

    (row,) = await world.rows(SIGNING_KEYS)
    (key,) = (await world.oauth.keys.jwks())["keys"]
    assert (key["kid"], key["use"], key["alg"]) == (row["id"], "sig", "ES256")
    assert "d" not in key
    assert row["private_key"].count(".") == 4


async def test_a_rotated_key_is_published_an_hour_before_it_signs(world: World) -> None:
    """Tokens of both keys are believed, until the last of the old one has ended."""
    old = await token(world)
    kid = await world.oauth.keys.rotate()
    assert (await world.oauth.keys.signing_key()).kid != kid
    assert len((await world.oauth.keys.jwks())["keys"]) == 2

    world.clock.move(minutes=59)
    assert await world.authenticator.authenticate(old)
    await world.delete_expired()
    late = await token(world)
    world.clock.move(minutes=1)
    assert (await world.oauth.keys.signing_key()).kid == kid
    new = await token(world)
    assert await world.authenticator.authenticate(late)
    assert await world.authenticator.authenticate(new)

    world.clock.move(hours=2)
    await world.delete_expired()
    assert [row["id"] for row in await world.rows(SIGNING_KEYS)] == [kid]


async def test_a_key_that_has_had_its_time_is_rotated(world: World) -> None:
    """After ninety days, once."""
    await token(world)
    world.clock.move(days=90)
    for _ in range(3):
        await world.delete_expired()

    assert len(await world.rows(SIGNING_KEYS)) == 2


async def test_two_edges_over_one_store_believe_each_other(world: World) -> None:
    """A key that one made signs at the other."""
    other = OAuthServer(SETTINGS, world.store, world.clock, b"s" * 32, fetch=world.fetched)
    text = await token(world)

    bearer = await other.token_validator.find(text)
    assert bearer is not None
    assert (await other.keys.signing_key()).kid == (await world.oauth.keys.signing_key()).kid


async def test_a_key_of_another_secret_is_not_used(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A new one is made, and the log says why; whoever has the old secret goes on with it."""
    text = await token(world)
    keys = SigningKeys(world.store, world.clock, b"another secret" * 3)

    verification_keys = {key.kid for key in (await keys.verification_keys()).keys}
    assert len(await world.rows(SIGNING_KEYS)) == 2
    assert len(verification_keys) == 1
    assert "another SECRET_KEY" in caplog.text
    assert await world.authenticator.authenticate(text)


@pytest.mark.parametrize("change", ["head", "claims", "signature", "none"])
async def test_a_token_that_was_tampered_with_is_refused(world: World, change: str) -> None:
    """In any part of it."""
    head, claims, signature = (await token(world)).split(".")
    texts = {
        "head": f"{head[:-2]}AA.{claims}.{signature}",
        "claims": f"{head}.{claims[:-4]}AAAA.{signature}",
        "signature": f"{head}.{claims}.{signature[:-4]}AAAA",
        "none": f"eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.{claims}.",
    }

    problem = await refusal(world.authenticator.authenticate(texts[change]))
    assert problem.code == "unauthenticated"


@pytest.mark.parametrize(("more", "is_read"), [(0, True), (9000, False)])
async def test_nothing_long_is_verified(world: World, *, more: int, is_read: bool) -> None:
    """Not even what our own key signed."""
    key = await world.oauth.keys.signing_key()
    life = world.clock() + timedelta(hours=1)
    said = AccessToken("id", "key", "client" + "x" * more, (), SITE, None, life)

    found = read(sign(said, SITE, key), SITE, await world.oauth.keys.verification_keys())
    assert (found == said) is is_read


@pytest.mark.parametrize(
    "head",
    [
        {"alg": "ES256", "crit": 1},
        {"alg": "ES256", "crit": None},
        {"alg": "ES256", "crit": [[]]},
        {"alg": "ES256", "kid": 7},
        {"alg": ["ES256"]},
        {"alg": None},
        {"alg": "ES256", "b64": False, "crit": ["b64"]},
        {"alg": "HS256"},
        {},
        [],
        None,
    ],
)
async def test_a_strange_head_is_no_fault_of_ours(world: World, head: object) -> None:
    """Neither at a door, nor where tokens are taken back, nor in a client's assertion."""
    _, claims, signature = (await token(world)).split(".")
    client = await world.public_client()
    text = f"{encode(json.dumps(head))}.{claims}.{signature}"
    asserted = f"{encode(json.dumps(head))}.{encode(json.dumps({'sub': client}))}.{signature}"
    deep = f"{encode(json.dumps(head))}.{encode('[' * 5900)}.{signature}"

    assert (await refusal(world.authenticator.authenticate(text))).status == 401
    await world.oauth.revoke((("client_id", client), ("token", text)), {})
    for assertion in (asserted, deep):
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": assertion,
        }
        assert (await refusal(world.token(**form))).oauth == "invalid_client"


def encode(text: str) -> str:
    """Return a text in base64url, as a part of a token."""
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
