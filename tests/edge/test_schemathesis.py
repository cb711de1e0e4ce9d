"""The served OpenAPI document, taken at its word by a fuzzer that knows nothing else."""

import re
from pathlib import Path
from typing import Any

from tests.edge.fuzzing import fuzz


async def test_answers_never_contradict_the_document(edge: Any, tmp_path: Path) -> None:
    """Examples, coverage, fuzzing and stateful phases end without a failure, on all operations."""
    key = await edge.key()
    said = await fuzz(
        edge.url,
        tmp_path,
        *("--header", f"X-API-Key: {key}", "--header", f"Authorization: Bearer {key}"),
        *("--phases", "examples,coverage,fuzzing,stateful"),
    )

    assert said.endswith("exit 0"), said[-8000:]
    selected = re.search(r"Selected: (\d+)/\1\s+Tested: \1", said)
    assert selected, said[-3000:]
    assert "Examples" in said
    assert "Stateful" in said
