"""Each criterion by which sites are judged ready for agents, against the product as it runs.

The criteria are those that scanners for agent readiness publish; the journal is a small one,
built for an origin of its own. And what is advertised anywhere answers as advertised.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.robotparser import RobotFileParser
from xml.etree import ElementTree as ET

import pytest

from edge_api.schema.paths import DOCS
from tests.edge.advertised import Answer, Visitor
from tests.edge.conftest import CONTENT

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

ORIGIN = "https://press.example"
NOW = "2026-11-20T00:00:00Z"
AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"
LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"

Criterion = Callable[[Visitor], Awaitable[None]]
Source = Callable[[Visitor], Awaitable[list[str]]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, build_journal: Callable[..., None]) -> Path:
    """Return a BUILD_DIR with the small journal."""
    output = tmp_path_factory.mktemp("readiness") / "build"
    build_journal(CONTENT, output, NOW, ORIGIN)
    return output


@pytest.fixture
async def visitor(make_edge: Any, built: Path) -> AsyncIterator[Visitor]:
    """Return a program that reads that journal."""
    async with make_edge(BUILD_DIR=str(built), SITE_URL=ORIGIN) as edge:
        yield Visitor(edge, ORIGIN)


async def found(visitor: Visitor, path: str, media_type: str, **headers: str) -> Answer:
    """Return the answer for a path, which is 200 and of this type."""
    said = await visitor.get(path, **headers)
    assert (said.status, said.media_type) == (200, media_type)
    return said


async def robots_txt(visitor: Visitor) -> None:
    """Require: robots.txt has groups by RFC 9309 that let readers in."""
    said = await found(visitor, "/robots.txt", "text/plain")
    parser = RobotFileParser()
    parser.parse(said.text.splitlines())
    assert "User-agent: *" in said.text
    assert parser.can_fetch("AnyBot", f"{ORIGIN}/journal/")


async def robots_txt_ai_rules(visitor: Visitor) -> None:
    """Require: it names the agents of models."""
    text = (await visitor.get("/robots.txt")).text
    for agent in (
        "GPTBot",
        "OAI-SearchBot",
        "Claude-Web",
        "Google-Extended",
        "Amazonbot",
        "anthropic-ai",
        "Bytespider",
        "CCBot",
        "Applebot-Extended",
        "PerplexityBot",
    ):
        assert f"User-agent: {agent}\n" in text


async def content_signals(visitor: Visitor) -> None:
    """Require: it says in a group what the content may be used for, each use with yes or no."""
    group = (await visitor.get("/robots.txt")).text.split("User-agent: *\n")[1].split("\n\n")[0]
    said = re.search(r"^Content-Signal: (.*)$", group, re.MULTILINE)
    assert said is not None
    uses = dict(each.split("=") for each in said[1].split(", "))
    assert set(uses) == {"search", "ai-input", "ai-train"}
    assert set(uses.values()) <= {"yes", "no"}


async def sitemap(visitor: Visitor) -> None:
    """Require: robots.txt leads to a sitemap, whose pages are dated."""
    robots = (await visitor.get("/robots.txt")).text
    url = re.search(r"^Sitemap: (\S+)$", robots, re.MULTILINE)
    assert url is not None
    root = ET.fromstring((await found(visitor, url[1], "application/xml")).body)  # noqa: S314
    assert root.tag.endswith("}urlset")
    assert len(root) > 10
    assert all(row.find(LOC) is not None for row in root)


async def link_headers(visitor: Visitor) -> None:
    """Require: the header leads to API catalog, descriptions, documentation and other forms."""
    for path in ("/", "/about/", "/journal/", "/404-such-page/"):
        rels = {link.rel for link in (await visitor.get(path)).links}
        assert rels >= {"api-catalog", "service-desc", "service-doc", "describedby", "status"}
        assert rels >= {"alternate", "sitemap"}


async def markdown_negotiation(visitor: Visitor) -> None:
    """Require: every page of the sitemap is Markdown on request, HTML otherwise."""
    for url in await list_pages(visitor):
        page = await found(visitor, url, "text/html", Accept="*/*")
        twin = await found(visitor, url, "text/markdown", Accept="text/markdown")
        assert twin.text.startswith("# ")
        assert all("Accept" in each.headers["Vary"].split(", ") for each in (page, twin))
        assert (await found(visitor, twin.headers["Content-Location"], "text/markdown")).text


async def markdown_by_address(visitor: Visitor) -> None:
    """Require: what llms.txt promises of Markdown holds for each page of the sitemap."""
    promise = "Every page of the sitemap exists as Markdown too: put `index.md` behind its address"
    assert promise in (await visitor.get("/llms.txt")).text
    for url in await list_pages(visitor):
        assert (await found(visitor, f"{url}index.md", "text/markdown")).text.startswith("# ")
    await found(visitor, "/search?q=edge", "text/markdown", Accept="text/markdown")


async def markdown_404(visitor: Visitor) -> None:
    """Require: a missing page is a 404 in Markdown that names what there is and what is near."""
    said = await visitor.get("/journal/marble-paper/", Accept="text/markdown")
    assert (said.status, said.media_type) == (404, "text/markdown")
    assert "](/journal/marbled-paper/)" in said.text
    assert "/llms.txt)" in said.text


async def llms_txt(visitor: Visitor) -> None:
    """Require: llms.txt has the form of llmstxt.org: a heading, a quotation, sections of links."""
    lines = (await found(visitor, "/llms.txt", "text/plain")).text.splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    assert lines[0].startswith("# ")
    assert lines[2].startswith("> ")
    assert sum(line.startswith("# ") for line in lines) == 1
    assert len(entries) > 15
    assert all(re.match(r"- \[.+\]\(https://press\.example/.*\).*: .+", line) for line in entries)


async def llms_full_txt(visitor: Visitor) -> None:
    """Require: the whole text is in one file."""
    text = (await found(visitor, "/llms-full.txt", "text/plain")).text
    assert "# Marbled paper" in text


async def api_catalog(visitor: Visitor) -> None:
    """Require: RFC 9727, each API with its description, its documentation and its status."""
    said = await found(visitor, "/.well-known/api-catalog", "application/linkset+json")
    assert 'profile="https://www.rfc-editor.org/info/rfc9727"' in said.headers["Content-Type"]
    *apis, catalog = said.json["linkset"]
    assert len(apis) == 2
    for api in apis:
        assert {"anchor", "service-desc", "service-doc", "status", "describedby"} <= set(api)
    assert [item["href"] for item in catalog["item"]] == [api["anchor"] for api in apis]


async def oauth_server(visitor: Visitor) -> None:
    """Require: RFC 8414: the issuer is the site, and clients learn all that they need."""
    said = (
        await found(visitor, "/.well-known/oauth-authorization-server", "application/json")
    ).json
    assert said["issuer"] == ORIGIN
    assert {
        "authorization_endpoint",
        "token_endpoint",
        "jwks_uri",
        "grant_types_supported",
        "response_types_supported",
        "code_challenge_methods_supported",
    } <= set(said)


async def oauth_resource(visitor: Visitor) -> None:
    """Require: RFC 9728: what is protected, who hands out tokens, and where they are shown."""
    for path in ("", "/api/public/mcp", "/api/public/v1"):
        url = f"/.well-known/oauth-protected-resource{path}"
        said = (await found(visitor, url, "application/json")).json
        assert said["resource"].startswith(ORIGIN)
        assert said["authorization_servers"] == [ORIGIN]
        assert said["scopes_supported"]
        assert "header" in said["bearer_methods_supported"]


async def challenge(visitor: Visitor) -> None:
    """Require: a request without a credential is led to that metadata."""
    async with visitor.edge.ask("POST", "/api/public/mcp", json={}) as answer:
        assert answer.status == 401
        assert f'resource_metadata="{ORIGIN}/' in answer.headers["WWW-Authenticate"]


async def auth_md(visitor: Visitor) -> None:
    """Require: auth.md tells how to register, and the metadata agrees with it."""
    text = (await found(visitor, "/auth.md", "text/markdown")).text
    assert "auth.md" in text.splitlines()[0]
    server = (await visitor.get(AUTHORIZATION_SERVER)).json
    agent = server["agent_auth"]
    assert agent["skill"] == f"{ORIGIN}/auth.md"
    assert agent["identity_types_supported"] == ["anonymous"]
    assert agent["anonymous"]["credential_types_supported"] == ["api_key", "access_token"]
    assert agent["register_uri"].removeprefix(ORIGIN) in text
    assert agent["claim_uri"].removeprefix(ORIGIN) in text


async def mcp_server_card(visitor: Visitor) -> None:
    """Require: the card is below the endpoint, and in the root as before."""
    card = await found(visitor, "/api/public/mcp/server-card", "application/mcp-server-card+json")
    earlier = await found(visitor, "/.well-known/mcp/server-card.json", "application/json")
    assert card.json.items() <= earlier.json.items()
    assert card.json["remotes"][0]["url"] == f"{ORIGIN}/api/public/mcp"
    assert len(card.json["description"]) <= 100
    assert {"name", "version"} <= set(earlier.json["serverInfo"])
    assert earlier.json["transport"]["endpoint"] == f"{ORIGIN}/api/public/mcp"
    assert "tools" in earlier.json["capabilities"]


async def ai_catalog(visitor: Visitor) -> None:
    """Require: the catalog names host and artifacts, each by URN, type, URL and queries."""
    said = await found(visitor, "/.well-known/ai-catalog.json", "application/ai-catalog+json")
    assert said.headers["Access-Control-Allow-Origin"] == "*"
    assert said.json["specVersion"] == "1.0"
    assert said.json["host"]["displayName"]
    for entry in said.json["entries"]:
        assert re.fullmatch(r"urn:air:[a-z0-9.-]+:[a-z]+:[a-z0-9._-]+", entry["identifier"])
        assert ("url" in entry) != ("data" in entry)
        assert 2 <= len(entry["representativeQueries"]) <= 5
        assert (await visitor.get(entry["url"])).media_type == entry["type"]


async def agent_skills(visitor: Visitor) -> None:
    """Require: the index has the digest of the bytes that are served, under every coding."""
    said = await found(visitor, "/.well-known/agent-skills/index.json", "application/json")
    assert said.json["$schema"] == "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    assert said.headers["Access-Control-Allow-Origin"] == "*"
    assert len(said.json["skills"]) == 4
    for skill in said.json["skills"]:
        assert skill["type"] == "skill-md"
        for coding in ("identity", "gzip"):
            file = await found(visitor, skill["url"], "text/markdown", Accept_Encoding=coding)
            assert skill["digest"] == f"sha256:{sha256(file.body).hexdigest()}"


async def security_txt(visitor: Visitor) -> None:
    """Require: RFC 9116: whom to tell, until when, under its own https URL."""
    text = (await found(visitor, "/.well-known/security.txt", "text/plain")).text
    assert f"Contact: {ORIGIN}/contact/\n" in text
    assert "Expires: 2027-10-01T00:00:00Z\n" in text
    assert f"Canonical: {ORIGIN}/.well-known/security.txt\n" in text


async def web_mcp(visitor: Visitor) -> None:
    """Require: forms say what they are for, and each of their fields."""
    for path in ("/contact/", "/search"):
        text = (await visitor.get(path)).text
        assert re.search(r"<form[^>]* toolname=\"[a-z_]+\"[^>]* tooldescription=\"", text), path


async def json_ld(visitor: Visitor) -> None:
    """Require: every page of the journal says what it is, and a post says all that engines ask."""
    kinds = {}
    for url in await list_pages(visitor):
        if url.startswith(f"{ORIGIN}{DOCS}"):  # OpenAPI says what these are about
            continue
        kinds[url] = {node["@type"] for node in (await visitor.get(url)).graph}
    assert kinds[f"{ORIGIN}/"] >= {"WebSite", "Organization", "Blog"}
    assert all("BreadcrumbList" in found for url, found in kinds.items() if url != f"{ORIGIN}/")
    posts = [url for url in kinds if re.fullmatch(rf"{ORIGIN}/journal/[^/]+/", url)]
    assert len(posts) == 3
    assert all("BlogPosting" in kinds[url] for url in posts)


async def feeds(visitor: Visitor) -> None:
    """Require: journal and tags have feeds of both kinds, named in head and header."""
    for path in ("/", "/tags/paper/"):
        page = await visitor.get(path)
        for name, kind in (("feed.xml", "atom+xml"), ("feed.json", "feed+json")):
            said = await found(visitor, f"{path}{name}", f"application/{kind}")
            assert said.headers["Access-Control-Allow-Origin"] == "*"
            assert (f"{path}{name}", f"application/{kind}") in {
                (link.href, link.type) for link in page.links
            }
            assert f'type="application/{kind}" title="' in page.text
            assert f'href="{path}{name}"' in page.text


CRITERIA: tuple[Criterion, ...] = (
    robots_txt,
    robots_txt_ai_rules,
    content_signals,
    sitemap,
    link_headers,
    markdown_negotiation,
    markdown_by_address,
    llms_txt,
    llms_full_txt,
    api_catalog,
    oauth_server,
    oauth_resource,
    challenge,
    auth_md,
    mcp_server_card,
    ai_catalog,
    agent_skills,
    security_txt,
    web_mcp,
    json_ld,
    feeds,
)


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda each: each.__name__)
async def test_the_product_is_ready_for_agents(criterion: Criterion, visitor: Visitor) -> None:
    """Every criterion is met by what is served."""
    await criterion(visitor)


async def list_pages(visitor: Visitor) -> list[str]:
    """Return the URL of every page in the sitemap."""
    root = ET.fromstring((await visitor.get("/sitemap.xml")).body)  # noqa: S314
    return [loc.text or "" for loc in root.iter(LOC)]


SKILLS = ("read-the-journal", "use-the-posts-api", "send-an-enquiry", "connect-over-mcp")
TEXTS = (
    "/robots.txt",
    "/llms.txt",
    "/auth.md",
    "/.well-known/security.txt",
    "/sitemap.xml",
    "/feed.xml",
    "/feed.json",
    "/tags/paper/feed.xml",
    "/tags/paper/feed.json",
    "/.well-known/api-catalog",
    "/.well-known/ai-catalog.json",
    "/api/public/mcp/server-card",
    "/.well-known/mcp/server-card.json",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/agent-skills/index.json",
    "/api/public/v1/",
    "/404.md",
    "/contact/index.md",
    *(f"/.well-known/agent-skills/{name}/SKILL.md" for name in SKILLS),
    "/",
    "/journal/",
    "/journal/marbled-paper/",
    "/tags/paper/",
    "/about/",
)
"""Documents that name addresses of the site to programs; of pages, all absolute addresses."""

ELSEWISE = {
    "/api/public/v1/posts": 401,
    "/api/public/v1/leads": 401,
    "/api/public/mcp": 405,
    "/api/public/access-requests": 303,
    "/api/public/access-requests/claim": 405,
    "/api/public/oauth/authorize": 400,
    "/api/public/oauth/token": 405,
    "/api/public/oauth/revoke": 405,
    "/api/public/oauth/register": 405,
}
"""Doors that a plain GET does not open, and what they say to it, as documented."""


@pytest.mark.parametrize("path", TEXTS)
async def test_every_advertised_url_answers(path: str, visitor: Visitor) -> None:
    """Every URL of the site in what programs read is answered, or refused as documented."""
    said = await visitor.get(path)
    assert said.status == 200
    dead = []
    for url in sorted(set(visitor.own(said.text))):
        target = url.removeprefix(ORIGIN)
        answer = await visitor.get(target)
        if answer.status != ELSEWISE.get(target.partition("?")[0], 200):
            dead.append((target, answer.status))

    assert dead == []


@pytest.mark.parametrize(
    "path", ["/", "/about/", "/tags/paper/", "/journal/", "/contact/", "/none/"]
)
async def test_links_of_headers_have_their_type(path: str, visitor: Visitor) -> None:
    """Each link of a page's header answers with the type that it names."""
    links = (await visitor.get(path)).links
    assert len(links) > 6
    for link in links:
        answer = await visitor.get(link.href)
        assert (answer.status, answer.media_type) == (200, link.type or answer.media_type), link


async def test_links_of_the_api_catalog_have_their_type(visitor: Visitor) -> None:
    """Each link of the catalog answers with the type that it names."""
    for context in (await visitor.get("/.well-known/api-catalog")).json["linkset"]:
        targets = [link for links in context.values() if isinstance(links, list) for link in links]
        for link in targets:
            answer = await visitor.get(link["href"])
            if "type" in link:
                assert (answer.status, answer.media_type) == (200, link["type"])


async def test_pages_that_the_edge_renders_name_the_api_too(visitor: Visitor) -> None:
    """A program that comes upon such a page finds on."""
    said = await visitor.get("/unsubscribe?token=none")

    assert said.media_type == "text/html"
    assert {"api-catalog", "service-desc", "service-doc"} <= {link.rel for link in said.links}
