import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import pytest
from multidict import CIMultiDictProxy

from edge_api.http import endpoint as documents
from edge_api.operation.model import FORM, AnyOperation
from edge_api.operations import OPERATIONS
from edge_api.settings import SETTINGS
from edge_api.writing import operations as writing
from tests.edge.conftest import error_of
from tests.sizes import in_ci

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

LEADS = "/api/public/v1/leads"
LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}
SAFEGUARDS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ASKED_FROM_SCRIPTS = {
    "authorization",
    "x-api-key",
    "content-type",
    "idempotency-key",
    "prefer",
    "if-match",
    "if-none-match",
    "range",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
}
METHODS = ("GET", "POST", "PATCH", "DELETE")
SPOKEN = [operation for operation in OPERATIONS if not operation.is_page]
"""Operations for programs; pages have tests of their own."""
PATHS = sorted({operation.path for operation in SPOKEN})
READING = [operation for operation in SPOKEN if operation.method == "GET"]
EACH = pytest.mark.parametrize(
    "operation",
    [*SPOKEN[::4], *in_ci(*(each for each in SPOKEN if each not in SPOKEN[::4]))],
    ids=lambda item: item.name,
)
EACH_READING = pytest.mark.parametrize("operation", READING, ids=lambda item: item.name)
EACH_PATH = pytest.mark.parametrize("path", PATHS)

PRIVATE, PUBLIC, UNKEPT = "private", "public", "no-store"
CACHING = {
    "list_posts": PRIVATE,
    "get_post": PRIVATE,
    "search_posts": PUBLIC,
    "describe_api": PUBLIC,
    "describe_api_without_slash": PUBLIC,
    "openapi": PUBLIC,
    "api_catalog": PUBLIC,
    "oauth_metadata": PUBLIC,
    "oauth_resource": PUBLIC,
    "oauth_rest_resource": PUBLIC,
    "oauth_mcp_resource": PUBLIC,
    "oauth_keys": PUBLIC,
    "mcp_server_card": PUBLIC,
    "mcp_well_known_server_card": PUBLIC,
    "ai_catalog": PUBLIC,
}
"""Cache-Control of operations; every other one is not kept at all."""


OUTCOMES = {
    "admin_insert_email_send_state": 409,
    "oauth_token": 401,
    "oauth_revoke": 401,
    "access_request_form": 303,
    "claim_credential": 404,
    "take_email_event": 401,
    "add_subscriber": 503,  # the newsletter is off here
    **{operation.name: 503 for operation in writing.OPERATIONS},  # and so is writing
}
"""The status of a valid request with nothing but a key, where that is no success."""
REFUSED = {
    "oauth": "invalid_request",
    "jsonrpc": {"code": -32600, "message": "Method not allowed"},
}
"""The `error` member for a wrong method, where that is no sentence."""


@dataclass(frozen=True)
class Answer:
    """An answer, read to its end."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


def target_of(path: str) -> str:
    """Return a path at which there is something."""
    return path.replace("{slug}", "first-edge")


def body_of(operation: AnyOperation) -> dict[str, Any]:
    """Return the arguments of a request whose body, if any, is sound."""
    if operation.body is None:
        return {}
    kind = "data" if operation.body.media_type == FORM else "json"
    return {kind: next(iter(operation.body.examples.values()))}


async def ask(edge: Any, operation: AnyOperation, method: str = "", **headers: str) -> Answer:
    """Return the answer to a request with a credential that may do everything."""
    target = target_of(operation.path)
    key = await (edge.token() if operation.audience == "mcp" else edge.key())
    async with edge.ask(
        method or operation.method, target, key, headers=headers, **body_of(operation)
    ) as answer:
        return Answer(answer.status, answer.headers, await answer.read())


def policy_of(answer: Answer) -> set[str]:
    """Return the words of an answer's caching."""
    return set(re.split(r",\s*", answer.headers["Cache-Control"]))


def words_of(answer: Answer, header: str) -> set[str]:
    """Return the members of a list header, in small letters."""
    return set(answer.headers[header].lower().split(", "))


@EACH
async def test_every_answer_has_the_safeguards(edge: Any, operation: AnyOperation) -> None:
    """Success and refusal alike; scripts of every origin may read them, without cookies."""
    success, refusal = await ask(edge, operation), await ask(edge, operation, "PUT")
    assert success.status in (200, 201, OUTCOMES.get(operation.name))
    assert (success.status > 201) is (operation.name in OUTCOMES)
    assert refusal.status == 405
    for answer in (success, refusal):
        assert SAFEGUARDS.items() <= dict(answer.headers).items()
        assert "camera=()" in answer.headers["Permissions-Policy"]
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert {"x-request-id", "retry-after"} <= words_of(answer, "Access-Control-Expose-Headers")
        assert "Strict-Transport-Security" not in answer.headers
        assert "Set-Cookie" not in answer.headers
        assert "Server" not in answer.headers


@EACH
async def test_cache_control_of_each_operation(edge: Any, operation: AnyOperation) -> None:
    """Rows never, what needs a credential only by its reader, descriptions by everybody."""
    answer = await ask(edge, operation)

    wanted = CACHING.get(operation.name, UNKEPT)
    assert {PRIVATE, PUBLIC, UNKEPT} & policy_of(answer) == {wanted}
    assert ("ETag" in answer.headers) is (wanted != UNKEPT)
    if operation.credential == "required":
        assert PUBLIC not in policy_of(answer)


@EACH_READING
async def test_an_unchanged_answer_with_a_validator_is_304(
    edge: Any, operation: AnyOperation
) -> None:
    """A 304 has the validator and the caching, no body; another validator gets the whole."""
    whole = await ask(edge, operation)
    etag = whole.headers.get("ETag")
    if etag is None:
        status = OUTCOMES.get(operation.name, 200)
        assert (await ask(edge, operation, **{"If-None-Match": "*"})).status == status
        return
    assert re.fullmatch(r'"[^"]+"', etag)
    for condition in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = await ask(edge, operation, **{"If-None-Match": condition})
        assert (again.status, again.body) == (304, b"")
        for name in ("ETag", "Cache-Control", "Vary"):
            assert again.headers[name] == whole.headers[name]
        assert SAFEGUARDS.items() <= dict(again.headers).items()
    assert (await ask(edge, operation, **{"If-None-Match": '"other"'})).status == 200


@EACH_READING
async def test_each_coding_has_its_own_validator(edge: Any, operation: AnyOperation) -> None:
    """So no cache takes one for another; what is short stays as it is."""
    answers = [
        await ask(edge, operation, **{"Accept-Encoding": coding})
        for coding in ("identity", "gzip", "br")
    ]
    tags = [answer.headers.get("ETag") for answer in answers]
    coded = [answer.headers.get("Content-Encoding", "") for answer in answers]
    assert len(set(zip(tags, coded, strict=True))) == len(set(coded))
    assert "Vary" in answers[0].headers or set(coded) == {""}
    for answer, coding in zip(answers, coded, strict=True):
        lengths = [int(item.headers["Content-Length"]) for item in (answer, answers[0])]
        assert lengths[0] < lengths[1] or not coding
    if operation.name != "readiness":  # which tells the time
        assert len({answer.body for answer in answers}) == 1


@EACH_READING
async def test_head_is_get_without_a_body(edge: Any, operation: AnyOperation) -> None:
    """Status and headers are the same but for the id, the time, and what counts down."""
    headers = {"Accept-Encoding": "identity", "X-Request-ID": "the-same-id"}
    whole, head = [await ask(edge, operation, method, **headers) for method in ("GET", "HEAD")]

    assert (head.status, head.body) == (whole.status, b"")
    own = {"Date"}
    assert {item for item in head.headers.items() if item[0] not in own} == {
        item for item in whole.headers.items() if item[0] not in own
    }
    assert int(head.headers["Content-Length"]) == len(whole.body)


@EACH_PATH
async def test_other_methods_are_refused(edge: Any, path: str) -> None:
    """With 405 and exactly the methods that there are; a credential is not asked for."""
    here = [operation for operation in OPERATIONS if operation.path == path]
    offered = {operation.method for operation in here}
    allowed = offered | {"OPTIONS"} | ({"HEAD"} if "GET" in offered else set())
    for method in {*METHODS, "PUT", "TRACE"} - allowed:
        async with edge.ask(method, target_of(path)) as answer:
            assert answer.status == 405
            assert set(answer.headers["Allow"].split(", ")) == allowed
            error = REFUSED.get(here[0].error_format, "Method not allowed")
            assert (await answer.json())["error"] == error
            assert policy_of(answer) == {"no-store"}


@EACH_PATH
async def test_a_browser_may_ask_beforehand(edge: Any, path: str) -> None:
    """OPTIONS needs no credential and names methods and headers, for any origin."""
    headers = {
        "Origin": "https://elsewhere.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    async with edge.ask("OPTIONS", target_of(path), headers=headers) as answer:
        assert (answer.status, await answer.read()) == (204, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert answer.headers["Access-Control-Allow-Methods"] == answer.headers["Allow"]
        assert words_of(answer, "Access-Control-Allow-Headers") >= ASKED_FROM_SCRIPTS


@pytest.mark.parametrize(
    "target", ["/feed.json", "/feed.xml", "/tags/paper/feed.json", "/.well-known/security.txt"]
)
async def test_a_browser_may_ask_beforehand_for_what_programs_read(edge: Any, target: str) -> None:
    """Feeds and well-known files are for scripts of any origin, with conditions too."""
    async with edge.ask("GET", target) as answer:
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, "*")
    async with edge.ask("OPTIONS", target) as answer:
        assert (answer.status, await answer.read()) == (204, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
        assert words_of(answer, "Access-Control-Allow-Headers") >= {"if-none-match"}
    async with edge.ask("OPTIONS", "/") as answer:
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_catalog_names_itself(edge: Any, method: str) -> None:
    """In a link with its profile (RFC 9727, section 2), whatever proxy is in front of it."""
    async with edge.ask(method, "/.well-known/api-catalog") as answer:
        link = answer.headers["Link"]
    assert link.startswith('</.well-known/api-catalog>; rel="api-catalog"')
    assert 'profile="https://www.rfc-editor.org/info/rfc9727"' in link


@pytest.mark.parametrize(
    "target",
    ["/api/public/ping", "/api/none", "/", "/none", LEADS, "/api/public/v1/admin/nothing"],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
async def test_an_https_origin_demands_https(make_edge: Any, method: str, target: str) -> None:
    """In every answer, whatever it is; once."""
    async with (
        make_edge(SITE_URL="https://journal.test") as edge,
        edge.ask(method, target) as answer,
    ):
        (policy,) = answer.headers.getall("Strict-Transport-Security")
        assert re.fullmatch(r"max-age=\d{8,}", policy)


@EACH
async def test_the_ratelimit_field_says_what_is_left(
    make_edge: Any, operation: AnyOperation
) -> None:
    """With the default limits, to whoever sends a credential that is needed or may be sent."""
    limit = {"RATE_AUTHENTICATED": str(SETTINGS["RATE_AUTHENTICATED"].default)}
    async with make_edge(**limit) as edge:
        answer = await ask(edge, operation)

    if operation.credential == "none":
        assert "RateLimit" not in answer.headers
        return
    assert answer.headers["RateLimit-Policy"] == '"authenticated";q=600;w=60'
    assert re.fullmatch(r'"authenticated";r=599;t=(60|[1-5]?\d)', answer.headers["RateLimit"])


@EACH
async def test_without_limits_there_is_no_ratelimit_field(
    edge: Any, operation: AnyOperation
) -> None:
    """A limit that is switched off leaves no header."""
    answer = await ask(edge, operation)

    assert not {"RateLimit", "RateLimit-Policy"} & set(answer.headers)


async def test_limits_are_in_one_field_each(make_edge: Any) -> None:
    """A 201, a refusal by the second limit, and a call of a tool: every policy, each once."""
    async with make_edge(RATE_LEADS="1/hour", RATE_LEADS_ATTEMPTS="5/minute") as edge:
        for status, left in ((201, "0"), (429, "0")):
            async with edge.ask("POST", LEADS, json=LEAD) as answer:
                assert answer.status == status
                (policy,) = answer.headers.getall("RateLimit-Policy")
                (rest,) = answer.headers.getall("RateLimit")
            assert policy == '"leads_attempts";q=5;w=60, "leads";q=1;w=3600'
            assert [part.split(";")[0] for part in rest.split(", ")] == [
                '"leads_attempts"',
                '"leads"',
            ]
            assert f'"leads";r={left};' in rest


@pytest.mark.parametrize(("accepted", "coding"), [("gzip", "gzip"), ("br, gzip", "br"), ("", None)])
@pytest.mark.parametrize("path", [LEADS, "/api/public/v1/admin/leads"])
async def test_long_answers_are_compressed(
    edge: Any, path: str, accepted: str, coding: str | None
) -> None:
    """Leads and rows above 1 KiB, for a client that accepts that; shorter ones never."""
    key = await edge.key()
    headers = {"Accept-Encoding": accepted}
    async with edge.ask("GET", path, key, headers=headers) as short:
        assert "Content-Encoding" not in short.headers
    for _ in range(10):
        async with edge.ask("POST", LEADS, key, json=LEAD) as created:
            assert created.status == 201
    async with edge.ask("GET", path, key, headers=headers) as answer:
        assert answer.headers.get("Content-Encoding") == coding
        assert answer.headers["Vary"] == "Accept-Encoding"
        rows = await answer.json()

    assert len(rows["leads"] if isinstance(rows, dict) else rows) == 10
    if coding:
        assert int(answer.headers["Content-Length"]) < 1024


def test_operations_that_return_secrets_are_declared() -> None:
    """Those with tokens, claim tokens and credentials."""
    assert {each.name for each in SPOKEN if each.returns_secret} == {
        "oauth_token",
        "request_access",
        "claim_credential",
    }


@EACH
async def test_secrets_are_not_compressed(
    edge: Any, monkeypatch: pytest.MonkeyPatch, operation: AnyOperation
) -> None:
    """Their length would tell of them, beside what the client chose (BREACH)."""
    monkeypatch.setattr(documents, "COMPRESSION_THRESHOLD", 1)
    answer = await ask(edge, operation, **{"Accept-Encoding": "gzip"})

    if operation.returns_secret or answer.status >= 300:
        assert "Content-Encoding" not in answer.headers
    elif answer.status not in (202, 204):
        assert answer.headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:8000"]
)
async def test_a_loopback_site_is_served_under_its_own_names(make_edge: Any, host: str) -> None:
    """By name or by either address, at any port."""
    async with (
        make_edge(SITE_URL="http://localhost:8000") as edge,
        edge.ask("GET", "/api/public/ping", headers={"Host": host}) as answer,
    ):
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/api/public/ping", "/", "/none", "/api/public/mcp", LEADS])
@pytest.mark.parametrize(
    "host", ["attacker.example", "localhost.attacker.example", "127.0.0.2", ""]
)
async def test_a_loopback_site_is_no_other_host(make_edge: Any, path: str, host: str) -> None:
    """421: a page of another site whose name leads here reads nothing (DNS rebinding)."""
    for site_url, is_refused in (("http://127.0.0.1:8000", True), ("http://journal.test", False)):
        async with (
            make_edge(SITE_URL=site_url) as edge,
            edge.ask("GET", path, headers={"Host": host}) as answer,
        ):
            assert (answer.status == 421) is is_refused
            if is_refused:
                assert "localhost, 127.0.0.1 or [::1]" in await error_of(answer)


@pytest.mark.parametrize("path", ["/api", "/api/", "/api?x=1"])
async def test_the_root_of_the_api_is_no_page(edge: Any, path: str) -> None:
    """It is a 404 for programs, also to whoever accepts HTML."""
    async with edge.ask("GET", path, headers={"Accept": "text/html"}) as answer:
        assert (answer.status, answer.content_type) == (404, "application/json")
        assert list(await answer.json()) == ["error"]


async def post_from(edge: Any, *forwarded: str, header: str = "X-Forwarded-For") -> int:
    """Send a lead that was forwarded for addresses; return the status."""
    headers = {header: ", ".join(forwarded)} if forwarded else {}
    async with edge.ask("POST", LEADS, json=LEAD, headers=headers) as answer:
        return int(answer.status)


@pytest.mark.parametrize("is_right", [False, True])
@pytest.mark.parametrize("site_url", ["https://journal.test", "http://127.0.0.1:8000"])
async def test_a_site_url_that_no_request_names_is_logged(
    make_edge: Any, caplog: pytest.LogCaptureFixture, site_url: str, *, is_right: bool
) -> None:
    """Once, with both names and the fix; not where a reader came by the right name first."""
    async with make_edge(SITE_URL=site_url) as edge:
        right = site_url.partition("//")[2]
        hosts = [right if is_right else "wrong.test", *["wrong.test"] * 30]
        for host in hosts:
            async with edge.ask("GET", "/api/public/v1/posts", headers={"Host": host}):
                pass
        async with edge.ask("GET", "/api/public/v1/readiness", headers={"Host": right}) as answer:
            checks = (await answer.json())["checks"]

    assert ("host" in checks) is not is_right
    warnings = [line.message for line in caplog.records if "the host" in line.message]
    name = right.partition(":")[0]
    expected = f"20 requests named the host 'wrong.test' and not that of SITE_URL, {name}: set SITE"
    assert [line[: len(expected)] for line in warnings] == [expected] * (not is_right)


async def proxies(edge: Any) -> str:
    """Return what readiness says of proxies."""
    async with edge.ask("GET", "/api/public/v1/readiness") as answer:
        assert answer.status == 200
        return str((await answer.json())["checks"]["proxies"]["status"])


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded"])
async def test_an_untrusted_peer_does_not_choose_its_address(make_edge: Any, header: str) -> None:
    """Forwarding headers of a peer that is not trusted count for nothing, and are warned of."""
    async with make_edge(RATE_LEADS="1/hour") as edge:
        assert await proxies(edge) == "pass"
        spell = "{}" if header == "X-Forwarded-For" else "for={}"
        statuses = [
            await post_from(edge, spell.format(f"192.0.2.{number}"), header=header)
            for number in range(3)
        ]
        assert statuses == [201, 429, 429]
        assert await proxies(edge) == "warn"


async def test_behind_a_trusted_proxy_each_client_counts(make_edge: Any) -> None:
    """The address nearest to the proxies counts; those before it are made up."""
    async with make_edge(RATE_LEADS="1/hour", TRUSTED_PROXIES="127.0.0.0/8, 10.0.0.0/8") as edge:
        assert await post_from(edge, "192.0.2.1") == 201
        assert await post_from(edge, "192.0.2.2") == 201
        assert await post_from(edge, "192.0.2.1") == 429
        assert await post_from(edge, "198.51.100.9", "192.0.2.1") == 429
        assert await post_from(edge, "192.0.2.1", "10.1.2.3") == 429
        assert await post_from(edge, "192.0.2.3", "10.1.2.3") == 201
        assert await proxies(edge) == "pass"


async def test_a_subscriber_counts_as_one(make_edge: Any) -> None:
    """All addresses of one IPv6 /64 share a limit; an IPv4 address is one in both its forms."""
    async with make_edge(RATE_LEADS="1/hour", TRUSTED_PROXIES="127.0.0.1") as edge:
        assert await post_from(edge, "2001:db8:1:1::1") == 201
        assert await post_from(edge, "2001:db8:1:1:ffff::2") == 429
        assert await post_from(edge, "2001:db8:1:2::1") == 201
        assert await post_from(edge, "192.0.2.7") == 201
        assert await post_from(edge, str(ip_address("::ffff:192.0.2.7"))) == 429


async def test_a_forwarding_header_that_says_nothing(make_edge: Any) -> None:
    """Then the proxy itself is counted, and nothing fails."""
    async with make_edge(RATE_LEADS="1/hour", TRUSTED_PROXIES="127.0.0.1") as edge:
        assert await post_from(edge, "unknown") == 201
        for nonsense in ("", "999.1.1.1", "'; DROP TABLE leads", "\u00e9" * 50, "," * 500):
            assert await post_from(edge, nonsense) == 429
