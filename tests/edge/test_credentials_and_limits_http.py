from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import ClientResponse

from edge_api.auth.keys import Keys, NewKey
from edge_api.auth.secrets import mint
from edge_api.schema.credentials import CREDENTIAL_SCOPES
from edge_api.settings import SETTINGS
from tests.edge.mcp.agents import LEGACY, Agent

PATH = "/api/public/v1/leads"
GOOD = {
    "name": "Ann Lee",
    "email": "ann@example.org",
    "budget_tier": "5k-10k",
    "message": "Hello",
}
METADATA = (
    'resource_metadata="http://journal.test/.well-known/oauth-protected-resource/api/public/v1"'
)
MISSING = f'Bearer realm="api", {METADATA}'
INVALID = f'Bearer realm="api", error="invalid_token", {METADATA}'


def default(*names: str) -> dict[str, str]:
    """Return settings at their defaults, which the tests else switch off."""
    return {name: str(SETTINGS[name].default) for name in names}


async def post(edge: Any, key: str | None = None, **more: Any) -> tuple[ClientResponse, Any]:
    """Send a lead; return the answer with its body."""
    more.setdefault("json", GOOD)
    async with edge.ask("POST", PATH, key, **more) as answer:
        return answer, await answer.json()


CREDENTIALS: dict[str, Callable[[str], dict[str, str]]] = {
    "X-API-Key": lambda key: {"X-API-Key": key},
    "x-api-key": lambda key: {"x-api-key": key},
    "Bearer": lambda key: {"Authorization": f"Bearer {key}"},
    "bearer": lambda key: {"authorization": f"bearer {key}"},
    "both, alike": lambda key: {"X-API-Key": key, "Authorization": f"Bearer {key}"},
    "beside another scheme": lambda key: {"X-API-Key": key, "Authorization": "Basic eDp5"},
}


@pytest.mark.parametrize("headers", CREDENTIALS.values(), ids=CREDENTIALS)
async def test_a_key_is_taken_from_either_header(
    edge: Any, headers: Callable[[str], dict[str, str]]
) -> None:
    """In any case of letters."""
    sent = headers(await edge.key("leads:read"))

    async with edge.ask("GET", PATH, headers=sent) as answer:
        assert answer.status == 200


async def test_two_different_credentials_are_refused(edge: Any) -> None:
    """Even when both are valid."""
    one, other = await edge.key(), await edge.key()

    async with edge.ask("GET", PATH, one, headers={"Authorization": f"Bearer {other}"}) as answer:
        assert answer.status == 400


@pytest.mark.parametrize(
    ("method", "headers", "status", "challenge"),
    [
        ("GET", {}, 401, MISSING),
        ("GET", {"Authorization": "Basic eDp5"}, 401, MISSING),
        ("GET", {"X-API-Key": "nonsense"}, 401, INVALID),
        ("GET", {"X-API-Key": ""}, 401, INVALID),
        ("GET", {"X-API-Key": mint("api_key")}, 401, INVALID),
        ("GET", {"Authorization": "Bearer \u00e9"}, 401, INVALID),
        ("POST", {}, 201, None),
        ("POST", {"Authorization": "Basic eDp5"}, 201, None),
        ("POST", {"X-API-Key": "nonsense"}, 401, INVALID),
        ("POST", {"Authorization": f"Bearer {mint('api_key')}"}, 401, INVALID),
    ],
)
async def test_a_challenge_says_what_was_wrong(
    edge: Any, method: str, headers: dict[str, str], status: int, challenge: str | None
) -> None:
    """`error` is in it only when a credential was sent (RFC 6750, section 3.1)."""
    body = {"json": GOOD} if method == "POST" else {}

    async with edge.ask(method, PATH, headers=headers, **body) as answer:
        assert (answer.status, answer.headers.get("WWW-Authenticate")) == (status, challenge)
        if status == 401:
            assert await answer.json() == {"error": "Missing or invalid credential"}


@pytest.mark.parametrize(
    ("scope", "statuses"),
    [
        ("leads:read", (200, 403)),
        ("leads:write", (403, 201)),
        ("posts:read", (403, 403)),
        ("admin:read", (403, 403)),
        ("admin:write", (403, 403)),
        ("mcp", (403, 403)),
    ],
)
async def test_each_operation_needs_its_own_scope(
    edge: Any, scope: str, statuses: tuple[int, int]
) -> None:
    """No scope implies another; the challenge names the one that is needed."""
    key = await edge.key(scope)

    for method, needed, status in zip(
        ("GET", "POST"), ("leads:read", "leads:write"), statuses, strict=True
    ):
        body = {"json": GOOD} if method == "POST" else {}
        async with edge.ask(method, PATH, key, **body) as answer:
            assert answer.status == status
            if status == 403:
                assert await answer.json() == {"error": f"The credential lacks the scope {needed}"}
                assert answer.headers["WWW-Authenticate"] == (
                    f'Bearer realm="api", error="insufficient_scope", scope="{needed}", {METADATA}'
                )


async def test_a_revoked_key_is_refused_at_once(edge: Any) -> None:
    """From the next request on; the same words as for a key that never was."""
    keys = Keys(edge.service.store, edge.service.clock)
    issued = await keys.issue(NewKey("test", scopes=("leads:read",)))
    async with edge.ask("GET", PATH, issued.secret) as answer:
        assert answer.status == 200
    await keys.revoke(issued.row["id"])

    async with edge.ask("GET", PATH, issued.secret) as answer:
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, INVALID)


async def test_an_mcp_token_is_refused_by_rest(edge: Any) -> None:
    """Its audience is another endpoint, whatever its scopes say."""
    keys = Keys(edge.service.store, edge.service.clock)
    order = NewKey("agent", type="access_token", scopes=("leads:read", "mcp"))
    token = (await keys.issue(order)).secret

    async with edge.ask("GET", PATH, token) as answer:
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, INVALID)


async def test_a_credential_of_the_other_endpoint_is_named_as_such(edge: Any) -> None:
    """Its prefix says which it is for; nothing is said of whether it is valid."""
    for token in (await edge.token(), "fe_mt_nonsense"):
        async with edge.ask("GET", PATH, token) as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, INVALID)
            assert await answer.json() == {
                "error": "This access token is for the MCP endpoint, /api/public/mcp: "
                "the REST API takes an API key, or a token whose resource is the REST API"
            }
    for key in (await edge.key(), "fe_sk_nonsense"):
        said = await Agent(edge, key, LEGACY).ask("tools/list")
        assert said.status == 401
        assert said.body["error"]["message"] == (
            "This API key is for the REST API, /api/public/v1/: "
            "the MCP endpoint takes an access token"
        )


async def read_description(edge: Any) -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    """Return what the service says of itself, and its endpoints by method and path."""
    async with edge.ask("GET", "/api/public/v1/") as answer:
        description = await answer.json()
    return description, {(each["method"], each["path"]): each for each in description["endpoints"]}


async def test_the_description_has_the_limits_that_hold(make_edge: Any) -> None:
    """For leads both that stop a sender; `null` where nothing is counted."""
    async with make_edge(**default("RATE_LEADS", "RATE_LEADS_ATTEMPTS"), RATE_TOKEN="0") as edge:
        description, endpoints = await read_description(edge)

    for path in (PATH, "/api/public/access-requests"):
        assert endpoints["POST", path]["rate_limit"] == "5/10minutes;20/day;60/minute"
    assert endpoints["POST", "/api/public/oauth/token"]["rate_limit"] is None
    assert endpoints["GET", PATH]["rate_limit"] is None
    assert (description["limits"]["leads"], description["limits"]["token"]) == (
        "5/10minutes;20/day",
        None,
    )


async def test_the_description_leads_to_every_way_to_a_credential(edge: Any) -> None:
    """OAuth, auth.md and requests for access, at addresses that answer."""
    description, _ = await read_description(edge)
    oauth, ways = description["oauth"], description["authentication"]
    assert oauth["issuer"] == "http://journal.test"
    assert {"authorization_code", "client_credentials"} <= set(oauth["grant_types_supported"])
    assert ways["access_token"]["for"] == description["mcp"]["url"]
    listed = {name: list(ways[name]["scopes"]) for name in ("api_key", "access_token")}
    assert "mcp" not in listed["api_key"]
    assert {name: list(scopes) for name, scopes in CREDENTIAL_SCOPES.items()} == listed
    addresses = [value for name, value in oauth.items() if name.endswith(("endpoint", "uri"))]
    addresses += [oauth["metadata"], *oauth["protected_resources"]]
    addresses += [ways["auth_md"], ways["access_requests"]]

    assert len(addresses) == 10
    for address in addresses:
        async with edge.ask("OPTIONS", address.removeprefix("http://journal.test")) as answer:
            assert answer.status == 204, address


@pytest.mark.parametrize("closed", ["false", "true"])
async def test_every_description_says_whether_leads_are_open(make_edge: Any, closed: str) -> None:
    """OpenAPI, the self-description and the reference, as LEADS_REQUIRE_CREDENTIAL has it."""
    async with make_edge(LEADS_REQUIRE_CREDENTIAL=closed) as edge:
        _, endpoints = await read_description(edge)
        async with edge.ask("GET", "/api/public/v1/openapi.json") as answer:
            operation = (await answer.json())["paths"][PATH]["post"]
        async with edge.ask("GET", "/docs/leads/index.md") as answer:
            assert answer.status == 200
            reference = await answer.text()

    is_open = closed == "false"
    assert endpoints["POST", PATH]["credential"] == ("optional" if is_open else "required")
    assert ({} in operation["security"]) is is_open
    assert ("without a credential" in operation["description"]) is is_open
    assert ("one that is sent must be valid" in reference) is is_open


async def test_leads_can_be_closed_by_a_setting(make_edge: Any) -> None:
    """Then a credential is needed, and its scope."""
    async with make_edge(LEADS_REQUIRE_CREDENTIAL="true") as edge:
        answer, body = await post(edge)
        assert (answer.status, body) == (401, {"error": "Missing or invalid credential"})
        assert answer.headers["WWW-Authenticate"] == MISSING
        assert (await post(edge, await edge.key("leads:write")))[0].status == 201


async def test_the_default_limits_of_leads_without_a_credential(make_edge: Any) -> None:
    """Five stored in ten minutes; what is refused or repeated counts only as an attempt of 60."""
    async with make_edge(**default("RATE_LEADS", "RATE_LEADS_ATTEMPTS")) as edge:
        for number in range(5):
            answer, _ = await post(edge, headers={"Idempotency-Key": str(number)})
            assert answer.status == 201
            left = answer.headers["RateLimit"].split(", ")
            assert any(part.startswith(f'"leads";r={4 - number};t=') for part in left)
            assert (
                '"leads";q=5;w=600, "leads-day";q=20;w=86400'
                in (answer.headers["RateLimit-Policy"])
            )
        for _ in range(10):
            assert (await post(edge, json={**GOOD, "name": ""}))[0].status == 400
        for number in range(5):
            assert (await post(edge, headers={"Idempotency-Key": str(number)}))[0].status == 201
        answer, body = await post(edge)
        assert (answer.status, list(body)) == (429, ["error"])
        assert 590 < int(answer.headers["Retry-After"]) <= 600

        statuses = [(await post(edge, json={}))[0].status for _ in range(40)]
        assert statuses == [400] * 39 + [429]
        answer, _ = await post(edge, json={})
        assert 0 < int(answer.headers["Retry-After"]) <= 60
        assert (await post(edge, await edge.key()))[0].status == 201


async def test_the_default_limit_of_a_credential(make_edge: Any) -> None:
    """600 requests a minute for each; every answer says what is left."""
    async with make_edge(**default("RATE_AUTHENTICATED")) as edge:
        key, other = await edge.key("leads:read"), await edge.key("leads:read")
        for left in range(599, -1, -1):
            async with edge.ask("GET", PATH, key) as answer:
                assert answer.status == 200
                assert answer.headers["RateLimit"].startswith(f'"authenticated";r={left};t=')
        async with edge.ask("GET", PATH, key) as answer:
            assert (answer.status, list(await answer.json())) == (429, ["error"])
            assert 0 < int(answer.headers["Retry-After"]) <= 60
        async with edge.ask("GET", PATH, other) as answer:
            assert answer.status == 200


async def test_the_default_limit_of_failed_authentication(make_edge: Any) -> None:
    """300 times 401, then 429, which never meets a valid credential."""
    async with make_edge(**default("RATE_FAILED_AUTH")) as edge:
        key = await edge.key("leads:read")
        statuses = []
        for _ in range(301):
            async with edge.ask("GET", PATH, "nonsense") as answer:
                statuses.append(answer.status)
        assert statuses == [401] * 300 + [429]
        async with edge.ask("GET", PATH, key) as answer:
            assert answer.status == 200
