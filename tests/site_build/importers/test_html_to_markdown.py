"""HTML becomes Markdown that this journal renders to the same text."""

import re
from html import unescape

import pytest

from site_build.importers.html_to_markdown import convert
from site_build.markup.convert import DEFAULT_DIALECT, Converter
from site_build.site import Document

CONVERTER = Converter(DEFAULT_DIALECT)


def render(markdown: str) -> str:
    """Return what the journal makes of a text."""
    document = Document.__new__(Document)
    object.__setattr__(document, "markdown", markdown)
    return CONVERTER.convert(document).html


def words(html: str) -> str:
    """Return the text that people read, without the mark behind headings."""
    html = re.sub(r'<a class="heading-anchor".*?</a>', "", html)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


@pytest.mark.parametrize(
    "text",
    [
        "# no heading",
        "1. no list",
        "12) no list",
        "- no list",
        "+ no list",
        "> no quotation",
        "===",
        ": no definition",
        "!!! note",
        "*no* _emphasis_ and 2*3*4, snake_case, __init__",
        "[no](link) and [^1] and ![no](picture)",
        "costs $5 and $6, or $7",
        "`no code` and \\a backslash",
        "~~no~~ strike",
        "&lt;div&gt; and &amp;copy; and &amp;#65;",
        "{: .no } {#list}",
        "a | b | c",
        "*[HTML]: no abbreviation",
    ],
)
def test_signs_of_markdown_stay_signs(text: str) -> None:
    """A sign with a meaning in Markdown is read as it was written, at the start of a line too."""
    html = f"<p>{text}</p><p>behind<br>{text}</p>"

    assert words(render(convert(html))) == words(html)


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>a <b>bold </b>word<i> it</i></p>", "a **bold** word *it*"),
        ("<p><strong>a</strong><strong>b</strong></p>", "**ab**"),
        ("<p><b>a<br><br>b</b></p>", "a  \n  \nb"),
        ("<p>&nbsp;</p><p>a&nbsp; b</p><p> </p>", "a b"),
        ("<p>H<sub>2</sub>O <kbd>*</kbd></p>", r"H<sub>2</sub>O <kbd>\*</kbd>"),
        ('<abbr title="a &quot;b&quot;">x</abbr>', '<abbr title="a &quot;b&quot;">x</abbr>'),
        ('<a href="/a b(1)">x</a>', "[x](/a%20b%281%29)"),
        ('<a href="http://e.org/a_b">http://e.org/a_b</a>', "<http://e.org/a_b>"),
        ('<a href="javascript:alert(1)">x</a>', "x"),
        ("<p>a</p><script>b</script><!-- c --><style>d</style>", "a"),
        (r"<p>\(x_1*y*z\) $latex a_b$</p>", "$x_1*y*z$ $a_b$"),
        ('<h2 id="x">A</h2><p><a href="#x">b</a></p>', "## A {#x}\n\n[b](#x)"),
        ('<h2 id="x">A</h2>', "## A"),
        (
            "<figure><a href='/l'><img src='/p.jpg' alt='A [b]'></a><figcaption>C <i>d</i>",
            "[![A \\[b\\]](/p.jpg)](/l)\n*C d*",
        ),
        (
            '<iframe src="//www.youtube-nocookie.com/embed/abc?x=1"></iframe>',
            "<https://www.youtube.com/watch?v=abc>",
        ),
        ('<a href="#/portal/signup">x</a>', "x"),
        (
            '<iframe src="https://open.spotify.com/embed/track/1?x=2"></iframe>',
            "<https://open.spotify.com/track/1>",
        ),
        ('<ol start="4"><li>x</li></ol>', "4. x"),
        ('<ul><li><input type="checkbox" checked>x</li></ul>', "- [x] x"),
        ('<video controls><source src="/v.mp4"></video>', "[v.mp4](/v.mp4)"),
    ],
)
def test_elements_become_markdown(html: str, markdown: str) -> None:
    """Each element becomes what people would write; what Markdown lacks stays HTML."""
    made = convert(html).strip()

    assert made == markdown


@pytest.mark.parametrize(
    "html",
    [
        "<p>a <b>bold </b>word<i> it</i></p>",
        "<details><summary>A <b>b</b></summary><p>c</p><ul><li>d</li></ul></details>",
        "<table><tr><th>a|b</th></tr><tr><td><code>c|d</code></td></tr></table>",
        "<ul><li>a<ol><li>b<pre>c\n\nd</pre></li></ol></li><li><p>e</p><p>f</p></li></ul>",
        "<dl><dt>a</dt><dd>b</dd><dd><p>c</p><p>d</p></dd></dl>",
        "<blockquote><p>a</p><p>b</p><cite>c</cite></blockquote>",
    ],
)
def test_text_is_the_same_on_the_page(html: str) -> None:
    """Converted and rendered text has its former words."""
    assert words(render(convert(html))) == words(html)


@pytest.mark.parametrize(
    "attributes",
    [
        '<pre class="brush: php; title: x">',
        '<pre><code class="hljs language-php">',
        '<pre data-lang="php">',
        '<div class="highlight-php notranslate"><div class="highlight"><pre><span></span>',
        '<pre class="wp-block-code"><code lang="php">',
    ],
)
def test_code_keeps_its_language_and_its_lines(attributes: str) -> None:
    """A block of code gets the language that its classes name, and a fence longer than its own."""
    made = convert(f"{attributes}&lt;?php\n\n  echo '```';<br>x_y*z\n</pre>")

    assert made == "````php\n<?php\n\n  echo '```';\nx_y*z\n````\n"


def test_code_without_a_language_has_none() -> None:
    """Classes that name no language are not taken for one."""
    assert convert('<pre class="wp-block-code"><code>a</code></pre>') == "```\na\n```\n"


def test_tables_that_pipes_cannot_show_stay_html() -> None:
    """A table with joined cells or without a head stays, without its looks and blank lines."""
    made = convert(
        '<table width="9" class="x"><tr><td colspan=2 style="x">a\n\nb</td></tr></table>'
    )

    assert made == "a b\n"  # one cell is no table
    assert "span" not in convert(
        "<table><tr><td><p><b>a <b>b</b></b></p></td></tr><tr><td>c</table>"
    )
    made = convert('<table border="1"><tr><td colspan="2">a\n\n<b>b</b></td></tr><tr><td>c</table>')
    assert made.startswith('<table><tr><td colspan="2">a\n<b>b</b></td></tr>')
    assert "| a | b |\n| --- | --- |\n| c | d |" in convert(
        "<table><tr><th>a</th><th>b</th></tr><tr><td><p>c</p></td><td>d</td></tr></table>"
    )


@pytest.mark.parametrize(
    ("mark", "note"),
    [
        ('<sup id="r"><a href="#n">1</a></sup>', '<ol><li id="n">N <a href="#r">^</a></li></ol>'),
        ('<a href="#n" id="r">[1]</a>', '<p><a id="n" href="#r">[1]</a> N</p>'),
        ('<a href="#_n" name="_r">[1]</a>', '<p><a name="_n" href="#_r">[1]</a> N</p>'),
    ],
)
def test_footnotes_of_any_system(mark: str, note: str) -> None:
    """A link to what links back is a footnote: Word's, WordPress's, Substack's, docutils's."""
    made = convert(f"<p>A{mark}.</p>{note}")

    assert made.startswith("A[^1].\n")
    assert made.endswith("\n[^1]: N\n")


def test_cards_of_ghost() -> None:
    """A callout becomes an alert, a toggle opens, a bookmark is a link."""
    made = convert(
        '<div class="kg-card kg-callout-card"><div class="kg-callout-emoji">!</div>'
        '<div class="kg-callout-text">Mind <b>it</b></div></div>'
        '<div class="kg-card kg-toggle-card"><div class="kg-toggle-heading"><h4>Why</h4>'
        '<button>x</button></div><div class="kg-toggle-content"><p>So</p></div></div>'
        '<figure class="kg-card kg-bookmark-card"><a href="https://e.org/"><div>'
        '<div class="kg-bookmark-title">E</div><div class="kg-bookmark-description">D</div></div>'
        "</a></figure>"
    )

    assert "> [!NOTE]\n> !\n>" in made
    assert "Mind **it**" in made
    assert "<details>\n<summary>Why</summary>\n\nSo\n\n</details>" in made
    assert made.endswith("[E](https://e.org/)\n")
