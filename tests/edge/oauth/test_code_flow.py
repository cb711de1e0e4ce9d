"""Codes and tokens from consent to the end: what is handed out, to whom, how often."""

import asyncio
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from edge_api.auth.actor import SERVICE
from edge_api.auth.keys import NewKey
from edge_api.auth.tokens import read
from edge_api.db.internal_tables import OAUTH_GRANTS
from edge_api.db.tables import AUDIT_LOG
from edge_api.oauth.consents import ConsentRequest, ErrorRedirect
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES
from tests.edge.oauth.conftest import REDIRECT, SITE, World, new_verifier, refusal
from tests.sizes import scaled

MCP = f"{SITE}/api/public/mcp"
REST = f"{SITE}/api/public/v1"
ROUNDS = scaled(quick=2, ci=20, judge=100)
"""Rounds of fifty concurrent requests."""


async def connected(world: World, **changes: str) -> tuple[str, dict[str, Any]]:
    """Return a client and the tokens that it got for a code."""
    client, verifier = await world.public_client(), new_verifier()
    code = await world.code(client, verifier, **changes)
    return client, await world.redeem(client, code, verifier)


async def test_a_code_gives_an_access_token_and_a_refresh_token(world: World) -> None:
    """For the scopes that were granted and the resource that was named."""
    _, tokens = await connected(world, scope="posts:read mcp", resource=MCP)

    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
    assert tokens["scope"] == "posts:read mcp"
    actor = await world.authenticator.authenticate(tokens["access_token"], "mcp")
    assert actor.scopes == {"posts:read", "mcp"}


async def test_a_token_may_touch_the_tables_of_the_key_that_allowed_it(world: World) -> None:
    """And no other, whatever its scopes."""
    client, verifier = await world.public_client(), new_verifier()
    asked = await world.ask(verifier, client, scope="admin:read")
    assert isinstance(asked, ConsentRequest)
    key = await world.keys.issue(NewKey("holder", scopes=("admin:read",), tables=("leads",)))
    holder = await world.authenticator.authenticate(key.secret)
    location = await world.oauth.consents.allow(asked, holder, asked.scopes)
    code = dict(parse_qsl(urlsplit(location).query))["code"]
    tokens = await world.redeem(client, code, verifier)

    actor = await world.authenticator.authenticate(tokens["access_token"])
    assert actor.tables == frozenset({"leads"})


async def test_a_token_is_valid_for_its_resource_alone(world: World) -> None:
    """One without a named resource opens both."""
    doors = {MCP: ("mcp",), REST: ("rest",), "": ("rest", "mcp"), SITE: ("rest", "mcp")}
    for resource, opened in doors.items():
        _, tokens = await connected(world, resource=resource)
        for audience in ("rest", "mcp"):
            asking = world.authenticator.authenticate(tokens["access_token"], audience)
            if audience in opened:
                assert (await asking).client_id
            else:
                assert (await refusal(asking)).code == "unauthenticated"


async def test_a_refresh_token_gives_new_ones_once(world: World) -> None:
    """Its replay ends everything that the grant gave."""
    client, first = await connected(world)
    second = await world.refresh(client, first["refresh_token"])

    assert second["refresh_token"] != first["refresh_token"]
    assert (
        await world.authenticator.authenticate(second["access_token"], "mcp")
    ).client_id == client
    problem = await refusal(world.refresh(client, first["refresh_token"]))
    assert problem.oauth == "invalid_grant"
    assert (await refusal(world.refresh(client, second["refresh_token"]))).oauth == "invalid_grant"
    for tokens in (first, second):
        asking = world.authenticator.authenticate(tokens["access_token"], "mcp")
        assert (await refusal(asking)).code == "unauthenticated"


async def test_a_refresh_token_may_ask_for_less_never_for_more(world: World) -> None:
    """Fewer scopes for this access token; the next may have all of them again."""
    client, tokens = await connected(world, scope="posts:read mcp")
    less = await world.refresh(client, tokens["refresh_token"], scope="posts:read")

    assert less["scope"] == "posts:read"
    more = world.refresh(client, less["refresh_token"], scope="posts:read admin:read")
    assert (await refusal(more)).oauth == "invalid_scope"
    again = await world.refresh(client, less["refresh_token"])
    assert again["scope"] == "posts:read mcp"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": new_verifier()}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_request"),
        ({"redirect_uri": "https://client.example/other"}, "invalid_grant"),
        ({"code": "fe_ac_unknown"}, "invalid_grant"),
        ({"code": ""}, "invalid_request"),
        ({"resource": REST}, "invalid_target"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": ""}, "invalid_request"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_id": ""}, "invalid_client"),
        ({"client_secret": "made up"}, "invalid_client"),
        ({"code": 'a"b'}, "invalid_request"),
        ({"code": "ä"}, "invalid_request"),
    ],
)
async def test_a_faulty_exchange_is_refused_and_burns_nothing(
    world: World, changes: dict[str, str], error: str
) -> None:
    """With the code of RFC 6749, section 5.2; the right request still succeeds."""
    client, verifier = await world.public_client(), new_verifier()
    code = await world.code(client, verifier, resource=MCP)

    problem = await refusal(world.redeem(client, code, verifier, **changes))
    assert (problem.oauth, problem.status) == (error, 401 if error == "invalid_client" else 400)
    assert (await world.redeem(client, code, verifier))["access_token"]


async def test_the_redirect_need_not_be_named_again(world: World) -> None:
    """PKCE binds the code to its client (OAuth 2.1, section 10.2)."""
    client, verifier = await world.public_client(), new_verifier()
    code = await world.code(client, verifier)

    assert (await world.redeem(client, code, verifier, redirect_uri=""))["access_token"]


async def test_a_token_may_be_for_a_part_of_what_was_granted(world: World) -> None:
    """A grant for the whole origin gives tokens for one door, not the other way round."""
    client, verifier = await world.public_client(), new_verifier()
    code = await world.code(client, verifier)
    tokens = await world.redeem(client, code, verifier, resource=MCP)
    mcp = await world.authenticator.authenticate(tokens["access_token"], "mcp")
    assert mcp.client_id == client
    assert (
        await refusal(world.authenticator.authenticate(tokens["access_token"]))
    ).code == "unauthenticated"

    whole = await world.refresh(client, tokens["refresh_token"], resource=f"{SITE}/")
    assert await world.authenticator.authenticate(whole["access_token"])
    assert await world.authenticator.authenticate(whole["access_token"], "mcp")


@pytest.mark.parametrize("resource", [MCP, REST, SITE])
async def test_a_slash_at_the_end_of_a_resource_changes_nothing(
    world: World, resource: str
) -> None:
    """Texts name the APIs with it too; the token's audience has none. Two slashes are another."""
    client, verifier = await world.public_client(), new_verifier()
    scope = "posts:read mcp"
    code = await world.code(client, verifier, scope=scope, resource=f"{resource}/")
    problem = await refusal(world.redeem(client, code, verifier, resource=f"{resource}//"))
    assert problem.oauth == "invalid_target"
    tokens = await world.redeem(client, code, verifier, resource=f"{resource}/")
    again = await world.refresh(client, tokens["refresh_token"], resource=f"{resource}/")

    for text in (tokens["access_token"], again["access_token"]):
        token = read(text, SITE, await world.oauth.keys.verification_keys())
        assert token is not None
        assert token.resource == resource


async def test_a_scope_that_names_nothing_is_not_left_out(world: World) -> None:
    """Else the habit of asking for offline_access alone would ask for everything."""
    client = await world.public_client()
    sent = await world.ask(new_verifier(), client, scope="offline_access")
    assert isinstance(sent, ErrorRedirect)
    assert "error=invalid_scope" in sent.location

    asked = await world.ask(new_verifier(), client, scope="offline_access posts:read")
    assert isinstance(asked, ConsentRequest)
    assert asked.scopes == ("posts:read",)


async def test_a_code_is_for_the_client_that_asked(world: World) -> None:
    """Another one gets nothing for it, and ends nothing."""
    client, other, verifier = (
        await world.public_client(),
        await world.public_client(),
        new_verifier(),
    )
    code = await world.code(client, verifier)

    assert (await refusal(world.redeem(other, code, verifier))).oauth == "invalid_grant"
    assert (await world.redeem(client, code, verifier))["access_token"]


async def test_a_code_lives_a_minute_and_a_refresh_token_a_month(world: World) -> None:
    """After that they are worth nothing."""
    client, verifier = await world.public_client(), new_verifier()
    code = await world.code(client, verifier)
    world.clock.move(seconds=60)
    assert (await refusal(world.redeem(client, code, verifier))).oauth == "invalid_grant"

    _, tokens = await connected(world)
    world.clock.move(days=30)
    late = world.refresh(client, tokens["refresh_token"])
    assert (await refusal(late)).oauth == "invalid_grant"


async def test_an_access_token_lives_an_hour(world: World) -> None:
    """Then it is as good as unknown."""
    _, tokens = await connected(world)
    world.clock.move(minutes=59)
    assert await world.authenticator.authenticate(tokens["access_token"])
    world.clock.move(minutes=1)

    asking = world.authenticator.authenticate(tokens["access_token"])
    assert (await refusal(asking)).code == "unauthenticated"


@pytest.mark.size("quick", grows=True)
async def test_a_code_used_fifty_times_at_once_gives_tokens_once_and_revokes_them(
    world: World,
) -> None:
    """For a code as for a refresh token, in every round."""
    client = await world.public_client()
    for _ in range(ROUNDS):
        verifier = new_verifier()
        code = await world.code(client, verifier)
        won = await only_success(world.redeem(client, code, verifier) for _ in range(50))
        await expect_revoked(world, won)

        fresh = await world.redeem(client, await world.code(client, verifier), verifier)
        token = fresh["refresh_token"]
        won = await only_success(world.refresh(client, token) for _ in range(50))
        await expect_revoked(world, won)


async def only_success(attempts: Any) -> dict[str, Any]:
    """Return what the one of all attempts got that succeeded."""
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    won = [outcome for outcome in outcomes if isinstance(outcome, dict)]
    lost = {getattr(outcome, "oauth", outcome) for outcome in outcomes if outcome not in won}
    assert (len(won), lost) == (1, {"invalid_grant"})
    return won[0]


async def expect_revoked(world: World, tokens: dict[str, Any]) -> None:
    """Fail unless tokens are worth nothing any more."""
    asking = world.authenticator.authenticate(tokens["access_token"])
    assert (await refusal(asking)).code == "unauthenticated"


async def test_a_key_that_publishes_grants_drafts_too(world: World) -> None:
    """The scope that publishes includes the other one, in keys and in what they grant."""
    client, verifier = await world.public_client(), new_verifier()
    asked = await world.ask(verifier, client, scope="posts:draft mcp")
    assert isinstance(asked, ConsentRequest)
    _, holder = await world.holder("mcp", "posts:publish")
    location = await world.oauth.consents.allow(asked, holder, asked.scopes)
    code = dict(parse_qsl(urlsplit(location).query))["code"]
    tokens = await world.redeem(client, code, verifier)
    actor = await world.authenticator.authenticate(tokens["access_token"])
    assert actor.scopes == {"posts:draft", "mcp"}


async def test_revoking_the_key_ends_what_it_granted(world: World) -> None:
    """From the next request on, tokens and refresh tokens alike."""
    client, verifier = await world.public_client(), new_verifier()
    asked = await world.ask(verifier, client)
    assert isinstance(asked, ConsentRequest)
    _, holder = await world.holder()
    chosen = (*asked.scopes, PUBLISH_WITH_ENQUIRIES)
    location = await world.oauth.consents.allow(asked, holder, chosen)
    code = dict(parse_qsl(urlsplit(location).query))["code"]
    tokens = await world.redeem(client, code, verifier)
    assert await world.authenticator.authenticate(tokens["access_token"])

    await world.keys.revoke(holder.credential_id)

    await expect_revoked(world, tokens)
    assert (await refusal(world.refresh(client, tokens["refresh_token"]))).oauth == "invalid_grant"


async def test_revoking_a_client_ends_what_it_was_granted(world: World) -> None:
    """It is unknown from then on."""
    client, tokens = await connected(world)
    await world.oauth.clients.revoke(client)

    await expect_revoked(world, tokens)
    late = world.refresh(client, tokens["refresh_token"])
    assert (await refusal(late)).oauth == "invalid_client"


async def test_a_holder_grants_no_more_than_the_key_may_do(world: World) -> None:
    """Scopes that the key lacks are left out; a grant without any is refused."""
    client, verifier = await world.public_client(), new_verifier()
    asked = await world.ask(verifier, client)
    assert isinstance(asked, ConsentRequest)
    _, holder = await world.holder("posts:read")

    location = await world.oauth.consents.allow(asked, holder, asked.scopes)
    code = dict(parse_qsl(urlsplit(location).query))["code"]
    assert (await world.redeem(client, code, verifier))["scope"] == "posts:read"
    nothing = world.oauth.consents.allow(asked, holder, ["leads:read"])
    assert (await refusal(nothing)).code == "invalid"


async def test_a_denial_is_sent_to_the_client(world: World) -> None:
    """With its state, and by whom (RFC 9207)."""
    asked = await world.ask(new_verifier(), await world.public_client())
    assert isinstance(asked, ConsentRequest)

    location = await world.oauth.consents.deny(asked)
    answer = dict(parse_qsl(urlsplit(location).query))
    assert location.startswith(f"{REDIRECT}?")
    assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "st", SITE)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": 'a"b'}, "invalid_request"),
        ({"response_type": ""}, "unsupported_response_type"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": ""}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"scope": "posts:read everything"}, "invalid_scope"),
        ({"resource": "https://elsewhere.example"}, "invalid_target"),
    ],
)
async def test_a_faulty_request_is_sent_back(
    world: World, changes: dict[str, str], error: str
) -> None:
    """If client and redirect URI are right, the error is sent to the client."""
    back = await world.ask(new_verifier(), await world.public_client(), **changes)

    assert isinstance(back, ErrorRedirect)
    answer = dict(parse_qsl(urlsplit(back.location).query))
    assert back.location.startswith(f"{REDIRECT}?")
    assert (answer["error"], answer["state"], answer["iss"]) == (error, "st", SITE)
    assert answer["error_description"]


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "nobody"},
        {"client_id": ""},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": f"{REDIRECT}/"},
        {"redirect_uri": f"{REDIRECT}?x=1"},
        {"redirect_uri": 'https://client.example/"'},
    ],
)
async def test_an_unregistered_redirect_uri_is_not_followed(
    world: World, changes: dict[str, str]
) -> None:
    """An unknown client, or an unregistered redirect URI, is reported to the person."""
    asking = world.ask(new_verifier(), await world.public_client(), **changes)

    assert (await refusal(asking)).code in ("invalid", "forbidden")


async def test_every_step_of_the_flow_is_in_the_audit_log(world: World) -> None:
    """Registration, grant, issue, refusal and revocation, each by whom."""
    client, tokens = await connected(world)
    await world.refresh(client, tokens["refresh_token"])
    await refusal(world.refresh(client, tokens["refresh_token"]))

    entries = [
        (row["verb"], row["table_name"], row["actor"]) for row in await world.rows(AUDIT_LOG)
    ]
    grants = [entry for entry in entries if entry[1] == "oauth_grants"]
    verbs = sorted(verb for verb, _, _ in grants)
    assert verbs == ["grant", "issue", "issue", "refuse", "revoke"]
    assert all(f"client:{client}" in actor for _, _, actor in grants)
    assert ("register", "oauth_clients", "credential:operator") in entries
    assert ("issue", "oauth_signing_keys", SERVICE.label) in entries
    (grant,) = await world.rows(OAUTH_GRANTS)
    assert grant["revoked_at"] is not None


async def test_a_refresh_request_ignores_a_code_beside_it(world: World) -> None:
    """A refresh token with somebody else's code beside it gives what the token is good for."""
    client, verifier = await world.public_client(), new_verifier()
    mine = await world.redeem(
        client, await world.code(client, verifier, scope="posts:read"), verifier
    )
    theirs = await world.code(client, verifier)

    answer = await world.refresh(client, mine["refresh_token"], code=theirs)
    assert answer["scope"] == "posts:read"
    replayed = world.refresh(client, mine["refresh_token"], code=theirs)
    assert (await refusal(replayed)).oauth == "invalid_grant"
    assert (await refusal(world.authenticator.authenticate(answer["access_token"]))).status == 401
    form = {"client_id": client, "token": "unknown", "code": theirs, "refresh_token": "x"}
    await world.oauth.revoke((*form.items(), ("grant_type", "authorization_code")), {})
    assert "admin:write" in (await world.redeem(client, theirs, verifier))["scope"]


async def test_a_code_beside_a_refresh_token_is_a_code(world: World) -> None:
    """The other way round likewise: the grant is the code's."""
    client, verifier = await world.public_client(), new_verifier()
    mine = await world.redeem(client, await world.code(client, verifier), verifier)
    code = await world.code(client, verifier, scope="posts:read")

    answer = await world.redeem(client, code, verifier, refresh_token=mine["refresh_token"])
    assert answer["scope"] == "posts:read"
    assert (await world.refresh(client, mine["refresh_token"]))["access_token"]
