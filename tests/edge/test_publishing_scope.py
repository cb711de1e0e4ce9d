"""The scope that publishes: a person gives it by a tick of its own, and with enquiries by two."""

import html
import re
from typing import Any

import pytest

from edge_api.access.service import AccessRequestInput, AccessRequests
from edge_api.db.internal_tables import OAUTH_GRANTS
from edge_api.db.query import Read
from edge_api.db.tables import CREDENTIALS
from edge_api.oauth.clients import NewClient
from edge_api.oauth.server import OAuthServer
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, Scope
from tests.edge.conftest import EdgeMaker, RunningEdge, error_of
from tests.edge.desk.conftest import Browser
from tests.edge.engines import ON_SQLITE
from tests.edge.mcp.agents import MODERN, Agent
from tests.edge.oauth.conftest import GRANT_TYPES, REDIRECT, request_pairs

pytestmark = ON_SQLITE
AUTHORIZE = "/api/public/oauth/authorize"
WRITING: tuple[Scope, ...] = ("mcp", "posts:read", "posts:draft", "posts:publish", "leads:read")
BOTH = ["posts:publish", "leads:read"]
WHY = "it may tell the agent what to publish"
BOX = re.compile(r'<input type="checkbox" id="[^"]*" name="granted" value="([^"]*)"( checked)?>')
HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


class Consent:
    """A consent page, and the person before it."""

    def __init__(self, edge: RunningEdge, client_id: str, key: str) -> None:
        self.edge, self.key = edge, key
        self.pairs = request_pairs("v" * 43, client_id, scope=" ".join(WRITING))
        self.page, self.cookie = "", ""

    async def open(self) -> dict[str, bool]:
        """Return the boxes of the page, and whether they are ticked."""
        async with self.edge.ask("GET", AUTHORIZE, params=list(self.pairs)) as answer:
            self.page = await answer.text()
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return {name: bool(checked) for name, checked in BOX.findall(self.page)}

    async def allow(self, *granted: str) -> str:
        """Press Allow; return the granted scopes, or the page that refuses it."""
        form = [
            (html.unescape(name), html.unescape(text)) for name, text in HIDDEN.findall(self.page)
        ]
        form += [("granted", each) for each in granted]
        form += [("decision", "allow"), ("api_key", self.key)]
        headers = {"Cookie": self.cookie}
        async with self.edge.ask("POST", AUTHORIZE, data=form, headers=headers) as answer:
            if answer.status != 303:
                return str(await answer.text())
        (found,) = await self.edge.service.store.run(Read(OAUTH_GRANTS))
        return str(found.rows[-1]["scopes"])


@pytest.fixture
async def owner(edge: RunningEdge) -> Browser:
    """Return a browser that is signed in with a key for everything."""
    return await Browser(edge).sign_in(await edge.key())


@pytest.fixture
async def consent(edge: RunningEdge) -> Consent:
    """Return the page of a client that the operator registered for all of it."""
    scopes = (*WRITING, PUBLISH_WITH_ENQUIRIES)
    order = NewClient("Writer", "none", GRANT_TYPES, scopes, (REDIRECT,))
    client = await edge.service[OAuthServer].clients.register(order)
    return Consent(edge, str(client["id"]), await edge.key())


async def test_a_grant_publishes_only_by_a_tick(consent: Consent) -> None:
    """What is ticked beforehand drafts; the box that publishes is there, and empty."""
    boxes = await consent.open()
    ticked = [name for name, is_ticked in boxes.items() if is_ticked]
    assert ticked == ["posts:read", "posts:draft", "mcp"]
    assert {"posts:publish", "leads:read", PUBLISH_WITH_ENQUIRIES} <= boxes.keys()
    assert WHY in consent.page
    assert await consent.allow(*ticked) == "mcp posts:read posts:draft"


async def test_a_grant_publishes_with_enquiries_only_by_a_second_tick(consent: Consent) -> None:
    """Else nothing is granted, the page says why, and it is as it was sent."""
    await consent.open()
    refused = await consent.allow("mcp", *BOTH)
    assert WHY in refused
    assert [name for name, checked in BOX.findall(refused) if checked] == [*BOTH, "mcp"]
    (found,) = await consent.edge.service.store.run(Read(OAUTH_GRANTS))
    assert found.rows == []
    assert (
        await consent.allow("mcp", *BOTH, PUBLISH_WITH_ENQUIRIES) == "mcp posts:publish leads:read"
    )


async def test_a_stranger_is_never_asked_to_publish(edge: RunningEdge) -> None:
    """A client that registered itself can get drafts, and nothing that publishes."""
    given = {"redirect_uris": [REDIRECT], "scope": " ".join(WRITING)}
    client = await edge.service[OAuthServer].clients.register_dynamic(given)
    assert client["scope"].split() == ["posts:read", "leads:read", "mcp", "posts:draft"]


@pytest.mark.parametrize("more", ["leads:read", "admin:read", "admin:write"])
async def test_a_key_publishes_with_enquiries_only_by_a_second_tick(
    owner: Browser, more: str
) -> None:
    """The form comes back with its ticks and the reason; the word is no scope of the key."""
    form: dict[str, Any] = {"name": "Bot", "once": "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"}
    chosen = ["posts:publish", more]
    refused = await owner.post("/desk/access/keys/", scope=chosen, **form)
    assert (refused.status, WHY in refused.said) == (400, True)
    boxes = refused.tree.css('form[action="/desk/access/keys/"] [name=scope][checked]')
    assert [each.attributes["value"] for each in boxes] == chosen
    both = [*chosen, PUBLISH_WITH_ENQUIRIES]
    issued = await owner.post("/desk/access/keys/", scope=both, **form)
    assert issued.status == 200
    assert {row["scopes"] for row in await owner.rows(CREDENTIALS)} >= {" ".join(chosen)}


async def test_a_request_publishes_with_enquiries_only_by_a_second_tick(owner: Browser) -> None:
    """A request that asks for both gets neither without ticks."""
    wish = {"type": "api_key", "name": "Bot", "purpose": "Write.", "scopes": BOTH}
    requests = owner.edge.service[AccessRequests]
    filed = await requests.submit(AccessRequestInput.model_validate(wish), "192.0.2.1")
    path = f"/desk/access/requests/{filed.row['id']}/approve/"
    refused = await owner.post(path, scope=BOTH)
    assert (refused.status, WHY in refused.said) == (400, True)
    assert (await owner.post(path, scope=[*BOTH, PUBLISH_WITH_ENQUIRIES])).status == 303
    _, (issued,) = await requests.claim(filed.claim_token)
    assert issued.row["scopes"] == " ".join(BOTH)


async def test_who_publishes_and_reads_enquiries_analyses_no_foreign_address(
    make_edge: EdgeMaker,
) -> None:
    """Over REST and MCP; pages of this site are analysed, and others by other credentials."""
    foreign, own = "http://192.0.2.1/", "http://journal.test/"
    path = "/api/public/v1/analyze"
    async with make_edge(ANALYZE_FETCH="on") as edge:
        both = await edge.key(*BOTH, PUBLISH_WITH_ENQUIRIES)
        async with edge.ask("POST", path, both, json={"url": foreign}) as answer:
            assert answer.status == 403
            assert "publishes and reads enquiries" in await error_of(answer)
        for key, url, status in (
            (both, own, 200),
            (await edge.key("posts:publish"), foreign, 403),
            (await edge.key("leads:read"), foreign, 403),
        ):
            async with edge.ask("POST", path, key, json={"url": url}) as answer:
                assert answer.status == status
                assert "enquiries" not in await answer.text()
        token = await edge.token("mcp", *BOTH, PUBLISH_WITH_ENQUIRIES)
        agent = Agent(edge, token, MODERN)
        refused = await agent.call("analyze", url=foreign)
        assert "publishes and reads enquiries" in refused["content"][0]["text"]
        assert not (await agent.call("analyze", url=own)).get("isError")


async def test_clients_are_told_to_ask_for_drafts_where_they_are_taken(
    make_edge: EdgeMaker,
) -> None:
    """A challenge names the scopes that a client asks for; none that publishes."""
    for setting, wanted in (("on", True), ("off", False)):
        async with make_edge(WRITING=setting) as edge:
            answer = await Agent(edge, None, MODERN).ask("tools/list")
            challenge = answer.headers["WWW-Authenticate"]
            assert ("posts:draft" in challenge, "posts:publish" in challenge) == (wanted, False)
