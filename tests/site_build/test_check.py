"""Checking texts: what a reader would stumble over, at the place where the author wrote it."""

import os
import random
import re
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown.inlinepatterns import BACKTICK_RE, BacktickInlineProcessor

from site_build.addresses import DEFAULT_ADDRESSES
from site_build.checks.analyse import analyse, convert
from site_build.checks.cross import CrossCheck, NearSlugs
from site_build.checks.facts import Facts
from site_build.checks.raw_markup import ATTRIBUTE, Marked, blank_code, strip_marks
from site_build.content.document import read_document
from site_build.markup.convert import Conversion, Converter, Dialect
from site_build.markup.github import CodeSpans
from site_build.site import Document
from tests import shared_material
from tests.site_build.workbench import check_content
from tests.sizes import in_ci, scaled

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SAMPLE = Path(__file__).parent / "samples" / "everything.md"
PLAIN = Document(
    path="posts/a.md",
    kind="post",
    slug="a",
    address="journal/a/",
    title="The title",
    description="What it is.",
    excerpt="What it is.",
    published=datetime(2026, 3, 1, tzinfo=UTC),
    updated=datetime(2026, 3, 1, tzinfo=UTC),
    tags=("one",),
    lang="",
    draft=False,
    markdown="Words.\n",
    body_line=1,
    digest="",
)


def find_posts(step: int) -> list[Path]:
    """Return the sample and every `step`th post of the shared corpus, where it is at hand."""
    return [SAMPLE, *shared_material.find_posts()[::step]]


def read_posts(step: int) -> list[Document]:
    """Return the documents of `find_posts`; some real posts have slugs that are refused."""
    read = (read_document(f"posts/{path.name}", path.read_bytes()) for path in find_posts(step))
    return [document for document, _ in read if document]


def take_note(markdown: str) -> list[str]:
    """Return the notes about a text as lines."""
    notes = analyse(replace(PLAIN, markdown=markdown))[0].notes
    return [f"{note.line}:{note.column} {note.severity} {note.message}" for note in notes]


def list_references(markdown: str) -> list[str]:
    """Return the references of a text as lines."""
    found = analyse(replace(PLAIN, markdown=markdown))[0].references
    return [f"{each.line}:{each.column} {each.address}{' shown' * each.shown}" for each in found]


BRACKETS = "describe it between the brackets"


@pytest.mark.parametrize(
    ("markdown", "notes"),
    [
        ("", ["1:1 warning the text is empty; write it, or take the file away"]),
        ("a ![](b.png)", [f"1:3 warning the image has no alt text; {BRACKETS}"]),
        ("a\n\n![ ](b.png)", [f"3:1 warning the image has no alt text; {BRACKETS}"]),
        ("![][x]\n\n[x]: b.png", [f"1:1 warning the image has no alt text; {BRACKETS}"]),
        (
            "[![](a.png)](/b/)",
            [f"1:2 warning the image has no alt text; {BRACKETS}"],
        ),
        ("é <img src=a.png>", ["1:3 warning the image has no alt text; describe it in `alt`"]),
        ('<img src="a.png" alt="">', []),
        ('<img src="a.png" role="presentation">', []),
        ("![a](b.png)", []),
        (
            "### a",
            ["1:5 warning the heading jumps to `###` after the page's title; write `##`"],
        ),
        ("## a\n\n### b\n\n## c\n\n### d", []),
        (
            "## a\n\n#### b",
            ["3:6 warning the heading jumps to `####` after `##`; write `###`"],
        ),
        (
            "## a\n\n> ##### b",
            ["3:9 warning the heading jumps to `#####` after `##`; write `###`"],
        ),
        (
            "# a\n\n#### b",  # which the page shows as an h2 and an h5
            ["3:6 warning the heading jumps to `####` after `#`; write `##`"],
        ),
        (
            "## a\n\n# b",
            ["1:4 warning the heading jumps to `##` after the page's title; write `#`"],
        ),
        (
            "a\n-\n\n<h5>b</h5>",
            ["4:1 warning the heading jumps to h5 after h2; write h3"],
        ),
        ("# a\n\n## b\n\n# c", []),
        ("<h1>a</h1>", ["1:1 warning a second h1 beside the page's title; use a lower heading"]),
        (
            "# The *Title*",
            ["1:3 warning the heading repeats the title, which stands above it; take it out"],
        ),
        ("[a]()", ["1:5 warning the link has no address; write it"]),
        ("![a]( )", ["1:7 warning the image has no address; write it"]),
        ('<a href="">a</a>', ["1:1 warning the link has no address; write it"]),
        ('<a name="a">a</a>', []),
    ],
)
def test_notes_about_a_text(markdown: str, notes: list[str]) -> None:
    """A defect of a text by itself is reported where it was written; others are not checked."""
    own = ("is empty", "alt text", "heading", "has no address")
    assert [note for note in take_note(markdown) if any(each in note for each in own)] == notes


def said(markdown: str) -> list[str]:
    """Return places and beginnings of the notes about a text."""
    return [note.replace(" warning", "").partition(";")[0] for note in take_note(markdown)]


@pytest.mark.parametrize(
    ("markdown", "notes"),
    [
        ("a <T> b", ["1:3 `<t>` is no element of HTML"]),
        ("<div>\n<t(*[>\n</div>", ["2:1 `<t(*[>` is no element of HTML"]),
        ("</t(*[>", ["1:1 `</t(*[>` ends nothing that is open"]),
        ("a <x-b>c</x-b> `<T>`", []),
        ("<div>\n\n<p>a</div>", []),
        ("<div>\n<b>a\n</div>", ["2:1 `<b>` is not closed"]),
        ("a <i>b</i></i>", ["1:11 `</i>` ends nothing that is open"]),
        ("<i>a</i> <i>b", ["1:10 `<i>` is not closed"]),
        ("```\n<i>\n```\n\n<i>a", ["5:1 `<i>` is not closed"]),
        ("<center>a</center>", ["1:1 `<center>` is no element of HTML"]),
        (
            "<div>\n<https://a.example/>\n</div>",
            ["2:1 `<https:…>` is no link within HTML"],
        ),
        ("<https://a.example/> a@b.example <c@d.example>", []),
        (
            "<script>if (a<b) c()</script>",
            ["1:1 `<script>` has no effect: the site runs no script of a text"],
        ),
        ("<svg><path d=''/><g><T/></g></svg>", []),
        ("<!-- <T> <center> -->", []),
        ("[a](javascript:b())", ["1:5 a link by `javascript:` does nothing here"]),
        ("![a](https://b.example/c.png)", ["1:6 pages show nothing of other sites"]),
        ("![a](data:image/png;base64,AA)", []),
        ("a[^1]", ["1:2 `[^1]` stands for no footnote"]),
        ("a[^1] `[^2]`\n\n[^1]: b", []),
        ("a\n\n```\nb\n", ["3:1 this code block is never closed"]),
        ("- a\n\n  ```py\n  b\n\n  c\n  ```", []),
        ("```\na\n```\n\n~~~ py\n```\n~~~", []),
        ("- a\n\n  ```\n  <!-- <T>\n  ```", []),
        ("[a][no where] b[0][1] `[c][d]`", ["1:4 no line says where `[no where]` leads"]),
        ("[a](htp://b.example/)", ["1:5 `htp:` is no kind of address"]),
        ("[a](mailto:b@c.example) [d](ftp://e.example)", []),
        ("[a](http://localhost:8000/b)", ["1:5 the link leads to the reader's own machine"]),
        ("[a](https://127.0.0.1)", ["1:5 the link leads to the reader's own machine"]),
        ("[a](https://localhost.example/)", []),
        ("![a](C:\\Pictures\\b.png)", ["1:6 the file is on your own machine"]),
        ("[a](file:///b.pdf)", ["1:5 the file is on your own machine"]),
    ],
)
def test_broken_html_and_unused_markdown_are_reported(markdown: str, notes: list[str]) -> None:
    """HTML that browsers would fix, and what the site's policy disables, are reported."""
    assert said(markdown) == notes


@pytest.mark.parametrize(
    ("markdown", "references"),
    [
        ("[a](/b/)", ["1:5 /b/"]),
        ("[a]( </b c/> 'd')", ["1:7 /b c/"]),
        ('[a](/b/ "d")\n![a](b.png)', ["1:5 /b/", "2:6 b.png shown"]),
        ("[![a](b.png)](/c/)", ["1:15 /c/", "1:7 b.png shown"]),
        ("![](a.png) ![ ](b.png)", ["1:5 a.png shown", "1:17 b.png shown"]),
        ("[a][b] [b][] [b]\n\n[b]: /c/", ["3:6 /c/"] * 3),
        ("[a][b]\n\n[b]:\n  <../c/>", []),
        ("[a][b]\n\n[b]:\n  ../c/", ["4:3 ../c/"]),
        ("[a](\n/b/)", ["2:1 /b/"]),
        ("[a](b(c)d)", ["1:5 b(c)d"]),
        ("[é](#f)", ["1:5 #f"]),
        ("- > 1. [a](/b/)", ["1:12 /b/"]),
        ("x[^1]\n\n[^1]: [a](/b/)", ["3:11 /b/"]),
        ("<a href='/b?c&amp;d#e'>a</a>", ["1:1 /b?c&d#e"]),
        (
            "<p>\n<img alt=a src=b.png\n srcset='c.png 1x, d.png 2x'></p>",
            [
                "2:1 b.png shown",
                "2:1 c.png shown",
                "2:1 d.png shown",
            ],
        ),
        ("<video src=a.mp4 poster=b.png></video>", ["1:1 a.mp4 shown", "1:1 b.png shown"]),
        ("<https://a.example> [a](https://b.example) [c](//d.example) [e](mailto:f@g.example)", []),
        ("```\n[a](/b/)\n<a href=c>d</a>\n```", []),
        ("~~~ text\n[a](/b/)\n~~~", []),
        ("    [a](/b/)\n    <img src=c>", []),
        ("`[a](/b/)` ``<img src=c> ` [d](/e/)``", []),
        (r"\[a](/b/) [c\](/d/)", []),
        ("<!-- [a](/b/)\n\n<img src=c> -->", []),
        ("<div>\n[a](/b/)\n</div>", []),
        ("<div markdown=1>\n[a](/b/)\n</div>", ["2:5 /b/"]),
        ("[a] (/b/)", []),
        ("[a]: /b/", []),
        ('<p title="[a](/b/)">c</p>', []),
        (r"\<img src=a>", []),
        ("- a\n\n  ```\n  [b](/c/)\n  ```", []),
        ("- a\n\n    ```\n    [b](/c/)\n\n    d\n    ```", []),
    ],
)
def test_references_are_found_as_readers_get_them(markdown: str, references: list[str]) -> None:
    """Links and images are those that the reader gets, and nothing in code or comments."""
    assert list_references(markdown) == references


@pytest.mark.parametrize(
    ("markdown", "anchors"),
    [
        ("## A *b* `c`!", {"a-b-c"}),
        ("## a\n\n## a", {"a", "a_1"}),
        ("## a {#b .c}", {"b"}),
        ("## Über uns", {"über-uns"}),
        ("a\n=\n", {"a"}),
        ("x[^1]\n\n[^1]: y", {"fn-1", "fnref-1"}),
        ('<p id="a"><a name="b">c</a></p>', {"a", "b"}),
    ],
)
def test_anchors_are_those_of_the_converter(markdown: str, anchors: set[str]) -> None:
    """Anchors are those that the converter gives, and those in HTML."""
    assert analyse(replace(PLAIN, markdown=markdown))[0].anchors == anchors


def test_lines_count_from_the_file() -> None:
    """Places are those of the source file, whose head is above the text."""
    note = analyse(replace(PLAIN, markdown="a\n\n![](b.png)\n", body_line=8))[0].notes[0]

    assert (note.line, note.column) == (10, 1)


def test_a_sample_of_everything() -> None:
    """A post with every kind of block has no note but those planted, and all its references."""
    document = read_posts(10**6)[0]
    facts = analyse(document)[0]

    assert [(note.line, note.message[:30]) for note in facts.notes] == []
    assert [reference.address for reference in facts.references] == [
        "/about/",
        "/tags/one/",
        "../other/",
        "/images/a.png",
        "#a-heading",
        "/journal/",
        "/cell/",
        "/definition/",
        "/noted/",
        "/images/b.png",
        "#underlined",
        "/marked/",
        "/inline/",
        "/archive/",
    ]
    assert {"by-hand", "here", "underlined", "in-the-quote"} <= facts.anchors


def strip(html: str) -> str:
    """Return HTML without marks, and without code, where marks part the highlighter's tokens."""
    html = re.sub(rf'\s{ATTRIBUTE}="?\d+"?(?=[ />\n])', "", html)
    without_code = re.sub(r"<pre[^>]*>.*?</pre>", "", strip_marks(html), flags=re.DOTALL)
    return re.sub(r"\s+", " ", without_code)


def test_line_marks_change_no_html() -> None:
    """The converter makes the same page of a text with marks as of the text without."""
    converter = Converter(Dialect("https://a.example"))
    for document in read_posts(12):
        marked = replace(document, markdown=Marked(document.markdown).text)
        page = strip(converter.convert(document).html)

        assert strip(converter.convert(marked).html) == page, document.path


def test_every_place_is_true() -> None:
    """At the place of each reference the source has its address, or the tag that holds it."""
    seen = 0
    for document in read_posts(6):
        lines = document.markdown.split("\n")
        for reference in analyse(document)[0].references:
            source = lines[reference.line - document.body_line][reference.column - 1 :]
            assert source.startswith((reference.address, "<")), (document.path, reference)
            seen += 1

    assert seen >= 14


ATTACKS = [
    "[" * 100_000,
    "![[" * 33_000,
    "[](" * 33_000,
    "[a](" * 25_000,
    "[a][" * 25_000,
    "[" * 50_000 + "]" * 50_000,
    "<a " * 33_000,
    "<a title='" * 10_000,
    "x <y\n\n" * 16_000,
    "# {" * 33_000,
    "*[a]: b\n" * 12_000,
    "[^1] " * 20_000,
    "[TOC]\n\n" * 14_000,
    "".join(f"{'    ' * depth}- a\n" for depth in range(300)),
]


@pytest.mark.parametrize("markdown", ATTACKS, ids=range(len(ATTACKS)))
def test_text_that_would_take_hours_to_convert_is_an_error(markdown: str) -> None:
    """A text that the converter would need hours for is refused at a place, before it starts."""
    document = replace(PLAIN, markdown=markdown)
    facts = analyse(document)[0]

    assert [note.severity for note in facts.notes] == ["error"]
    assert facts.notes[0].line <= markdown.count("\n") + 1
    assert analyse(PLAIN)[0] == Facts((), (), frozenset())


@pytest.mark.parametrize(
    "markdown",
    [
        f"a{'`' * 100_000}",
        "` " * 50_000,
        *in_ci(
            "> " * 50,
            "a | b\n" * 3_000,
            "- a\n" * 5_000,
            "".join(f"[{number}]: /{number}\n" for number in range(1_500)),
            "```\n" + "cout << a << b;\n" * 5_000 + "```\n",
            "\U000f0001 [a](/b/) \U0010ffff",
            "word " * 20_000,
            "a\n:   " * 16_000,
            "---\n" * 25_000,
            "a\n=\n" * 25_000,
            "[a]:\n" * 20_000,
            "```a\nb\n```\n" * 1_000,
        ),
    ],
    ids=range(14),
)
def test_long_texts_are_no_error(markdown: str) -> None:
    """Long tables, lists, definitions and listings are what some posts need."""
    assert not analyse(replace(PLAIN, markdown=markdown))[0].notes


@pytest.mark.size("ci")
def test_fences_without_their_ends_take_no_time() -> None:
    """The first of them is the beginning of all the code, which is named once."""
    began = time.process_time()
    (note,) = analyse(replace(PLAIN, markdown="```a\n" * 20_000))[0].notes

    assert note.message.startswith("this code block is never closed")
    assert time.process_time() - began < 30


def test_few_posts_are_converted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks stay out of code, so that they hardly ever change what is shown."""
    counts: Counter[str] = Counter()

    def count(document: Document, markdown: str, dialect: Dialect) -> Conversion:
        counts[document.path] += 1
        return convert(document, markdown, dialect)

    monkeypatch.setattr("site_build.checks.analyse.convert", count)
    documents = read_posts(12)
    for document in documents:
        analyse(document)

    assert sum(count > 1 for count in counts.values()) <= 1 + len(documents) // 25


def test_many_runs_of_backquotes_take_no_time() -> None:
    """None of these runs has an end, and each is longer or shorter than all before."""
    runs = ["`" * length for length in range(1, 800)]
    began = time.process_time()
    for each in (runs, runs[::-1]):
        assert not analyse(replace(PLAIN, markdown=" ".join(each)))[0].notes

    assert time.process_time() - began < 8


SPAN = re.compile(
    r"(?<![`\\])(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)", re.DOTALL
)
"""A code span, as an expression that takes the square of a text's length."""
CODE = ("`", "``", "```", "x", " ", "\\", "\n", "\n\n", "\n \t\n")


@pytest.mark.size("test", grows=True)
@settings(max_examples=scaled(test=200, ci=2_000))
@given(st.lists(st.sampled_from(CODE), max_size=25).map(lambda pieces: f"x{''.join(pieces)}"))
def test_code_spans_are_those_of_the_plain_definition(markdown: str) -> None:
    """The quick ways find what the slow ones find: an expression, and Python-Markdown's search."""
    assume("```" not in markdown)
    blank = SPAN.sub(lambda span: re.sub(r"[^\n]", "x", span[0]), markdown)
    quick, slow = CodeSpans(BACKTICK_RE), BacktickInlineProcessor(BACKTICK_RE)
    starts = [at for at, sign in enumerate(markdown) if sign == "`"]

    assert blank_code(markdown) == blank
    found = [quick.find_code_spans(at, markdown) for at in starts]
    assert found == [slow.find_code_spans(at, markdown) for at in starts]


PIECES = st.sampled_from(
    [
        "[",
        "]",
        "(",
        ")",
        "![",
        "](",
        "<",
        ">",
        "|",
        ":",
        "=",
        "/",
        "\\",
        "'",
        '"',
        "*",
        "_",
        "`",
        "```",
        "~~~",
        "#",
        "##",
        "===",
        "---",
        "> ",
        "- ",
        "1. ",
        "!!! ",
        "{: ",
        "{#a}",
        "[^1]",
        "[^1]: ",
        "[a]: ",
        "*[a]: ",
        "[TOC]",
        "&amp;",
        "&#",
        "<a ",
        "<img ",
        "<h1>",
        "<!--",
        "-->",
        "<div>",
        "</div>",
        "<script>",
        "</p>",
        "<?",
        "<![CDATA[",
        "<!x",
        "<p",
        "\n",
        "\n\n",
        "    ",
        "\t",
        " ",
        "\u00e9",
        "\u2028",
        "\U000f0000",
        "a",
        " markdown=1",
    ]
)


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=300))
@given(st.lists(PIECES, max_size=60).map("".join))
def test_no_text_raises(markdown: str) -> None:
    """For any text there are facts, at places within it."""
    document = replace(PLAIN, markdown=markdown)
    facts = analyse(document)[0]

    assert all(1 <= note.line <= markdown.count("\n") + 1 for note in facts.notes)
    CrossCheck().check([document], {document.path: facts}, [], NOW)


@settings(max_examples=100)
@given(st.integers(0, 10**9), st.lists(PIECES, min_size=1, max_size=8))
def test_no_mangled_post_raises(seed: int, pieces: list[str]) -> None:
    """Real posts with pieces cut out and put in are checked like any other."""
    chance = random.Random(seed)  # noqa: S311 - no secret hangs on it
    text = chance.choice(find_posts(40)).read_text(encoding="utf-8")[:6_000]
    for piece in pieces:
        at, length = chance.randrange(len(text)), chance.randrange(30)
        text = text[:at] + piece + text[at + length :]
    document, _ = read_document("posts/a.md", text.encode())
    if document:
        CrossCheck().check([document], {document.path: analyse(document)[0]}, [], NOW)


def find_problems(
    *posts: Document, files: tuple[str, ...] = (), unread: tuple[str, ...] = ()
) -> list[str]:
    """Return what a check of these documents together finds."""
    documents = [
        replace(each, address=DEFAULT_ADDRESSES.locate(each.kind, each.slug)) for each in posts
    ]
    facts = {document.path: analyse(document)[0] for document in documents}
    found = CrossCheck().check(documents, facts, files, NOW, unread)
    return [str(finding) for finding in found]


OTHER = replace(PLAIN, path="posts/other.md", slug="other", markdown="## There\n\n## Here\n")
ABOUT = replace(PLAIN, path="pages/about.md", slug="about", kind="page", tags=())
DRAFT = replace(PLAIN, path="posts/draft.md", slug="draft", draft=True, tags=("drafted",))
FUTURE = replace(PLAIN, path="posts/future.md", slug="future", published=NOW.replace(year=2027))


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/journal/",
        "/journal/page/2/",
        "/journal/other/",
        "/journal/other",
        "/journal/other/index.html",
        "/journal/other/index.md",
        "/journal/other/#here",
        "/journal/other/#top",
        "/journal/other/?a=b#there",
        "/journal/./other/",
        "/journal/%6Fther/",
        "../other/",
        "../../about/",
        "/about/",
        "/tags/",
        "/tags/one/",
        "/tags/one/page/2/",
        "/archive/",
        "/feed.xml",
        "/tags/one/feed.json",
        "/auth.md",
        "/sitemap.xml",
        "/llms.txt",
        "/images/a%20b.png",
        "/api/public/v1/posts",
        "/docs/",
        "/docs",
        "/docs/posts/#list_posts",
        "/docs/mcp/index.md",
        "/docs/try/",
        "/.well-known/api-catalog",
        "#top",
        "#",
        "?a",
        "#:~:text=Words",
        "other.md",
        "../posts/other.md#here",
        "{filename}/posts/other.md?a#here",
    ],
)
def test_links_that_lead_somewhere(address: str) -> None:
    """An address that a reader can follow is no finding."""
    document = replace(PLAIN, markdown=f"[a](<{address}>)\n")

    assert find_problems(document, OTHER, ABOUT, files=("images/a b.png",)) == []


@pytest.mark.parametrize(
    ("markdown", "message"),
    [
        ("[a](/x/)", "broken link: no page at `/x/`; fix the address, or remove it"),
        ("[a](/docs/x/)", "broken link: no page at `/docs/x/`; fix the address, or remove it"),
        ("[a](other/)", "broken link: no page at `other/`; did you mean /journal/other/?"),
        ("[a](/2020/other.html#b)", "broken link: no page at `/2020/other.html#b`; did you mean"),
        ("[a](othr.md)", "broken link: no page at `othr.md`; did you mean /journal/other/?"),
        ("[a](./../posts/other.md#b)", "nothing on /journal/other/ is named `#b`; name a heading"),
        ("[a]({filename}draft.md)", "the link leads to a draft, posts/draft.md; publish it, or"),
        ("![a](other.md)", "missing image or file: `other.md`; write /journal/other/"),
        ("[a](a.example/b)", "broken link: no page at `a.example/b`; write https://a.example/b"),
        ("![a](/images/c.png)", "missing image or file: `/images/c.png`; did you mean /"),
        ("[a](/tags/two/)", "broken link: no page at `/tags/two/`; fix the address, or remove it"),
        (
            "[a](/tags/drafted/)",
            "broken link: no page at `/tags/drafted/`; fix the address, or rem",
        ),
        (
            "[a](/journal/OTHER/)",
            "broken link: no page at `/journal/OTHER/`; did you mean /journal/ot",
        ),
        ("[a](#x)", "nothing on this page is named `#x`; name a heading's anchor, or take it away"),
        ("[a](/journal/other/#her)", "nothing on /journal/other/ is named `#her`; did you mean #h"),
        ("[a](/journal/other/#Here)", "nothing on /journal/other/ is named `#Here`; did you mean"),
        ("[a](/journal/draft/)", "the link leads to a draft, posts/draft.md; publish it, or take"),
        ("[a](/journal/future/)", "the link leads to posts/future.md, which appears on 2027-06-01"),
        (
            "![a](images/b.png)",
            "missing image or file: `images/b.png`; did you mean /images/b.png?",
        ),
        ("![a](b.png)", "missing image or file: `b.png`; did you mean /images/b.png?"),
        ("![a](images\\b.png)", "missing image or file: `images\\b.png`; did you mean /images/b.p"),
        ("[a](img/b.png)", "broken link: no page at `img/b.png`; did you mean /images/b.png?"),
        ("[a](a.b@c.example)", "broken link: no page at `a.b@c.example`; write mailto:a.b@c.exam"),
        ("[a](/journal/ohter-one/)", "broken link: no page at `/journal/ohter-one/`; fix the add"),
        ("[a](/journal/other/#three)", "nothing on /journal/other/ is named `#three`; did you me"),
        ("[a](/journal/other/#thrifty)", "nothing on /journal/other/ is named `#thrifty`; name a"),
        ("[a](/[x]/)", "broken link: no page at `/[x]/`; fix the address, or remove it"),
    ],
)
def test_links_that_lead_nowhere(markdown: str, message: str) -> None:
    """A broken link is reported at its place, with the likely address."""
    document = replace(PLAIN, markdown=markdown)
    found = find_problems(document, OTHER, ABOUT, DRAFT, FUTURE, files=("images/b.png",))

    column = markdown.index("(") + 2
    assert len(found) == 1
    assert found[0].startswith(f"posts/a.md:1:{column}  warning  {message}")


def test_a_scheduled_post_may_link_to_an_earlier_one() -> None:
    """A post may link to all that is public when it appears; drafts may link anywhere."""
    later = replace(FUTURE, published=NOW.replace(year=2028), markdown="[a](/journal/future/)\n")
    later = replace(later, path="posts/later.md", slug="later")
    sketch = replace(DRAFT, markdown="[a](/journal/future/) [b](/journal/later/)\n")

    assert find_problems(FUTURE, later, sketch) == []


@pytest.mark.parametrize("slug", ["docs", "search"])
def test_a_page_where_the_edge_has_one_is_an_error(slug: str) -> None:
    """A page that no reader would ever see is reported; a post has another address."""
    page = replace(ABOUT, slug=slug)
    expected = f"error  the slug gives the address /{slug}/, where the edge has a page of its own"

    (found,) = find_problems(page, replace(PLAIN, slug=slug))
    assert expected in found


def test_one_address_for_two_files_is_an_error() -> None:
    """Both files are named; a page and a post may have the same slug."""
    twin = replace(PLAIN, path="posts/b.md")
    page = replace(ABOUT, slug="a")
    expected = "error  the slug gives the address /journal/a/, as"

    assert find_problems(PLAIN, twin, page) == [
        f"posts/a.md:1:1  {expected} posts/b.md does; change one of them",
        f"posts/b.md:1:1  {expected} posts/a.md does; change one of them",
    ]


def test_a_file_that_cannot_be_read_may_be_the_one_that_is_missed() -> None:
    """Nothing is said of links to a post whose slug is in its name; all others are looked for."""
    document = replace(PLAIN, markdown="[a](/journal/x/) [b](/x.pdf) [c](/journal/y/)\n")
    unread = ("posts/2026-01-01-X.md",)

    assert len(find_problems(document)) == 3
    found = [line.split("`")[1] for line in find_problems(document, unread=unread)]
    assert found == ["/x.pdf", "/journal/y/"]


def write_post(folder: Path, name: str, slug: str, body: str = "Words.\n") -> Path:
    """Write a post into a content folder and return its path."""
    path = folder / "posts" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"---\ntitle: Of {slug}\nslug: {slug}\ndate: 2026-03-01\n---\n"
    path.write_text(head + body, encoding="utf-8")
    return path


def list_paths(folder: Path) -> list[str]:
    """Return path, line, severity and the beginning of each finding about a folder."""
    found = check_content(folder, NOW)[1]
    return [
        f"{each.path}:{each.line} {each.severity} {each.message.split(';')[0]}" for each in found
    ]


def test_a_whole_folder_is_checked(tmp_path: Path) -> None:
    """Every defect of every file comes at once, sorted by place."""
    write_post(tmp_path, "a.md", "a", "[b](/journal/b/)\n[c](/journal/c/)\n![](/images/d.png)\n")
    write_post(tmp_path, "b.md", "b")
    (tmp_path / "posts" / "bad.md").write_bytes(b"\xff")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "d.png").write_bytes(b"")
    (tmp_path / ".hidden.md").write_text("no matter")
    (tmp_path / "notes.mkdn").write_text("not built")

    assert list_paths(tmp_path) == [
        "notes.mkdn:1 warning the file is not built",
        "posts/a.md:7 warning broken link: no page at `/journal/c/`",
        "posts/a.md:8 warning the image has no alt text",
        "posts/a.md:8 error the picture images/d.png is no picture that can be read",
        "posts/bad.md:1 error byte 0xFF is not UTF-8",
    ]


def test_symlinks_pipes_and_odd_names_are_refused(tmp_path: Path) -> None:
    """Links out of the folder, broken links, pipes and odd names are refused, not opened."""
    content = tmp_path / "content"
    write_post(content, "a.md", "a")
    (tmp_path / "secret.md").write_text("secret")
    (content / "out.md").symlink_to(tmp_path / "secret.md")
    (content / "loop.md").symlink_to(content / "loop.md")
    (content / "up").symlink_to(tmp_path)
    (content / "again").symlink_to(content / "posts")
    (content / "within.md").symlink_to(content / "posts" / "a.md")
    (content / "within.md").with_name("b\x1b.md").write_text("odd")
    os.mkfifo(content / "pipe.md")
    os.close(os.open(os.fsencode(content) + b"/\xff.md", os.O_CREAT))

    assert list_paths(content) == [
        r"\udcff.md:1 error the name holds signs that are no text",
        "again:1 error a linked folder is not followed",
        r"b\x1b.md:1 error the name holds signs that are no text",
        "loop.md:1 error broken symbolic link",
        "out.md:1 error the link leads out of the content folder",
        "pipe.md:1 error this is no plain file",
        "posts/a.md:3 error the slug gives the address /journal/a/, as within.md does",
        "up:1 error the link leads out of the content folder",
        "within.md:3 error the slug gives the address /journal/a/, as posts/a.md does",
    ]


def test_any_number_of_processes_finds_the_same(tmp_path: Path) -> None:
    """A check with three processes finds what one finds, in the same order."""
    for number in range(20):
        write_post(tmp_path, f"{number}.md", f"a-{number % 15}", f"[b](/journal/a-{number}/)\n")

    assert check_content(tmp_path, NOW, 3) == check_content(tmp_path, NOW, 1)


@given(slugs=st.lists(st.text("ab-", min_size=1, max_size=8), unique=True), slug=st.text("ab-"))
def test_near_slugs_are_those_of_a_search_through_all(slugs: list[str], slug: str) -> None:
    """The index leaves none out, and keeps their order."""
    near = (
        each
        for each in slugs
        if abs(len(each) - len(slug)) <= 3 and (each[:3] == slug[:3] or each[-4:] == slug[-4:])
    )

    assert NearSlugs(slugs).find(slug) == tuple(near)[:200]


LINK = "[l](/a/)"


@pytest.mark.parametrize(
    "text",
    [
        f"N.[^1]\n\n[^1]: ```\n    x\n    ```\n\n{LINK}",
        f"> ```\n> code\n\n{LINK}",
        f"- ```\n  code\n\n{LINK}",
        f"    ```python\n\n{LINK}",
        f"term\n: ```\n  x\n  ```\n\n{LINK}",
        f"~~~ a`b\nx\n~~~\n\n{LINK}",
        f"<pre>\n```\n</pre>\n\n{LINK}",
        f"$$\n```\n$$\n\n{LINK}",
        f"<!--\n```\n-->\n\n{LINK}\n\n```\nx\n```\n",
        f"- Press the ` key\n- see {LINK}\n- or the ` key",
        f"|a|b|c|\n|-|-|-|\n| ` | {LINK} | x |\n| ` | x | y |",
    ],
)
def test_no_link_is_taken_for_code(text: str) -> None:
    """Even behind what looks like a fence: what drafts show is withheld by such links."""
    facts, _ = analyse(replace(PLAIN, markdown=text))
    assert [each.address for each in facts.references] == ["/a/"]


@pytest.mark.parametrize("before", ["> ```\n\n", "Note.[^1]\n\n[^1]: ```\n    x\n    ```\n\n"])
def test_apparent_code_does_not_hide_slow_text(before: str) -> None:
    """A text that would take minutes is refused at once."""
    facts, html = analyse(replace(PLAIN, markdown=before + "[" * 8000))
    assert html is None
    assert "too many `[` stand open" in facts.notes[0].message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<img markdown src='a.png' alt='x'>", "<img markdown src='a.png' alt='x'>"),
        ("<span markdown>\n*x*\n</span>", "<span markdown>\n*x*\n</span>"),
        ("<div markdown>\n\n```\nfoo\n\n</div>", "<code>foo\n</code>"),
        (
            "<div markdown>\n\n```html\n</div>\n```\n\n*a*\n\n</div>\n\n*b*",
            "<p><em>a</em></p>\n</div>\n<p><em>b</em></p>",
        ),
        ("    a\x0cb\u2028c", "<code>a\x0cb\u2028c\n</code>"),
        ("1. R:\n\n       make\n\n   ```\n   kept\n   ```\n", "<code>kept\n</code>"),
        ("-     code\n  kept", "<p>kept</p>"),
        (
            (
                '<details markdown="1">\n\n```python title="a.py"\nx\n```\n\n'
                "b\n\n```c,d\ny\n```\n\n</details>"
            ),
            "<p>b</p>",
        ),
        ("Apple\nApples\n:   A fruit.", "<dt>Apple</dt>\n<dt>Apples</dt>"),
    ],
)
def test_nothing_of_a_block_is_lost(text: str, shown: str) -> None:
    """Text that Python-Markdown leaves alone stays, and tags in code end no element."""
    _, html = analyse(replace(PLAIN, markdown=text))
    assert html is not None
    assert shown in html.html


def test_a_line_within_an_element_is_named() -> None:
    """Blocks that are nested too deeply there are refused at their own line."""
    text = "a\n\n<div markdown>\n\n" + "> " * 70 + "x\n\n</div>"
    facts, _ = analyse(replace(PLAIN, markdown=text))
    assert [note.line - PLAIN.body_line for note in facts.notes] == [4]
