"""The edge on a machine so slow that no worker dies within the time that counts as early."""

import sys

from edge_api.__main__ import main
from edge_api.cli import supervisor

if __name__ == "__main__":
    supervisor.EARLY_EXIT_SECONDS = 0.0  # type: ignore[misc]  # that is the point
    sys.exit(main())
