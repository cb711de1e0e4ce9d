"""The one clock of the product; everything else is told the time."""

from datetime import UTC, datetime


def system_clock() -> datetime:
    """Return the present instant, in UTC."""
    return datetime.now(UTC)
