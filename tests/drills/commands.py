"""Commands of the edge, run one after the other in one process beside the edge that serves.

`python -m tests.drills.commands` reads a JSON array of words a line and answers each with its exit
code. `... truncate` plants a fault: a store that closes cuts the log, whoever replicates that.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from edge_api.__main__ import main
from edge_api.db.sqlite import store_connections
from edge_api.db.sqlite.store_connections import Writer


class TruncatingWriter(Writer):
    """Cuts the log whenever it closes."""

    async def close(self, *, truncates_wal: bool = False) -> None:  # noqa: ARG002  that is the fault
        """Close, and cut the log."""
        await super().close(truncates_wal=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["truncate"]:
        store_connections.Writer = TruncatingWriter  # type: ignore[misc]  # planted
    for line in sys.stdin:
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            code = main(json.loads(line))
        sys.stdout.write(f"{json.dumps([code, said.getvalue()])}\n")
        sys.stdout.flush()
