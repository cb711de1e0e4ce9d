"""Related posts: chosen by words and tags, the same at every build."""

import random
from array import array
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from site_build.related import (
    LARGEST_COUNT,
    MOST_RELATED,
    MOST_TERMS,
    count_terms,
    find_related,
    unpack,
)
from site_build.site import Document
from tests.site_build.test_convert import make_document
from tests.site_build.workbench import (
    ROOT,
    Workbench,
    compare,
    find,
    list_inodes,
    run_journal,
    take,
)

pytestmark = pytest.mark.size("test")

NOON = datetime(2026, 3, 1, tzinfo=UTC)
VINEGAR = "Vinegar keeps cucumbers. Pickled cucumbers need vinegar and dill."
SAILING = "A halyard lifts the mainsail. Reefing the mainsail eases the helm."
GLAZING = "Kilns melt cobalt glazes. Cobalt glazes want hotter kilns."


def make_post(slug: str, text: str, day: int = 1, tags: tuple[str, ...] = ()) -> Document:
    """Return a post with a text, published on a day."""
    published = NOON + timedelta(days=day)
    whole = make_document(text)
    return replace(
        whole, path=f"posts/{slug}.md", slug=slug, title="", published=published, tags=tags
    )


def relate(*posts: Document) -> dict[str, list[str]]:
    """Return the slugs of what is related to each post, by its slug."""
    slugs = {post.path: post.slug for post in posts}
    found = find_related(posts, {post.path: count_terms(post) for post in posts})
    return {slugs[path]: [slugs[each] for each in paths] for path, paths in found.items()}


def names(text: str, **head: object) -> set[int]:
    """Return the numbers of a text's terms."""
    return set(unpack(count_terms(replace(make_document(text), title="", **head)))[0])  # type: ignore[arg-type]


def test_posts_that_share_words_are_related() -> None:
    """Words that two posts have in common count; those that all have, or none, do not."""
    found = relate(
        make_post("jars", VINEGAR),
        make_post("dill", f"{VINEGAR} With garlic."),
        make_post("boat", SAILING),
        make_post("kiln", GLAZING),
    )

    assert found == {"jars": ["dill"], "dill": ["jars"], "boat": [], "kiln": []}


def test_posts_that_share_tags_are_related() -> None:
    """A tag counts as a word does, in whatever case."""
    found = relate(
        make_post("jars", VINEGAR, tags=("Craft",)),
        make_post("boat", SAILING),
        make_post("kiln", GLAZING, tags=("craft",)),
    )

    assert found == {"jars": ["kiln"], "boat": [], "kiln": ["jars"]}


def test_there_are_twelve_at_most_and_the_newer_goes_first() -> None:
    """Among equally close posts the newer ones are chosen; on one day the slug decides."""
    posts = [make_post(f"p{number}", VINEGAR, day=number) for number in range(20)]
    posts += [make_post("a", VINEGAR, day=19), make_post("boat", SAILING)]
    expected = relate(*posts)["p0"]

    random.Random(1).shuffle(posts)  # noqa: S311 - any order will do

    assert expected == ["a", *(f"p{number}" for number in range(19, 8, -1))]
    assert relate(*posts)["p0"] == expected


def test_a_few_posts_and_none() -> None:
    """A journal that has just begun has nothing to relate."""
    assert relate() == {}
    assert relate(make_post("only", VINEGAR)) == {"only": []}
    empty = [make_post("a", "")]
    assert relate(*empty, make_post("b", "")) == {"a": [], "b": []}


def test_code_addresses_and_markup_are_no_words() -> None:
    """Two posts are not close because both name an address or import a module."""
    text = (
        "[words](/hidden/address)\n\n```python\nimport secrets\n```\n\n<div class='wrapper'>\n\n"
        "https://example.org/somewhere `variable` &nbsp;\n\n~~~~\n~~~\nstill code\n~~~~\n"
    )

    assert names(text) == names("words")


def test_scripts_without_blanks_give_pairs_of_signs() -> None:
    """Texts in Chinese and Japanese are compared by what they share too."""
    assert len(names("本の小口に絵を") & names("小口を飾る")) == 1
    assert names("Ölgemälde") & names("ÖLGEMÄLDE")


def test_terms_are_bounded() -> None:
    """A long text keeps its most frequent terms, and no count overflows into a number."""
    words = [
        f"{chr(97 + number // 26 % 26) * 4}{chr(97 + number % 26) * 4}" for number in range(400)
    ]
    text = " ".join(words) + " plenty" * 5_000

    found, counts = unpack(count_terms(replace(make_document(text), title="")))

    assert len(found) == MOST_TERMS
    assert max(counts) == LARGEST_COUNT
    assert found[0] in names("plenty")


def test_terms_shared_by_many_posts_are_ignored() -> None:
    """With a thousand posts the work stays in proportion: a word of all brings none together."""
    terms = {f"posts/p{number}.md": array("Q", [7 << 8 | 9]) for number in range(1000)}
    posts = [make_post(f"p{number}", "") for number in range(1000)]
    for pair in range(0, 1000, 2):
        for number in (pair, pair + 1):
            terms[f"posts/p{number}.md"].append((1000 + pair) << 8 | 1)

    found = find_related(posts, terms)

    assert found["posts/p0.md"] == ("posts/p1.md",)
    assert {len(paths) for paths in found.values()} == {1}
    assert MOST_RELATED == 12


@pytest.fixture
def shelf(empty_bench: Workbench) -> Workbench:
    """Return a workbench with two posts that are close, and others."""
    empty_bench.post("jars", "2026-03-01", VINEGAR, tags="[pickles]")
    empty_bench.post("boat", "2026-03-02", SAILING)
    empty_bench.post("kiln", "2026-03-03", GLAZING)
    empty_bench.post("gull", "2026-03-04", "Gulls circle the harbour.")
    empty_bench.post("dill", "2026-03-05", f"{VINEGAR} With garlic.", tags="[pickles]")
    return empty_bench


def test_a_page_links_what_is_related(shelf: Workbench, tmp_path: Path) -> None:
    """Each link has its day; a page without any says nothing."""
    run_journal(shelf.content, tmp_path / "site", ROOT / "theme")
    pages = [
        LexborHTMLParser((tmp_path / "site/journal" / slug / "index.html").read_text("utf-8"))
        for slug in ("jars", "boat")
    ]

    (nav,) = pages[0].css("nav.related")
    (item,) = nav.css("ul > li")
    assert find(nav, f"#{nav.attributes['aria-labelledby']}").text() == "Related"
    assert find(item, "a").attributes["href"] == "/journal/dill/"
    assert find(item, "time").attributes["datetime"] == "2026-03-05T00:00:00+00:00"
    assert pages[1].css("nav.related") == []


def test_posts_that_the_page_links_anyway_are_left_out(
    empty_bench: Workbench, tmp_path: Path
) -> None:
    """Neither the posts before and after nor parts of the series are related: the next ones are."""
    for day in range(1, 10):
        series = {"series": "Jars"} if day in {1, 5, 7} else {}
        empty_bench.post(f"p{day}", f"2026-03-0{day}", VINEGAR, **series)
    for slug, text in (("boat", SAILING), ("kiln", GLAZING), ("gull", "Gulls circle harbours.")):
        empty_bench.post(slug, "2026-02-01", f"{text} " * 3)
    run_journal(empty_bench.content, tmp_path / "site", ROOT / "theme")
    page = LexborHTMLParser((tmp_path / "site/journal/p5/index.html").read_text("utf-8"))

    shown = [link.attributes["href"] for link in page.css("nav.related li a")]

    assert shown == [f"/journal/p{day}/" for day in (9, 8, 3)]


def test_only_pages_whose_list_changed_are_made_again(shelf: Workbench, tmp_path: Path) -> None:
    """A post that leaves a list changes the pages it was on, as if all had been made anew."""
    one, other = tmp_path / "one", tmp_path / "other"
    run_journal(shelf.content, one, ROOT / "theme", BUILD_JOBS=1)
    before = list_inodes(one)
    shelf.post("dill", "2026-03-05", "Words of another kind.", title="Birds")

    run_journal(shelf.content, one, ROOT / "theme")

    after = list_inodes(one)
    changed = {path for path, inode in before.items() if after[path] != inode}
    assert "journal/boat/index.html" not in changed
    assert "journal/kiln/index.html" not in changed
    assert "journal/jars/index.html" in changed
    run_journal(shelf.content, other, ROOT / "theme")
    assert compare(take(one), take(other)) == []


def test_a_related_post_that_is_retitled_shows_its_title(shelf: Workbench, tmp_path: Path) -> None:
    """The page that links it is made anew, though its own text is as it was."""
    site = tmp_path / "site"
    run_journal(shelf.content, site, ROOT / "theme")
    shelf.post("dill", "2026-03-05", f"{VINEGAR} With garlic.", tags="[pickles]", title="New words")

    run_journal(shelf.content, site, ROOT / "theme")

    page = LexborHTMLParser((site / "journal/jars/index.html").read_text("utf-8"))
    assert find(page, "nav.related li a").text() == "New words"
