"""The authorization server over HTTP, as programs meet it."""

from typing import Any

import pytest

from edge_api.auth.actor import recent_entries
from edge_api.oauth.clients import NewClient
from edge_api.oauth.server import OAuthServer
from edge_api.schema.credentials import SCOPES
from tests.edge.conftest import SITE_URL
from tests.edge.oauth.conftest import basic

TOKEN = "/api/public/oauth/token"
CREDENTIALS = {"grant_type": "client_credentials"}


async def robot(edge: Any, *scopes: str) -> dict[str, str]:
    """Return the header by which a new client authenticates that acts for itself."""
    order = NewClient("Robot", "client_secret_basic", ("client_credentials",), scopes)
    registered = await edge.service[OAuthServer].clients.register(order)
    return basic(registered["id"], registered["secret"])


async def token(edge: Any, *scopes: str, **form: str) -> str:
    """Return a new access token."""
    headers = await robot(edge, *scopes)
    async with edge.ask("POST", TOKEN, headers=headers, data={**CREDENTIALS, **form}) as answer:
        assert answer.status == 200, await answer.text()
        return str((await answer.json())["access_token"])


async def test_every_address_of_the_metadata_answers(edge: Any) -> None:
    """Nothing is announced that is not there."""
    async with edge.ask("GET", "/.well-known/oauth-authorization-server") as answer:
        metadata = await answer.json()

    assert metadata["issuer"] == SITE_URL
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["authorization_response_iss_parameter_supported"] is True
    assert metadata["client_id_metadata_document_supported"] is True
    addresses = [value for name, value in metadata.items() if name.endswith(("_endpoint", "_uri"))]
    for address in addresses:
        async with edge.ask("OPTIONS", address.removeprefix(SITE_URL)) as answer:
            assert answer.status == 204


@pytest.mark.parametrize(
    ("path", "scopes"),
    [
        ("", set(SCOPES)),
        ("/api/public/v1", set(SCOPES) - {"mcp"}),
        (
            "/api/public/mcp",
            set(SCOPES) - {"admin:write", "mail:send", "subscribers:write", "metrics:read"},
        ),
    ],
)
async def test_each_resource_says_who_hands_out_its_tokens(
    edge: Any, path: str, scopes: set[str]
) -> None:
    """At the place that its identifier leads to (RFC 9728, section 3), with what scopes open it."""
    async with edge.ask("GET", f"/.well-known/oauth-protected-resource{path}") as answer:
        metadata = await answer.json()

    assert metadata["resource"] == f"{SITE_URL}{path}"
    assert metadata["authorization_servers"] == [SITE_URL]
    assert metadata["bearer_methods_supported"] == ["header"]
    assert set(metadata["scopes_supported"]) == scopes


async def test_a_token_opens_the_rest_api(edge: Any) -> None:
    """With its scopes and no others."""
    bearer = {"Authorization": f"Bearer {await token(edge, 'posts:read')}"}
    async with edge.ask("GET", "/api/public/v1/posts", headers=bearer) as answer:
        assert answer.status == 200
    async with edge.ask("GET", "/api/public/v1/leads", headers=bearer) as answer:
        assert answer.status == 403
        assert 'scope="leads:read"' in answer.headers["WWW-Authenticate"]


async def test_a_token_for_mcp_does_not_open_the_rest_api(edge: Any) -> None:
    """It was handed out for something else."""
    text = await token(edge, "posts:read", resource=f"{SITE_URL}/api/public/mcp")
    async with edge.ask(
        "GET", "/api/public/v1/posts", headers={"Authorization": f"Bearer {text}"}
    ) as answer:
        assert answer.status == 401
        challenge = answer.headers["WWW-Authenticate"]
    assert 'error="invalid_token"' in challenge
    assert f'{SITE_URL}/.well-known/oauth-protected-resource/api/public/v1"' in challenge


async def test_a_write_of_a_client_is_logged_as_its_own(edge: Any) -> None:
    """An administrative change by a token is in the audit log under the client's name."""
    headers = await robot(edge, "admin:write")
    async with edge.ask("POST", TOKEN, headers=headers, data=CREDENTIALS) as answer:
        bearer = {"Authorization": f"Bearer {(await answer.json())['access_token']}"}
    row = {"email": "a@example.org", "reason": "bounce"}
    path = "/api/public/v1/admin/suppressed_emails"
    async with edge.ask("POST", path, headers=bearer, json=row) as answer:
        assert answer.status == 201

    (client,) = await edge.service[OAuthServer].clients.all()
    newest = (await recent_entries(edge.service.store, 1))[0]
    assert (newest["actor"], newest["verb"]) == (f"client:{client['id']}", "insert")


async def test_errors_are_those_of_oauth(edge: Any) -> None:
    """With a code and a description, and nothing kept by caches."""
    attempts: list[tuple[dict[str, Any], int, str]] = [
        ({"data": CREDENTIALS}, 401, "invalid_client"),
        ({"data": {}}, 400, "invalid_request"),
        ({"data": {"grant_type": "password"}}, 400, "unsupported_grant_type"),
        ({"json": CREDENTIALS}, 415, "invalid_request"),
        ({"data": "grant_type=%ff"}, 415, "invalid_request"),
        ({"data": [("grant_type", "a"), ("grant_type", "b")]}, 400, "invalid_request"),
        ({"data": {"grant_type": "ä"}}, 400, "invalid_request"),
    ]
    for body, status, error in attempts:
        async with edge.ask("POST", TOKEN, **body) as answer:
            said = await answer.json()
            assert (answer.status, said["error"]) == (status, error), body
            assert said["error_description"]
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["Access-Control-Allow-Origin"] == "*"


async def test_the_token_endpoint_is_limited(make_edge: Any) -> None:
    """For an address, with the header that says when to come again."""
    async with make_edge(RATE_TOKEN="2/minute") as edge:
        statuses = []
        for _ in range(3):
            async with edge.ask("POST", TOKEN, data=CREDENTIALS) as answer:
                statuses.append(answer.status)
                said = await answer.json()
        assert statuses == [401, 401, 429]
        assert said["error"] == "temporarily_unavailable"
        assert int(answer.headers["Retry-After"]) > 0


async def test_a_client_registers_itself(edge: Any) -> None:
    """Over JSON; a fault has the code of RFC 7591."""
    path = "/api/public/oauth/register"
    body = {"redirect_uris": ["http://localhost:8787/callback"], "client_name": "Agent"}
    async with edge.ask("POST", path, json=body) as answer:
        assert answer.status == 201
        assert (await answer.json())["client_name"] == "Agent"
    async with edge.ask("POST", path, json={"redirect_uris": ["ftp://x/"]}) as answer:
        assert (answer.status, (await answer.json())["error"]) == (400, "invalid_redirect_uri")


async def test_a_token_is_taken_back(edge: Any) -> None:
    """From the next request on it opens nothing."""
    headers = await robot(edge, "posts:read")
    async with edge.ask("POST", TOKEN, headers=headers, data=CREDENTIALS) as answer:
        text = (await answer.json())["access_token"]
    bearer = {"Authorization": f"Bearer {text}"}
    for status in (200, 401):
        async with edge.ask("GET", "/api/public/v1/posts", headers=bearer) as answer:
            assert answer.status == status
        data = {"token": text}
        async with edge.ask(
            "POST", "/api/public/oauth/revoke", headers=headers, data=data
        ) as answer:
            assert (answer.status, await answer.json()) == (200, {})


async def test_keys_are_published_before_the_first_token(edge: Any) -> None:
    """A resource server may come first."""
    async with edge.ask("GET", "/.well-known/jwks.json") as answer:
        (key,) = (await answer.json())["keys"]
    assert (key["kty"], key["crv"], key["alg"]) == ("EC", "P-256", "ES256")
