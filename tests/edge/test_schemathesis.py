"""The served OpenAPI document, taken at its word by a fuzzer that knows nothing else."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.edge.fuzzing import fuzz
from tests.sizes import scaled

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test", grows=True)]


PHASES = (
    "examples,coverage,fuzzing,stateful" if scaled(test=0, ci=1) else "examples,fuzzing,stateful"
)
"""The phase of coverage takes twenty seconds alone."""


async def test_answers_never_contradict_the_document(edge: Any, tmp_path: Path) -> None:
    """Every phase ends without a failure, on all operations."""
    key = await edge.key()
    said = await fuzz(
        edge.url,
        tmp_path,
        "--header",
        f"X-API-Key: {key}",
        "--header",
        f"Authorization: Bearer {key}",
        "--phases",
        PHASES,
    )

    assert said.endswith("exit 0"), said[-8000:]
    selected = re.search(r"Selected: (\d+)/\1\s+Tested: \1", said)
    assert selected, said[-3000:]
    assert "Examples" in said
    assert "Stateful" in said
