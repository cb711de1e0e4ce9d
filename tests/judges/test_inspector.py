"""The MCP Inspector's command line, against the product."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.judges.node import INSPECTOR, Outcome, run
from tests.judges.product import Product
from tests.sizes import in_ci

pytestmark = [pytest.mark.usefixtures("judges"), pytest.mark.size("test")]


async def inspect(product: Product, folder: Path, *words: str) -> Outcome:
    """Run the Inspector's command line in a folder of its own."""
    fixed = ("--cli", product.endpoint, "--transport", "http", "--format", "json")
    return await run(INSPECTOR, *fixed, *words, folder=folder)


OperationRequest = Callable[..., Awaitable[Any]]


@pytest.fixture(params=["modern", *in_ci("legacy")])
def ask(
    product: Product, access_token: str, tmp_path: Path, request: pytest.FixtureRequest
) -> OperationRequest:
    """Return what asks for a method in one era, and returns the result that is printed."""
    header = ("--header", f"Authorization: Bearer {access_token}")

    async def said(*words: str) -> Any:
        era = ("--protocol-era", request.param)
        outcome = await inspect(product, tmp_path, *header, *era, "--method", *words)
        assert outcome.status == 0, str(outcome)
        return json.loads(outcome.said)["result"]

    return said


async def test_tools_are_listed_without_a_fault_in_their_schemas(ask: OperationRequest) -> None:
    """Every tool is listed, and the strict check of schemas finds nothing."""
    listed = await ask("tools/list", "--strict")

    names = {tool["name"] for tool in listed["tools"]}
    assert {"search", "fetch", "list_posts", "create_lead", "query_table"} <= names


async def test_a_tool_is_called(ask: OperationRequest) -> None:
    """A call brings structured content, and the same as text."""
    answer = await ask("tools/call", "--tool-name", "list_posts", "--tool-arg", "limit=2")

    assert answer["structuredContent"]["count"] == 2
    assert answer["structuredContent"] == json.loads(answer["content"][0]["text"])


async def test_a_resource_is_read(ask: OperationRequest) -> None:
    """A listed post is read as Markdown."""
    listed = await ask("resources/list")
    read = await ask("resources/read", "--uri", listed["resources"][0]["uri"])

    assert read["contents"][0]["mimeType"] == "text/markdown"
    assert read["contents"][0]["text"]


async def test_a_prompt_is_filled_in(ask: OperationRequest) -> None:
    """A listed prompt takes its argument."""
    listed = await ask("prompts/list")
    slugs = ("--prompt-args", "slug=first-edge")
    filled = await ask("prompts/get", "--prompt-name", "summarize_post", *slugs)

    assert "summarize_post" in {prompt["name"] for prompt in listed["prompts"]}
    assert filled["messages"]


async def test_without_a_token_the_inspector_asks_for_authorization(
    product: Product, tmp_path: Path
) -> None:
    """Without a token the Inspector knows that it has to authorise, which is exit status 3."""
    words = ("--stored-auth-only", "--method", "tools/list")
    outcome = await inspect(product, tmp_path, *words)

    assert outcome.status == 3, str(outcome)
    assert "auth_required" in outcome.complained
