"""The official Python client, in both eras, against a served edge and its socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types import PromptReference, TextContent, TextResourceContents

from tests.edge.mcp.agents import LEGACY, MODERN, PATH
from tests.edge.small_builds import make_post, point_at, write_build

pytestmark = pytest.mark.one_engine

MODES = {"legacy": LEGACY, "auto": MODERN, MODERN: MODERN}
"""The modes that the client is given, and the revision that it then speaks."""


@asynccontextmanager
async def connected(edge: Any, mode: str, *scopes: str) -> AsyncIterator[Client]:
    """Connect the official client with a new token."""
    headers = {"Authorization": f"Bearer {await edge.token(*scopes)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{edge.url}{PATH}", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
async def test_the_client_does_everything(edge: Any, mode: str) -> None:
    """It agrees on a revision, lists, calls, reads, fills in and completes."""
    async with connected(edge, mode) as client:
        assert client.protocol_version == MODES[mode]
        if mode != MODERN:  # given the revision, the client asks nobody
            assert client.server_info is not None
            assert client.server_info.name == "test.journal/fore-edge"
        tools = {tool.name for tool in (await client.list_tools()).tools}
        found = await client.call_tool("search", {"query": "edge"})
        (post, *_) = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        read = await client.read_resource(post.uri)
        prompt = await client.get_prompt("summarize_post", {"slug": "first-edge"})
        completion = await client.complete(
            PromptReference(name="digest"), {"name": "tag", "value": "pa"}
        )

    assert {"search", "fetch", "create_lead", "query_table"} <= tools
    assert found.structured_content is not None
    assert found.structured_content["results"][0]["id"] == "first-edge"
    assert isinstance(found.content[0], TextContent)
    assert len(templates) == 2
    assert isinstance(read.contents[0], TextResourceContents)
    assert read.contents[0].text.startswith("# Marbled paper")
    assert len(prompt.messages) == 2
    assert completion.completion.values == ["paper"]


@pytest.mark.parametrize("mode", MODES)
async def test_the_client_gets_errors_for_wrong_calls(edge: Any, mode: str) -> None:
    """Bad arguments are a result, and an unknown tool is an error of the protocol."""
    async with connected(edge, mode) as client:
        result = await client.call_tool("get_post", {"slug": "none-such"})
        with pytest.raises(MCPError) as raised:
            await client.call_tool("none_such", {})

    assert result.is_error
    assert raised.value.code == -32602


async def test_the_client_is_notified_of_a_new_build(make_edge: Any, tmp_path: Any) -> None:
    """Its subscription yields the event when the journal is built anew."""
    point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0001", [make_post("first")]))
    async with (
        make_edge(BUILD_DIR=str(tmp_path / "b")) as edge,
        connected(edge, MODERN) as client,
        client.listen(resources_list_changed=True) as events,
    ):
        posts = [make_post("second", day=1), make_post("first")]
        point_at(tmp_path / "b", write_build(tmp_path / "b", "build-0002", posts))
        event = await anext(aiter(events))

    assert event == ResourcesListChanged()
