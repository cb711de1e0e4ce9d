"""The entrance: the home page, a post's picture, authors' pages, and what browsers find there."""

import re
from pathlib import Path

import orjson
import pytest
from PIL import Image
from selectolax.lexbor import LexborHTMLParser

from site_build.errors import BuildError
from tests.site_build.workbench import ROOT, Workbench, find, run_build, run_journal, take

ABOUT = "---\ntitle: About\nslug: about\ndescription: Of ink.\n---\n\nInk.\n"

pytestmark = pytest.mark.size("test")


def read(build: Path, path: str = "") -> LexborHTMLParser:
    """Return a page of a build."""
    return LexborHTMLParser((build / "site" / path / "index.html").read_text(encoding="utf-8"))


def draw(bench: Workbench, name: str = "oak.png") -> None:
    """Put a picture into the content."""
    (bench.content / "images").mkdir(exist_ok=True)
    Image.new("RGB", (640, 400), "green").save(bench.content / "images" / name)


def test_home_shows_the_newest_post_and_the_others_as_leaves(bench: Workbench) -> None:
    """Two paragraphs of the newest, without links and notes; the others by their titles."""
    bench.post("older", day="2026-03-02", tags="[ink]")
    bench.post(
        "newest", day="2026-04-01", text="One [link](/).[^1]\n\nTwo.\n\nThree.\n\n[^1]: Note."
    )
    home = read(bench.build())
    newest = find(home, ".newest")

    assert find(newest, "h2 a").attributes["href"] == "/journal/newest/"
    assert [each.html for each in newest.css(".prose > p")] == ["<p>One link.</p>", "<p>Two.</p>"]
    leaves = {each.attributes["href"]: find(each, "bdi").text() for each in home.css(".leaves a")}
    assert leaves["/journal/older/"] == "Older"
    assert "/journal/newest/" not in leaves
    assert [each.text() for each in home.css(".leaves h2")] == ["2026"]
    assert find(home, "h1").text() == "Fore-edge"

    bench.post("newest", day="2026-04-01", text="Changed.\n\nTwo.")
    assert "Changed." in find(read(bench.build()), ".newest .prose").text()

    bench.post("newest", day="2026-04-01", text="- A list alone.")
    build = bench.build()
    assert find(read(build), ".newest .prose").text(strip=True) == "Newest"


def test_home_names_where_to_start(bench: Workbench) -> None:
    """Posts with `featured: true`, the newest first; nothing where no post has it."""
    bench.post("first", day="2026-03-01")
    assert not read(bench.build()).css("#start")
    bench.post("second", day="2026-04-01", featured="true")
    home = read(bench.build())
    assert [each.attributes["href"] for each in home.css(".start a")] == ["/journal/second/"]


def test_one_picture_runs_through_the_leaves(bench: Workbench, tmp_path: Path) -> None:
    """A landscape, the newest photograph, or that of EDGE_IMAGE; posts have a part of it."""
    bench.post("plain", day="2026-04-01", tags="[ink]")
    build = bench.build()
    drawn = (build / "site" / "edge" / "day.svg").read_text()
    assert drawn != (build / "site" / "edge" / "night.svg").read_text()
    shown = [each.attributes["src"] for each in read(build, "journal").css(".painting img")]
    assert shown == ["/edge/day.svg", "/edge/night.svg"]
    assert len(read(build, "journal/plain").css(".fore-edge.painting img")) == 2

    bench.post("plain", day="2026-04-01", tags="[ink]", text="Other words.")
    assert (bench.build() / "site" / "edge" / "day.svg").read_text() == drawn
    bench.post("more", day="2026-05-01", tags="[paper]")
    assert (bench.build() / "site" / "edge" / "day.svg").read_text() != drawn

    (bench.content / "images").mkdir(exist_ok=True)
    Image.new("RGB", (640, 400), "green").save(bench.content / "images" / "oak.jpg")
    Image.new("RGB", (640, 400), "blue").save(bench.content / "images" / "sea.jpg")
    bench.post("pictured", day="2026-04-03", image="../images/oak.jpg")
    build = bench.build()
    with Image.open(build / "site" / "edge" / "picture.webp") as picture:
        assert picture.size == (480, 1200)
        assert picture.getpixel((240, 600)) == pytest.approx((0, 128, 0), abs=6)
    assert not (build / "site" / "edge" / "day.svg").exists()

    run_journal(bench.content, tmp_path / "o", ROOT / "theme", EDGE_IMAGE="images/sea.jpg")
    with Image.open(tmp_path / "o" / "edge" / "picture.webp") as picture:
        assert picture.getpixel((240, 600)) == pytest.approx((0, 0, 255), abs=6)
    with pytest.raises(BuildError, match=re.escape("EDGE_IMAGE is 'no.png'; name a picture")):
        run_journal(bench.content, tmp_path / "o", ROOT / "theme", EDGE_IMAGE="no.png")


def test_a_post_leads_on_within_its_tag(bench: Workbench) -> None:
    """To the one before it there, unless that is the one before it anyway."""
    bench.post("one", day="2026-01-01", tags="[ink]")
    bench.post("two", day="2026-01-02", tags="[paper]")
    bench.post("three", day="2026-01-03", tags="[ink]")
    bench.post("four", day="2026-01-04", tags="[ink]")
    build = bench.build()
    (link,) = read(build, "journal/three").css("nav.onward a")
    assert link.attributes["href"] == "/journal/one/"
    assert not read(build, "journal/four").css("nav.onward")


def test_a_side_note_is_beside_its_mark(bench: Workbench) -> None:
    """A short one of one paragraph that is named once, with its number and its links.

    The others are below the text alone: those with several marks or paragraphs, the long, and
    those that are named in a heading, a table or another note. A mark of theirs leads there.
    """
    notes = {
        "one": "One, [two](https://example.org/), and [^within].",
        "twice": "Here and there.",
        "parted": "P.\n\n    Q.",
        "long": "Long. " * 140,
        "headed": "In a heading.",
        "cell": "In a table.",
        "within": "Within.",
        "last": "Last.",
    }
    text = (
        "A.[^one] B.[^twice] C.[^twice] D.[^parted] E.[^long]\n\n## F[^headed]\n\n"
        "| a | b |\n|---|---|\n| G[^cell] | 1 |\n\n> H.[^last]\n\n"
    ) + "\n".join(f"[^{name}]: {note}" for name, note in notes.items())
    bench.post("noted", day="2026-04-01", text=text)
    page = read(bench.build(), "journal/noted")
    beside = page.css(".sidenote")
    assert [each.text().split()[:2] for each in beside] == [["1", "One,"], ["8", "Last."]]
    assert [each.text() for each in page.css("blockquote .footnote-ref")] == ["8"]
    assert all("hidden" in each.attributes for each in beside)
    assert find(beside[0], "a").attributes["href"] == "https://example.org/"
    below = [each for each in page.css(".footnote li") if not each.attributes.get("class")]
    assert [each.attributes["value"] for each in below] == ["2", "3", "4", "5", "6", "7"]
    names = [each.attributes["id"] for each in page.css("[id]")]
    assert len(names) == len(set(names))


def test_amounts_are_not_broken(bench: Workbench) -> None:
    """A cell that is an amount or a date keeps its line; words do not."""
    whole = ["1 234,50 €", "$1,234.00", "12 %", "134,00 zł", "+3", "2026-10-01", "1 200 kg"]
    words = ["one", "in the year 2026 it was", "see [1](/)", "3 of those that came"]
    rows = "\n".join(f"| {cell} | . |" for cell in [*whole, *words])
    bench.post("sums", day="2026-04-01", text=f"| a | b |\n|---|--:|\n{rows}\n")
    page = read(bench.build(), "journal/sums")
    assert [each.text() for each in page.css("td.amount")] == whole


def test_a_large_picture_opens_without_a_script(bench: Workbench) -> None:
    """Wider than the column, and no link; two or three by themselves are in a row."""
    draw(bench, "small.png")
    Image.effect_noise((1400, 900), 80).save(bench.content / "images" / "large.jpg")
    large, small = "![L](../images/large.jpg)", "![S](../images/small.png)"
    text = f"{large}\n\n[{large}](/)\n\n{small}\n\n{large} {small}\n\n{large} and {small}"
    bench.post("seen", day="2026-04-01", text=text)
    page = read(bench.build(), "journal/seen")
    opened = [each.attributes["popovertarget"] for each in page.css("button.enlarge")]
    assert opened == ["picture.1", "picture.4", "picture.6"]
    assert [find(page, f"[id='{each}']").attributes["popover"] for each in opened] == [
        None,
        None,
        None,
    ]
    assert len(page.css("p.pictures")) == 1


def test_home_says_who_writes(bench: Workbench, tmp_path: Path) -> None:
    """AUTHOR_TEXT and AUTHOR_PICTURE, or else description and picture of the page `about`."""
    draw(bench)
    bench.write("pages/about.md", ABOUT)
    authors = []
    for settings in (
        {"AUTHOR_TEXT": ""},
        {"AUTHOR_TEXT": "Ann <3 ink.", "AUTHOR_PICTURE": "images/oak.png"},
    ):
        run_journal(bench.content, tmp_path / "o", ROOT / "theme", **settings)
        home = LexborHTMLParser((tmp_path / "o" / "index.html").read_text(encoding="utf-8"))
        shown = find(home, ".about")
        authors.append((find(shown, "p").text(), len(shown.css("img[width='96']"))))
    assert authors == [("Of ink.", 0), ("Ann <3 ink.", 1)]

    bench.write("pages/about.md", ABOUT.replace("slug", "image: ../images/oak.png\nslug"))
    build = bench.build()
    assert find(read(build), ".about img").attributes["alt"] == ""
    assert read(build, "authors/fore-edge").css(".introduction img")
    bench.write("pages/about.md", ABOUT)
    assert not read(bench.build(), "authors/fore-edge").css(".introduction img")
    (bench.content / "pages" / "about.md").unlink()
    menu = find(read(bench.build(), "authors/fore-edge"), ".running-head").text()
    assert "Archive" in menu
    assert "About" not in menu


def test_a_portrait_that_is_missing_is_named(bench: Workbench, tmp_path: Path) -> None:
    """The build says which setting names what."""
    with pytest.raises(BuildError, match=re.escape("AUTHOR_PICTURE is 'no.png'; name a picture")):
        run_journal(bench.content, tmp_path / "o", ROOT / "theme", AUTHOR_PICTURE="no.png")


def test_a_lead_picture_is_on_top_and_in_lists(bench: Workbench) -> None:
    """It is the text's first block, with its words; lists show it without; Markdown has it."""
    draw(bench)
    bench.post("oak", day="2026-04-01", image="../images/oak.png", image_alt="An [old] oak")
    build = bench.build()
    first, listed = find(read(build, "journal/oak"), ".prose img"), read(build, "journal")
    markdown = (build / "site" / "journal" / "oak" / "index.md").read_text("utf-8")

    assert first.attributes["alt"] == "An [old] oak"
    assert find(listed, ".leaves .slice img").attributes["alt"] == ""
    assert find(listed, ".leaves .slice").attributes["aria-hidden"] == "true"
    assert markdown.index("oak.png") < markdown.rindex("Words.")


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("../images/none.png", "posts/oak.md:5:"),
        ("an oak.png", "write a path without blanks, such as `../images/oak.jpg`"),
    ],
)
def test_an_unusable_lead_picture_is_reported_at_its_line(
    bench: Workbench, image: str, said: str
) -> None:
    """As a link to it within the text is."""
    bench.post("oak", image=image)
    done = run_build(bench, "--strict")

    assert done.returncode == 1
    assert said in done.stdout + done.stderr


def test_each_author_has_a_page(bench: Workbench) -> None:
    """It has their posts in HTML and Markdown, is in the sitemap, and posts link to it."""
    bench.post("both", day="2026-04-01", author="Ann Ink; Bo Ode")
    build = bench.build()
    page = read(build, "authors/ann-ink")
    data = orjson.loads(find(page, 'script[type="application/ld+json"]').text())

    assert [each.text() for each in page.css(".leaves bdi")] == ["Both"]
    profile = next(each for each in data["@graph"] if each["@type"] == "ProfilePage")
    assert profile["mainEntity"]["name"] == "Ann Ink"
    assert "/journal/both/" in (build / "site/authors/bo-ode/index.md").read_text("utf-8")
    assert "/authors/ann-ink/</loc>" in (build / "site" / "sitemap.xml").read_text("utf-8")
    links = [each.attributes["href"] for each in read(build, "journal/both").css(".p-author a")]
    assert links == ["/authors/ann-ink/", "/authors/bo-ode/"]


def test_marks_for_programs_and_browsers(bench: Workbench) -> None:
    """Posts are `h-entry`, lists `h-feed`; a browser finds the search."""
    bench.post("marked", day="2026-04-01", tags="[ink]", author="Ann")
    build = bench.build()
    post, listed = read(build, "journal/marked"), read(build, "journal")
    for name in ("p-name", "u-url", "dt-published", "e-content", "p-author", "p-category"):
        assert post.css(f".h-entry .{name}"), name
    assert listed.css(".h-feed .h-entry .u-url")
    path = str(find(post, 'link[rel="search"]').attributes["href"])
    search = take(build / "site")[path.lstrip("/")].decode()
    assert 'template="https://journal.test/search?q={searchTerms}"' in search


def test_the_archive_links_to_years_and_tags_are_sorted(bench: Workbench) -> None:
    """Each year that has posts is a link to its place; the tag of most posts comes first."""
    for day in ("2024-01-02", "2025-01-02", "2025-01-03"):
        bench.post(f"p{day}", day=day, tags="[zinc]" if day > "2025" else "[acid]")
    build = bench.build()
    archive, tags = read(build, "archive"), read(build, "tags")

    for link in archive.css(".jumps a"):
        find(archive, f"[id='{str(link.attributes['href'])[1:]}']")
    used = [each.text(strip=True) for each in tags.css("[aria-labelledby='by-use'] bdi")]
    named = [each.text(strip=True) for each in tags.css("[aria-labelledby='by-name'] bdi")]
    assert used.index("zinc") < used.index("acid")
    assert named.index("acid") < named.index("zinc")


def test_a_picture_without_words_is_an_ornament_but_an_image_in_the_text_is_not(
    bench: Workbench,
) -> None:
    """`check` asks for the words of an image in the text alone."""
    draw(bench)
    bench.post("oak", image="../images/oak.png", text="Words.\n\n![](/images/oak.png)")
    said = run_build(bench).stdout

    assert said.count("the image has no alt text") == 1
    assert "posts/oak.md:10:" in said


def test_an_author_whose_name_has_no_letter_has_no_page(bench: Workbench) -> None:
    """Nothing links to an address without a name, and nothing is published there."""
    bench.post("smile", day="2026-04-01", author="\N{GRINNING FACE}; //")
    build = bench.build()

    assert read(build, "journal/smile").css(".p-author a") == []
    assert "/authors//" not in "".join(
        path.read_text("utf-8") for path in (build / "site").rglob("*.html")
    )
    assert not (build / "site" / "authors" / "index.html").exists()
