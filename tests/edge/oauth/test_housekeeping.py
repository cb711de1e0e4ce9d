"""Deletion of expired rows of OAuth, and of none that is still needed."""

import pytest

from edge_api.db.internal_tables import (
    AUTHORIZATION_CODES,
    OAUTH_GRANTS,
    REFRESH_TOKENS,
    REVOKED_TOKENS,
)
from edge_api.oauth import server
from tests.edge.oauth.conftest import World, new_verifier, refusal


async def connected(world: World) -> tuple[str, str]:
    """Return a client and its refresh token."""
    client, verifier = await world.public_client(), new_verifier()
    tokens = await world.redeem(client, await world.code(client, verifier), verifier)
    return client, tokens["refresh_token"]


async def test_a_grant_that_is_used_stays(world: World) -> None:
    """However old it is; what came of it goes a month after it expired."""
    client, token = await connected(world)
    for _ in range(8):
        world.clock.move(days=25)
        await world.delete_expired()
        await world.oauth.sweep()
        token = (await world.refresh(client, token))["refresh_token"]

    assert len(await world.rows(OAUTH_GRANTS)) == 1
    assert await world.rows(AUTHORIZATION_CODES) == []
    assert len(await world.rows(REFRESH_TOKENS)) <= 4


async def test_a_grant_that_nobody_uses_goes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its last token; a few at a time."""
    monkeypatch.setattr(server, "GRANT_BATCH", 2)
    for _ in range(3):
        await connected(world)
    world.clock.move(days=61)
    await world.delete_expired()
    await world.oauth.sweep()

    assert await world.rows(OAUTH_GRANTS) == []
    assert await world.rows(REFRESH_TOKENS) == []


async def test_a_replay_is_known_for_a_month(world: World) -> None:
    """So that what it gave can be revoked."""
    client, first = await connected(world)
    second = (await world.refresh(client, first))["refresh_token"]
    world.clock.move(days=29)
    await world.delete_expired()
    await refusal(world.refresh(client, first))

    assert (await refusal(world.refresh(client, second))).oauth == "invalid_grant"


async def test_a_revoked_token_is_forgotten_when_it_would_have_ended(world: World) -> None:
    """It is not believed any more by itself."""
    client, verifier = await world.public_client(), new_verifier()
    tokens = await world.redeem(client, await world.code(client, verifier), verifier)
    form = (("client_id", client), ("token", tokens["access_token"]))
    await world.oauth.revoke(form, {})
    world.clock.move(minutes=59)
    await world.delete_expired()
    assert len(await world.rows(REVOKED_TOKENS)) == 1
    world.clock.move(minutes=1)
    await world.delete_expired()

    assert await world.rows(REVOKED_TOKENS) == []
