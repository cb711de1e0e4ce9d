"""Authentication of clients: by Basic, by form, by a signed assertion, or by the name alone."""

import time
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from edge_api.oauth.clients import AuthMethod, NewClient
from tests.edge.oauth.conftest import SITE, World, basic, refusal

CREDENTIALS = {"grant_type": "client_credentials"}
ASSERTED = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_secret_may_come_in_the_header_or_in_the_form(
    world: World, method: AuthMethod
) -> None:
    """Whichever of the two was registered."""
    client, secret = await world.confidential_client(method)

    by_header = await world.token(basic(client, secret), **CREDENTIALS)
    by_form = await world.token(client_id=client, client_secret=secret, **CREDENTIALS)
    for tokens in (by_header, by_form):
        assert "refresh_token" not in tokens
        actor = await world.authenticator.authenticate(tokens["access_token"], "mcp")
        assert (actor.client_id, set(actor.scopes)) == (client, {"posts:read", "mcp"})


async def test_wrong_credentials_get_401_and_a_challenge(world: World) -> None:
    """In the same words whatever is wrong."""
    client, secret = await world.confidential_client()
    attempts: list[tuple[dict[str, str], dict[str, str]]] = [
        (basic(client, secret[:-1]), {}),
        (basic("nobody", secret), {}),
        ({"Authorization": "Basic ????"}, {}),
        ({"Authorization": "Basic /w=="}, {}),
        ({}, {"client_id": client}),
        ({}, {"client_id": client, "client_secret": "guess"}),
        ({}, {}),
    ]
    for headers, form in attempts:
        problem = await refusal(world.token(headers, **CREDENTIALS, **form))
        assert problem.oauth in ("invalid_client", "invalid_request"), (headers, form)
        if problem.oauth == "invalid_client":
            assert problem.headers["WWW-Authenticate"] == 'Basic realm="oauth"'


async def test_a_client_authenticates_in_one_way(world: World) -> None:
    """Two at once are refused, and so are two names (RFC 6749, section 2.3)."""
    client, secret = await world.confidential_client()
    other, _ = await world.confidential_client()
    header = basic(client, secret)

    twice = world.token(header, client_secret=secret, **CREDENTIALS)
    assert (await refusal(twice)).oauth == "invalid_request"
    two = world.token(header, client_id=other, **CREDENTIALS)
    assert (await refusal(two)).oauth == "invalid_request"


async def test_a_public_client_does_not_act_for_itself(world: World) -> None:
    """Anybody could take its name."""
    client = await world.public_client()

    problem = await refusal(world.token(client_id=client, **CREDENTIALS))
    assert problem.oauth == "invalid_client"


async def test_a_client_gets_no_more_than_it_was_registered_for(world: World) -> None:
    """Neither scopes nor grants."""
    client, secret = await world.confidential_client()
    header = basic(client, secret)

    tokens = await world.token(header, scope="posts:read leads:read", **CREDENTIALS)
    assert tokens["scope"] == "posts:read"
    nothing = world.token(header, scope="leads:read", **CREDENTIALS)
    assert (await refusal(nothing)).oauth == "invalid_scope"
    unknown = world.token(header, scope="everything", **CREDENTIALS)
    assert (await refusal(unknown)).oauth == "invalid_scope"
    code = world.token(header, grant_type="authorization_code", code="x")
    assert (await refusal(code)).oauth == "unauthorized_client"


async def test_a_rotated_secret_ends_the_old_one(world: World) -> None:
    """At once."""
    client, old = await world.confidential_client()
    new = (await world.oauth.clients.rotate(client))["secret"] or ""

    assert (await world.token(basic(client, new), **CREDENTIALS))["access_token"]
    late = world.token(basic(client, old), **CREDENTIALS)
    assert (await refusal(late)).oauth == "invalid_client"


KEYS = {
    "ES256": ECKey.generate_key("P-256", auto_kid=True),
    "RS256": RSAKey.generate_key(2048, auto_kid=True),
    "Ed25519": OKPKey.generate_key("Ed25519", auto_kid=True),
}


async def signing_client(world: World, key: Any) -> str:
    """Return the id of a client that signs with `key`."""
    jwks = KeySet([key]).as_dict(private=False)
    order = NewClient("Signer", "private_key_jwt", ("client_credentials",), ("mcp",), jwks=jwks)
    return str((await world.oauth.clients.register(order))["id"])


def assertion(key: Any, client: str, algorithm: str = "ES256", **claims: Any) -> dict[str, str]:
    """Return the form members of an assertion; a claim of `None` is left out."""
    now = int(time.time())
    given = {
        "iss": client,
        "sub": client,
        "aud": SITE,
        "exp": now + 300,
        "iat": now,
        "jti": f"{time.monotonic_ns()}",
        **claims,
    }
    header = {"alg": algorithm, "kid": key.kid}
    known = {name: value for name, value in given.items() if value is not None}
    text = jwt.encode(header, known, key, algorithms=[algorithm])
    return {"client_assertion_type": ASSERTED, "client_assertion": text}


@pytest.fixture
def present(world: World) -> None:
    """Move the clock to the present: the library looks at the machine's."""
    world.clock.move(seconds=time.time() - world.clock.now.timestamp())


@pytest.mark.usefixtures("present")
@pytest.mark.parametrize("algorithm", list(KEYS))
async def test_a_client_may_sign_for_itself(world: World, algorithm: str) -> None:
    """With an elliptic curve, RSA or Edwards curve key, for the issuer or the token endpoint."""
    key = KEYS[algorithm]
    client = await signing_client(world, key)

    for audience in (SITE, f"{SITE}/api/public/oauth/token"):
        form = assertion(key, client, algorithm, aud=audience)
        assert (await world.token(**CREDENTIALS, **form))["scope"] == "mcp"


@pytest.mark.usefixtures("present")
async def test_an_assertion_works_once(world: World) -> None:
    """A second time it is refused, within its life."""
    key = KEYS["ES256"]
    client = await signing_client(world, key)
    form = assertion(key, client)

    assert (await world.token(**CREDENTIALS, **form))["access_token"]
    again = world.token(**CREDENTIALS, **form)
    assert (await refusal(again)).oauth == "invalid_client"


@pytest.mark.usefixtures("present")
@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://elsewhere.example"},
        {"aud": None},
        {"exp": 1},
        {"exp": None},
        {"exp": int(time.time()) + 100_000},
        {"iss": "somebody"},
        {"sub": "somebody"},
        {"sub": None},
        {"sub": 7},
        {"jti": None},
        {"jti": 7},
        {"jti": ["x"]},
        {"exp": "soon"},
    ],
)
async def test_a_faulty_assertion_is_refused(world: World, claims: dict[str, Any]) -> None:
    """With a sentence, never with a fault of ours."""
    key = KEYS["ES256"]
    client = await signing_client(world, key)

    problem = await refusal(world.token(**CREDENTIALS, **assertion(key, client, **claims)))
    assert (problem.oauth, problem.status) == ("invalid_client", 401)


@pytest.mark.usefixtures("present")
@pytest.mark.parametrize("odd", [{"more": float("nan")}, {"more": 10**400}])
async def test_an_assertion_that_cannot_be_known_again_is_refused(
    world: World, odd: dict[str, Any]
) -> None:
    """As the client's fault, in OAuth's words."""
    client = await signing_client(world, KEYS["ES256"])
    form = {**assertion(KEYS["ES256"], client, **odd), "client_id": client}

    problem = await refusal(world.token(grant_type="client_credentials", **form))
    assert (problem.status, problem.oauth) == (401, "invalid_client")


@pytest.mark.usefixtures("present")
async def test_an_assertion_of_another_key_is_refused(world: World) -> None:
    """And so is what is none, however it is broken."""
    client = await signing_client(world, KEYS["ES256"])
    stranger = ECKey.generate_key("P-256", auto_kid=True)
    good = assertion(KEYS["ES256"], client)["client_assertion"]
    head, claims, signature = good.split(".")

    texts = [
        assertion(stranger, client)["client_assertion"],
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature[:-2]}",
        f"{head}.e30.{signature}",
        "a.b.c",
        "...",
        "e30.e30.e30",
        f"{head}.{'A' * 20_000}.{signature}",
    ]
    for text in texts:
        form = {"client_assertion_type": ASSERTED, "client_assertion": text}
        problem = await refusal(world.token(**CREDENTIALS, **form))
        assert problem.oauth in ("invalid_client", "invalid_request"), text[:60]


@pytest.mark.usefixtures("present")
async def test_an_assertion_and_another_name_contradict_each_other(world: World) -> None:
    """The signer and the client must be the same (RFC 7521, section 4.2)."""
    key = KEYS["ES256"]
    client = await signing_client(world, key)

    asking = world.token(**CREDENTIALS, **assertion(key, client), client_id="somebody")
    assert (await refusal(asking)).oauth == "invalid_request"


@pytest.mark.usefixtures("present")
async def test_a_used_assertion_is_remembered_as_long_as_it_could_be_used(world: World) -> None:
    """Beyond its end, by as much as clocks may differ."""
    key = KEYS["ES256"]
    client = await signing_client(world, key)
    form = assertion(key, client, exp=int(time.time()) + 3590)
    assert (await world.token(**CREDENTIALS, **form))["access_token"]

    world.clock.move(seconds=3660)
    await world.delete_expired()
    assert (await refusal(world.token(**CREDENTIALS, **form))).oauth == "invalid_client"
