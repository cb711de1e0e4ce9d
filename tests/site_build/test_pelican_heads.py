"""Heads that Pelican takes are taken, and mean what they mean to Pelican's own reader."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pytest
from pelican.contents import Article  # type: ignore[import-untyped]
from pelican.readers import Readers  # type: ignore[import-untyped]
from pelican.settings import configure_settings, read_settings  # type: ignore[import-untyped]

from site_build.addresses import SourceRules
from site_build.content.dates import write_moment
from site_build.content.document import read_document
from site_build.site import Document, split_authors
from tests.site_build.workbench import Workbench, check_content, run, run_build

pytestmark = pytest.mark.size("test")

ZONE = "Europe/Rome"
RULES = SourceRules(posts=("",), timezone=ZONE)
PLAIN = "Title: A title\nDate: 2010-12-03\n"

DATES = (
    "2010-12-03",
    "2010-12-03 10:20",
    "2010-12-03 10:20:30",
    "2010-12-03_10:20",
    "2010-12-3",
    "2010/12/03",
    "2010.12.03 10:20",
    "20101203",
    "20101203T102000",
    "2010-12-03T10:20:00Z",
    "2010-12-03T10:20:00+02:00",
    "2010-12-03 10:20 +0200",
    "2010-12-03 10:20 GMT",
    "Fri, 03 Dec 2010 10:20:00 GMT",
    "Fri, 03 Dec 2010 10:20:00 -0500",
    "December 3, 2010",
    "Dec 3 2010",
    "3 December 2010",
    "3rd of December 2010",
    "Friday, 3 December 2010 at 10:20",
    "3 Dec 2010 10am",
    "10:20 3 Dec 2010",
    "2010-Dec-03",
    "13/04/2010",
    "03/13/2010",
    "13.04.2010",
)
AMBIGUOUS = ("03/04/2024", "03.04.2024 10:20", "10-11-12", "25 Sep 03")

HEADS = {
    **{f"date {said}": f"Title: A title\nDate: {said}\n" for said in (*DATES, *AMBIGUOUS)},
    "small letters": "title: A title\ndate: 2010-12-03\n",
    "capitals": "TITLE: A title\nDATE: 2010-12-03\nTAGS: Ink\nSLUG: here\n",
    "mixed": "tItLe: A title\nDaTe: 2010-12-03\nCaTeGoRy: Paper\n",
    "indented keys": "Title: A title\n   Date: 2010-12-03\n",
    "a closing line": f"{PLAIN}---\n",
    "a closing line of dots": f"{PLAIN}...\n",
    "no blank behind the colon": "Title:A title\nDate:2010-12-03\n",
    "many blanks": "Title:     A title\nDate:     2010-12-03\n",
    "a colon in the title": "Title: Ink: a story\nDate: 2010-12-03\n",
    "quotes in the title": 'Title: "Ink" and paper\nDate: 2010-12-03\n',
    "a title of digits": "Title: 1984\nDate: 2010-12-03\n",
    "tags by commas": f"{PLAIN}Tags: Ink, two words, paper\n",
    "tags by semicolons": f"{PLAIN}Tags: Ink; red, and blue; paper\n",
    "tags with empty members": f"{PLAIN}Tags: Ink,, paper,\n",
    "tags of digits": f"{PLAIN}Tags: 2024, 3.10, 1e3\n",
    "one tag of digits": f"{PLAIN}Tags: 2024\n",
    "tags like booleans": f"{PLAIN}Tags: yes, no, true, null\n",
    "no tags": f"{PLAIN}Tags:\n",
    "a tag with a sign": f"{PLAIN}Tags: C++, C#, node.js\n",
    "a category": f"{PLAIN}Category: Paper\n",
    "a category of digits": f"{PLAIN}Category: 2024\n",
    "a category like a boolean": f"{PLAIN}Category: yes\n",
    "no category": f"{PLAIN}Category:\n",
    "an author": f"{PLAIN}Author: Ann Lee\n",
    "an author with a comma": f"{PLAIN}Author: Lee, Ann\n",
    "authors by commas": f"{PLAIN}Authors: Ann Lee, Bob Ray\n",
    "authors by semicolons": f"{PLAIN}Authors: Lee, Ann; Ray, Bob\n",
    "a slug": f"{PLAIN}Slug: here-it-is\n",
    "a slug with capitals": f"{PLAIN}Slug: Here-It-Is\n",
    "a slug with other signs": f"{PLAIN}Slug: v1.0_b~c\n",
    "a slug of another script": f"{PLAIN}Slug: \u65e5\u672c\u8a9e-\u00fcber\n",
    "a slug of digits": f"{PLAIN}Slug: 2024\n",
    "no slug": f"{PLAIN}Slug:\n",
    "published": f"{PLAIN}Status: published\n",
    "a draft": f"{PLAIN}Status: draft\n",
    "a draft in capitals": f"{PLAIN}Status: DRAFT\n",
    "hidden": f"{PLAIN}Status: hidden\n",
    "hidden with a capital": f"{PLAIN}Status: Hidden\n",
    "no status": f"{PLAIN}Status:\n",
    "modified": f"{PLAIN}Modified: December 5, 2010\n",
    "a summary": f"{PLAIN}Summary: In short.\n",
    "a language": f"{PLAIN}Lang: it\n",
    "a translation": f"{PLAIN}Lang: it\nTranslation: true\n",
    "a key of its own": f"{PLAIN}Mood: good\nMood2: better\n",
    "a template": f"{PLAIN}Template: article\n",
    "an address": f"{PLAIN}URL: there/\nsave_as: there/index.html\n",
    "fences": f"---\n{PLAIN}Tags: Ink, paper\nCategory: Paper\n---\n",
    "fences and digits": f"---\n{PLAIN}Tags: 2024, 3.10\nCategory: 2024\nSlug: 2010-12-03\n---\n",
    "fences and one tag": f"---\n{PLAIN}Tags: 2024\n---\n",
    "fences and a boolean": f"---\n{PLAIN}Tags: yes\nCategory: no\n---\n",
    "fences and authors": f"---\n{PLAIN}Authors: Ann Lee, Bob Ray\nStatus: Hidden\n---\n",
    "fences and a second colon": ("---\nTitle: Ink: a story\nDate: 2010-12-03\nTags: a, b\n---\n"),
    "fences and a date": "---\nTitle: A title\nDate: 3 December 2010\nModified: 5 Dec 2010\n---\n",
    "a byte order mark": f"\ufeff{PLAIN}",
}


def describe(document: Document) -> dict[str, object]:
    """Return what is compared."""
    status = "draft" if document.draft else "hidden" if document.hidden else "published"
    return {
        "title": document.title,
        "date": document.published,
        "modified": document.updated,
        "slug": document.slug,
        "tags": list(document.tags),
        "category": document.category,
        "authors": split_authors(document.author),
        "status": status,
        "lang": document.lang or "en",
    }


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_head_means_what_it_means_to_pelican(tmp_path: Path, head: str) -> None:
    """Title, dates, slug, tags, category, authors, status and language are those of Pelican."""
    assert_same(tmp_path, "a-post.md", head)


@pytest.mark.parametrize("name", ["a-post.markdown", "a-post.mkd", "a-post.mdown"])
def test_suffixes_of_pelican(tmp_path: Path, name: str) -> None:
    """Each of them is Markdown, and none changes what a head says."""
    assert_same(tmp_path, name, f"{PLAIN}Tags: Ink\n")


def test_the_file_name_gives_date_and_slug(tmp_path: Path) -> None:
    """The date may be there alone."""
    assert_same(tmp_path, "2010-12-03-a-post.md", "Title: A title\n")


def assert_same(folder: Path, name: str, head: str) -> None:
    """Read one file both ways."""
    file = folder / name
    file.write_text(f"{head}\nWords of the text.\n", encoding="utf-8")
    settings = configure_settings(
        read_settings(override={"PATH": str(folder), "TIMEZONE": ZONE, "PLUGINS": []})
    )
    theirs = Readers(settings).read_file(str(folder), name, content_class=Article)
    document, findings = read_document(name, file.read_bytes(), RULES)

    assert document, findings
    assert [each for each in findings if each.severity == "error"] == []
    assert "Words of the text." in document.markdown
    assert "Words" in theirs.content
    date = theirs.date.astimezone(ZoneInfo("UTC"))
    assert describe(document) == {
        "title": theirs.title,
        "date": date,
        "modified": getattr(theirs, "modified", date),
        "slug": theirs.slug,
        "tags": [tag.name for tag in getattr(theirs, "tags", [])],
        "category": theirs.category.name,
        "authors": [author.name for author in getattr(theirs, "authors", [])],
        "status": theirs.status,
        "lang": theirs.lang,
    }


@pytest.mark.parametrize("said", AMBIGUOUS)
def test_an_ambiguous_date_is_reported(said: str) -> None:
    """It is read as Pelican reads it, and a warning says how, in the form that is not ambiguous."""
    _, findings = read_document("a.md", f"Title: A\nDate: {said}\n\nWords.\n".encode(), RULES)
    message = f"`date` is {said!r}, which is read as {write_moment(said)}; write it in that form"
    assert [(each.line, each.column, each.message) for each in findings] == [(2, 7, message)]


@pytest.mark.parametrize("said", DATES)
def test_the_one_form_of_a_date(said: str) -> None:
    """It is read as the same instant, and no date in it is ambiguous."""
    written = write_moment(said)
    assert write_moment(written) == written
    texts = (f"Title: A\nDate: {each}\n\nWords.\n" for each in (said, written))
    first, second = (read_document("a.md", text.encode(), RULES) for text in texts)
    assert first[1] == second[1] == []
    assert first[0]
    assert second[0]
    assert first[0].published == second[0].published


@pytest.mark.parametrize(
    ("date", "message"),
    [
        ("10:20", "is '10:20'; write it as 2026-03-01 or 2026-03-01T09:30:00Z"),
        ("2010", "is '2010'; write it as"),
        ("December 2010", "is 'December 2010'; write it as"),
        ("Friday", "is 'Friday'; write it as"),
        ("soon", "is 'soon'; write it as"),
        ("2010-02-30", "is '2010-02-30', which is not a date"),
        ("2010/13/01", "is '2010/13/01'; write it as"),
        ("1 " * 40_000, "; write it as"),
        ("2010-12-03 10:20 CET", "whose zone is not known, so it is read in the site's; write"),
    ],
)
def test_invalid_dates_are_reported(date: str, message: str) -> None:
    """A part of a day is no date, though Pelican completes it; an unknown zone is reported."""
    _, findings = read_document("a.md", f"Title: A\nDate: {date}\n\nWords.\n".encode(), RULES)
    assert [message in each.message for each in findings] == [True]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("Title: A\nTITLE: B\n", "2:1 `title` is given twice, which line 1 has"),
        ("Title: A\nSummary: B\ndescription: C\n", "3:1 `description` says the same as `summary`"),
        ("Title: A\nModified: 2011-01-01\nUpdated: 2011-01-01\n", "3:1 `updated` says the same"),
        ("Title: A\nAuthor: Ann\nAUTHORS: Ann, Bob\n", "3:1 `authors` says the same as `author`"),
        ("Title: A\nmood: good\nMood: bad\n", "3:1 `mood` is given twice, which line 2 has"),
        ("---\nTitle: A\ntitle: B\n---\n", "3:1 `title` is given twice, which line 2 has"),
    ],
)
def test_a_key_that_is_given_twice(head: str, message: str) -> None:
    """In any case or by a synonym it is an error that names both lines."""
    rules = RULES._replace(name_pattern="(?P<date>2010-12-03)")
    document, findings = read_document("2010-12-03.md", f"{head}\nWords.\n".encode(), rules)
    errors = [f"{e.line}:{e.column} {e.message}" for e in findings if e.severity == "error"]
    assert document is None
    assert [each[: len(message)] for each in errors] == [message]


def list_errors(empty_bench: Workbench) -> list[str]:
    """Return what would stop a build, each without its file."""
    _, findings = check_content(empty_bench.content, datetime(2026, 5, 1, tzinfo=UTC))
    return [each.message for each in findings if each.severity == "error"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("hello", "Hello"),
        ("Kr\u00e1k\u00f3w", normalize("NFD", "kr\u00e1k\u00f3w")),
        ("\u00dcber", "\u00fcber"),
    ],
)
def test_slugs_that_disks_cannot_tell_apart(
    empty_bench: Workbench, first: str, second: str
) -> None:
    """Both files are named, each with the address of the other."""
    empty_bench.write("posts/one.mkd", f"Title: One\nDate: 2026-03-01\nSlug: {first}\n\nWords.\n")
    empty_bench.write("posts/two.md", f"Title: Two\nDate: 2026-03-01\nSlug: {second}\n\nWords.\n")
    one, two = (f"/journal/{normalize('NFC', each)}/" for each in (first, second))
    message = "which some disks cannot tell from"
    assert list_errors(empty_bench) == [
        f"the slug gives the address {own}, {message} {its} of {file}; change one of them"
        for own, its, file in ((one, two, "posts/two.md"), (two, one, "posts/one.mkd"))
    ]


@pytest.mark.parametrize("slug", ["feed.xml", "404.html", "Tags", "index.md", "robots.txt"])
def test_a_page_is_no_file_of_the_site(empty_bench: Workbench, slug: str) -> None:
    """A folder cannot be where a file of the build is."""
    empty_bench.write("pages/a.md", f"Title: A\nSlug: {slug}\n\nWords.\n")
    assert len(list_errors(empty_bench)) == 1


def test_an_alias_in_another_case_is_no_second_file(empty_bench: Workbench) -> None:
    """The edge leads from it; on some disks its page would be that of the post."""
    empty_bench.post("hello", aliases="[Hello, older]")
    site = empty_bench.build() / "site"
    names = {path.name for path in (site / "journal").iterdir() if path.is_dir()}
    assert (names, b"/journal/Hello/" in (site.parent / "posts.json").read_bytes()) == (
        {"hello", "older"},
        True,
    )


@pytest.mark.parametrize("suffix", ["markdown", "mkd", "mdown"])
def test_other_suffixes_are_sources_everywhere(empty_bench: Workbench, suffix: str) -> None:
    """Files link to each other by them; builds, `list` and `share` know them."""
    empty_bench.post(
        "plain", text=f"[There](other.{suffix}#top), [draft](later.{suffix}).", status="draft"
    )
    empty_bench.write(f"posts/other.{suffix}", f"{PLAIN}Slug: other\n\n[Back](third.{suffix}).\n")
    empty_bench.write(
        f"posts/third.{suffix}", f"{PLAIN}Slug: third\n\n[Back](other.{suffix}?a#top).\n"
    )
    empty_bench.write(f"posts/later.{suffix}", f"{PLAIN}Slug: later\nStatus: draft\n\nWords.\n")
    made = run_build(empty_bench)
    assert (made.returncode, "broken link" in made.stdout) == (0, False), made.stdout
    site = empty_bench.output / "current" / "site"
    page = (site / "journal" / "other" / "index.html").read_text(encoding="utf-8")
    assert 'href="/journal/third/"' in page
    assert not list(site.rglob(f"*.{suffix}"))
    command = [sys.executable, "-m", "site_build"]
    listed = run(*command, "list", "drafts", "--content", empty_bench.content)
    assert f"later.{suffix}" in listed.stdout
    shared = run(
        *command, "share", "later", "--content", empty_bench.content, "--output", empty_bench.output
    )
    assert "A title is shared until" in shared.stdout, shared.stderr
