import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import ClientResponse

from edge_api.domain.keys import KeyOrder, Keys
from edge_api.domain.secrets import mint
from edge_api.settings import SETTINGS

PATH = "/api/public/v1/leads"
GOOD = {
    "name": "Ann Lee",
    "email": "ann@example.org",
    "budget_tier": "5k-10k",
    "message": "Hello",
}
METADATA = 'resource_metadata="http://journal.test/.well-known/oauth-protected-resource"'
MISSING = f'Bearer realm="api", {METADATA}'
INVALID = f'Bearer realm="api", error="invalid_token", {METADATA}'


def default(*names: str) -> dict[str, str]:
    """Return settings at their defaults, which the tests else switch off."""
    return {name: str(SETTINGS[name].default) for name in names}


async def post(edge: Any, key: str | None = None, **more: Any) -> tuple[ClientResponse, Any]:
    """Send a lead; return the answer with its body."""
    answer, raw = await post_raw(edge, key, **more)
    return answer, json.loads(raw)


async def post_raw(edge: Any, key: str | None = None, **more: Any) -> tuple[ClientResponse, bytes]:
    """Send a lead; return the answer with the bytes of its body."""
    more.setdefault("json", GOOD)
    async with edge.ask("POST", PATH, key, **more) as answer:
        return answer, await answer.read()


async def listed(edge: Any, key: str, query: str = "") -> list[Any]:
    """Return the leads that the API lists."""
    async with edge.ask("GET", f"{PATH}{query}", key) as answer:
        assert answer.status == 200
        body = await answer.json()
    assert body["count"] == len(body["leads"])
    return list(body["leads"])


async def test_a_lead_is_created_listed_and_found(edge: Any) -> None:
    """The answer has both published shapes; its Location leads to the row."""
    key = await edge.key()
    answer, body = await post(edge)

    assert answer.status == 201
    assert body["lead"] == {**GOOD, "id": body["id"], "created_at": body["created_at"]}
    assert {**body["lead"], **body} == {**body["lead"], "lead": body["lead"]}
    assert answer.headers["Cache-Control"] == "no-store"
    assert await listed(edge, key) == [body["lead"]]
    async with edge.ask("GET", answer.headers["Location"], key) as found:
        rows = await found.json()
    assert [(row["id"], row["source"], row["status"]) for row in rows] == [
        (body["id"], "api", "new")
    ]


async def test_the_newest_lead_stands_first(edge: Any) -> None:
    """As many as were asked for."""
    key = await edge.key()
    for number in range(3):
        await post(edge, json={**GOOD, "message": str(number)})

    assert [lead["message"] for lead in await listed(edge, key, "?limit=2")] == ["2", "1"]
    assert len(await listed(edge, key, "?limit=200&unknown=x")) == 3


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("0", "must be 1 or more"),
        ("201", "must be 200 or less"),
        ("-1", "must be 1 or more"),
        ("x", "is not an integer"),
        ("", "is not an integer"),
        ("1.0", "is not an integer"),
        ("1e2", "is not an integer"),
        ("%20", "is not an integer"),
        ("1%0A", "is not an integer"),
        ("\u0663", "is not an integer"),
        ("9" * 30, "is not an integer"),
        ("1&limit=1", "stands more than once"),
    ],
)
async def test_a_limit_out_of_bounds_is_refused(edge: Any, limit: str, sentence: str) -> None:
    """400, naming the parameter and its bound."""
    async with edge.ask("GET", f"{PATH}?limit={limit}", await edge.key()) as answer:
        assert (answer.status, await answer.json()) == (400, {"error": f"limit: {sentence}"})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"name": ""}, "name: must have 1 to 100 characters"),
        ({"name": "x" * 101}, "name: must have 1 to 100 characters"),
        ({"name": "a\nb"}, "name: must not contain control characters"),
        ({"name": "a\x00b"}, "name: must not contain NUL"),
        ({"name": 1}, "name: must be a string"),
        ({"name": None}, "name: must be a string"),
        ({"email": "x"}, "email: not a valid e-mail address"),
        ({"email": "a@example.org\n"}, "email: must not contain control characters"),
        ({"email": f"{'a' * 244}@example.org"}, "email: must have 1 to 255 characters"),
        ({"budget_tier": "x" * 51}, "budget_tier: must have 1 to 50 characters"),
        ({"message": " \n "}, "message: must have 1 to 2000 characters"),
        ({"message": "x" * 2001}, "message: must have 1 to 2000 characters"),
        ({"consent": "yes"}, "consent: must be true or false"),
    ],
)
async def test_a_faulty_lead_is_refused(edge: Any, change: dict[str, Any], error: str) -> None:
    """400, naming the field; nothing is stored."""
    answer, body = await post(edge, json={**GOOD, **change})

    assert (answer.status, body) == (400, {"error": error})
    assert await listed(edge, await edge.key()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"name": "x" * 100},
        {"name": f"  {'x' * 100}  "},
        {"name": "e\u0301" * 100},
        {"name": "\U0001f600" * 100},
        {"email": f"{'a' * 243}@example.org"},
        {"email": "a@x.test"},
        {"budget_tier": "x" * 50},
        {"message": "x" * 2000},
        {"message": "\u0958" * 2000},
        {"message": "a\n\tb"},
        {"unknown": {"nested": [1]}},
        {"consent": True, "consent_text": "I agree."},
    ],
)
async def test_a_lead_at_its_bounds_is_taken(edge: Any, change: dict[str, Any]) -> None:
    """With a credential and without."""
    key = await edge.key()

    for credential in (None, key):
        answer, _ = await post(edge, credential, json={**GOOD, **change})
        assert answer.status == 201


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'"x"', "application/json", 400),
        (b'{"name": "\xff"}', "application/json", 400),
        (b'{"name": "\\ud800"}', "application/json", 400),
        (json.dumps(GOOD).encode(), "text/plain", 415),
        (json.dumps(GOOD).encode(), "application/x-www-form-urlencoded", 415),
        (b" " * 70_000, "application/json", 413),
    ],
)
async def test_what_is_no_lead_at_all_is_refused(
    edge: Any, body: bytes, media_type: str, status: int
) -> None:
    """Each with an Error body and nothing more."""
    answer, error = await post(edge, json=None, data=body, headers={"Content-Type": media_type})

    assert answer.status == status
    assert list(error) == ["error"]


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
        ("GET", {"X-API-Key": mint("access_token")}, 401, INVALID),
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
    """`error` stands in it only when a credential was sent (RFC 6750, section 3.1)."""
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
    issued = await keys.issue(KeyOrder("test", scopes=("leads:read",)))
    assert await listed(edge, issued.secret) == []
    await keys.revoke(issued.row["id"])

    async with edge.ask("GET", PATH, issued.secret) as answer:
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, INVALID)


async def test_an_mcp_token_opens_nothing_here(edge: Any) -> None:
    """Its audience is another endpoint, whatever its scopes say."""
    keys = Keys(edge.service.store, edge.service.clock)
    order = KeyOrder("agent", type="access_token", scopes=("leads:read", "mcp"))
    token = (await keys.issue(order)).secret

    async with edge.ask("GET", PATH, token) as answer:
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, INVALID)


async def test_leads_can_be_closed_by_a_setting(make_edge: Any) -> None:
    """Then a credential is needed, and its scope."""
    async with make_edge(LEADS_REQUIRE_CREDENTIAL="true") as edge:
        answer, body = await post(edge)
        assert (answer.status, body) == (401, {"error": "Missing or invalid credential"})
        assert answer.headers["WWW-Authenticate"] == MISSING
        assert (await post(edge, await edge.key("leads:write")))[0].status == 201


async def test_the_same_key_and_body_get_the_same_answer(edge: Any) -> None:
    """Byte by byte, said to be a repetition, with the same Location."""
    key = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
    (first, one), (again, other) = [await post_raw(edge, headers=key) for _ in range(2)]

    assert (first.status, again.status, one) == (201, 201, other)
    assert first.headers["Location"] == again.headers["Location"]
    assert first.headers.get("Idempotency-Replayed") is None
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(await listed(edge, await edge.key())) == 1


async def test_the_same_key_with_another_body_is_refused(edge: Any) -> None:
    """422, and no second lead."""
    key = {"Idempotency-Key": "k"}
    await post(edge, headers=key)
    answer, body = await post(edge, headers=key, json={**GOOD, "message": "Other"})

    assert (answer.status, body) == (
        422,
        {"error": "This Idempotency-Key was used with another body"},
    )
    assert len(await listed(edge, await edge.key())) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\u00e9"])
async def test_a_key_that_is_none_is_refused(edge: Any, key: str) -> None:
    """It must not be ignored: its sender relies on it."""
    answer, body = await post(edge, headers={"Idempotency-Key": key})

    assert (answer.status, body["error"]) == (
        400,
        "Idempotency-Key: must have 1 to 255 visible ASCII characters",
    )


@pytest.mark.parametrize("with_credential", [True, False])
async def test_fifty_at_once_with_one_key_are_one_lead(edge: Any, *, with_credential: bool) -> None:
    """One row; fifty times 201 with the same bytes, forty-nine of them as repetitions."""
    reader = await edge.key()
    key = await edge.key("leads:write") if with_credential else None
    sent = [post_raw(edge, key, headers={"Idempotency-Key": "race"}) for _ in range(50)]
    answers = await asyncio.gather(*sent)

    assert {answer.status for answer, _ in answers} == {201}
    assert len({body for _, body in answers}) == 1
    assert sum("Idempotency-Replayed" in answer.headers for answer, _ in answers) == 49
    assert len(await listed(edge, reader)) == 1


async def test_the_trap_is_sprung_unseen(edge: Any) -> None:
    """A normal answer, no place in the list, a row for administrators."""
    key = await edge.key()
    answer, body = await post(edge, json={**GOOD, "_gotcha": "https://spam.test"})

    assert answer.status == 201
    assert set(body) == {"lead", "id", "name", "email", "budget_tier", "created_at"}
    assert await listed(edge, key) == []
    async with edge.ask("GET", answer.headers["Location"], key) as found:
        assert [row["status"] for row in await found.json()] == ["spam"]


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
    """600 requests a minute for each, told with every answer."""
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
