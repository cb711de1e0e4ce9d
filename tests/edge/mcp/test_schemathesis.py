"""The OpenAPI entries around MCP, taken at their word by a fuzzer that holds an access token."""

from pathlib import Path
from typing import Any

import pytest

from tests.edge.fuzzing import fuzz

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test", grows=True)]


@pytest.mark.size("ci")
async def test_messages_are_answered_as_the_document_says(edge: Any, tmp_path: Path) -> None:
    """Messages that fit the schema are answered, others are refused, each as declared."""
    said = await fuzz(
        edge.url,
        tmp_path,
        "--header",
        f"Authorization: Bearer {await edge.token()}",
        "--include-tag",
        "mcp",
        "--phases",
        "examples,coverage,fuzzing",
    )

    assert said.endswith("exit 0"), said[-8000:]
    assert "Tested: 4" in said, said[-3000:]
