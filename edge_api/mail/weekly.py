"""The mail of Monday, which tells the owner how much was read in the week before."""

from typing import Final

from edge_api.auth.actor import Clock
from edge_api.db.query import Store, read_first
from edge_api.mail.queue import Outbox
from edge_api.settings import Settings
from edge_api.stats.reading import last_days, local_time, read_stats

QUEUE_SECONDS: Final = 300.0
"""The interval of checks whether it is time."""
HOUR: Final = 7
"""The hour in the journal's time zone from which it is mailed."""


async def queue_week(settings: Settings, store: Store, clock: Clock, outbox: Outbox) -> None:
    """Queue the mail once, on a Monday, if anything was counted so far. Raises Problem."""
    now = local_time(settings, clock())
    is_on = settings.stats == settings.stats_mail == "on"
    if not is_on or now.weekday() or now.hour < HOUR:
        return
    queries = outbox.weekly_entries(now.date())
    if not queries or await read_first(store, queries[0].read):
        return
    if (await read_stats(store, now.date(), last_days(now.date()), limit=1)).counted_since:
        await store.run(*queries)
        outbox.wake()
