"""The instant at which a read has to end, looked at while the engine works."""

import time
from typing import Final

STEPS_BETWEEN_LOOKS: Final = 4000
"""Instructions of SQLite's machine between two looks at the clock: some 100 microseconds."""


class Limit:
    """The instant at which a read has to end; whoever waits for it may bring that forward."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def shorten(self, seconds: float) -> None:
        """Let no more than `seconds` be left from now on."""
        self._ends_at = min(self._ends_at, time.monotonic() + seconds)

    def is_over(self) -> bool:
        """Tell whether the read has to end."""
        return time.monotonic() >= self._ends_at
