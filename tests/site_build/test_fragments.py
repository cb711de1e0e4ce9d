"""HTML of a text that is not balanced: it stays within its page, and is reported."""

from datetime import UTC, datetime
from random import Random

import pytest
from selectolax.lexbor import LexborHTMLParser

from site_build.checks.analyse import analyse
from site_build.markup.convert import Dialect
from site_build.markup.sanitize import repair
from site_build.site import Document
from tests.site_build.workbench import Workbench, find

BROKEN = {
    "A <div> b": "<div>` is not closed; write `</div>`",
    "<div>\n\nText": "<div>` is not closed; write `</div>`",
    "A </div> b": "</div>` ends nothing that is open; take it out",
    "</article>\n\nx": "</article>` ends nothing that is open; take it out",
    "</section></main></body></html>": "</main>` ends nothing that is open; take it out",
    'A <a href="/">b': "<a>` is not closed; write `</a>`",
    "A <b>b": "<b>` is not closed; write `</b>`",
    "<table><tr><td>b": "<table>` is not closed; write `</table>`",
    "A <td>b</td>": "<td>` is outside of a table",
    "A <!-- b": "<!--` is never closed; write `-->`",
    "<!-- b": "<!--` is never closed; write `-->`",
    "A <script>b": "<script>` is not closed; write `</script>`",
    "<style>\nb": "<style>` is not closed; write `</style>`",
    "A <textarea> b": "<textarea>` is not closed; write `</textarea>`",
    "A <title> b": "<title>` is not closed; write `</title>`",
    "A <iframe> b": "<iframe>` is not closed; write `</iframe>`",
    "A <plaintext> b": "<plaintext>` is no element of HTML",
    "<noscript>\n\nb": "<noscript>` is not closed",
    "A <svg> b": "<svg>` is not closed",
    'A <a href="/>b</a> c': "<a …>` has a quote that is never closed",
    "A <a href='/>b</a> c": "<a …>` has a quote that is never closed",
    '<div class="x>b\n\nc\n\n<p id="x">d</p></div>': "<div …>` has a quote that is never closed",
    '<body class="x">b</body>': "<body>` belongs to the page",
}
"""Texts, and the messages that their authors get."""

BALANCED = (
    "Plain *words*, `<div>` and\n\n    <div>\n\n> quotes",
    "<div>\n\n<p>a</div>",
    "<ul><li>a<li>b</ul>\n\nc",
    '<details><summary title="a > b">x</summary><p>y</details>',
    "<!-- a <div> b -->\n\nx <br> y <img src='/a.png' alt=''> <wbr>",
    "<pre>\n\n\n<b>x</b></pre>",
    "<svg viewBox='0 0 1 1'><path d='M0 0'/></svg> &nbsp; &copy;",
    "<table>\n<tr><td>x\n</table>",
    "<figure markdown='1'>\n\n![a](/b.png)\n\n</figure>",
)

AFTER = "\n\nLast words."


def write(markdown: str) -> Document:
    """Return a post with this text."""
    day = datetime(2026, 3, 1, tzinfo=UTC)
    return Document(
        path="posts/a.md",
        kind="post",
        slug="a",
        address="journal/a/",
        title="Title",
        description="d",
        excerpt="e",
        published=day,
        updated=day,
        tags=(),
        lang="",
        draft=False,
        markdown=markdown,
        body_line=1,
        digest="0",
    )


def convert(markdown: str) -> tuple[str, list[str]]:
    """Return the HTML of a text, and the messages that its author gets."""
    facts, conversion = analyse(write(markdown), Dialect("https://journal.test"))
    assert conversion
    return conversion.html, [note.message for note in facts.notes]


def frame(html: str) -> LexborHTMLParser:
    """Return a page of many elements around HTML, whose end has quotes and comments of its own."""
    names = ("main", "article", "section", "div", "aside", "header", "footer", "nav", "figure")
    opening = "".join(f"<{name}>" for name in names)
    closing = "".join(f"</{name}>" for name in reversed(names))
    text = f'<div id="text">{html}</div><p id="below" title="x">Below <b>it</b></p><!-- end -->'
    return LexborHTMLParser(f"<!DOCTYPE html><body>{opening}{text}{closing}<p id='foot'>x")


def assert_contained(html: str) -> None:
    """Check that the page around HTML is what its template says."""
    page = frame(html)
    below, foot = find(page, "#below"), find(page, "#foot")
    assert below.parent
    assert find(page, "#text").parent == below.parent
    assert below.parent.tag == "figure"
    assert below.inner_html == "Below <b>it</b>"
    assert foot.parent
    assert foot.parent.tag == "body"
    assert not foot.parent.attributes


@pytest.mark.parametrize("markdown", BROKEN)
def test_broken_html_stays_within_its_page(markdown: str) -> None:
    """The elements after the text are outside of it, and the words after the fault can be read."""
    html, _ = convert(markdown + AFTER)

    assert_contained(html)
    shown = LexborHTMLParser(html)
    for hidden in shown.css("script,style,textarea,title,iframe,noscript,template"):
        assert "Last words." not in (hidden.html or "")
    assert "Last words." in shown.text()


@pytest.mark.parametrize(("markdown", "message"), BROKEN.items())
def test_broken_html_is_reported_at_its_line(markdown: str, message: str) -> None:
    """The finding names the tag and says what to write, at its line."""
    notes = analyse(write(f"Words.\n\n{markdown}{AFTER}"))[0].notes

    found = [note for note in notes if message in note.message]

    assert [(note.line, note.severity) for note in found] == [(3, "warning")]


@pytest.mark.parametrize("markdown", BALANCED)
def test_balanced_html_is_not_touched(markdown: str) -> None:
    """It comes out as it was written, without a message."""
    html, notes = convert(markdown + AFTER)

    assert repair(html) == html
    assert not [each for each in notes if "closed" in each or "outside" in each]
    assert_contained(html)


PIECES = (
    "<div>",
    "</div>",
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "<a href='/x'>",
    "</a>",
    "<table>",
    "<tr>",
    "<td>",
    "</td>",
    "</table>",
    "<svg>",
    "</svg>",
    "<math>",
    "<mi>",
    "<select>",
    "<option>",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<style>",
    "<textarea>",
    "<title>",
    "<template>",
    "<noscript>",
    "<plaintext>",
    "<form>",
    "</form>",
    "<li>",
    "<ul>",
    "</body>",
    "<body id=x>",
    "<frameset>",
    "<iframe>",
    '<i title="',
    '">',
    "'",
    "<h2>",
    "</main>",
    "</figure>",
    "text",
    "<button>",
    "<ruby>",
    "<rt>",
    "<dd>",
    "<dl>",
    "<caption>",
    "<col>",
    "<foreignObject>",
    "<?x",
    "<![CDATA[",
    "]]>",
    "<nobr>",
    "</br>",
    "<image>",
    "<input>",
    "<br>",
    "<object>",
    "<marquee>",
)


@pytest.mark.parametrize("seed", range(20))
def test_no_html_leaves_its_page(seed: int) -> None:
    """For any sequence of tags, the page around them stays whole."""
    chance = Random(seed)  # noqa: S311 - no secret
    for _ in range(150):
        pieces = chance.choices(PIECES, k=chance.randint(1, 9))
        assert_contained(repair("".join(pieces)))


def test_a_built_page_keeps_its_frame(bench: Workbench) -> None:
    """Posts and pages alike keep what the theme has below the text."""
    bench.post("torn", text="A <div> b </article></main> <!-- and <textarea> c")
    bench.write("pages/torn.md", "---\ntitle: Torn\nslug: torn\n---\n\n<div>\n\n</main>\n\nWords\n")
    bench.post("whole", text="Words")
    site = bench.build() / "site"

    for path in ("journal/torn", "torn"):
        page = LexborHTMLParser((site / path / "index.html").read_text(encoding="utf-8"))
        sound = "journal/whole" if path.startswith("journal") else "about"
        whole = LexborHTMLParser((site / sound / "index.html").read_text(encoding="utf-8"))
        for part in ("body", "main"):
            names = [[each.tag for each in find(every, part).iter()] for every in (page, whole)]
            assert names[0] == names[1]
        assert len(page.css("footer")) == len(whole.css("footer"))
