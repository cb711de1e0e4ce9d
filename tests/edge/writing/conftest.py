"""An edge whose journal can be written."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.writing_process import writing


@pytest.fixture
async def writable(make_edge: EdgeMaker, tmp_path: Path) -> AsyncIterator[RunningEdge]:
    """Return an edge whose journal can be written, and run the process that writes."""
    (tmp_path / "content/posts").mkdir(parents=True)
    build = tmp_path / "build"
    async with make_edge(WRITING="on", BUILD_DIR=str(build)) as running:
        with writing(tmp_path, tmp_path / "content", build):
            yield running
