"""The official MCP clients, which know the endpoint's URL and nothing else."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp_types import TextResourceContents
from pydantic import AnyUrl

from tests.judges.company import OPENED, accompany
from tests.judges.node import FOLDER
from tests.judges.person import Person
from tests.judges.product import Product
from tests.patience import patience

pytestmark = pytest.mark.size("test")

REDIRECT = AnyUrl("http://127.0.0.1:33418/callback")
TOOLS = {"search", "fetch", "list_posts", "get_post", "create_lead", "list_leads"}
"""Tools for a token with all the scopes which a client can register itself for."""
METADATA = OAuthClientMetadata(
    client_name="Python client",
    redirect_uris=[REDIRECT],
    token_endpoint_auth_method="none",
)


class Keeper:
    """Keeps what an authorization brings, as a real client does in its settings."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        """Begin with a client that was registered before, or with none."""
        self.tokens: OAuthToken | None = None
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the registration."""
        self.client = client_info


def provider(product: Product, keeper: Keeper, person: Person) -> OAuthClientProvider:
    """Return what authorizes a client, with a person at its side."""
    arrivals: list[str] = []

    async def redirect(address: str) -> None:
        arrivals.append(await person.consent(address))

    async def callback() -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(dict(parse_qsl(urlsplit(arrivals[-1]).query)))

    return OAuthClientProvider(product.endpoint, METADATA, keeper, redirect, callback)


@asynccontextmanager
async def connected(
    product: Product, keeper: Keeper, person: Person, era: str
) -> AsyncIterator[Client]:
    """Connect the Python client; it authorizes itself on the way."""
    async with httpx2.AsyncClient(
        auth=provider(product, keeper, person), timeout=patience()
    ) as http_client:
        transport = streamable_http_client(product.endpoint, http_client=http_client)
        async with Client(transport, mode=era) as client:
            yield client


async def check(client: Client) -> None:
    """List, call and read with a connected client."""
    assert {tool.name for tool in (await client.list_tools()).tools} >= TOOLS
    called = await client.call_tool("list_posts", {"limit": 2})
    assert called.structured_content is not None
    assert called.structured_content["count"] == 2
    listed = (await client.list_resources()).resources
    (contents,) = (await client.read_resource(listed[0].uri)).contents
    assert isinstance(contents, TextResourceContents)
    assert contents.mime_type == "text/markdown"
    assert contents.text


@pytest.mark.parametrize(("era", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_python_client_registers_itself_and_works(
    product: Product, person: Person, era: str, version: str
) -> None:
    """From 401 over metadata, registration and consent to a token; then it lists, calls, reads."""
    keeper = Keeper()
    async with connected(product, keeper, person, era) as client:
        assert client.protocol_version == version
        await check(client)

    assert keeper.tokens is not None
    assert keeper.tokens.refresh_token
    assert keeper.client is not None
    assert keeper.client.client_secret is None


async def test_the_python_client_works_as_the_operator_registered_it(
    product: Product, person: Person
) -> None:
    """With a client id that it was given, nothing is registered."""
    scopes = "posts:read leads:read leads:write mcp"
    registered = product.register("--redirect-uri", str(REDIRECT), "--scopes", scopes)
    known = OAuthClientInformationFull(
        client_id=registered["client_id"],
        redirect_uris=[REDIRECT],
        token_endpoint_auth_method="none",
    )
    keeper = Keeper(known)
    async with connected(product, keeper, person, "auto") as client:
        await check(client)

    assert keeper.client is not None
    assert keeper.client.client_id == registered["client_id"]


@pytest.mark.usefixtures("judges")
@pytest.mark.parametrize("package", ["sdk", "client"])
async def test_the_typescript_clients_register_themselves_and_work(
    product: Product, person: Person, tmp_path: Path, package: str
) -> None:
    """Both generations of the TypeScript client come to a token; then they list, call, read."""
    outcome = await accompany(
        FOLDER / "typescript_client.mjs",
        package,
        product.endpoint,
        folder=tmp_path,
        person=person,
        asks=OPENED,
    )

    assert outcome.status == 0, str(outcome)
    seen = json.loads(outcome.said.splitlines()[-1])
    assert set(seen["tools"]) >= TOOLS
    assert seen["call"]["structuredContent"]["count"] == len(seen["resources"]) == 3
    assert seen["contents"][0]["mimeType"] == "text/markdown"
    assert seen["contents"][0]["uri"] == seen["resources"][0]
    assert seen["refreshable"]
