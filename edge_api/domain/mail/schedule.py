"""When a message is tried again, and when it is given up: arithmetic on instants, nothing else."""

import random
from datetime import datetime, timedelta
from typing import Final

from edge_api.domain.mail.entry import Entry
from edge_api.domain.mail.state import SendState

BACKOFF: Final = tuple(timedelta(seconds=seconds) for seconds in (30, 120, 480, 1500))
"""How long to wait after the first, second, third and fourth attempt."""
PERSISTENT_PAUSE: Final = timedelta(hours=1)
GREYLISTED_PAUSE: Final = timedelta(minutes=5)
"""What greylisting relays usually want to see (RFC 6647, section 2.1, has the practice)."""
JITTER: Final = 0.2
"""Share by which a pause is longer or shorter, so that not all return at one moment."""
CLAIMS_MOST: Final = 20
"""A message whose claims end so often without a word is thought to end the process."""


def next_attempt(entry: Entry, now: datetime, least: timedelta = timedelta()) -> datetime | None:
    """Return when to try again after one more attempt in vain; `None` to give up.

    `least` is the shortest pause.
    """
    pause = _pause(entry)
    if pause is None:
        return None
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  spreads load, hides nothing
    return now + max(pause * spread, least)


def _pause(entry: Entry) -> timedelta | None:
    if entry.attempts < len(BACKOFF):
        return BACKOFF[entry.attempts]
    return PERSISTENT_PAUSE if _persists_for(entry) else None


def find_doom(entry: Entry, state: SendState, now: datetime) -> str | None:
    """Return why an entry is given up before it is tried; `None` where it is not."""
    if entry.claims > CLAIMS_MOST:
        return f"the process ended {CLAIMS_MOST} times while this message was being sent"
    life = max(state.times_to_live[entry.queue], _persists_for(entry) or timedelta())
    if now >= entry.queued_at + life:
        return f"not sent within {_spell(life)}"
    return None


def _persists_for(entry: Entry) -> timedelta | None:
    return entry.letter.persists_for if entry.letter else None


def _spell(life: timedelta) -> str:
    minutes = round(life.total_seconds() / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} hours" if hours > 1 and not rest else f"{minutes} minutes"
