"""Markup of posts beyond plain Markdown: captions, file names, notes, tables."""

import re

import pytest
from selectolax.lexbor import LexborHTMLParser

from site_build.checks.analyse import analyse
from site_build.markup.convert import THEME_IDS, Converter, Dialect
from site_build.markup.sanitize import sanitize
from tests.site_build.test_convert import URL, convert, make_document
from tests.site_build.workbench import find

NOTE = "One[^a b], again[^a b].\n\n[^a b]: The note.\n[^alone]: Nothing leads here.\n"


def parse(markdown: str) -> LexborHTMLParser:
    """Return the page of a text."""
    return LexborHTMLParser(convert(markdown).html)


def test_a_titled_image_by_itself_is_a_figure() -> None:
    """The title is the caption and nowhere else; attributes stay where they were put."""
    html = convert("![alt](a.png \"A <b> & 'c'\"){: .wide }").html

    assert html == (
        '<figure><img alt="alt" class="wide" src="a.png">'
        "<figcaption>A &lt;b&gt; &amp; 'c'</figcaption></figure>"
    )


def test_a_linked_image_keeps_its_link_in_the_figure() -> None:
    """The link is around the image; the caption is not part of it."""
    figure = parse('[![alt](a.png "Caption")](/b/)').css_first("figure")

    assert figure is not None
    assert [child.tag for child in figure.iter()] == ["a", "figcaption"]
    assert figure.css_first("a[href='/b/'] > img[alt='alt']") is not None


@pytest.mark.parametrize(
    "markdown",
    [
        "![alt](a.png)",
        '![alt](a.png "")',
        'Words ![alt](a.png "c")',
        '![alt](a.png "c") words',
        '![alt](a.png "c") ![alt](b.png "d")',
        '*![alt](a.png "c")*',
        '[![alt](a.png "c") words](/b/)',
    ],
)
def test_other_images_stay_in_their_paragraph(markdown: str) -> None:
    """Only a paragraph that holds nothing but one titled image is turned."""
    page = parse(markdown)

    assert page.css("figure") == []
    assert page.css("p img") != []


def test_a_figure_by_hand_stays_as_it_is_written() -> None:
    """No figure is put within the author's own, and its caption is the only one."""
    page = parse(
        '<figure markdown="1">\n\n![alt](a.png "t")\n\n<figcaption>By hand</figcaption>\n</figure>'
    )

    assert len(page.css("figure")) == 1
    assert [caption.text() for caption in page.css("figcaption")] == ["By hand"]
    assert page.css("figure img[title='t']") != []


def test_a_caption_is_no_text_in_place_of_the_image() -> None:
    """An image without alt text is a finding, with a caption too."""
    (note,) = analyse(make_document('![](/a.png "Caption")'))[0].notes

    assert note.message == "the image has no alt text; describe it between the brackets"


@pytest.mark.parametrize(
    "opening",
    [
        'python title="app.py"',
        "python title='app.py'",
        'python hl_lines="1" title="app.py"',
        'python title="app.py" hl_lines="1"',
        '{.python title="app.py"}',
        '{.python hl_lines="1" title="app.py"}',
        ' .python title="app.py" ',
    ],
)
@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_code_with_a_title_is_a_figure(opening: str, fence: str) -> None:
    """The name is above the code, which is coloured and marked as it would be without."""
    page = parse(f"{fence}{opening}\nimport x\n{fence}\n")

    figure = page.css_first("figure.code")
    assert figure is not None
    assert [child.tag for child in figure.iter()] == ["figcaption", "div"]
    assert find(figure, "figcaption").text() == "app.py"
    assert find(figure, "div.highlight > pre[tabindex='0'] .kn").text() == "import"
    assert bool(figure.css(".hll")) is ("hl_lines" in opening)


def test_a_title_without_a_language() -> None:
    """A file that is in no language has its name all the same."""
    page = parse('```title="words.txt"\nfrom me\n```')

    assert find(page, "figure.code > figcaption").text() == "words.txt"
    assert page.css("figure span[class]") == []


@pytest.mark.parametrize("title", ["", "  "])
def test_an_empty_title_is_none(title: str) -> None:
    """The code is coloured, and has no caption."""
    page = parse(f'```python title="{title}"\nimport x\n```')

    assert page.css("figure") == []
    assert find(page, "div.highlight .kn").text() == "import"


def test_a_title_is_plain_text() -> None:
    """A title is shown as it was written, in feeds and the API too."""
    title = "<img src=x onerror=go()> & 'q' *e*"
    html = convert(f'```python title="{title}"\nx = 1\n```').html

    for page in (LexborHTMLParser(html), LexborHTMLParser(sanitize(html, URL))):
        assert find(page, "figure.code > figcaption").text() == title
        assert page.css("img") == []


def test_a_fence_shown_within_another_is_left_alone() -> None:
    """A post about writing posts shows how a title is written."""
    page = parse('````markdown\n```python title="app.py"\nx = 1\n```\n````\n\nWords.')

    assert page.css("figure") == []
    assert '```python title="app.py"' in find(page, "div.highlight").text()
    assert find(page, "p").text() == "Words."


@pytest.mark.parametrize(
    "markdown",
    [
        '```python title="a](/b/) <a href=/c/>"\nx\n```\n\n[d](/e/)',
        '![a](b.png "c](/d/)")\n\n# One',
        '```python title="never closed"\nx\n\n[d](/e/)',
        NOTE,
    ],
)
def test_a_check_leaves_no_trace(markdown: str) -> None:
    """The result of the check is that of the converter for the text by itself."""
    document = make_document(markdown)

    converted = Converter(Dialect("https://journal.test")).convert(document)
    assert analyse(document, Dialect("https://journal.test"))[1] == converted


def test_strangers_get_figures() -> None:
    """Feeds and the API keep captions and what tells that a figure is code."""
    html = convert('```python title="app.py"\nx\n```\n\n![a](/b.png "Caption")').html

    page = LexborHTMLParser(sanitize(html, URL))

    captions = [caption.text() for caption in page.css("figure > figcaption")]
    assert captions == ["app.py", "Caption"]
    assert len(page.css("figure.code")) == 1


def test_footnotes_say_what_they_are() -> None:
    """Notes and the links to and fro have roles, and each link back a name of its own."""
    page = parse(NOTE)

    assert find(page, "div.footnote").attributes["role"] == "doc-endnotes"
    assert len(page.css("sup > a[role=doc-noteref]")) == 2
    back = page.css("#fn-a-b a[role=doc-backlink]")
    names = [link.attributes["aria-label"] for link in back]
    assert names == ["Back to the text", "Back to the text, place 2"]
    assert [link for link in back if "title" in link.attributes] == []


def test_links_of_footnotes_lead_somewhere() -> None:
    """Ids hold no blanks, each link finds its id, and a note without a mark has no way back."""
    page = parse(NOTE)

    ids = [node.attributes["id"] or "" for node in page.css("[id]")]
    links = [node.attributes["href"] or "" for node in page.css("a[href^='#']")]
    assert [name for name in ids if re.search(r"\s", name)] == []
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert len(set(ids)) == len(ids)
    assert page.css("#fn-alone a") == []


def test_a_table_scrolls_in_a_box_with_a_name() -> None:
    """The box can be reached with the keyboard, and has a label."""
    page = parse("|   | b |\n|---|--:|\n| 1 | 2 |\n\nWords.")

    box = find(page, "div.table-scroll")
    assert [child.tag for child in box.iter()] == ["table"]
    asked = ("role", "aria-label", "tabindex")
    assert [box.attributes[name] for name in asked] == ["group", "Table", "0"]
    assert find(page, "div.table-scroll + p").text() == "Words."


def test_heads_say_what_they_head() -> None:
    """A head is that of its column; an empty corner heads nothing and is no head."""
    page = parse("|   | b |\n|---|--:|\n| 1 | 2 |")

    assert [cell.attributes["scope"] for cell in page.css("th")] == ["col"]
    assert [cell.tag for cell in page.css("thead tr > *")] == ["td", "th"]


def test_no_heading_takes_an_id_of_the_page() -> None:
    """The theme's own element can still be found, and the contents lead to the heading."""
    for name in sorted(THEME_IDS):
        made = convert(f"## {name.title()}\n")
        assert f'id="{name}-section"' in made.html
        assert f'href="#{name}-section"' in made.toc
