"""Preferences of clients, as tables."""

import pytest

from edge_api.operation.negotiation import best_coding, media_weight, preferences, prefers_markdown

pytestmark = pytest.mark.one_engine

BOTH = ("br", "gzip")
CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        ("", ""),
        ("gzip", "gzip"),
        ("br", "br"),
        ("gzip, br", "br"),
        ("gzip, deflate, br, zstd", "br"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        ("deflate", ""),
        ("zstd, deflate", ""),
        ("*", "br"),
        ("*;q=0", ""),
        ("br;q=0", ""),
        ("br;q=0, *", "gzip"),
        ("br;q=0.000, gzip", "gzip"),
        ("gzip;q=0.8, br;q=0.5", "gzip"),
        ("gzip;q=0.5, br;q=0.5", "br"),
        ("gzip ; q=0.5 , br ; q=0.25", "gzip"),
        ("identity", ""),
        ("identity, gzip", "gzip"),
        ("identity;q=0.5, gzip;q=0.4", ""),
        ("identity;q=0.5, gzip;q=0.5", "gzip"),
        ("identity;q=1, *;q=0", ""),
        ("identity;q=1, *;q=0.5", ""),
        ("identity;q=0, gzip", "gzip"),
        ("identity;q=0, *;q=0", ""),
        ("identity;q=0, zstd", ""),
        ("gzip;q=1.5", ""),
        ("gzip;q=nan", ""),
        ("gzip;q=0.1234", ""),
        ("gzip;q=-1", ""),
        ("gzip;q=", ""),
        ("gzip;q=1.000", "gzip"),
        ("gzip;q=.5", ""),
        ("brotli", ""),
        ("notgzip, xbr", ""),
        ("gzip;foo=bar", "gzip"),
        ("gzip,,,br", "br"),
        (",", ""),
        ('"gzip"', ""),
        ("gzip\tbr", ""),
        ("gzip; q=0.5; level=9", "gzip"),
    ],
)
def test_the_preferred_coding_is_chosen(header: str, coding: str) -> None:
    """The coding with the highest weight is chosen, and of equals the tightest."""
    assert best_coding(header, BOTH) == coding


@pytest.mark.parametrize(
    ("available", "coding"), [((), ""), (("gzip",), "gzip"), (("br",), "br"), (BOTH, "br")]
)
def test_only_what_is_there_is_chosen(available: tuple[str, ...], coding: str) -> None:
    """A coding that the build did not make is never chosen."""
    assert best_coding("gzip, br, zstd", available) == coding


@pytest.mark.parametrize(
    ("header", "markdown"),
    [
        ("", False),
        ("*/*", False),
        ("text/*", False),
        ("text/html", False),
        (CHROME, False),
        ("text/markdown", True),
        ("TEXT/Markdown", True),
        ("text/markdown, */*", True),
        ("text/markdown;q=0.9, */*;q=0.8", True),
        ("text/markdown, text/html", True),
        ("text/html, text/markdown", True),
        ("text/html, text/markdown;q=0.9", False),
        ("text/html;q=0.8, text/markdown;q=0.9", True),
        ("text/markdown;q=0.5, text/html;q=0.5", True),
        ("text/markdown;q=0.5, text/*;q=0.6", False),
        ("text/markdown;q=0.5, */*", False),
        ("text/markdown;q=0", False),
        ("text/markdown;q=0.0, text/html;q=0", False),
        ("text/markdown;charset=utf-8", True),
        ("text/markdown;variant=GFM", True),
        ("text/markdown; variant=GFM; charset=UTF-8, text/html;q=0.9", True),
        ("text/markdown;variant=pandoc", False),
        ("text/markdown; charset=UTF-8; q=0.7, text/html; q=0.6", True),
        ('text/markdown;charset="utf-8"', True),
        ("text/markdown;charset=iso-8859-1", False),
        ("text/markdown;variant=GFM, text/html", True),
        ("text/markdown;variant=GFM, text/markdown;q=0.2, text/html;q=0.1", True),
        ("text/plain, text/markdown", True),
        ("application/json", False),
        ("text/markdownx", False),
        ("xtext/markdown", False),
        ("text/markdown;q=2", False),
        ("text/markdown;;q=1", True),
        ('text/x;a="text/markdown"', False),
        ('text/x;a=",text/markdown,"', False),
        ("text/markdown\x00", False),
        ("text markdown", False),
        ("*/markdown", False),
    ],
)
def test_markdown_is_sent_on_request(header: str, markdown: bool) -> None:  # noqa: FBT001
    """Markdown comes only when it is named and not below HTML; a wildcard gets HTML."""
    assert prefers_markdown(header) is markdown


@pytest.mark.parametrize(
    ("media_type", "weight"),
    [
        ("text/html", 0.7),
        ("text/plain", 0.3),
        ("text/markdown", 0.3),
        ("image/png", 0.5),
        ("text/css", 0.9),
    ],
)
def test_the_most_exact_range_decides(media_type: str, weight: float) -> None:
    """As in the example of RFC 9110, section 12.5.1: the most exact range gives the weight."""
    header = (
        "text/*;q=0.3, text/html;q=0.7, text/html;level=1, */*;q=0.5, text/css;charset=utf-8;q=0.9"
    )

    assert media_weight(header, media_type) == weight


@pytest.mark.parametrize(
    "header",
    [
        '"' * 8000,
        "\\" * 8000,
        '\\"' * 4000,
        '"\\' * 4000,
        " " * 8000,
        "," * 8000,
        ";" * 8000,
        "a;" * 4000,
        "a=" * 4000,
        'a;b="' * 1600,
        "text/html;q=0.5," * 500,
        "text/" * 1600,
    ],
)
def test_any_accept_header_is_parsed(header: str) -> None:
    """A header made to be hard to read gets an answer like any other."""
    assert len(preferences(header)) <= header.count(",") + header.count('"') + 1
    assert prefers_markdown(header) in (True, False)
    assert best_coding(header, BOTH) in ("", *BOTH)
