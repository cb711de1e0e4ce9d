"""Documents as they are parsed: prose, structure, and guards that keep parsers quick."""

import pytest

from edge_api.analysis.document import Counts, ParsedDocument
from edge_api.analysis.languages import normalize_tag
from edge_api.analysis.metrics import find_keywords
from edge_api.analysis.parse import (
    MAX_DEPTH,
    limit_brackets,
    limit_nesting,
    parse_html,
    parse_markdown,
    parse_text,
)

pytestmark = pytest.mark.one_engine

PAGE = """<!doctype html><html lang="en"><head><title>A &amp; B</title>
<meta name="Description" content=" About  it. "><link rel="canonical" href="/x">
<meta property="og:title" content="A">
<script type="application/ld+json">{"@type": "Article", "author": [{"@type": ["Person"]}]}</script>
<script type="application/ld+json">{broken</script></head>
<body><nav><a href="/">Home</a></nav><main><h1>Head <a href="#head">#</a></h1>
loose<p>One <b>bold</b><br>line.<pre>code</pre><ul><li>first<li>second</ul>
<table><tr><td>cell</table><img src="a"><img src="b" alt=""><a href="https://else.test/x"></a>
<a href="https://here.test/"><img src="c" alt="c"></a></main><footer>Foot</footer></body></html>"""


def list_prose(document: ParsedDocument) -> list[tuple[str, str]]:
    """Return the prose of a document, block by block."""
    return [(block.kind, block.text) for block in document.blocks]


def test_html_is_parsed_into_blocks() -> None:
    """Prose is the text of `main`; the rest is counted over the whole page."""
    document = parse_html(PAGE, "https://here.test/page")

    assert document.title == "A & B"
    assert [(heading.level, heading.text) for heading in document.headings] == [(1, "Head")]
    assert list_prose(document) == [
        ("heading", "Head"),
        ("paragraph", "loose"),
        ("paragraph", "One bold line."),
        ("item", "first"),
        ("item", "second"),
        ("cell", "cell"),
    ]
    assert document.counts == Counts(
        links=4,
        external_links=1,
        links_without_text=1,
        images=3,
        images_without_alt=1,
        lists=1,
        tables=1,
        tables_without_header=1,
    )


def test_the_metadata_of_a_page_is_read() -> None:
    """Language, description, JSON-LD with its types and faults, and the rest of the head."""
    page = parse_html(PAGE).page

    assert page is not None
    assert (page.page_language, page.description) == ("en", "About it.")
    assert (page.has_main, page.has_canonical, page.has_open_graph) == (True, True, True)
    assert (page.json_ld, page.json_ld_errors) == (2, 1)
    assert page.json_ld_types == ("Article", "Person")
    assert parse_html("<h1>Fragment</h1>").page is None


def test_markdown_is_parsed_into_blocks() -> None:
    """CommonMark with tables; facts in front of it are no text."""
    text = "---\ntitle: x\n---\n# Head\n\nA [link](https://else.test/).\n\n|a|\n|-|\n|b|\n"
    document = parse_markdown(text)

    assert document.title == "x"
    assert [text for _, text in list_prose(document)] == ["Head", "A link.", "a", "b"]
    assert document.counts.external_links == 1
    assert document.reading_time_text == text
    assert list_prose(parse_markdown("---\n\nA rule.\n")) == [("paragraph", "A rule.")]


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("title: A: b", "A: b"),
        ("date: 2026-01-01\r\nTitle:   'A b'  \r", "A b"),
        ('title: "A b"', "A b"),
        ("title:", "Head"),
        ("title: |", "Head"),
        ("subtitle: x", "Head"),
    ],
)
def test_front_matter_gives_the_title(head: str, title: str) -> None:
    """In one line, with or without quotes; else the first heading does."""
    assert parse_markdown(f"---\n{head}\n---\n# Head\n").title == title
    assert parse_markdown(f"# Head\n\n{head}\n").title == "Head"


def test_hidden_elements_are_left_out() -> None:
    """Neither its prose nor what it holds; what follows it is."""
    html = (
        '<h2>A <span aria-hidden="TRUE">#</span></h2><p>One<div hidden><h2>B</h2><img>two</div>'
        '<p>three <i aria-hidden="false">four</i><ul hidden><li>five</ul><p>six'
    )
    document = parse_html(html)

    assert [text for _, text in list_prose(document)] == ["A", "One", "three four", "six"]
    assert [heading.text for heading in document.headings] == ["A"]
    assert document.counts == Counts()


@pytest.mark.parametrize(
    ("stated", "tag"),
    [
        ("en", "en"),
        (" EN_us ", "en-US"),
        ("ZH-hant-tw", "zh-Hant-TW"),
        ("de-1996-u-CO-phonebk", "de-1996-u-co-phonebk"),
        ("es-419", "es-419"),
        ("en-x-US", "en-x-us"),
        ("und", None),
        ("", None),
        ("e", None),
        ("no language", None),
        ("en-", None),
        ("en-toolongapart", None),
        ("en-x-" + "abcdefgh-" * 4 + "a", None),
        ("x" * 90_000, None),
        ("<b>", None),
        ("\u0131t", None),
    ],
)
def test_a_stated_language_is_a_tag_or_nothing(stated: str, tag: str | None) -> None:
    """As BCP 47 has it, in the usual case, and of 35 characters at the most."""
    assert normalize_tag(stated) == tag
    page = parse_html(f'<html lang="{stated}"><p>x').page
    assert page is not None
    assert page.page_language == tag


def test_text_is_parsed_into_blocks() -> None:
    """Empty lines divide it, whatever ends its lines."""
    expected = [("paragraph", "a b"), ("paragraph", "c"), ("paragraph", "d")]

    assert list_prose(parse_text("a\nb\n\n\n c \n \nd")) == expected
    assert list_prose(parse_text("a\r\nb\r\n\r\nc\r\rd")) == expected
    assert list_prose(parse_text(" \n\n ")) == []


def test_nesting_is_limited() -> None:
    """Deeper elements lose their tags and keep their text; others are left alone."""
    deep = "<div>" * 5000 + "text" + "</div>" * 5000
    flat = "<p>text</p>" * 5000
    unclosed = "<li>a<p>b<br>" * 5000

    assert limit_nesting(deep) == "<div>" * MAX_DEPTH + "text" + "</div>" * MAX_DEPTH
    assert limit_nesting(flat) == flat
    assert limit_nesting(unclosed) == unclosed
    assert limit_nesting("<div></b>" * 5000).count("<div>") == MAX_DEPTH


@pytest.mark.parametrize("text", ["[a](b) " * 5000, "a [ b\n" * 100, "[[x]](y)" * 300])
def test_brackets_of_people_are_left_alone(text: str) -> None:
    """Those that close, and a few that do not."""
    assert limit_brackets(text) == text


def test_brackets_that_nothing_closes_are_text() -> None:
    """And look the same as without a backslash; what had one keeps it."""
    assert limit_brackets("![" * 300) == "!\\[" * 300
    assert limit_brackets("\\[[" * 300) == "\\[\\[" * 300
    assert list_prose(parse_markdown("[ " * 300)) == [("paragraph", " ".join("[" * 300))]


def test_keywords_are_what_is_repeated() -> None:
    """Phrases go before their words; common words, numbers and addresses are none."""
    text = (
        "# Fore-edge painting\n\nFore-edge painting is old. A fore-edge painting is seen when the "
        "pages are fanned. See https://example.org/pages/pages/pages in 1999 and 1999 and 1999."
    )
    found = find_keywords(parse_markdown(text), "en", 3)

    assert (found[0].term, found[0].count, found[0].score) == ("fore-edge painting", 3, 1.0)
    assert {"1999", "https", "example", "is"}.isdisjoint(keyword.term for keyword in found)
    assert "painting" not in {keyword.term for keyword in found}
    assert find_keywords(parse_text(""), "en", 3) == []
