"""The edge with no bound on the owner's notices, so that a drill sees one for each lead.

`python -m tests.drills.unheld serve` is `python -m edge_api serve` with it.
"""

import sys

from edge_api.__main__ import main
from edge_api.mail import queue

if __name__ == "__main__":
    queue.BURST = 1_000_000  # type: ignore[misc]
    sys.exit(main(sys.argv[1:]))
