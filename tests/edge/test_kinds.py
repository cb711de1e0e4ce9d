"""Kinds of value: instants and their one spelling."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge_api.db.types import format_instant, parse_timestamp

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=ZONES)  # noqa: DTZ001  the zones come from the strategy


@given(INSTANTS)
def test_every_spelling_of_an_instant_becomes_one(instant: datetime) -> None:
    """However an instant is written, it is kept in UTC with six digits, and kept as that again."""
    spelled = format_instant(instant)

    assert parse_timestamp(instant.isoformat()) == spelled
    assert parse_timestamp(spelled) == spelled
    assert datetime.fromisoformat(spelled) == instant.astimezone(UTC)
    assert len(spelled) == 27


@given(st.text("0123456789-:.TZ tz+", min_size=27, max_size=27))
@example("2026-02-30T00:00:00.000000Z")
@example("0999-12-31T23:59:59.999999Z")
@example("2026-W01-1T00:00:00.000000Z")
@example("2026-01-01 00:00:00.000000Z")
@example("2026-01-01T24:00:00.000000Z")
def test_text_of_the_length_of_an_instant_is_validated(text: str) -> None:
    """Text of the right length is an instant in the one spelling, or is refused."""
    try:
        spelled = parse_timestamp(text)
    except ValueError:
        return
    assert spelled == format_instant(datetime.fromisoformat(text.upper()))


@pytest.mark.parametrize("text", ["", "yesterday", "2026-02-30", "0999-01-01", "2026-01-01T25:00"])
def test_an_invalid_instant_is_refused(text: str) -> None:
    """Dates that no calendar has are among it."""
    with pytest.raises(ValueError, match="is not an instant"):
        parse_timestamp(text)
