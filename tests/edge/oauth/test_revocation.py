"""Tokens taken back (RFC 7009)."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from edge_api.auth.keys import KEY_ROTATION_OVERLAP
from edge_api.db.types import format_instant
from edge_api.oauth.consents import ConsentRequest
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES
from tests.edge.oauth.conftest import World, basic, new_verifier, refusal


async def connected(world: World) -> tuple[str, dict[str, Any]]:
    """Return a client and its tokens."""
    client, verifier = await world.public_client(), new_verifier()
    return client, await world.redeem(client, await world.code(client, verifier), verifier)


async def revoke(world: World, client: str, token: str, **more: str) -> None:
    """Take a token back."""
    form = {"client_id": client, "token": token, **more}
    await world.oauth.revoke(tuple(form.items()), {})


async def test_a_refresh_token_ends_with_all_that_its_grant_gave(world: World) -> None:
    """The access token too."""
    client, tokens = await connected(world)
    await revoke(world, client, tokens["refresh_token"])

    assert (await refusal(world.authenticator.authenticate(tokens["access_token"]))).status == 401
    late = world.refresh(client, tokens["refresh_token"])
    assert (await refusal(late)).oauth == "invalid_grant"


async def test_an_access_token_ends_alone(world: World) -> None:
    """Its refresh token gives another; taking it back again is no fault."""
    client, tokens = await connected(world)
    assert await world.authenticator.authenticate(tokens["access_token"])
    for hint in ("access_token", "refresh_token", ""):
        await revoke(world, client, tokens["access_token"], token_type_hint=hint)

    assert (await refusal(world.authenticator.authenticate(tokens["access_token"]))).status == 401
    again = await world.refresh(client, tokens["refresh_token"])
    assert await world.authenticator.authenticate(again["access_token"])


async def test_a_client_that_acts_for_itself_takes_its_token_back(world: World) -> None:
    """As it authenticates elsewhere."""
    client, secret = await world.confidential_client()
    header = basic(client, secret)
    token = (await world.token(header, grant_type="client_credentials"))["access_token"]
    await world.oauth.revoke((("token", token),), header)

    assert (await refusal(world.authenticator.authenticate(token))).status == 401


async def test_a_token_that_nobody_knows_is_no_fault(world: World) -> None:
    """The client wanted it to be of no use, and it is."""
    client, _ = await connected(world)
    for token in ("unknown", "fe_rt_x", "a.b.c", "ey.ey.ey"):
        await revoke(world, client, token)


async def test_only_its_client_takes_a_token_back(world: World) -> None:
    """Another client gets an error, a stranger is refused, and the token stays valid."""
    _, tokens = await connected(world)
    other = await world.public_client()
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert (await refusal(revoke(world, other, token))).oauth == "invalid_grant"
        assert (await refusal(revoke(world, "nobody", token))).oauth == "invalid_client"

    assert await world.authenticator.authenticate(tokens["access_token"])
    assert (await refusal(revoke(world, other, ""))).oauth == "invalid_request"


async def allowed(world: World) -> tuple[str, str, str, str]:
    """Return a client, a code for it, its verifier, and the id of the key that allowed it."""
    client, verifier = await world.public_client(), new_verifier()
    asked = await world.ask(verifier, client)
    assert isinstance(asked, ConsentRequest)
    _, holder = await world.holder()
    chosen = (*asked.scopes, PUBLISH_WITH_ENQUIRIES)
    location = await world.oauth.consents.allow(asked, holder, chosen)
    code = dict(parse_qsl(urlsplit(location).query))["code"]
    return client, code, verifier, holder.credential_id


async def test_a_code_is_void_once_its_key_is_revoked(world: World) -> None:
    """Also where it has not been exchanged yet."""
    client, code, verifier, key = await allowed(world)
    await world.keys.revoke(key)

    late = world.redeem(client, code, verifier)
    assert (await refusal(late)).oauth == "invalid_grant"


async def test_a_grant_ends_with_the_expiry_of_its_key(world: World) -> None:
    """A refresh is refused then, in place of an answer with tokens that are worth nothing."""
    client, code, verifier, key = await allowed(world)
    tokens = await world.redeem(client, code, verifier)
    await world.keys.set_end(key, format_instant(world.clock() + timedelta(days=1)))
    world.clock.move(days=1)

    late = world.refresh(client, tokens["refresh_token"])
    assert (await refusal(late)).oauth == "invalid_grant"


async def test_grants_pass_to_the_successor_of_a_rotated_key(world: World) -> None:
    """A code under way and what comes of it live on after the old key, and end with the new one."""
    client, code, verifier, key = await allowed(world)
    successor = await world.keys.rotate(key)
    tokens = await world.redeem(client, code, verifier)
    world.clock.move(seconds=KEY_ROTATION_OVERLAP.total_seconds())
    again = await world.refresh(client, tokens["refresh_token"])
    await world.keys.revoke(key)
    assert await world.authenticator.authenticate(again["access_token"])

    await world.keys.revoke(successor.row["id"])
    late = world.refresh(client, again["refresh_token"])
    assert (await refusal(late)).oauth == "invalid_grant"
