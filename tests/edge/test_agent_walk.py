"""The walk of an agent that knows an origin and nothing else, up to the leads of the site.

It follows what answers say, and its owner decides once; asking whether that is done is not counted.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from edge_api.access.service import AccessDecisions
from edge_api.auth.actor import system_clock
from tests.edge.advertised import Said, read_links
from tests.edge.conftest import CONTENT

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

ORIGIN = "https://press.example"
NOW = "2026-11-20T00:00:00Z"
CALLS_MOST = 7
_EXAMPLE = re.compile(r"```http\n([A-Z]+) (\S+)\n(.*?)\n(?:\n(.*?)\n)?```", re.DOTALL)
_LINK = re.compile(r"\[(.+?)\]\((\S+?)\)")
LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, build_journal: Callable[..., None]) -> Path:
    """Return a BUILD_DIR with the small journal."""
    output = tmp_path_factory.mktemp("walk") / "build"
    build_journal(CONTENT, output, NOW, ORIGIN)
    return output


class Walker:
    """Sends requests, and counts them."""

    def __init__(self, edge: Any) -> None:
        """Take the edge that answers for the origin."""
        self.edge = edge
        self.calls: list[str] = []

    async def ask(self, method: str, url: str, body: Any = None, **headers: str) -> Said:
        """Send one request to an address of the origin."""
        self.calls.append(f"{method} {url}")
        path = url.removeprefix(ORIGIN)
        async with self.edge.ask(method, path, json=body, headers=headers) as answer:
            return Said(answer.status, answer.headers, await answer.read())

    async def decide(self, registration_id: str) -> None:
        """Approve, as the owner does; no call of the agent's."""
        decisions = AccessDecisions(self.edge.service.store, system_clock)
        (row,) = [each for each in await decisions.all() if each["id"] == registration_id]
        more = ("mcp",) if row["type"] == "access_token" else ()
        await decisions.approve(registration_id, ("posts:read", "leads:read", *more))

    async def get_auth(self) -> str:
        """Return auth.md: the home page leads to llms.txt, and that to it."""
        home = await self.ask("GET", f"{ORIGIN}/")
        links = read_links(home.headers["Link"])
        llms = next(link.href for link in links if link.rel == "describedby")
        told = await self.ask("GET", llms)
        return (await self.ask("GET", dict(_LINK.findall(told.text))["auth.md"])).text

    async def get_credential(self, auth: str, kind: str) -> str:
        """Return a credential, by the example of auth.md and the answers to it."""
        example = next(each for each in _EXAMPLE.findall(auth) if '"anonymous"' in each[3])
        body = json.loads(example[3])
        body["requested_credential_type"] = kind
        body["scopes"] = ["leads:read", *(["mcp"] if kind == "access_token" else [])]
        filed = (await self.ask(example[0], example[1], body)).json
        waiting = await self.ask("POST", filed["claim_uri"], {"claim_token": filed["claim_token"]})
        assert waiting.status == 202
        self.calls.pop()
        await self.decide(filed["registration_id"])
        claimed = await self.ask("POST", filed["claim_uri"], {"claim_token": filed["claim_token"]})
        return str(claimed.json["credential"])


@pytest.fixture
async def walker(make_edge: Any, built: Path) -> AsyncIterator[Walker]:
    """Return an agent before a site that has one lead."""
    async with make_edge(BUILD_DIR=str(built), SITE_URL=ORIGIN) as edge:
        async with edge.ask("POST", "/api/public/v1/leads", json=LEAD) as answer:
            assert answer.status == 201
        yield Walker(edge)


async def test_leads_are_listed_over_mcp(walker: Walker) -> None:
    """By the example that auth.md has for a token: the tools, and the call of one."""
    auth = await walker.get_auth()
    token = await walker.get_credential(auth, "access_token")
    method, path, _, body = next(each for each in _EXAMPLE.findall(auth) if "tools/list" in each[3])
    headers = {"Authorization": f"Bearer {token}"}
    tools = (await walker.ask(method, path, json.loads(body), **headers)).json["result"]["tools"]
    name = next(tool["name"] for tool in tools if "enquiries" in tool["description"])
    call = {**json.loads(body), "method": "tools/call", "params": {"name": name, "arguments": {}}}
    answer = (await walker.ask(method, path, call, **headers)).json["result"]

    assert answer["structuredContent"]["leads"][0]["email"] == LEAD["email"]
    assert len(walker.calls) <= CALLS_MOST, walker.calls


async def test_leads_are_listed_over_rest(walker: Walker) -> None:
    """By the sentence that auth.md has for a key."""
    auth = await walker.get_auth()
    key = await walker.get_credential(auth, "api_key")
    found = re.search(r"`GET (\S+)` lists the newest leads", auth)
    assert found is not None
    answer = await walker.ask("GET", found[1], **{"X-API-Key": key})

    assert answer.json["leads"][0]["email"] == LEAD["email"]
    assert len(walker.calls) < CALLS_MOST, walker.calls
