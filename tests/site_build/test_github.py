"""Texts as people write them for GitHub: their HTML, and the messages that authors get."""

import re
from itertools import product
from pathlib import Path

import cmarkgfm
import frontmatter
import pytest
from cmarkgfm.cmark import Options
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown import Markdown
from selectolax.lexbor import LexborHTMLParser

from site_build.checks.analyse import analyse
from site_build.errors import BuildError
from site_build.markup.blocks import DEEPEST, REPLACED
from site_build.markup.convert import Conversion, Converter, Dialect
from site_build.markup.github import GITHUB, FormulaError, write_mathml
from site_build.markup.sanitize import sanitize
from tests.shared_material import find_posts
from tests.site_build.test_convert import URL, convert, make_document
from tests.site_build.workbench import Workbench, find, run_journal
from tests.sizes import in_ci, scaled

EXTENSIONS = ["table", "strikethrough", "autolink", "tasklist"]
ELEMENTS = re.compile(r"<(li|ul|ol|pre|table|blockquote|del|input)\b")
NOTES = re.compile(r'<(?:section|div)[^>]* class="footnotes?".*', re.DOTALL)
PIECES = [
    "- a",
    "* b",
    "1. c",
    "2) d",
    "  ",
    "    ",
    "   ",
    "\n",
    "\n\n",
    "> ",
    "# ",
    "```",
    "~~~",
    "a",
    "word",
    "- [ ] e",
    "***",
    "---",
    "`",
    "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    "\\",
]


def list_elements(html: str) -> list[str]:
    """Return the elements of a page that count as structure, those of footnotes left out.

    GitHub's reader overlooks tasks in quotes, which its site shows: there they are left out.
    """
    pieces = re.split(r"(</?blockquote>)", NOTES.sub("", html))
    depth = 0
    for number, piece in enumerate(pieces):
        depth += {"<blockquote>": 1, "</blockquote>": -1}.get(piece, 0)
        if depth:
            pieces[number] = piece.replace("<input", "<")
    return ELEMENTS.findall("".join(pieces))


def read_as_github(markdown: str) -> list[str]:
    """Return the elements that GitHub's own reader makes of a text."""
    options = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES
    html = cmarkgfm.markdown_to_html_with_extensions(markdown, options, EXTENSIONS)
    return list_elements(html)


def find_faults(markdown: str) -> list[str]:
    """Return what the author of a text has to fix, as lines."""
    return [f"{line + 1}: {message}" for line, message, _ in convert(markdown).faults]


def list_differences(conversion: Conversion) -> list[str]:
    """Return what is said of a text that comes out otherwise than on GitHub."""
    said = [fault.message for fault in conversion.faults]
    return [
        message
        for message in said
        if re.search("GitHub and not here|not on GitHub|never closed", message)
    ]


@pytest.mark.parametrize(
    "markdown",
    [
        "Words:\n- a\n- b",
        "Words:\n1. a\n2. b",
        "- a\n  - b\n    - c\n- d",
        "1. a\n   - b\n2. c",
        "1) a\n2) b",
        "- a\n* b\n+ c",
        "1. a\n\n1) b",
        "- a\n\n  words\n- b",
        "- a\n\n  ```py\n  b\n\n  c\n  ```\n- d",
        "1. a\n   ~~~\n   b\n   ~~~",
        "-\n- a\n-",
        "-     code\n- b",
        "10. a\n\n    words",
        "- a\nlazy\n- b",
        "- # Head\n- > quote\n  > more",
        "> a\n\n> b",
        "> - a\n>   - b\n>\n> words",
        "> ```\n> a\n> ```\n> b",
        "> a\nlazy\n\nWords",
        "- [ ] a\n- [x] b\n  - [X] c\n- [y] d",
        "~~a~~ b ~~c d~~",
        "a ~~~b~~~ c",
        "| a | b |\n|--|:-:|\n| 1 |\n| `x` | ~~y~~ |\nWords",
        "Words\n| a |\n|---|\n| b |",
        "Words\n2. no list",
        "#5 is no heading",
        "- #5 is none either",
        "<details>\n<summary>a</summary>\n\n- b\n\n</details>",
        "- a\n  <!-- note -->\n- b",
        "- a\n\n<!-- -->\n\n- b",
        "a <del>b</del> <ul><li>c</li></ul>",
        "\tcode\n\n-\ta\n\n\tb",
        "* a\n\n        code",
        "Term\n===\n- a\n---\n- b",
        "```\nnever closed\n- a",
        "- a\n\n  - b\n\n    - c\n\n      > d\n      > - e",
        "[a]: /b\n- [a]\n- c\n\n  [d]: /e\n- [d]",
        "Words[^1]\n\n[^1]: A note.\n\n    - b\n\n- c",
    ],
)
def test_blocks_are_those_of_github(markdown: str) -> None:
    """Lists, code, quotes, tables and tasks come out as GitHub shows them, and nothing is named."""
    converted = convert(markdown)

    assert list_elements(converted.html) == read_as_github(markdown)
    assert [fault for fault in converted.faults if "never closed" not in fault.message] == []


@pytest.mark.size("test", grows=True)
def test_the_posts_that_people_wrote() -> None:
    """Each of the corpus comes out as on GitHub, and nothing else is said of any."""
    posts = find_posts()
    different, alarms = [], []
    for path in posts[:: scaled(test=9, ci=1)]:
        markdown = frontmatter.load(str(path)).content
        converted = convert(markdown, _CONVERTER)
        different += [path.name] * (list_elements(converted.html) != read_as_github(markdown))
        alarms += [path.name] * bool(list_differences(converted))

    assert posts
    assert different == []
    assert alarms == []


_CONVERTER = Converter(Dialect("https://journal.test"))


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=100, ci=1500), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_blocks_of_any_text(text: str) -> None:
    """No text raises, and its blocks are those of GitHub."""
    converted = convert(text, _CONVERTER)
    # Right below a quote, markdown-it reads a line behind four blanks otherwise: as code in nested
    # quotes, and a `>` after an empty line as more of the quote.
    assume(not re.search(r"(?m)>.*\n[ \t]*(?: {4}|\t)", text))

    # Its reader knows tasks in headings, and strikes through beside escaped tildes.
    made, wanted = (
        [name for name in names if name not in {"input", "del"}]
        for names in (list_elements(converted.html), read_as_github(text))
    )
    assert made == wanted


def test_blocks_of_other_extensions() -> None:
    """Indented text below the line that opens one is read as GitHub reads it, too."""
    dialect = Dialect("https://journal.test", ("pymdownx.tabbed", "pymdownx.details", GITHUB))
    opening = ('=== "A"', "??? note")
    html = "".join(
        convert(f"{sign}\n    a\n\n    b:\n    - c\n\nd\n\n    e", Converter(dialect)).html
        for sign in opening
    )

    page = LexborHTMLParser(html)
    assert [item.text() for item in page.css("div.tabbed-set li, details li")] == ["c", "c"]
    assert [code.text() for code in page.css("body > pre")] == ["e\n", "e\n"]


def test_the_libraries_have_what_is_replaced() -> None:
    """Python-Markdown's own ways to find blocks are gone, and no upgrade brings an unknown one."""
    stock = Markdown(extensions=["admonition", "def_list", "tables"]).parser.blockprocessors
    left = vars(_CONVERTER)["_markdown"].parser.blockprocessors
    assert [name for name in REPLACED if name not in stock] == []
    assert [name for name in REPLACED if name in left] == []
    # These still run, on paragraphs and indented code.
    kept = ("empty", "code", "markdown_block", "footnote", "abbr", "reference", "paragraph")
    assert [name for name in kept if name not in left] == []
    assert len(left) == len(kept) + 1


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("| a | b |\n|---|---|\n| `c|d` | `e\\|f` |", "<td><code>c|d</code></td>"),
        ("| a | b |\n|---|---|\n| `c|d` | `e\\|f` |", "<td><code>e|f</code></td>"),
        ("[Stra\u00dfe][]\n\n> [stra\u00dfe]: /b?c&d 'e'", '<a href="/b?c&amp;d" title="e">Stra'),
        ("[a]\n\n[a]: /b\n[A]: /c", '<a href="/b">a</a>'),
        ("A: HTML\n*[HTML]: b", '<p>A: <abbr title="b">HTML</abbr></p>'),
        ("- A[^1]\n\n[^1]: b\n\n        c", "<p>b</p>\n<div"),
        ("!!! Really so!\n    a", "<p>!!! Really so!</p>"),
        ("a\n<video src=b></video>", "<p>a</p>\n<video src=b></video>"),
        ("- a\n\n- b\n  - c", "<li>c</li>"),
        ("- a\n- b\n\n  - c", "<li>\n<p>a</p>\n</li>"),
    ],
)
def test_each_kind_of_block_becomes_html(markdown: str, html: str) -> None:
    """Cells, definitions, abbreviations, notes and lists come out as elements of a page."""
    assert html in convert(markdown).html


@pytest.mark.parametrize("around", ["%s", "- a\n\n  %s", "> %s"])
def test_markdown_within_html_is_read_as_github_reads_it(around: str) -> None:
    """Its blocks too, beyond blank lines, up to the end of the element that says so."""
    text = '<div markdown="1">\n\nWords:\n- *b*\n\n```html\n<div>\n```\n\n</div>'
    margin = "\n" + around.partition("%")[0].rpartition("\n")[2]
    html = convert(f"{around % text.replace(chr(10), margin)}\n\nLast *words*").html

    page = LexborHTMLParser(html)
    assert find(page, "div > ul > li > em").text() == "b"
    assert find(page, "div > div pre").text() == "<div>\n"
    assert find(page, "body > p:last-child em").text() == "words"


@pytest.mark.parametrize("kind", ["note", "tip", "important", "warning", "caution"])
def test_alerts_are_admonitions(kind: str) -> None:
    """An alert of GitHub's looks like one of our own, with all its content."""
    page = LexborHTMLParser(
        convert(f"> [!{kind.upper()}]\n> Words\n> - a\n>\n> ```\n> b\n> ```").html
    )

    box = find(page, f"div.admonition.{kind}")
    assert [child.tag for child in box.iter()] == ["p", "p", "ul", "div"]
    assert find(box, "p.admonition-title").text() == kind.title()
    assert page.css("blockquote") == []


def test_an_alert_without_a_text_and_a_quote_that_is_none() -> None:
    """The sign alone makes a box; a word that is none of GitHub's makes a quote."""
    page = LexborHTMLParser(convert("> [!TIP]\n\n> [!PRICE]\n> a").html)

    assert len(page.css("div.admonition.tip")) == 1
    assert [quote.text().split() for quote in page.css("blockquote")] == [["[!PRICE]", "a"]]


def test_a_tasks_box_has_a_name() -> None:
    """A screen reader says whether the task is done."""
    boxes = LexborHTMLParser(convert("- [ ] a\n- [x] b").html).css("li > input[disabled]")

    assert [box.attributes["aria-label"] for box in boxes] == ["Still to do", "Done"]
    assert ["checked" in box.attributes for box in boxes] == [False, True]


@pytest.mark.parametrize(
    ("markdown", "addresses"),
    [
        ("See https://a.test/b?c=d.", ["https://a.test/b?c=d"]),
        ("(www.a.test)", ["http://www.a.test"]),
        ("`https://a.test/`", []),
        ("[b](https://a.test/)", ["https://a.test/"]),
        ("```\nhttps://a.test/\n```", []),
    ],
)
def test_bare_addresses_are_links(markdown: str, addresses: list[str]) -> None:
    """An address by itself becomes a link; in code it is code."""
    page = LexborHTMLParser(convert(markdown).html)

    assert [link.attributes["href"] for link in page.css("a")] == addresses


def test_a_backslash_at_the_end_of_a_line_breaks_it() -> None:
    """As two blanks do."""
    assert convert("a\\\nb  \nc").html == "<p>a<br>\nb<br>\nc</p>"


@pytest.mark.parametrize(("fence", "form"), list(product(["```", "~~~~"], ["{1,3}", "{1-1, 3}"])))
def test_lines_of_code_are_pointed_out(fence: str, form: str) -> None:
    """Their numbers are in braces behind the language, beside a title or without one."""
    for title in ("", ' title="a.py"'):
        html = convert(f"{fence}python {form}{title}\na\nb\nc\n{fence}").html
        pointed = LexborHTMLParser(html).css("span.hll")
        assert [line.text().strip() for line in pointed] == ["a", "c"]
        assert ("<figcaption>a.py</figcaption>" in html) is bool(title)


@pytest.mark.parametrize(
    ("info", "colour"),
    [("c++", True), ("python some words", True), ("no-such-language", False), ("", False)],
)
def test_the_first_word_behind_a_fence_is_the_language(info: str, colour: bool) -> None:  # noqa: FBT001
    """With anything else there, the block is code."""
    page = LexborHTMLParser(convert(f"```{info}\nint x = 1;\n```").html)

    assert bool(page.css("pre span[class]")) is colour
    assert [pre.text() for pre in page.css("pre")] == ["int x = 1;\n"]


def test_code_that_shows_fences_stays_whole() -> None:
    """A block may hold shorter fences, and they end nothing."""
    html = convert("`````md\n````\n```py\na\n```\n````\n`````\n\nWords").html

    (block,) = LexborHTMLParser(html).css("pre")
    assert block.text() == "````\n```py\na\n```\n````\n"


@pytest.mark.parametrize("form", ["Say $%s$ twice.", "$$%s$$", "$$\n%s\n$$", "```math\n%s\n```"])
def test_formulas_are_mathml(form: str) -> None:
    """A browser shows them without a script; strangers get them too."""
    html = convert(form % r"E = \frac{mc^2}{1}").html

    for page in (LexborHTMLParser(html), LexborHTMLParser(sanitize(html, URL))):
        (formula,) = page.css("math")
        assert len(formula.css("mfrac msup")) == 1
        assert formula.attributes["display"] == ("inline" if "Say" in form else "block")


@pytest.mark.parametrize(
    "markdown",
    [
        "It cost $5 or $6.",
        "It cost $5 (or US$) then.",
        "Between $5 and 6$ a piece",
        r"\$a$ and $b\$",
        "`$a$`",
        "US$5 and A$6",
        "$ a $",
        "Set $HOME and $PATH.",
    ],
)
def test_prices_and_variables_are_no_formulas(markdown: str) -> None:
    """A dollar sign in a sentence stays one."""
    assert "<math" not in convert(markdown).html


@pytest.mark.parametrize(
    ("tex", "said"),
    [
        (r"\nosuch{a}", r"`\nosuch` is no command that is known here"),
        (r"\frac{a", "`{` and `}` are no pairs"),
        ("a}{b", "`{` and `}` are no pairs"),
        (r"\left( a", r"`\left` and `\right` are no pair"),
        ("a_", "nothing stands behind `^` or `_`"),
        ("a^b^c", "two `^` follow each other; put the first part in braces"),
        (r"\sqrt", "something is missing at its end"),
        ("{" * 2000 + "}" * 2000, "its brackets are nested too deeply"),
        ("a" * 4001, "it has more than 4000 characters"),
    ],
)
def test_a_formula_that_cannot_be_read(tex: str, said: str) -> None:
    """It is shown as it was written, and named at its line with what is wrong."""
    with pytest.raises(FormulaError) as refusal:
        write_mathml(tex, "inline")
    assert str(refusal.value) == said

    text = f"Words\n\n```math\n{tex}\n```\n"
    assert find_faults(text) == [f"4: the formula cannot be read: {said}"]
    assert find(LexborHTMLParser(convert(text).html), "code").text() == tex


def test_text_in_a_formula_is_text() -> None:
    """Nothing in a formula becomes markup."""
    page = LexborHTMLParser(convert(r"$\text{<script>go()</script>} & a<b$").html)

    assert page.css("script") == []
    assert "<script>" in find(page, "math mtext").text()


@pytest.mark.parametrize(
    ("markdown", "fault"),
    [
        ("a\n\n```py\nb\n", "3: this code block is never closed; add ``` below it"),
        ("- a\n  ~~~~\n  b\n\nWords", "2: this code block is never closed; add ~~~~ below it"),
        (
            "a\n\n~b~ c",
            (
                "3: this is text that is struck through on GitHub and not here; "
                "write two tildes on each side of it"
            ),
        ),
    ],
)
def test_unsupported_markup_is_reported(markdown: str, fault: str) -> None:
    """At its line, with what to write."""
    assert find_faults(markdown) == [fault]


@pytest.mark.size("ci")
def test_one_difference_in_a_long_text() -> None:
    """It is named at its line, however much there is before and behind it."""
    items = "- a\n" * 20_000

    assert find_faults(f"{items}\n\n~b~\n\n***\n\n{items}")[0].startswith(
        "20003: this is text that"
    )
    assert [line.split(":")[0] for line in find_faults(f"{items}\n~b~\n")] == ["20002"]


def test_pelicans_lists_stay_as_they_are() -> None:
    """Indentation by four blanks, as Python-Markdown wants it, gives the same as before."""
    html = convert("1. a\n\n    words\n\n    * b\n        * c\n\n                code\n2. d").html

    page = LexborHTMLParser(html)
    assert list_elements(html) == ["ol", "li", "ul", "li", "ul", "li", "pre", "li"]
    assert find(page, "ol > li > p + p").text() == "words"
    assert find(page, "pre").text() == "code\n"


@pytest.mark.parametrize("sign", ["> ", "- ", "1. ", "* > "])
def test_nesting_has_an_end(sign: str) -> None:
    """Deeper text is refused at its line, and nothing of it is lost in silence."""
    facts = analyse(make_document(f"Words\n\n{sign * (DEEPEST + 1)}a\n"))[0]

    assert [(note.line, note.severity) for note in facts.notes] == [(3, "error")]
    assert facts.notes[0].message == "lists or quotes are nested too deeply; flatten them"


HOSTILE = [
    "*",
    "_",
    "`",
    "~",
    "[",
    "]",
    "(",
    "<",
    ">",
    "!",
    "#",
    "-",
    "+",
    "=",
    "|",
    "$",
    "\\",
    "&",
    "{",
    ":",
    '"',
    " ",
    "\t",
    "\n",
    "a",
    "1",
    "\u00e9",
    "> ",
    "- ",
    "1. ",
    "[^1]",
    "[a](",
    "~~",
    "a~",
    "$a",
    "$$",
    "<!--",
    "<a ",
    "!!! a\n",
    "| ",
    "|-|\n",
    "```\n",
    "a\n: ",
    "[a]: b\n",
    "- [ ] ",
    "> [!NOTE]\n",
    "www.",
    "http://",
    "a@b",
    "\\(",
    "{1}",
    "&amp;",
    "*a ",
    "_a*",
]


@pytest.mark.parametrize("piece", [*HOSTILE[:18], *in_ci(*HOSTILE[18:])], ids=range(len(HOSTILE)))
def test_a_long_text_of_one_kind(piece: str) -> None:
    """100,000 characters of one kind are converted or refused, by both readers, in good time."""
    text = (piece * 100_000)[:100_000]

    facts, conversion = analyse(make_document(text), Dialect("https://journal.test"))

    assert conversion or facts.notes[0].severity == "error"


@pytest.mark.size("test")
def test_a_site_may_name_its_own_extensions(bench: Workbench, tmp_path: Path) -> None:
    """With MARKDOWN the site has what it names; GitHub's rules are off unless they are named."""
    head = "---\ntitle: B\nslug: b\ndate: 2026-01-01\n---\n"
    bench.write("posts/b.md", f'{head}Said "so":\n- one\n')
    page = tmp_path / "site" / "journal" / "b" / "index.html"
    for named, has_list in (([], False), ([GITHUB], True)):
        said = {"extensions": named, "extension_configs": {"smarty": {}}}
        run_journal(bench.content, tmp_path / "site", MARKDOWN=said)
        html = page.read_text(encoding="utf-8")
        assert "&ldquo;so&rdquo;" in html
        assert ("<li>one</li>" in html) is has_list


@pytest.mark.parametrize(
    "said",
    [
        {"extensions": ["no_such_extension"]},
        {"extension_configs": {"toc": {"no_such_option": 1}}},
        {"extension_configs": {"toc": {"slugify": print}}},
    ],
)
def test_extensions_that_cannot_be_used(bench: Workbench, tmp_path: Path, said: object) -> None:
    """A wrong name in MARKDOWN is reported in a sentence before anything is written."""
    with pytest.raises(BuildError, match=r"^MARKDOWN of pelicanconf\.py cannot be used: "):
        run_journal(bench.content, tmp_path / "site", MARKDOWN=said)
    assert not (tmp_path / "site").exists()
