"""When a delivery that failed is tried again: ever later, and then not any more."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from random import SystemRandom
from typing import Final

PAUSES: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""After the first failure, the second, and so on; after one more the delivery is given up."""
PAUSE_LONGEST: Final = timedelta(hours=24)
"""A receiver that asks for a longer one is asked again after this."""
JITTER: Final = 0.2
"""The most by which a pause grows, as a part of it: what failed together is not tried together."""

_random: Final = SystemRandom()


def next_attempt(failures: int, retry_after: str, now: datetime) -> datetime | None:
    """Return when to try again after so many failures; `None`: not any more.

    `retry_after` is that header of the last answer (RFC 9110, section 10.2.3); it makes the pause
    longer, never shorter.
    """
    if failures > len(PAUSES):
        return None
    wanted = min(_read_retry_after(retry_after, now), PAUSE_LONGEST)
    pause = max(PAUSES[failures - 1], wanted)
    return now + pause * _random.uniform(1, 1 + JITTER)


def _read_retry_after(text: str, now: datetime) -> timedelta:
    """Return the pause that is asked for; none where that cannot be read."""
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:9]), PAUSE_LONGEST.total_seconds()))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError, IndexError):  # the last two in some releases
        return timedelta()
    return (until if until.tzinfo else until.replace(tzinfo=UTC)) - now
