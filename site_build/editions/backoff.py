"""When a publisher that was refused may try again: soon at first, then ever later.

It knows instants, and nothing of builds.
"""

from datetime import UTC, datetime, timedelta

_FIRST = timedelta(seconds=5)
_LONGEST = timedelta(minutes=5)
_NEVER = datetime.max.replace(tzinfo=UTC)


class Backoff:
    """A pause, and the length of the next one."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """End the pause; the next one is short again."""
        self._length = _FIRST
        self._since = self._until = datetime.min.replace(tzinfo=UTC)

    def is_on(self, now: datetime) -> bool:
        """Tell whether nothing is to be tried at `now` (UTC); a clock set back ends a pause."""
        return self._since <= now < self._until

    def begin(self, now: datetime, due: datetime | None) -> None:
        """Pause, each time twice as long up to five minutes, but not beyond an instant `due`."""
        self.wait_for(now, due)
        self._until = min(self._until, now + self._length)
        self._length = min(2 * self._length, _LONGEST)

    def wait_for(self, now: datetime, due: datetime | None) -> None:
        """Pause until an instant that is still to come, or for good."""
        self._since, self._until = now, due if due and due > now else _NEVER
