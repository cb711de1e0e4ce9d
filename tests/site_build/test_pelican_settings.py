"""Pelican's settings that switch something off, and its themes in a journal of `init`."""

import sys
from pathlib import Path

import pytest

from tests.site_build.test_pelican import PLAIN, build, list_broken, read, site
from tests.site_build.workbench import NOW, SITE_URL, run

pytestmark = pytest.mark.size("test")

OFF = """
TAG_URL = TAG_SAVE_AS = TAGS_SAVE_AS = ""
AUTHOR_URL = AUTHOR_SAVE_AS = AUTHORS_SAVE_AS = ""
CATEGORY_URL = CATEGORY_SAVE_AS = CATEGORIES_SAVE_AS = ""
ARCHIVES_SAVE_AS = YEAR_ARCHIVE_SAVE_AS = ""
DRAFT_URL = DRAFT_SAVE_AS = DRAFT_PAGE_SAVE_AS = ARTICLE_LANG_SAVE_AS = PAGE_LANG_URL = ""
ARTICLE_TRANSLATION_ID = PAGE_TRANSLATION_ID = ""
FEED_ALL_ATOM = CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = AUTHOR_FEED_ATOM = None
AUTHOR_FEED_RSS = None
"""
A = "journal/a/index.html"
TAGGED = "Title: A\nDate: 2020-01-01\nTags: red, blue\nAuthor: Bob\nCategory: Paper\n\nWords.\n"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return a folder with one post and one page."""
    (tmp_path / "content" / "pages").mkdir(parents=True)
    (tmp_path / "content" / "a.mkd").write_text(TAGGED, encoding="utf-8")
    (tmp_path / "content" / "pages" / "about.md").write_text("Title: About\n\nUs.\n")
    return tmp_path


@pytest.mark.parametrize("theme", ["simple", "notmyidea", ""])
def test_disabled_pages_are_not_made(journal: Path, theme: str) -> None:
    """No page of tags, authors, categories or the archive is there, and nothing links to one."""
    chosen = f'THEME = "{theme}"\n' if theme else "from site_build.default_settings import *\n"
    made = build(journal, f"{chosen}{PLAIN}{OFF}")

    assert made.returncode == 0, made.stderr
    assert "has no effect" not in made.stderr
    assert list_broken(site(journal)) == []
    found = {path.relative_to(site(journal)).as_posix() for path in site(journal).rglob("*.html")}
    words = ("tag", "author", "categor", "archive", "feeds")
    assert [path for path in found if any(word in path for word in words)] == []
    assert "red" in read(journal, next(path for path in found if path in {"a.html", A})).text()
    assert "tag" not in (site(journal) / "sitemap.xml").read_text(encoding="utf-8")
    assert not list(site(journal).rglob("red/*"))


def test_pages_that_cannot_be_disabled(journal: Path) -> None:
    """Posts, pages and the first page cannot be off: a sentence says once where they are."""
    off = 'ARTICLE_URL = ARTICLE_SAVE_AS = PAGE_SAVE_AS = INDEX_SAVE_AS = ""\n'
    made = build(journal, f'THEME = "simple"\n{PLAIN}{off}')

    assert made.returncode == 0, made.stderr
    for name, place in (("ARTICLE", "journal/{slug}/"), ("PAGE", "{slug}/"), ("INDEX", "")):
        sentence = f"pelicanconf.py: {name}_SAVE_AS cannot be empty: it stands at /{place}"
        assert made.stderr.count(f"{sentence}\n") == 1
    for path in (A, "about/index.html", "index.html"):
        assert (site(journal) / path).is_file(), path


@pytest.mark.parametrize("theme", ["simple", "notmyidea"])
def test_themes_of_pelican_in_a_journal_of_init(tmp_path: Path, theme: str) -> None:
    """They build by Pelican's command and by ours, in leaves, and link nowhere wrong."""
    init = "import sys; from site_build.__main__ import fore_edge; sys.exit(fore_edge())"
    made = run(sys.executable, "-c", init, "init", "mine", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    mine = tmp_path / "mine"
    for number in range(1, 26):
        text = f"Title: N {number}\nDate: 2011-01-{number}\nTags: many\nCategory: Ink\n\nWords.\n"
        (mine / "content" / "posts" / f"n-{number}.mkd").write_text(text, encoding="utf-8")
    hidden = TAGGED.replace("red", "unseen").replace("Bob", "Ghost").replace("Paper", "Cellar")
    (mine / "content" / "posts" / "hidden.md").write_text(f"Status: hidden\n{hidden}")
    pelican = [Path(sys.executable).with_name("pelican"), "content", "-s", "pelicanconf.py"]
    done = run(*pelican, "-t", theme, "-o", "out", cwd=mine, environment={"SITE_URL": SITE_URL})
    assert done.returncode == 0, done.stderr
    assert list_broken(mine / "out") == []

    settings = (mine / "pelicanconf.py").read_text(encoding="utf-8")
    (mine / "other.py").write_text(f'{settings}\nTHEME = "{theme}"\n', encoding="utf-8")
    command = [sys.executable, "-m", "site_build", "build", "--settings", "other.py"]
    done = run(*command, "--site-url", SITE_URL, "--now", NOW, cwd=mine)
    assert done.returncode == 0, done.stderr
    made_site = mine / "build" / "current" / "site"
    assert list_broken(made_site) == []
    for path in (
        "page/2",
        "categories/ink",
        "categories/ink/page/2",
        "tags/many/page/2",
        "journal",
    ):
        assert (made_site / path / "index.html").is_file(), path
    assert "Words" in (made_site / A).read_text(encoding="utf-8")


def test_content_and_settings_are_named(journal: Path) -> None:
    """Without an option and CONTENT_DIR, PATH of the settings counts, and else it is `content`."""
    (journal / "content").rename(journal / "texts")
    settings = f'PATH = "texts"\nTHEME = "simple"\n{PLAIN}'
    (journal / "here.py").write_text(settings, encoding="utf-8")
    (journal / "pelicanconf.py").write_text("this is no Python\n", encoding="utf-8")
    command = [sys.executable, "-m", "site_build"]
    for words in (["check"], ["build"], ["list", "drafts"], ["new", "One more"]):
        done = run(*command, *words, "--settings", "here.py", cwd=journal)
        assert done.returncode == 0, done.stderr + done.stdout
    assert (journal / "build" / "current" / "site" / "a.html").is_file()
    assert (journal / "texts" / "posts" / "one-more.md").is_file()

    done = run(*command, "check", "--settings", "here.py", "--content", "none", cwd=journal)
    assert (done.returncode, "there is no folder 'none'; make it" in done.stderr) == (2, True)
    done = run(*command, "check", "--settings", "there.py", "--content", "texts", cwd=journal)
    assert (done.returncode, "there is no settings file" in done.stderr) == (2, True)
    done = run(*command, "check", cwd=journal)
    assert (done.returncode, "there is no folder 'content'; make it" in done.stderr) == (2, True)
