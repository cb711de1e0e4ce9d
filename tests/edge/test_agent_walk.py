"""The walk of an agent that knows an origin and nothing else, to a lead that it made and listed.

It sends nothing that an answer did not show it: requests are the examples of the texts, with what
was issued in place of `<API_KEY>` and `<ACCESS_TOKEN>`. Its owner decides once, for the scopes that
the request names; asking whether that is done is not counted.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from edge_api.access.service import AccessDecisions
from edge_api.auth.actor import system_clock
from edge_api.leads.input import LeadInput
from tests.edge.advertised import Answer, read_links
from tests.edge.conftest import CONTENT

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

ORIGIN = "https://press.example"
NOW = "2026-11-20T00:00:00Z"
CALLS_MOST = 7
_EXAMPLE = re.compile(r"```http\n([A-Z]+) (\S+)\n(.*?)\n(?:\n(.*?)\n)?```", re.DOTALL)
_LINK = re.compile(r"\[(.+?)\]\((\S+?)\)")
_SCOPE = re.compile(r"`(\w+:\w+)`")


@dataclass(frozen=True)
class Example:
    """A request that a text shows."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any

    def sealed(self, credential: str) -> dict[str, str]:
        """Return its headers, with the credential where the text has a placeholder."""
        return {
            name: re.sub(r"<[A-Z_]+>", credential, value) for name, value in self.headers.items()
        }


def read_examples(text: str) -> list[Example]:
    """Return every request that a text shows, in its order."""
    found = []
    for method, path, head, body in _EXAMPLE.findall(text):
        headers = dict(line.split(": ", 1) for line in head.splitlines())
        found.append(Example(method, path, headers, json.loads(body) if body else None))
    return found


def find_example(text: str, words: str) -> Example:
    """Return the one request with these words in its body."""
    (found,) = [each for each in read_examples(text) if words in json.dumps(each.body)]
    return found


def paragraph(text: str, words: str) -> str:
    """Return the one paragraph with these words, on one line."""
    (found,) = [each for each in map(" ".join, map(str.split, text.split("\n\n"))) if words in each]
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, build_journal: Callable[..., None]) -> Path:
    """Return a BUILD_DIR with the small journal."""
    output = tmp_path_factory.mktemp("walk") / "build"
    build_journal(CONTENT, output, NOW, ORIGIN)
    return output


class Walker:
    """Sends requests, and counts them and the decisions of its owner."""

    def __init__(self, edge: Any) -> None:
        """Take the edge that answers for the origin."""
        self.edge = edge
        self.calls: list[str] = []
        self.decided: list[str] = []

    async def ask(self, method: str, url: str, body: Any = None, **headers: str) -> Answer:
        """Send one request to an address of the origin."""
        self.calls.append(f"{method} {url}")
        path = url.removeprefix(ORIGIN)
        data = None if body is None else json.dumps(body)
        async with self.edge.ask(method, path, data=data, headers=headers) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def decide(self, registration_id: str) -> None:
        """Approve what was asked for, as the owner does; no call of the agent's."""
        decisions = AccessDecisions(self.edge.service.store, system_clock)
        (row,) = [each for each in await decisions.all() if each["id"] == registration_id]
        await decisions.approve(registration_id, tuple(row["scopes"].split()))
        self.decided.append(row["scopes"])

    async def read_llms(self) -> str:
        """Return llms.txt, to which the home page leads."""
        home = await self.ask("GET", f"{ORIGIN}/")
        links = read_links(home.headers["Link"])
        return (await self.ask("GET", next(x.href for x in links if x.rel == "describedby"))).text

    async def read_auth(self) -> str:
        """Return auth.md, to which llms.txt leads."""
        text = await self.read_llms()
        return (await self.ask("GET", dict(_LINK.findall(text))["auth.md"])).text

    async def get_credentials(
        self, auth: str, kind: str, scopes: list[str]
    ) -> dict[str, dict[str, Any]]:
        """Return what was issued, by its type, by the example of auth.md and the answers to it."""
        example = find_example(auth, '"anonymous"')
        body = {**example.body, "requested_credential_type": kind, "scopes": scopes}
        filed = (await self.ask(example.method, example.path, body, **example.headers)).json
        claim = find_example(auth, "claim_token")
        given = {**claim.body, "claim_token": filed["claim_token"]}
        waiting = await self.ask(claim.method, filed["claim_uri"], given, **claim.headers)
        assert waiting.status == 202
        self.calls.pop()
        await self.decide(filed["registration_id"])
        claimed = await self.ask(claim.method, filed["claim_uri"], given, **claim.headers)
        return {each["credential_type"]: each for each in claimed.json["credentials"]}

    async def use_rest(self, auth: str, credential: str) -> list[Any]:
        """Make a lead without a credential, and list leads with one; return those."""
        way = re.search(r"leads \(`(POST) (\S+)`\)", auth)
        assert way is not None
        shown = {(each.method, each.path): each for each in read_examples(auth)}
        sending = shown[way[1], way[2]]
        made = await self.ask(sending.method, sending.path, sending.body, **sending.headers)
        assert made.status == 201, made.text
        listing = re.search(r"`(GET) (\S+)` lists the newest leads", auth)
        assert listing is not None
        (reading,) = [each for each in read_examples(auth) if "<API_KEY>" in str(each.headers)]
        listed = await self.ask(listing[1], listing[2], None, **reading.sealed(credential))
        return [lead["id"] for lead in listed.json["leads"] if lead == made.json["lead"]]

    async def use_mcp(self, auth: str, credential: str) -> list[Any]:
        """Make a lead by one tool, and list leads by another; return those."""
        made, listed = [
            (await self.ask(each.method, each.path, each.body, **each.sealed(credential))).json
            for each in (find_example(auth, "create_lead"), find_example(auth, "list_leads"))
        ]
        lead = made["result"]["structuredContent"]["lead"]
        leads = listed["result"]["structuredContent"]["leads"]
        return [each["id"] for each in leads if each == lead]


@pytest.fixture
async def walker(make_edge: Any, built: Path) -> AsyncIterator[Walker]:
    """Return an agent before a site as it is set up by itself."""
    limits = {"RATE_LEADS": "5/10minutes;20/day", "RATE_LEADS_ATTEMPTS": "60/minute"}
    async with make_edge(BUILD_DIR=str(built), SITE_URL=ORIGIN, **limits) as edge:
        yield Walker(edge)


async def test_a_lead_is_made_and_listed_over_rest(walker: Walker) -> None:
    """With a key for what the sentence about the list names."""
    auth = await walker.read_auth()
    scopes = _SCOPE.findall(paragraph(auth, "lists the newest leads in the same way"))
    issued = await walker.get_credentials(auth, "api_key", scopes)
    key = issued["api_key"]

    assert key["scopes"] == scopes == ["leads:read"]
    assert len(await walker.use_rest(auth, key["credential"])) == 1
    assert len(walker.calls) == CALLS_MOST, walker.calls
    assert walker.decided == ["leads:read"]


async def test_a_lead_is_made_and_listed_over_mcp(walker: Walker) -> None:
    """With a token for what the sentences about the two tools name."""
    auth = await walker.read_auth()
    text = paragraph(auth, "by the tool `list_leads`") + paragraph(auth, "the tool `create_lead`")
    scopes = _SCOPE.findall(text)
    issued = await walker.get_credentials(auth, "access_token", scopes)
    token = issued["access_token"]

    assert set(token["scopes"]) == {*scopes, "mcp"} == {"leads:read", "leads:write", "mcp"}
    assert len(await walker.use_mcp(auth, token["credential"])) == 1
    assert len(walker.calls) == CALLS_MOST, walker.calls
    assert walker.decided == ["leads:read leads:write mcp"]


async def test_one_decision_opens_both_ways(walker: Walker) -> None:
    """Each credential lists what it works with, and nothing else."""
    auth = await walker.read_auth()
    issued = await walker.get_credentials(auth, "both", ["leads:read", "leads:write"])

    assert issued["api_key"]["scopes"] == ["leads:read", "leads:write"]
    assert issued["access_token"]["scopes"] == ["leads:read", "leads:write", "mcp"]
    assert await walker.use_rest(auth, issued["api_key"]["credential"])
    assert await walker.use_mcp(auth, issued["access_token"]["credential"])
    assert len(walker.calls) == CALLS_MOST + 2, walker.calls
    assert len(walker.decided) == 1


async def test_an_agent_without_credential_sends_a_lead_in_three_calls(walker: Walker) -> None:
    """llms.txt shows method, address, type and body of a lead, which needs no key."""
    text = paragraph(await walker.read_llms(), "/leads`")
    method, url = re.findall(r"`([A-Z]+) (\S+)`", text)[0]
    name, value = re.findall(r"`([\w-]+): (\S+)`", text)[0]
    (body,) = re.findall(r"`(\{.*?\})`", text)
    made = await walker.ask(method, url, json.loads(body), **{name: value})

    assert made.status == 201, made.text
    assert made.json["lead"].items() >= json.loads(body).items()
    assert len(walker.calls) == 3


async def test_auth_md_says_how_long_a_lead_may_be(walker: Walker) -> None:
    """In the numbers that the API checks."""
    text = paragraph(await walker.read_auth(), "All four members")
    named = {
        name: int(number.replace(",", ""))
        for name, number in re.findall(r"`(\w+)`[^`]*? of (?:at most )?([\d,]+\d)", text)
    }
    schema = LeadInput.model_json_schema()

    assert named == {name: schema["properties"][name]["maxLength"] for name in schema["required"]}
