"""The process that writes, run beside an edge."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edge_api.schema.writing import Spool
from tests.patience import patience


@contextmanager
def writing(
    var: Path,
    content: Path | str,
    build: Path | str,
    site_url: str = "https://journal.test",
    before: tuple[str, ...] = (),
) -> Iterator[None]:
    """Run the process; `var` is the folder of the edge's store, or that beside its builds.

    `before` are words before its command.
    """
    words = [*before, sys.executable, "-m", "site_build.writing.process"]
    given = {**os.environ, "DATABASE_URL": f"sqlite:///{var}/edge.db"}
    process = subprocess.Popen(
        [*words, str(content), str(build), site_url], stdin=subprocess.PIPE, env=given
    )
    deadline = time.monotonic() + patience()
    try:
        while not Spool(var).is_watched():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()  # it ends when this pipe is closed
        process.wait()
