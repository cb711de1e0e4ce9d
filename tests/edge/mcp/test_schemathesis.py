"""The OpenAPI entries around MCP, taken at their word by a fuzzer that holds an access token."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "10")
"""For each operation; `make judge` asks for 200."""
SECONDS = 3000


async def fuzz(url: str, token: str, folder: Path) -> str:
    """Return what schemathesis says: every check."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{url}/api/public/v1/openapi.json",
        *("--url", url, "--header", f"Authorization: Bearer {token}", "--include-tag", "mcp"),
        *("--checks", "all", "--phases", "examples,coverage,fuzzing"),
        *("--max-examples", EXAMPLES, "--no-color"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return f"{said.decode()}\nexit {process.returncode}"


async def test_messages_are_answered_as_the_document_says(edge: Any, tmp_path: Path) -> None:
    """What fits the message's schema is answered, what does not is refused, each as declared."""
    said = await fuzz(edge.url, await edge.token(), tmp_path)

    assert said.endswith("exit 0"), said[-8000:]
    assert "Tested: 3" in said, said[-3000:]
