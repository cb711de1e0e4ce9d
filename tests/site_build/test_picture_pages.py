"""Pictures in rows, with captions, and on pages of pictures."""

import re

import pytest
from selectolax.lexbor import LexborHTMLParser

from site_build.addresses import SourceRules
from site_build.content.document import read_document
from site_build.releases.release import build
from tests.site_build.test_convert import convert
from tests.site_build.test_pictures import draw, pack, put, read_page
from tests.site_build.workbench import ROOT, Workbench, find

pytestmark = pytest.mark.size("test")

A, B = '<img alt="a" src="/a.jpg">', '<img alt="b" src="/b.jpg">'
LINK = '<a href="/d/">c</a>'
ROW = '<p class="pictures">'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("![a](/a.jpg)", f"<p>{A}</p>"),
        ('![a](/a.jpg "T")', f"<figure>{A}<figcaption>T</figcaption></figure>"),
        ('![a](/a.jpg "  ")', f"<p>{A}</p>"),
        (
            "![a](/a.jpg)\n*A **b**, [c](/d/)*",
            f"<figure>{A}<figcaption>A <strong>b</strong>, {LINK}</figcaption></figure>",
        ),
        ("![a](/a.jpg)  \n_Cap_", f"<figure>{A}<figcaption>Cap</figcaption></figure>"),
        ("![a](/a.jpg) ![b](/b.jpg)", f"{ROW}{A}{B}</p>"),
        (
            "![a](/a.jpg)\n![b](/b.jpg)\n*Both*",
            f"<figure>{ROW}{A}{B}</p><figcaption>Both</figcaption></figure>",
        ),
        (
            "[![a](/a.jpg)](/x/)\n![b](/b.jpg)",
            f'{ROW}<a href="/x/">{A}</a>{B}</p>',
        ),
        (
            "![a](/a.jpg)\n" * 4 + "*Four*",
            f"<figure><p>{A * 4}</p><figcaption>Four</figcaption></figure>",
        ),
        ("word ![a](/a.jpg)\n*x*", f"<p>word {A}<em>x</em></p>"),
        ("*x*\n![a](/a.jpg)", f"<p><em>x</em>{A}</p>"),
        ("![a](/a.jpg)\n*x* and", f"<p>{A}<em>x</em> and</p>"),
        ("![a](/a.jpg)\n**x**", f"<p>{A}<strong>x</strong></p>"),
        ("*x*", "<p><em>x</em></p>"),
    ],
)
def test_captions_and_rows_are_plain_markdown(text: str, html: str) -> None:
    """An emphasis behind pictures is their caption; on GitHub it is below them."""
    made = convert(text).html.replace("\n", "").replace("> <", "><")

    assert made == html


def test_pictures_of_a_row_know_their_shapes(bench: Workbench) -> None:
    """So they are equally high without being cut, and small screens load no more than they show."""
    put(bench, "a.jpg", pack(draw(900, 600)))
    put(bench, "b.jpg", pack(draw(600, 900)))
    put(bench, "c.jpg", pack(draw(4000, 400)))
    row = "![a](/images/a.jpg)\n![b](/images/b.jpg)\n![c](/images/c.jpg)"
    bench.post("shown", text=f"{row}\n*Three*\n\n![alone](/images/a.jpg)")

    page = read_page("shown", bench.build())

    shown = page.css(".pictures > .enlarge img, .pictures > picture img")
    assert [each.attributes["class"] for each in shown] == ["shape-30", "shape-13", "shape-60"]
    sizes = {each.attributes["sizes"] for each in page.css(".pictures > .enlarge source")}
    assert sizes == {
        "(min-width: 41em) min(44vw, 289px), min(88vw, 620px)",
        "(min-width: 41em) min(44vw, 280px), min(88vw, 600px)",
    }
    assert "class" not in find(page, ".prose > p .enlarge img").attributes


def test_the_style_sheet_knows_every_shape() -> None:
    """A picture of a shape without a rule would take an equal part of its row."""
    sheet = (ROOT / "theme" / "static" / "style.css").read_text("utf-8")

    named = re.findall(r"\.shape-(\d+), \.pictures > :has\(\.shape-\1\) \{ --shape: \1; \}", sheet)

    assert [int(each) for each in named] == list(range(8, 61))


@pytest.mark.parametrize("kind", ["post", "page"])
def test_a_page_of_pictures_shows_them_as_wide_as_itself(bench: Workbench, kind: str) -> None:
    """Its class says so to the style sheet, and its images offer forms for that width."""
    put(bench, "a.jpg", pack(draw(1800, 1200)))
    text = "Words.\n\n![a](/images/a.jpg)\n*The tide*"
    if kind == "post":
        bench.post("shown", text=text, layout="pictures")
    bench.write("pages/wide.md", f"---\ntitle: W\nslug: wide\nlayout: pictures\n---\n\n{text}\n")
    bench.write("pages/usual.md", f"---\ntitle: U\nslug: usual\n---\n\n{text}\n")
    site = bench.build() / "site"

    path = "journal/shown/" if kind == "post" else "wide/"
    page, usual = (
        LexborHTMLParser((site / each / "index.html").read_text("utf-8"))
        for each in (path, "usual")
    )

    assert len(page.css("[data-layout='pictures'] > .prose > figure > .enlarge > picture")) == 1
    source = find(page, ".prose source").attributes
    assert source["sizes"] == "(min-width: 41em) min(94vw, 1800px), min(88vw, 1800px)"
    assert not usual.css("[data-layout='pictures']")
    assert find(usual, ".prose source").attributes["sizes"] == (
        "(min-width: 41em) min(94vw, 620px), min(88vw, 620px)"
    )


def test_an_unknown_layout_is_reported_once(bench: Workbench) -> None:
    """The finding names those that there are, and the post is published as usual."""
    bench.post("odd", layout="galery")
    bench.post("known", layout="pictures")
    bench.post("empty", layout="")

    said = [str(each) for each in build(bench.order()).findings if "layout" in each.message]

    what = "`layout` is 'galery', which the theme does not have; write one of these: pictures"
    assert said == [f"posts/odd.md:5:9  warning  {what}"]
    page = read_page("odd", (bench.output / "current").resolve())
    assert not page.css("[data-layout='pictures']")


def test_a_journal_may_have_layouts_of_its_own() -> None:
    """If the settings declare the key, the theme decides what it means."""
    rules = SourceRules(extra=("featured", "layout", "layout"))
    text = b"---\ntitle: A\nslug: a\ndate: 2026-03-01\nlayout: wide\n---\n\nWords.\n"

    document, findings = read_document("posts/a.md", text, rules)

    assert document
    assert findings == []


def test_badges_stay_in_their_line(bench: Workbench) -> None:
    """A paragraph of small pictures, or of pictures elsewhere, has no shapes to be a row by."""
    put(bench, "icon.jpg", pack(draw(88, 31)))
    icon = "![i](/images/icon.jpg)"
    bench.post("shown", text=f"{icon} {icon}\n\n![e](https://e.example/1.svg) {icon}")

    images = read_page("shown", bench.build()).css(".prose img")

    assert ["class" in each.attributes for each in images] == [False, False, False, False]


def test_a_heading_and_a_picture_have_different_ids(bench: Workbench) -> None:
    """A press opens the picture, even below a heading that has its number as its name."""
    put(bench, "a.jpg", pack(draw(1800, 1200)))
    bench.post("shown", text="## Picture 1\n\n![a](/images/a.jpg)")

    page = read_page("shown", bench.build())

    ids = [each.attributes["id"] for each in page.css(".prose [id]")]
    assert len(ids) == len(set(ids)) == 2
