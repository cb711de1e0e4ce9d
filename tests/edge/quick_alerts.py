"""The edge with short waits: `python -m tests.edge.quick_alerts` is `python -m edge_api` with them.

What takes five minutes there takes a second here.
"""

import sys

from edge_api import alerts, app
from edge_api.__main__ import main

if __name__ == "__main__":
    alerts.STEADY_SECONDS = 1.0  # type: ignore[misc]
    app.ALERT_SECONDS = app.MACHINE_SECONDS = app.WATCHER_POLL_SECONDS = 0.3  # type: ignore[misc]
    sys.exit(main(sys.argv[1:]))
