"""Posts that belong together: parts of a series, in the order of their dates."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from site_build.content.document import read_document
from tests.site_build.workbench import (
    ROOT,
    Workbench,
    check_content,
    compare,
    find,
    list_inodes,
    run_journal,
    take,
)

pytestmark = pytest.mark.size("test")

THEME = ROOT / "theme"


def build(bench: Workbench, folder: Path) -> Path:
    """Build a workbench's content with the journal's own theme, and return the site's folder."""
    run_journal(bench.content, folder / "site", THEME)
    return folder / "site"


def read_series(site: Path, slug: str) -> LexborNode | None:
    """Return the list of parts on a post's page, where there is one."""
    page = (site / "journal" / slug / "index.html").read_text(encoding="utf-8")
    return LexborHTMLParser(page).css_first("article nav.series[aria-label=Series]")


def label(nav: LexborNode | None) -> str:
    """Return the line above the parts."""
    assert nav is not None
    return find(nav, "summary.label").text()


def test_each_part_shows_all_parts_by_date(empty_bench: Workbench, tmp_path: Path) -> None:
    """The parts are links in order, but for the one that is being read."""
    for slug, day in (("c", "2026-03-01"), ("a", "2026-03-03"), ("b", "2026-03-02")):
        empty_bench.post(slug, day, series="On <paper> & 'ink'")

    nav = read_series(build(empty_bench, tmp_path), "b")

    assert label(nav) == "On <paper> & 'ink', part 2 of 3"
    assert nav
    items = nav.css("ol > li")
    assert [item.text() for item in items] == ["C", "B", "A"]
    links = [link.attributes["href"] for link in nav.css("a")]
    assert links == ["/journal/c/", "/journal/a/"]
    assert [item.attributes.get("aria-current") for item in items] == [None, "page", None]


def test_a_series_goes_by_its_name_in_any_case(empty_bench: Workbench, tmp_path: Path) -> None:
    """The spelling that most parts use is shown on all of them."""
    for number, name in enumerate(["Paper", "PAPER", "Paper"]):
        empty_bench.post(f"p{number}", f"2026-03-0{number + 1}", series=name)

    assert label(read_series(build(empty_bench, tmp_path), "p1")) == "Paper, part 2 of 3"


def test_unpublished_posts_are_no_part(empty_bench: Workbench, tmp_path: Path) -> None:
    """A series with one public post shows nothing, and a scheduled part is not counted."""
    empty_bench.post("now", series="Paper")
    empty_bench.post("draft", series="Paper", status="draft")
    empty_bench.post("later", "2027-03-01", series="Paper")

    assert read_series(build(empty_bench, tmp_path), "now") is None


def test_a_long_series_shows_the_parts_around(empty_bench: Workbench, tmp_path: Path) -> None:
    """A page stays light whatever the number of parts, and the numbers stay right."""
    for number in range(60):
        empty_bench.post(f"p{number}", f"2026-03-01T00:{number:02}:00Z", series="Long")
    site = build(empty_bench, tmp_path)

    for part, first, last in ((1, 1, 25), (31, 19, 43), (60, 36, 60)):
        nav = read_series(site, f"p{part - 1}")
        assert label(nav) == f"Long, part {part} of 60"
        assert nav
        assert int(find(nav, "ol").attributes.get("start") or 1) == first
        titles = [item.text() for item in nav.css("li")]
        assert (titles[0], titles[-1]) == (f"P{first - 1}", f"P{last - 1}")
        assert find(nav, "[aria-current]").text() == f"P{part - 1}"


def test_a_markdown_twin_has_its_place_in_the_series(empty_bench: Workbench) -> None:
    """The Markdown of a part names the series; that of another post does not."""
    empty_bench.post("a", "2026-03-01", series="On paper")
    empty_bench.post("b", "2026-03-02", series="On paper")
    empty_bench.post("c", "2026-03-03")
    site = empty_bench.build() / "site" / "journal"

    lines = [(site / slug / "index.md").read_text(encoding="utf-8") for slug in "abc"]

    assert [re.findall(r"^- Series: (.*)$", text, re.MULTILINE) for text in lines] == [
        ["On paper, part 1 of 2"],
        ["On paper, part 2 of 2"],
        [],
    ]


def test_a_new_part_shows_on_all_of_them_and_nowhere_else(empty_bench: Workbench) -> None:
    """Pages and twins of the other parts are made anew, as if all had been; other posts stay."""
    for number in range(3):
        empty_bench.post(f"p{number}", f"2026-03-0{number + 1}", series="Paper")
    empty_bench.post("other", "2026-03-10")
    empty_bench.post("last", "2026-03-11")
    first = list_inodes(empty_bench.build() / "site")

    empty_bench.post("p3", "2026-03-12", series="Paper")
    second = empty_bench.build()

    after = list_inodes(second / "site")
    changed = {path for path, inode in first.items() if after[path] != inode}
    assert {
        f"journal/p{number}/index.{kind}" for number in range(3) for kind in ("html", "md")
    } <= (changed)
    assert "journal/other/index.html" not in changed
    fresh = Workbench(empty_bench.content, empty_bench.output.with_name("fresh")).build()
    assert compare(take(second / "site"), take(fresh / "site")) == []


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("series: [Paper]", "5:9  error  `series` is a list; write it as text"),
        (
            f"series: {'x' * 300}",
            "5:9  error  `series` has 300 characters; shorten it to 100 at most",
        ),
    ],
)
def test_an_invalid_series_name_is_reported(line: str, finding: str) -> None:
    """The error has its fix."""
    raw = f"---\ntitle: A\nslug: a\ndate: 2026-03-01\n{line}\n---\n\nWords.\n".encode()

    _, findings = read_document("posts/a.md", raw)

    assert [str(each) for each in findings] == [f"posts/a.md:{finding}"]


def test_a_page_belongs_to_no_series() -> None:
    """The key would do nothing there, so it is reported."""
    raw = b"---\ntitle: A\nslug: a\nseries: Paper\n---\n\nWords.\n"

    document, findings = read_document("pages/a.md", raw)

    message = "4:1  warning  `series` is for posts, and this is a page; take it out"
    assert [str(each) for each in findings] == [f"pages/a.md:{message}"]
    assert document
    assert document.series == ""


def test_nearly_equal_series_names_are_reported(empty_bench: Workbench) -> None:
    """Blanks and signs make another series, hardly what the author meant; case makes none."""
    for slug, name in (("a", "On paper"), ("b", "on Paper"), ("c", "On-paper"), ("d", "紙")):
        empty_bench.post(slug, series=name)

    findings = check_content(empty_bench.content, datetime(2026, 5, 1, tzinfo=UTC))[1]

    message = "5:9  warning  `series` is nearly 'On paper'; spell both the same"
    assert [str(finding) for finding in findings] == [f"posts/c.md:{message}"]
