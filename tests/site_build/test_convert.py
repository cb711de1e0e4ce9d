"""Markdown into HTML, for the page and for strangers."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from site_build.checks.analyse import analyse
from site_build.content.document import read_document
from site_build.markup.convert import Conversion, Converter, Dialect, translate_words
from site_build.markup.sanitize import sanitize
from site_build.site import Document
from tests.shared_material import find_posts

NOON = datetime(2026, 3, 1, tzinfo=UTC)
SAMPLE = Path(__file__).parent / "samples" / "everything.md"
URL = "https://journal.test/journal/a/"


def make_document(markdown: str) -> Document:
    """Return a post with a text."""
    return Document(
        path="posts/a.md",
        kind="post",
        slug="a",
        address="journal/a/",
        title="A",
        description="",
        excerpt="",
        published=NOON,
        updated=NOON,
        tags=(),
        lang="",
        draft=False,
        markdown=markdown,
        body_line=1,
        digest="",
    )


def convert(markdown: str, converter: Converter | None = None) -> Conversion:
    """Return the conversion of a text."""
    return (converter or Converter(Dialect("https://journal.test"))).convert(
        make_document(markdown)
    )


@pytest.mark.parametrize(
    "markdown",
    [
        "| a | b |\n|:--|--:|\n| 1 | 2 |",
        "Words\n{: style='color: red' onclick=\"go()\" }",
        "# Heading {: style='color: red' }",
        "```{.python linenos=table noclasses=true cssstyles='color: red'}\nx = 1\n```",
        "```{.python linenos=inline pygments_style=monokai noclasses=true}\nx = 1\n```",
        "<div style=\"color: red\" onclick='go()'>raw</div>",
        '<div title="a"style="b"onload=go()>raw</div>',
        "<p/style=a/ONCLICK=b>raw</p>",
        "Inline <span style = 'a' onmouseover = b>raw</span>.",
        '<div markdown="1" style="color: red">\n*inside*\n</div>',
        "!!! note\n    <b onclick=x>body</b>",
        "Note[^1]\n\n[^1]: <i style='x'>note</i>",
        '<img src="a.png" alt="a > b" onerror="go()">',
    ],
)
def test_no_style_and_no_handler_comes_out(markdown: str) -> None:
    """Nothing that the content security policy forbids is in a page, whoever wrote it."""
    page = LexborHTMLParser(convert(markdown).html)

    found = {name for node in page.css("*") for name in node.attributes}

    assert not {name for name in found if name == "style" or name.startswith("on")}


def test_an_attribute_that_only_quotes_a_handler_stays() -> None:
    """Text in an attribute's value is not an attribute."""
    html = convert('<b title="a onclick=b style=c" onclick="d">x</b>').html

    assert '<b title="a onclick=b style=c">x</b>' in html


def test_code_that_shows_a_handler_stays() -> None:
    """Code about styles is shown as it was written."""
    html = convert('`<p style="x" onclick="y">`').html

    assert '&lt;p style="x" onclick="y"&gt;' in html


def test_cells_are_aligned_by_class() -> None:
    """A column's alignment becomes a class of each of its cells."""
    html = convert("| a | b | c |\n|:--|--:|:-:|\n| one | 2 | three |").html

    classes = re.findall(r'<td class="([^"]+)">', html)

    assert classes == ["align-left", "align-right amount", "align-center"]
    assert "align=" not in html


def test_headings_move_down_when_one_is_the_highest() -> None:
    """The page's title is its only h1, and the order of headings stays."""
    html = convert("# One\n\n## Two\n\n###### Six").html

    assert re.findall(r"<(h\d)", html) == ["h2", "h3", "h6"]


def test_headings_stay_when_none_is_the_highest() -> None:
    """A text that begins below h1 is left as it is."""
    html = convert("## Two\n\n### Three").html

    assert re.findall(r"<(h\d)", html) == ["h2", "h3"]


@pytest.mark.parametrize(
    ("address", "external"),
    [
        ("https://example.org/", True),
        ("http://example.org", True),
        ("https://journal.test/about/", False),
        ("/journal/b/", False),
        ("mailto:a@b.test", False),
        ("#here", False),
        ("https://[broken", False),
    ],
)
def test_links_that_leave_say_so(address: str, external: bool) -> None:  # noqa: FBT001
    """A link to another host has rel=external; no other has."""
    html = convert(f"[there]({address})").html

    assert ('rel="external"' in html) is external


def test_a_conversion_does_not_say_when_images_load() -> None:
    """That depends on the page, and is said when one is made."""
    html = convert("![a](a.png) ![b](b.png)").html

    row = '<img alt="a" src="a.png"> <img alt="b" src="b.png">'
    assert html == f'<p class="pictures">{row}</p>'


def test_code_is_highlighted_by_class_and_never_guessed() -> None:
    """A block with a language gets classes; one without gets none."""
    known, unknown = (
        convert("```python\ndef f(): ...\n```").html,
        convert("```\ndef f(): ...\n```").html,
    )

    assert '<div class="highlight">' in known
    assert '<span class="k">def</span> ' in known
    assert '<span class="k">' not in unknown


def test_the_table_of_contents_nests() -> None:
    """Headings of the second level hold those of the third; deeper ones are left out."""
    toc = convert("## A & B\n\n### C\n\n#### D\n\n## E").toc

    assert toc == (
        '<ul><li><a href="#a-b">A &amp; B</a><ul><li><a href="#c">C</a></li></ul></li>'
        '<li><a href="#e">E</a></li></ul>'
    )


def test_a_text_without_headings_has_no_contents() -> None:
    """There is no empty list."""
    assert convert("Words.").toc == ""


def test_every_heading_can_be_linked() -> None:
    """A heading has an id in its own script, and a link to itself."""
    html = convert("## Größe 三").html

    assert 'id="größe-三"' in html
    assert '<a class="heading-anchor" href="#größe-三"' in html


def test_one_converter_keeps_nothing_of_the_last_text() -> None:
    """Footnotes, headings and abbreviations of one text do not show in the next."""
    first = "# Same\n\nNote[^1] HTML\n\n[^1]: One.\n\n*[HTML]: Hyper\n"
    second = "# Same\n\nHTML and [^1]."
    converter = Converter(Dialect("https://journal.test"))

    convert(first, converter)

    assert convert(second, converter) == convert(second)


@pytest.mark.parametrize(
    "markdown",
    [
        "[a](/b/) ![c](d.png) ![](e.png)\n\n# One\n\n## <b>Two</b>",
        "```python\nd[x](y)\n```",
        "```html\n<a href='/x'>y</a>\n```",
        "```\n<a href='/x'>y</a>\n```",
        "```markdown\n[a](b)\n# h\n```",
        "`[a](b)` and <a\nhref='/x'>y</a> <img\tsrc='z.png'/> <img/>",
        "<div markdown='1'>\n<a href='/x'>y</a> *z*\n</div>",
        "A sign of its own: \U000f0001 [a](/b/)",
        "The attribute `data-at=1 ` and data-at=2 [a](/b/)",
        "<!-- <a href='x'> [a](b) -->\n\nWords.",
        "[a][b] [c]\n\n[b]: /d/\n[c]: <e f>\n[unused]: /g/",
        "Head\n====\n\n> # Quoted\n\n- # Listed\n\n1. [x](\n/y/)",
        "Note[^1]\n\n[^1]: [a](/b/)",
        "[a](\nhttps://b.test/c)",
    ],
)
def test_a_check_hands_on_what_the_converter_makes(markdown: str) -> None:
    """The marks by which a check finds its places leave no trace in the page's HTML."""
    document = make_document(markdown)

    _, conversion = analyse(document, Dialect("https://journal.test"))

    assert conversion == Converter(Dialect("https://journal.test")).convert(document)


def test_a_check_hands_on_real_posts_as_they_are() -> None:
    """The same holds for the sample of everything and for posts that people wrote."""
    converter = Converter(Dialect("https://journal.test"))
    for path in [SAMPLE, *find_posts()[::29]]:
        document, _ = read_document("posts/a.md", path.read_bytes())
        if document:
            _, conversion = analyse(document, Dialect("https://journal.test"))
            assert conversion == converter.convert(document), path


def test_every_extension_is_there() -> None:
    """Definitions, admonitions, footnotes and Markdown in HTML are understood."""
    html = convert(
        "Term\n:   Meaning\n\n!!! tip\n    Do.\n\nNote[^1]\n\n"
        '<div markdown="1">*in*</div>\n\n[^1]: Foot.\n'
    ).html

    expected = ("<dd>Meaning</dd>", 'class="admonition tip"', 'class="footnote"', "<em>in</em>")
    assert [part for part in expected if part not in html] == []


def test_the_sample_of_everything_obeys_the_policy() -> None:
    """A text with everything in it comes out without styles and handlers."""
    document, _ = read_document("posts/everything.md", SAMPLE.read_bytes())
    assert document

    html = Converter(Dialect("https://journal.test")).convert(document).html

    assert not re.search(r"<[^>]*\s(?:style|on[a-z]+)=", html)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<script>alert(1)</script>b</p>", "<p>ab</p>"),
        ('<p onclick="x">a</p>', "<p>a</p>"),
        ('<a href="javascript:x">a</a>', '<a rel="noopener">a</a>'),
        ('<a href="../b/">b</a>', '<a href="https://journal.test/journal/b/" rel="noopener">b</a>'),
        ('<a href="#c">c</a>', f'<a href="{URL}#c" rel="noopener">c</a>'),
        ('<img src="/i.png" alt="i">', '<img src="https://journal.test/i.png" alt="i">'),
        ("<iframe srcdoc='<b>a</b>'>in</iframe>", ""),
        ("<form><input name=a>words</form>", "words"),
        ('<p id="top" style="x">a</p>', "<p>a</p>"),
        ("<p>a&#11;b&#1;c</p>", "<p>abc</p>"),
        ('<div class="admonition evil">a</div>', '<div class="admonition">a</div>'),
    ],
)
def test_strangers_get_the_allow_list(html: str, expected: str) -> None:
    """Only harmless elements leave, with absolute addresses."""
    assert sanitize(html, URL) == expected


def test_marks_of_headings_stay_on_the_page() -> None:
    """The sign behind a heading means nothing to a stranger."""
    html = convert("## Heading").html

    assert sanitize(html, URL) == "<h2>Heading</h2>"


def test_texts_of_authors_are_not_translated() -> None:
    """Only words that the build adds are; a title that begins with one is its author's."""
    words = (("Note", "Remarque"), ("Link to this section", "Lien"))
    for theirs in (
        '<a href="/" title="Note of the author">x</a>',
        '<p class="admonition-title">Note on style</p>',
    ):
        assert translate_words(theirs, words) == theirs
    ours = '<p class="admonition-title">Note</p><a class="heading-anchor" title="{}">'
    said = ours.replace(">Note", ">Remarque").format("Lien")
    assert translate_words(ours.format("Link to this section"), words) == said
