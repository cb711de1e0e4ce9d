"""The served OpenAPI document, taken at its word by a fuzzer that knows nothing else."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "10")
"""For each operation; `make judge` asks for 200."""
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
SECONDS = 3000


async def fuzz(url: str, key: str, folder: Path) -> str:
    """Return what schemathesis says: every check, every phase."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        *("--config-file", str(CONFIGURATION)),
        "run",
        f"{url}/api/public/v1/openapi.json",
        *("--url", url, "--header", f"X-API-Key: {key}"),
        *("--header", f"Authorization: Bearer {key}"),
        *("--checks", "all", "--phases", "examples,coverage,fuzzing,stateful"),
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


async def test_answers_never_contradict_the_document(edge: Any, tmp_path: Path) -> None:
    """Examples, coverage, fuzzing and stateful phases end without a failure, on all operations."""
    said = await fuzz(edge.url, await edge.key(), tmp_path)

    assert said.endswith("exit 0"), said[-8000:]
    selected = re.search(r"Selected: (\d+)/\1\s+Tested: \1", said)
    assert selected, said[-3000:]
    assert "Examples" in said
    assert "Stateful" in said
