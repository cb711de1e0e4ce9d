"""Conditions and ranges, as tables."""

import pytest

from edge_api.http.conditional import ByteRange, etag_matches, parse_range, range_applies

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
    """A range is only given to who has the very same representation, or sets no condition."""
    assert range_applies(condition, etag) is holds


@pytest.mark.parametrize(
    ("header", "span"),
    [
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=0-499", ByteRange(0, 500)),
        ("bytes=500-", ByteRange(500, 500)),
        ("bytes=999-", ByteRange(999, 1)),
        ("bytes=999-5000", ByteRange(999, 1)),
        ("bytes=0-", ByteRange(0, 1000)),
        ("bytes=-1", ByteRange(999, 1)),
        ("bytes=-1000", ByteRange(0, 1000)),
        ("bytes=-5000", ByteRange(0, 1000)),
        ("bytes=0-99999999999999999999999999", ByteRange(0, 1000)),
        ("bytes=-" + "9" * 5000, ByteRange(0, 1000)),
        ("bytes=" + "0" * 5000 + "5-6", ByteRange(5, 2)),
        ("Bytes=0-1", ByteRange(0, 2)),
        (" bytes= 0-1 ", ByteRange(0, 2)),
        ("bytes=1000-", "unsatisfiable"),
        ("bytes=1000-2000", "unsatisfiable"),
        ("bytes=" + "9" * 5000 + "-", "unsatisfiable"),
        ("bytes=-0", "unsatisfiable"),
        ("", "whole"),
        ("bytes", "whole"),
        ("bytes=", "whole"),
        ("bytes=-", "whole"),
        ("bytes=5-2", "whole"),
        ("bytes=a-b", "whole"),
        ("bytes=1.5-2", "whole"),
        ("bytes=+1-2", "whole"),
        ("bytes=--1", "whole"),
        ("bytes=0-1,2-3", "whole"),
        ("bytes=0-1,", "whole"),
        ("bytes=0 - 1", "whole"),
        ("bytes 0-1", "whole"),
        ("items=0-1", "whole"),
        ("bytes=\u0661-\u0662", "whole"),
        ("bytes=0-1\n", ByteRange(0, 2)),
    ],
)
def test_range(header: str, span: object) -> None:
    """One range of bytes gives a part, one beyond the end none, anything else the whole."""
    assert parse_range(header, SIZE) == span


@pytest.mark.parametrize("header", ["bytes=0-", "bytes=-1", "bytes=0-0", "bytes=-0"])
def test_no_range_of_nothing(header: str) -> None:
    """An empty body has no part."""
    assert parse_range(header, 0) == "unsatisfiable"


@pytest.mark.parametrize("size", [1, 2, 10])
def test_every_part_lies_within(size: int) -> None:
    """Whatever numbers are asked for, a part is not empty and lies within the body."""
    for first in range(size + 2):
        for last in range(size + 2):
            span = parse_range(f"bytes={first}-{last}", size)
            if isinstance(span, ByteRange):
                assert span.start == first
                assert 1 <= span.length <= size - span.start
                assert span.start + span.length == min(last, size - 1) + 1
            else:
                assert (span == "whole") is (last < first)


def test_content_range() -> None:
    """A part is told by its first and last byte and the size of the whole."""
    assert ByteRange(5, 10).content_range(100) == "bytes 5-14/100"
