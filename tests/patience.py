"""Timeouts of tests and their helpers: the longer, the more the machine has to do."""

import os


def patience(seconds: float = 60.0) -> float:
    """Return the seconds after which one who waits gives up; nothing is measured by it.

    They grow with the load: where four processes want each core, all takes four times as long.
    """
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
