"""Conditions and ranges, as tables."""

import pytest

from edge_api.http.endpoint import etag_matches
from edge_api.http.static import parse_range, range_applies

pytestmark = pytest.mark.one_engine

ETAG = '"abc"'
SIZE = 1000


@pytest.mark.parametrize(
    ("condition", "matches"),
    [
        ('"abc"', True),
        ('W/"abc"', True),
        ('  "abc"  ', True),
        ("*", True),
        (" * ", True),
        ('"x", "abc"', True),
        ('"x","abc"', True),
        ('"x" , W/"abc" ,', True),
        (', "abc"', True),
        (',,"abc"', True),
        ('"a,b", "abc"', True),
        ("", False),
        ('"x"', False),
        ('"ABC"', False),
        ("abc", False),
        ('w/"abc"', False),
        ('"abc', False),
        ('abc"', False),
        ('"abc" "x"', False),
        ('"x""abc"', False),
        ('"x" x, "abc"', False),
        ('*, "abc"', False),
        ('"abc", *', False),
        ('"abc-br"', False),
        ('"a bc"', False),
        ('"\u00e9", "abc"', True),
        (" " * 8000 + "x", False),
        ('"x",' * 2000 + '"abc"', True),
    ],
)
def test_if_none_match(condition: str, matches: bool) -> None:  # noqa: FBT001
    """A validator is matched weakly, in any place of a well-formed list, and by the star."""
    assert etag_matches(condition, ETAG) is matches


@pytest.mark.parametrize(
    ("condition", "etag", "holds"),
    [
        (None, ETAG, True),
        (ETAG, ETAG, True),
        (f" {ETAG} ", ETAG, True),
        ('"x"', ETAG, False),
        ('W/"abc"', ETAG, False),
        ('W/"abc"', 'W/"abc"', False),
        ("Sat, 21 Nov 2026 05:29:12 GMT", ETAG, False),
        ("*", ETAG, False),
        (f"{ETAG}, {ETAG}", ETAG, False),
        ("", ETAG, False),
    ],
)
def test_if_range(condition: str | None, etag: str, holds: bool) -> None:  # noqa: FBT001
    """A range is only sent to a client with the same representation, or without a condition."""
    assert range_applies(condition, etag) is holds


@pytest.mark.parametrize(
    ("header", "span"),
    [
        ("bytes=0-0", range(1)),
        ("bytes=0-499", range(500)),
        ("bytes=500-", range(500, 1000)),
        ("bytes=999-", range(999, 1000)),
        ("bytes=999-5000", range(999, 1000)),
        ("bytes=0-", range(1000)),
        ("bytes=-1", range(999, 1000)),
        ("bytes=-1000", range(1000)),
        ("bytes=-5000", range(1000)),
        ("bytes=0-99999999999999999999999999", range(1000)),
        ("bytes=-" + "9" * 5000, range(1000)),
        ("bytes=" + "0" * 5000 + "5-6", range(5, 7)),
        ("Bytes=0-1", range(2)),
        (" bytes= 0-1 ", range(2)),
        ("bytes=1000-", range(0)),
        ("bytes=1000-2000", range(0)),
        ("bytes=" + "9" * 5000 + "-", range(0)),
        ("bytes=-0", range(0)),
        ("", None),
        ("bytes", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=5-2", None),
        ("bytes=a-b", None),
        ("bytes=1.5-2", None),
        ("bytes=+1-2", None),
        ("bytes=--1", None),
        ("bytes=0-1,2-3", None),
        ("bytes=0-1,", None),
        ("bytes=0 - 1", None),
        ("bytes 0-1", None),
        ("items=0-1", None),
        ("bytes=\u0661-\u0662", None),
        ("bytes=0-1\n", range(2)),
    ],
)
def test_range(header: str, span: object) -> None:
    """One range of bytes gives a part, one beyond the end none, anything else the whole."""
    assert parse_range(header, SIZE) == span


@pytest.mark.parametrize("header", ["bytes=0-", "bytes=-1", "bytes=0-0", "bytes=-0"])
def test_an_empty_file_has_no_range(header: str) -> None:
    """An empty body has no part."""
    assert parse_range(header, 0) == range(0)


@pytest.mark.parametrize("size", [1, 2, 10])
def test_every_part_lies_within(size: int) -> None:
    """For any numbers, a part is not empty and lies within the body."""
    for first in range(size + 2):
        for last in range(size + 2):
            span = parse_range(f"bytes={first}-{last}", size)
            if span is None:
                assert last < first
            else:
                assert list(span) == list(range(size)[first : last + 1])
