"""Discovery of the endpoint, and the cost of loading its SDK for those who do not use it."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from edge_api.journal.builds import BuildManager
from edge_api.mcp.operations import DEFAULT_TITLE, REVISIONS, SERVER_DESCRIPTION, server_name
from edge_api.schema.paths import SERVER_CARD, WELL_KNOWN_CARD
from tests.edge.mcp.agents import LEGACY, MODERN, PATH, Agent, envelope
from tests.edge.small_builds import make_post, point_at, write_build
from tests.patience import patience

pytestmark = pytest.mark.one_engine

ROOT = Path(__file__).parents[3]


async def get(edge: Any, path: str) -> tuple[str, dict[str, Any]]:
    """Return the media type and the JSON of a document."""
    async with edge.ask("GET", path) as answer:
        assert answer.status == 200
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "max-age" in answer.headers["Cache-Control"]
        return answer.headers["Content-Type"], await answer.json(content_type=None)


async def test_the_catalog_leads_to_the_card_and_on_to_the_endpoint(edge: Any) -> None:
    """Each address that is given answers."""
    kind, catalog = await get(edge, "/.well-known/ai-catalog.json")
    (entry,) = catalog["entries"]
    card_kind, card = await get(edge, urlsplit(entry["url"]).path)
    (remote,) = card["remotes"]
    agent = Agent(edge, await edge.token(), MODERN)
    discovered = (await agent.ask("server/discover")).result
    info = discovered["_meta"]["io.modelcontextprotocol/serverInfo"]

    title = edge.service[BuildManager].build().head.site_title
    assert (catalog["host"]["displayName"], entry["displayName"], card["title"]) == (title,) * 3
    assert kind == "application/ai-catalog+json"
    assert card_kind == entry["type"] == "application/mcp-server-card+json"
    assert entry["identifier"] == "urn:air:journal.test:mcp:fore-edge"
    assert urlsplit(remote["url"]).path == PATH
    assert remote["supportedProtocolVersions"] == list(REVISIONS)
    assert {name: card[name] for name in ("name", "version", "title", "description")} == {
        name: info[name] for name in ("name", "version", "title", "description")
    }


async def test_without_a_build_the_site_has_a_plain_name(make_edge: Any, tmp_path: Path) -> None:
    """Card and catalog are given all the same."""
    async with make_edge(BUILD_DIR=str(tmp_path / "none")) as edge:
        _, catalog = await get(edge, "/.well-known/ai-catalog.json")
        _, card = await get(edge, SERVER_CARD)

    assert (catalog["host"]["displayName"], card["title"]) == (DEFAULT_TITLE, DEFAULT_TITLE)


async def test_the_card_in_the_root_says_what_the_server_can_do(edge: Any) -> None:
    """It is the card, and besides names the capabilities that a client finds."""
    _, card = await get(edge, SERVER_CARD)
    kind, earlier = await get(edge, WELL_KNOWN_CARD)
    agent = Agent(edge, await edge.token(), MODERN)
    discovered = (await agent.ask("server/discover")).result

    assert kind == "application/json"
    assert earlier["serverInfo"]["title"] == edge.service[BuildManager].build().head.site_title
    assert card.items() <= earlier.items()
    assert set(earlier["capabilities"]) == set(discovered["capabilities"])
    assert urlsplit(earlier["transport"]["endpoint"]).path == PATH


def test_the_card_says_what_the_sdk_speaks() -> None:
    """The revisions are those of the SDK, and the sentence has the length that a card allows."""
    assert REVISIONS == KNOWN_PROTOCOL_VERSIONS
    assert len(SERVER_DESCRIPTION) <= 100


@pytest.mark.parametrize(
    ("site_url", "name"),
    [
        ("https://journal.example.org", "org.example.journal/fore-edge"),
        ("http://localhost:8000", "localhost/fore-edge"),
        ("http://127.0.0.1:8000", "1.0.0.127/fore-edge"),
        ("http://[::1]:8000", "--1/fore-edge"),
    ],
)
def test_the_name_is_the_domain_in_reverse(site_url: str, name: str) -> None:
    """The card's name keeps to the characters that it may have, whatever the origin."""
    assert server_name(site_url) == name


async def test_the_service_describes_the_endpoint(edge: Any) -> None:
    """Self-description and OpenAPI name it, and preflight allows the headers it needs."""
    _, description = await get(edge, "/api/public/v1/")
    _, document = await get(edge, "/api/public/v1/openapi.json")
    async with edge.ask("OPTIONS", PATH) as answer:
        allowed = answer.headers["Access-Control-Allow-Headers"].lower()

    assert ("POST", PATH) in {(item["method"], item["path"]) for item in description["endpoints"]}
    assert description["mcp"]["url"] == f"http://journal.test{PATH}"
    assert document["paths"][PATH]["post"]["operationId"] == "mcp"
    assert {"mcp-protocol-version", "mcp-method", "mcp-name"} <= set(allowed.split(", "))


async def test_instructions_come_to_the_point(edge: Any) -> None:
    """All that a model has to know is in the first 512 characters, where some clients cut."""
    agent = Agent(edge, await edge.token(), LEGACY)
    client = {"name": "test", "version": "1"}
    result = (
        await agent.ask("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo=client)
    ).result

    for word in ("search", "fetch", "list_posts", "create_lead"):
        assert word in result["instructions"][:512]


def loaded_after(statement: str) -> set[str]:
    """Return which of the modules that take long are loaded after a statement."""
    program = f"{statement}\nimport sys\nprint(*({{'mcp', 'mcp_types'}} & set(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=patience(),
        cwd=ROOT,
    )
    return set(ran.stdout.split())


@pytest.mark.size("ci")
def test_the_sdk_is_not_loaded_before_it_is_needed() -> None:
    """Neither commands nor the start of the service pay for it; the server's module loads it."""
    assert loaded_after("import edge_api.app, edge_api.__main__") == set()
    assert loaded_after("import edge_api.mcp.server") == {"mcp", "mcp_types"}


async def test_every_document_names_the_same_revisions(edge: Any) -> None:
    """Cards, `server/discover`, an error, the API's description and the documentation agree."""
    agent = Agent(edge, await edge.token(), MODERN)
    discovered = (await agent.ask("server/discover")).result["supportedVersions"]
    unknown = Agent(edge, agent.token, "1999-01-01", {"Mcp-Method": "tools/list"})
    plain = await unknown.ask("tools/list")
    enveloped = await unknown.ask("tools/list", _meta=envelope("1999-01-01"))
    refused = [each.body["error"]["data"]["supported"] for each in (plain, enveloped)]
    cards = [(await get(edge, path))[1] for path in (SERVER_CARD, WELL_KNOWN_CARD)]
    _, document = await get(edge, "/api/public/v1/openapi.json")
    prose = document["paths"][PATH]["post"]["description"]
    documentation = (ROOT / "docs" / "connect.md").read_text(encoding="utf-8")

    named = [each["supportedProtocolVersions"] for card in cards for each in card["remotes"]]
    for revisions in (discovered, *refused, *named):
        assert revisions == list(KNOWN_PROTOCOL_VERSIONS)
    for revision in KNOWN_PROTOCOL_VERSIONS:
        assert f"`{revision}`" in documentation
    for revision in (REVISIONS[0], REVISIONS[-2], REVISIONS[-1]):
        assert revision in prose


async def test_the_icon_of_the_theme_is_shown_wherever_the_server_describes_itself(
    make_edge: Any, tmp_path: Path
) -> None:
    """It is the file's address on the site, follows the build, and is absent where none is."""
    client = {
        "protocolVersion": LEGACY,
        "clientInfo": {"name": "test", "version": "1"},
        "capabilities": {},
    }

    async def icons(edge: Any) -> list[Any]:
        token = await edge.token()
        modern = await Agent(edge, token, MODERN).ask("tools/list")
        legacy = await Agent(edge, token, LEGACY).ask("initialize", **client)
        card, well_known = [(await get(edge, path))[1] for path in (SERVER_CARD, WELL_KNOWN_CARD)]
        info = modern.result["_meta"]["io.modelcontextprotocol/serverInfo"]
        described = (info, legacy.result["serverInfo"], card, well_known, well_known["serverInfo"])
        catalog = (await get(edge, "/.well-known/ai-catalog.json"))[1]
        return [*(each.get("icons") for each in described), catalog["host"].get("logoUrl")]

    posts = [make_post("one")]
    files = {"theme/icon.0123456789ab.svg": "<svg/>"}
    point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0001", posts))
    async with make_edge(BUILD_DIR=str(tmp_path / "b"), SITE_URL="https://press.example") as edge:
        without = await icons(edge)
        point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0002", posts, files))
        await edge.service[BuildManager].refresh()
        *described, logo = await icons(edge)

    assert set(map(str, without)) == {"None"}
    assert logo == "https://press.example/theme/icon.0123456789ab.svg"
    assert described == [[{"src": logo, "mimeType": "image/svg+xml", "sizes": ["any"]}]] * 5
