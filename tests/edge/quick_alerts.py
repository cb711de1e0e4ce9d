"""The edge with short waits: `python -m tests.edge.quick_alerts` is `python -m edge_api` with them.

What takes five minutes there takes three seconds here: a busy machine may stop for one. With
QUICK_VERIFICATION set it verifies as often, too.
"""

import os
import sys

from edge_api import alerts, app, background
from edge_api.__main__ import main
from edge_api.backup import verify

if __name__ == "__main__":
    alerts.STEADY_SECONDS = 3.0  # type: ignore[misc]
    names = ["ALERT_SECONDS", "WATCHER_POLL_SECONDS"]
    if "QUICK_VERIFICATION" in os.environ:
        verify.RETRY_SECONDS = 0.3  # type: ignore[misc]
        background.RETRY_SECONDS = 0.3  # type: ignore[attr-defined]
        background.PAUSE_FACTOR = 0  # type: ignore[misc]
        names.append("VERIFY_SECONDS")
    for name in names:
        assert hasattr(app, name)
        setattr(app, name, 0.3)
    sys.exit(main(sys.argv[1:]))
