"""Rates as the reference tells them: of every form that the settings take."""

import pytest

from edge_api.operation.reference.pages import format_rate

pytestmark = pytest.mark.one_engine


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("5/10minutes;20/day", "5 in 10 minutes, 20 a day"),
        ("300/minute", "300 a minute"),
        ("7/hour", "7 an hour"),
        ("1 per 2 hour", "1 in 2 hours"),
        ("0", "no limit"),
    ],
)
def test_a_rate_is_written_in_words(rate: str, words: str) -> None:
    """One window is called by its unit, several are counted."""
    assert format_rate(rate) == words
