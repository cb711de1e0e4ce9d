"""Asking for a credential over HTTP, from the first request to the first use."""

import asyncio
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from edge_api.access.service import AccessDecisions
from edge_api.auth.actor import system_clock
from edge_api.auth.secrets import is_well_formed
from edge_api.db.types import parse_timestamp
from tests.edge.conftest import CONTENT, SITE_URL, error_of
from tests.edge.mcp.agents import LEGACY, Agent

REQUESTS = "/api/public/access-requests"
CLAIM = f"{REQUESTS}/claim"
PLAIN = {"type": "api_key", "name": "Ann", "purpose": "Read posts."}
AGENT = {"type": "anonymous", "requested_credential_type": "access_token"}


async def file(edge: Any, body: Any = PLAIN) -> dict[str, Any]:
    """File a request; return the answer."""
    async with edge.ask("POST", REQUESTS, json=body) as answer:
        assert answer.status == 201, await answer.text()
        return dict(await answer.json())


async def claim(edge: Any, token: str) -> tuple[int, dict[str, Any]]:
    """Send a claim token; return status and body."""
    async with edge.ask("POST", CLAIM, json={"claim_token": token}) as answer:
        return answer.status, await answer.json()


def decisions(edge: Any) -> AccessDecisions:
    """Return who decides, as the operator's command would."""
    return AccessDecisions(edge.service.store, system_clock)


async def test_a_filed_request_names_the_next_step(edge: Any) -> None:
    """The answer has the token, where to send it, until when, and what was asked for."""
    async with edge.ask("POST", REQUESTS, json=PLAIN) as answer:
        filed = await answer.json()

    assert answer.status == 201
    assert answer.headers["Cache-Control"] == "no-store"
    assert is_well_formed(filed.pop("claim_token"), "claim_token")
    assert parse_timestamp(filed.pop("claim_token_expires"))
    assert filed == {
        "registration_id": filed["registration_id"],
        "registration_type": "anonymous",
        "credential_type": "api_key",
        "status": "pending",
        "scopes": ["posts:read"],
        "claim_uri": f"{SITE_URL}{CLAIM}",
        "next_step": filed["next_step"],
    }
    assert CLAIM in filed["next_step"]


async def test_a_key_from_the_first_request_to_the_first_use(edge: Any) -> None:
    """Nothing but what the answers say is needed to read posts in the end."""
    filed = await file(edge)
    path = filed["claim_uri"].removeprefix(SITE_URL)
    async with edge.ask("POST", path, json={"claim_token": filed["claim_token"]}) as waiting:
        assert waiting.status == 202
        assert waiting.headers["Retry-After"] == "300"
        pending = await waiting.json()
    assert (pending["status"], "claim_token" in pending) == ("pending", False)
    await decisions(edge).approve(filed["registration_id"])

    async with edge.ask("POST", path, json={"claim_token": filed["claim_token"]}) as claimed:
        assert claimed.status == 200
        assert claimed.headers["Cache-Control"] == "no-store"
        handed = await claimed.json()
    ends = datetime.fromisoformat(handed["credential_expires"]) - system_clock()
    assert timedelta(days=89) < ends <= timedelta(days=90)
    assert handed["scopes"] == ["posts:read"]
    async with edge.ask("GET", "/api/public/v1/posts", handed["credential"]) as posts:
        assert posts.status == 200
    async with edge.ask("GET", "/api/public/v1/leads", handed["credential"]) as leads:
        assert leads.status == 403


async def test_an_agents_token_opens_mcp(edge: Any) -> None:
    """In the words of auth.md, and with a date on which the token ends."""
    filed = await file(edge, AGENT)
    assert filed["scopes"] == ["posts:read", "mcp"]
    await decisions(edge).approve(filed["registration_id"])
    status, handed = await claim(edge, filed["claim_token"])

    assert (status, handed["credential_type"]) == (200, "access_token")
    assert parse_timestamp(handed["credential_expires"])
    actor = await edge.service.authenticator.authenticate(handed["credential"], "mcp")
    assert actor.scopes == frozenset(handed["scopes"])


async def test_fifty_claims_over_http_get_the_same_answer(edge: Any) -> None:
    """Whichever connection a claim came by; it is a claim of one credential."""
    filed = await file(edge)
    await decisions(edge).approve(filed["registration_id"])
    answers = await asyncio.gather(*(claim(edge, filed["claim_token"]) for _ in range(50)))

    assert [status for status, _ in answers] == [200] * 50
    assert len({body["credential"] for _, body in answers}) == 1


@pytest.mark.parametrize(
    "body",
    [{**PLAIN, "type": "both"}, {"type": "anonymous", "requested_credential_type": "both"}],
)
async def test_one_request_for_both_doors(edge: Any, body: Any) -> None:
    """One approval gives a key that reads posts, and a token that lists tools."""
    filed = await file(edge, body)
    assert filed["credential_type"] == "both"
    await decisions(edge).approve(filed["registration_id"])
    _, handed = await claim(edge, filed["claim_token"])
    key, token = handed["credentials"]

    assert key.items() <= handed.items()
    assert (key["scopes"], token["scopes"]) == (["posts:read"], ["posts:read", "mcp"])
    assert [key["credential_type"], token["credential_type"]] == ["api_key", "access_token"]
    async with edge.ask("GET", "/api/public/v1/posts", key["credential"]) as posts:
        assert posts.status == 200
    agent = Agent(edge, token["credential"], LEGACY)
    assert (await agent.ask("tools/list")).result["tools"]


async def test_a_browser_is_led_to_the_form(edge: Any) -> None:
    """A browser at the address is redirected to the form for people, which is there."""
    async with edge.ask("GET", REQUESTS) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/contact/#access")
    async with edge.ask("GET", "/contact/") as page:
        assert 'id="access"' in await page.text()


async def test_without_the_form_everything_leads_to_the_contact_page(
    make_edge: Any, build_journal: Any, tmp_path: Path
) -> None:
    """The setting hides the form alone: its addresses are gone, and registration works."""
    build_journal(CONTENT, tmp_path / "build", access="off")
    settings = {"ACCESS_REQUESTS": "off", "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(**settings) as edge:
        for method in ("GET", "HEAD"):
            async with edge.ask(method, REQUESTS) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, "/contact/")
        async with edge.ask("GET", "/contact/") as answer:
            page = await answer.text()
        assert (answer.status, 'id="contact-form"' in page) == (200, True)
        assert ("access" in page.lower(), "contact/access" in page) == (False, False)
        for method in ("GET", "POST"):
            async with edge.ask(method, "/contact/access/", data=b"name=A") as answer:
                assert answer.status in (404, 405), method
        for path in ("/auth.md", "/docs/index.md", "/docs/"):
            async with edge.ask("GET", path) as answer:
                assert "#access" not in (await answer.text()).replace("#access-by", "")
        filed = await file(edge)
        await decisions(edge).approve(filed["registration_id"])
        assert (await claim(edge, filed["claim_token"]))[0] == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "type: is required"),
        ({"type": "service_auth"}, "type: must be one of"),
        ({**PLAIN, "purpose": ""}, "purpose: must not be empty"),
        ({**PLAIN, "scopes": []}, "scopes: must have 1 item or more"),
        ([], "body: must be an object"),
    ],
)
async def test_an_invalid_request_is_reported(edge: Any, body: Any, message: str) -> None:
    """400 with the member to fix; nothing is filed."""
    async with edge.ask("POST", REQUESTS, json=body) as answer:
        assert answer.status == 400
        assert (await error_of(answer)).startswith(message)
    assert await decisions(edge).all() == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "claim_token: is required"),
        ({"claim_token": 1}, "claim_token: must be a string"),
        ({"claim_token": ""}, "claim_token: must have 1 character or more"),
        ({"claim_token": "x" * 201}, "claim_token: must have 200 characters or fewer"),
        ([], "body: must be an object"),
    ],
)
async def test_an_invalid_claim_is_reported(edge: Any, body: Any, message: str) -> None:
    """400 for what is no claim at all."""
    async with edge.ask("POST", CLAIM, json=body) as answer:
        assert (answer.status, await error_of(answer)) == (400, message)


async def test_claims_count_as_attempts(make_edge: Any) -> None:
    """Nobody tries tokens one after the other."""
    async with make_edge(RATE_LEADS_ATTEMPTS="2/hour") as edge:
        assert [(await claim(edge, "fe_cl_x"))[0] for _ in range(3)] == [404, 404, 429]


@pytest.mark.parametrize(
    ("rates", "most"),
    [({}, 2), ({"RATE_ACCESS_REQUESTS": "1/hour"}, 1), ({"RATE_ACCESS_REQUESTS": "0"}, 4)],
)
async def test_requests_are_counted_apart_from_leads(
    make_edge: Any, rates: dict[str, str], most: int
) -> None:
    """They take none of the leads of an address; without a rate of their own they have its."""
    lead = {"name": "A", "email": "a@example.org", "budget_tier": "x", "message": "m"}
    async with make_edge(RATE_LEADS="2/hour", **rates) as edge:
        for number in range(4):
            async with edge.ask("POST", REQUESTS, json=PLAIN) as answer:
                assert answer.status == (201 if number < most else 429)
                assert ("Retry-After" in answer.headers) == (number >= most)
        for status in (201, 201, 429):
            async with edge.ask("POST", "/api/public/v1/leads", json=lead) as answer:
                assert answer.status == status


async def test_scripts_of_other_origins_may_ask(edge: Any) -> None:
    """An agent in a browser is an agent too."""
    async with edge.ask("OPTIONS", REQUESTS) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Allow"] == "GET, POST, HEAD, OPTIONS"


async def test_every_address_in_auth_md_is_live(edge: Any) -> None:
    """No address that the file or the server's metadata names is missing."""
    async with edge.ask("GET", "/auth.md") as answer:
        assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
        text = await answer.text()
    async with edge.ask("GET", "/.well-known/oauth-authorization-server") as answer:
        text += await answer.text()
    paths = set(re.findall(rf"{re.escape(SITE_URL)}([^\s\"),;|:#]*)", text))
    paths |= set(re.findall(r"^(?:POST|GET) (\S+)$", text, re.MULTILINE))

    assert len(paths) > 12
    for path in paths - {""}:
        async with edge.ask("OPTIONS", path.rstrip(".")) as answer:
            assert answer.status == 204, path


async def test_the_servers_metadata_leads_to_the_registration(edge: Any) -> None:
    """The addresses in `agent_auth` are right."""
    async with edge.ask("GET", "/.well-known/oauth-authorization-server") as answer:
        block = (await answer.json())["agent_auth"]

    assert block["skill"] == f"{SITE_URL}/auth.md"
    assert block["register_uri"] == f"{SITE_URL}{REQUESTS}"
    assert block["claim_uri"] == f"{SITE_URL}{CLAIM}"
    assert block["identity_types_supported"] == ["anonymous"]
    assert block["anonymous"]["credential_types_supported"] == ["api_key", "access_token"]
