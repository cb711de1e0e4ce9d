"""A site of Pelican's is built as it is: its settings, its themes, its plugins, its posts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pelican_engineering_theme  # type: ignore[import-untyped]
import pytest
from pelican.settings import DEFAULT_CONFIG, read_settings  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser

from edge_api.schema.page_templates import FORMS, FRAMES, PAGE_VARIABLES, REFERENCE_VARIABLES
from site_build.build.builder import SiteBuild
from site_build.build.memory import BuildMemory
from site_build.build.targets import TemplateTarget
from site_build.content.head import read_pelican_head
from site_build.errors import BuildError
from site_build.pelican_plugin.plugin import Journal, make_request, quiet_pelican
from site_build.pelican_plugin.settings import IGNORED, REFUSED, load_settings
from tests.site_build.workbench import NOW, ROOT, SITE_URL, find, run

pytestmark = pytest.mark.size("test")

HERE = Path(__file__).parent
THEMES = {
    "simple": '"simple"',
    "notmyidea": '"notmyidea"',
    "engineering": repr(str(pelican_engineering_theme.get_theme_path())),
}
PLAIN = 'SITENAME = "Plain"\nAUTHOR = "Ann"\nPLUGINS = []\nSTATIC_PATHS = ["images", "extra"]\n'
OF_EDGE = ("/search", "/docs/", "/api/", "/contact/access/")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return a folder with the content of a site as users of Pelican write it."""
    shutil.copytree(HERE / "pelican_site", tmp_path / "content")
    return tmp_path


def build(
    journal: Path, settings: str, file: str = "pelicanconf.py"
) -> subprocess.CompletedProcess[str]:
    """Build the site in `journal` with settings of its own; `site` tells where it is then."""
    if settings:
        (journal / file).write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "site_build", "build", "--content", journal / "content"]
    where = ["--output", journal / "build", "--site-url", SITE_URL, "--now", NOW]
    return run(*command, *where, environment={"PELICAN_SETTINGS": str(journal / file)})


def site(journal: Path) -> Path:
    """Return the folder of the site that is served."""
    return journal / "build" / "current" / "site"


def read(journal: Path, path: str) -> LexborHTMLParser:
    """Return a page of the site."""
    return LexborHTMLParser((site(journal) / path).read_text(encoding="utf-8"))


def list_broken(folder: Path) -> list[tuple[str, str]]:
    """Return each page with an address in it that nothing answers at."""
    return sorted(
        (page.name, address)
        for page in folder.rglob("*.html")
        for address in _list_addresses(page)
        if not _answers(folder, page, address)
    )


def _list_addresses(page: Path) -> Iterator[str]:
    for node in LexborHTMLParser(page.read_text(encoding="utf-8")).css("[href], [src]"):
        yield str(node.attributes.get("href") or node.attributes.get("src") or "")


def _answers(folder: Path, page: Path, address: str) -> bool:
    own = f"{SITE_URL}/{page.relative_to(folder).as_posix().removesuffix('index.html')}"
    whole = urljoin(own, address)
    path = unquote(urlsplit(whole).path)
    if not whole.startswith(SITE_URL) or path.startswith(OF_EDGE):
        return True
    target = folder / path.lstrip("/")
    return any(each.is_file() for each in (target, target / "index.html", Path(f"{target}.html")))


def test_the_files_of_quickstart(journal: Path) -> None:
    """The files of `pelican-quickstart` build unchanged, and so do its settings for publishing."""
    answers = [str(journal), "Quick", "Ann", "en", "n", "y", "10", "Europe/Rome", "n"]
    subprocess.run(
        [Path(sys.executable).with_name("pelican-quickstart")],
        input="\n".join([*answers, ""]),
        text=True,
        check=True,
        capture_output=True,
    )
    (journal / "content" / "extra" / "notes.txt").rename(
        journal / "content" / "images" / "notes.txt"
    )
    post = journal / "content" / "first.md"
    post.write_text(post.read_text().replace("extra/notes", "images/notes"), encoding="utf-8")
    made = build(journal, (journal / "pelicanconf.py").read_text(encoding="utf-8"))
    assert made.returncode == 0, made.stderr
    assert list_broken(site(journal)) == []
    # The zone of the settings is that of the dates: 10:20 in Rome is 09:20.
    assert "2010-12-03T10:20:00+01:00" in (site(journal) / "my-first-review.html").read_text()

    made = build(journal, "", file="publishconf.py")
    assert made.returncode == 0, made.stderr
    assert "DELETE_OUTPUT_DIRECTORY has no effect here" in made.stderr
    feed = (site(journal) / "feeds" / "all.atom.xml").read_text(encoding="utf-8")
    assert feed.count("<entry>") == 3
    assert (site(journal) / "feeds" / "news.atom.xml").is_file()
    assert list_broken(site(journal)) == []


@pytest.mark.parametrize("theme", THEMES)
def test_themes_of_pelican_build(journal: Path, theme: str) -> None:
    """A theme made for Pelican is built whole, and lends its frame to the pages of the edge."""
    made = build(
        journal, f"{PLAIN}THEME = {THEMES[theme]}\nYEAR_ARCHIVE_SAVE_AS = '{{date:%Y}}.html'\n"
    )

    assert made.returncode == 0, made.stderr
    assert list_broken(site(journal)) == []
    page = read(journal, "my-first-review.html")
    assert "My first review" in find(page, "h1, h2").text() + find(page, "article").text()
    assert [each.attributes["src"] for each in page.css("article img")] == ["/images/cat.png"] * 2
    for path in ("index", "2010", "category/news", "author/conan-doyle", "tag/pelican", "404"):
        assert (site(journal) / f"{path}.html").is_file(), path
    shell = (journal / "build" / "current" / "templates" / "shell.html").read_text(encoding="utf-8")
    assert "<!-- content -->" in shell
    assert 'href="/theme/style' not in shell


def test_settings_that_change_twice_within_a_second(journal: Path) -> None:
    """Each build reads what the file says, also where its size and second are those of before."""
    for name in ("First", "Other"):
        file = journal / "pelicanconf.py"
        file.write_text(f'{PLAIN}THEME = "simple"\nSITENAME = "{name}"\n', encoding="utf-8")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        build(journal, "")
        assert name in find(read(journal, "index.html"), "title").text()


def test_the_sitemap_of_a_plugin(journal: Path) -> None:
    """Its file replaces the build's own, which is reported; as text it is beside it."""
    settings = f'{PLAIN}THEME = "simple"\nPLUGINS = ["sitemap"]\n'
    made = build(journal, f'{settings}SITEMAP = {{"format": "xml"}}\n')
    text = (site(journal) / "sitemap.xml").read_text(encoding="utf-8")
    assert "<changefreq>" in text
    assert f"<loc>{SITE_URL}/my-first-review.html</loc>" in text
    assert "sitemap.xml:1:1  warning  a plugin wrote this file" in made.stdout

    made = build(journal, f'{settings}SITEMAP = {{"format": "txt"}}\n')
    assert f"{SITE_URL}/news/second.html" not in (site(journal) / "sitemap.txt").read_text()
    assert f"{SITE_URL}/second-post.html" in (site(journal) / "sitemap.txt").read_text()
    assert "<changefreq>" not in (site(journal) / "sitemap.xml").read_text(encoding="utf-8")
    assert "a plugin wrote" not in made.stdout


@pytest.mark.size("ci")
def test_neighbours_in_a_category(journal: Path) -> None:
    """Values that a plugin adds to posts reach their pages, also if a neighbour alone changed."""
    override = journal / "own"
    override.mkdir()
    (override / "article.html").write_text(
        "{{ article.title }}: {{ article.next_article_in_category.title }}", encoding="utf-8"
    )
    more = f'THEME_TEMPLATES_OVERRIDES = ["{override}"]\nPLUGINS = ["neighbors"]\n'
    settings = f'{PLAIN}THEME = "simple"\n{more}'
    assert build(journal, settings).returncode == 0
    assert (site(journal) / "second-post.html").read_text() == "Second post: Third post"

    third = journal / "content" / "news" / "third.md"
    third.write_text(third.read_text().replace("Third post", "Third one"), encoding="utf-8")
    assert build(journal, settings).returncode == 0
    assert (site(journal) / "second-post.html").read_text() == "Second post: Third one"


@pytest.mark.size("ci")
def test_a_theme_whose_base_has_no_place_for_content(journal: Path) -> None:
    """Pages of this project, such as 404, are in its own frame then."""
    (journal / "bare" / "templates").mkdir(parents=True)
    (journal / "bare" / "static").mkdir()
    (journal / "bare" / "templates" / "base.html").write_text(
        "<title>Bare</title>", encoding="utf-8"
    )
    made = build(journal, f'{PLAIN}THEME = "{journal / "bare"}"\n')
    assert made.returncode == 0, made.stderr
    assert "Page not found" in find(read(journal, "404.html"), "h1").text()
    assert (site(journal) / "index.html").read_text(encoding="utf-8") == "<title>Bare</title>"


@pytest.mark.size("ci")
def test_posts_with_several_categories(journal: Path) -> None:
    """A post is listed in each of its categories and in those above them."""
    settings = f'{PLAIN}THEME = "notmyidea"\nPLUGINS = ["more_categories"]\n'
    made = build(journal, settings)
    assert made.returncode == 0, made.stderr
    for path in ("code", "code/python", "writing"):
        assert "My first review" in (site(journal) / f"category/{path}.html").read_text()
    assert "My first review</a></h" not in (site(journal) / "category/news.html").read_text()
    assert list_broken(site(journal)) == []


def test_aliases_of_a_plugin(journal: Path) -> None:
    """A key that the settings declare reaches its plugin; an undeclared one is reported."""
    settings = f'{PLAIN}THEME = "simple"\nPLUGINS = ["pelican_alias"]\n'
    made = build(journal, settings)
    assert "`alias` is not a front matter key" in made.stdout
    assert not (site(journal) / "old").exists()

    made = build(journal, f'{settings}FRONT_MATTER_EXTRA = ["alias"]\n')
    assert "no key" not in made.stdout
    for path in ("old/first.html", "older/index.html"):
        assert "0;url=/my-first-review.html" in (site(journal) / path).read_text()


@pytest.mark.size("ci")
def test_a_plugin_that_changes_what_was_written(journal: Path) -> None:
    """It gets a copy of each page: what is served meanwhile stays as it is."""
    (journal / "marking.py").write_text(
        "from pelican.plugins import signals\n"
        "def mark(path, context):\n"
        "    with open(path, 'a') as page: page.write('<!-- marked -->')\n"
        "def register():\n    signals.content_written.connect(mark)\n",
        encoding="utf-8",
    )
    settings = f'{PLAIN}THEME = "simple"\nPLUGIN_PATHS = ["{journal}"]\n'
    assert build(journal, settings).returncode == 0
    before = site(journal).resolve()
    plain = (before / "index.html").read_bytes()
    assert build(journal, f'{settings}PLUGINS = ["marking"]\n').returncode == 0
    assert (site(journal) / "index.html").read_bytes() == plain + b"<!-- marked -->"
    assert not before.exists() or (before / "index.html").read_bytes() == plain


def test_a_plugin_that_is_not_there(journal: Path) -> None:
    """Its name is reported once, and the site is built without what it makes."""
    made = build(journal, f'{PLAIN}PLUGINS = ["no_such_plugin"]\n')
    assert made.returncode == 0, made.stderr
    sentence = (
        "warning: PLUGINS names no_such_plugin, which cannot be loaded: what it makes is missing"
    )
    assert made.stderr.count(sentence) == 1
    assert (site(journal) / "my-first-review.html").is_file()


def test_addresses_come_from_the_settings(journal: Path) -> None:
    """Posts, pages, tags and lists are where the settings put them, and links lead there."""
    settings = f"""{PLAIN}
THEME = "{ROOT / "theme"}"
JINJA_ENVIRONMENT = {{"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}}
ARTICLE_URL = "{{date:%Y}}/{{slug}}"
ARTICLE_SAVE_AS = "{{date:%Y}}/{{slug}}.html"
PAGE_URL, PAGE_SAVE_AS = "{{slug}}/", "{{slug}}/index.html"
TAG_URL, TAG_SAVE_AS = "on/{{slug}}/", "on/{{slug}}/index.html"
DIRECT_TEMPLATES = ["index", "archives"]
ARCHIVES_URL, ARCHIVES_SAVE_AS = "all/", "all/index.html"
CATEGORY_SAVE_AS = AUTHOR_SAVE_AS = ""
MENUITEMS = [("Elsewhere", "https://example.org/")]
LINKS = [("A friend", "https://example.net/")]
DEFAULT_PAGINATION = 2
PAGINATED_TEMPLATES = {{"tag": None}}
"""
    made = build(journal, settings)
    assert made.returncode == 0, made.stderr
    assert list_broken(site(journal)) == [
        ("my-first-review.html", "{author}Ann"),
        ("my-first-review.html", "{author}Conan Doyle"),
    ]
    assert "broken link: no page at `{author}Ann`" in made.stdout
    address = f"{SITE_URL}/2010/my-first-review"
    assert (
        find(read(journal, "2010/my-first-review.html"), "link[rel=canonical]").attributes["href"]
        == address
    )
    for path in ("sitemap.xml", "feed.xml", "feed.json", "on/pelican/feed.xml"):
        assert address in (site(journal) / path).read_text(encoding="utf-8"), path
    twin = "2010/my-first-review.md"
    assert f"{SITE_URL}/{twin}" in (site(journal) / "llms.txt").read_text(encoding="utf-8")
    assert (site(journal) / twin).is_file()
    index = (journal / "build" / "current" / "posts.json").read_text(encoding="utf-8")
    assert f'"url":"{address}"' in index
    menu = [node.text() for node in read(journal, "index.html").css("header nav a")]
    assert menu == ["Archive", "About", "Elsewhere", "Search"]
    assert "A friend" in find(read(journal, "index.html"), "footer").text()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"ARTICLE_URL": "posts/"}, "ARTICLE_URL is 'posts/'; write {slug} in it once"),
        ({"ARTICLE_URL": "{slug}/{name}/"}, "ARTICLE_URL cannot be filled in ('name'); it may"),
        ({"TAG_SAVE_AS": "t/{slug}.htm"}, "TAG_SAVE_AS is 't/{slug}.htm', and TAG_URL needs 'tags"),
        ({"SITEURL": ""}, "SITEURL is ''; write the origin of the site"),
        ({"TIMEZONE": "Europe/Nowhere"}, "TIMEZONE is 'Europe/Nowhere', which is no time zone"),
    ],
)
def test_settings_that_cannot_be_used(said: Mapping[str, str], sentence: str) -> None:
    """A form of addresses that tells nothing apart is refused in a sentence."""
    with pytest.raises(BuildError) as refused:
        make_identity(said)
    assert sentence in str(refused.value)


def make_identity(said: Mapping[str, object]) -> object:
    """Return the messages of a build about the project's settings with these."""
    override = {"PATH": "content", "SITEURL": SITE_URL, **said}
    with quiet_pelican():
        return Journal({**load_settings(Path("content")), **override}).describe()


@pytest.mark.parametrize("name", REFUSED)
def test_settings_without_effect_are_refused(name: str) -> None:
    """Settings that would change content or addresses, and cannot, end the build at once."""
    default = DEFAULT_CONFIG.get(name)
    other = (not default) if isinstance(default, bool) else [("a", "b")]
    with pytest.raises(BuildError, match=rf"^pelicanconf\.py: {name} has no effect here: .+; take"):
        make_identity({name: other})


def test_other_settings_without_effect_are_reported(capfd: pytest.CaptureFixture[str]) -> None:
    """They are reported once, however often the settings are read."""
    for _ in range(2):
        make_identity({name: ["other"] for name in IGNORED})
    lines = [line for line in capfd.readouterr().err.splitlines() if "has no effect" in line]
    assert sorted(lines) == sorted(
        f"warning: pelicanconf.py: {name} has no effect here" for name in IGNORED
    )


def test_links_name_sources_as_in_pelican(journal: Path) -> None:
    """`{filename}`, `{static}`, `{attach}`, `{tag}` and others lead where they do in Pelican."""
    moved = 'EXTRA_PATH_METADATA = {"extra/notes.txt": {"path": "notes.txt"}}'
    made = build(journal, PLAIN + moved)
    assert "broken link" not in made.stdout
    links = [
        each.attributes["href"]
        for each in read(journal, "my-first-review.html").css("main a, article a")
    ]
    named = ("/second-post.html", "/notes.txt", "/tag/pelican.html", "/author/ann.html", "/")
    assert set(named) <= set(links)
    assert (site(journal) / "notes.txt").read_text(encoding="utf-8") == "Notes.\n"
    assert not (site(journal) / "extra" / "notes.txt").exists()


def test_two_outputs_of_one_path(journal: Path) -> None:
    """Both sources are named; a file of the content folder goes before one that the build makes."""
    (journal / "content" / "extra" / "robots.txt").write_text("User-agent: x\n", encoding="utf-8")
    more = 'EXTRA_PATH_METADATA = {"extra/robots.txt": {"path": "robots.txt"}}\n'
    assert build(journal, PLAIN + more).returncode == 0
    assert (site(journal) / "robots.txt").read_text(encoding="utf-8") == "User-agent: x\n"

    more = 'EXTRA_PATH_METADATA = {"extra/notes.txt": {"path": "second-post.html"}}\n'
    made = build(journal, PLAIN + more)
    assert made.returncode
    sentence = "Two outputs have the path second-post.html (extra/notes.txt, news/second.md)"
    assert sentence in made.stderr


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ('FEED_ALL_ATOM = "../../out.xml"', "../../out.xml is no path within the site"),
        (
            'EXTRA_PATH_METADATA = {"extra/notes.txt": {"path": "../../out.txt"}}',
            "../../out.txt is no path within the site",
        ),
        ('ARTICLE_URL = "api/{slug}/"', "ARTICLE_URL is 'api/{slug}/', where the edge answers"),
        (
            'FRONT_MATTER_EXTRA = ["status"]',
            "FRONT_MATTER_EXTRA has 'status', a name that is",
        ),
        ('FRONT_MATTER_EXTRA = ["content"]', "FRONT_MATTER_EXTRA has 'content', a name that is"),
        (
            'EXTRA_PATH_METADATA = {"news/third.md": {"status": "draft"}}',
            "EXTRA_PATH_METADATA says more of 'news/third.md' than its `path`",
        ),
        ('FILENAME_METADATA = "["', "FILENAME_METADATA is no regular expression"),
        ("X = (", "pelicanconf.py:5: '(' was never closed"),
        ("import nowhere", "pelicanconf.py: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_settings_that_would_do_harm(journal: Path, more: str, sentence: str) -> None:
    """Nothing is written outside the site, no draft is published, and no trace is shown."""
    made = build(journal, f"{PLAIN}{more}\n")
    assert made.returncode
    assert sentence in made.stderr
    assert "Traceback" not in made.stderr
    assert not list(journal.rglob("out.*"))


def test_a_slug_is_of_one_post(journal: Path) -> None:
    """Two posts at two addresses are one to the API and to feeds: both files are named."""
    for year in (2019, 2020):
        text = f"Title: Hello\nDate: {year}-01-01\nSlug: hello\n\nWords.\n"
        (journal / "content" / f"hello-{year}.md").write_text(text, encoding="utf-8")
    address = 'ARTICLE_URL = "{date:%Y}/{slug}/"\nARTICLE_SAVE_AS = "{date:%Y}/{slug}/index.html"\n'
    made = build(journal, PLAIN + address)
    assert made.returncode
    assert (made.stdout + made.stderr).count("another post has this slug") == 2


@pytest.mark.size("ci")
def test_names_in_addresses_have_defaults(journal: Path) -> None:
    """A post without an author or a language has those of the site in its address."""
    forms = ("{lang}/{author}/{slug}/", "{lang}/{author}/{slug}/index.html")
    assert build(journal, f"{PLAIN}ARTICLE_URL, ARTICLE_SAVE_AS = {forms}\n").returncode == 0
    assert (site(journal) / "en" / "ann" / "third-post" / "index.html").is_file()


@pytest.mark.parametrize(
    ("head", "entries"),
    [
        ("Title: One\n    two\n", {"title": "One two"}),
        ("Title:\n    Below\n", {"title": "Below"}),
        ("Tags: a, b,\n    c\n", {"tags": ["a", "b", "c"]}),
        ("Tags: a; b, c\n", {"tags": ["a", "b, c"]}),
        ("Authors: Ann Lee, Bob\n", {"authors": "Ann Lee; Bob"}),
        ("Author: Doe, Jane\n", {"author": "Doe, Jane"}),
        ("Date: March 5, 2012\n", {"date": "March 5, 2012"}),
        ("Tags: x\n" + "    it's\n" * 200, {"tags": ["x" + " it's" * 200]}),
    ],
)
def test_heads_of_pelican(head: str, entries: dict[str, object]) -> None:
    """Values go on in indented lines, and lists are parted."""
    found = read_pelican_head(f"{head}\nWords: of the text.\n")
    assert found
    assert {entry.key: entry.value for entry in found[0]} == entries
    assert found[1] == len(head)


class Recording(SiteBuild):
    """A build that remembers its pages."""

    pages: list[TemplateTarget]

    def make_pages(self) -> Iterator[TemplateTarget]:
        """Make them as ever."""
        self.pages = list(super().make_pages())
        return iter(self.pages)


def test_the_tables_of_the_guide_to_themes(journal: Path) -> None:
    """docs/themes.md says which templates there are, what each is given, and what settings do."""
    override = {
        "PATH": str(journal / "content"),
        "OUTPUT_PATH": str(journal / "site"),
        "CACHE_PATH": str(journal / "cache"),
        "SITEURL": SITE_URL,
        "BUILD_JOBS": 1,
        "PAGINATED_TEMPLATES": dict.fromkeys(["index", "journal", "tag", "category", "author"]),
        "DIRECT_TEMPLATES": ["index", "journal", "tags", "categories", "authors", "archives"],
        "YEAR_ARCHIVE_SAVE_AS": "{date:%Y}.html",
        "PAGE_TEMPLATES": {"contact": "contact"},
    }
    (journal / "content" / "pages" / "contact.md").write_text("Title: Contact\n\nWrite.\n")
    with quiet_pelican():
        (journal / "conf.py").write_text(PLAIN, encoding="utf-8")
        writer = Journal(read_settings(str(journal / "conf.py"), override))
        request, (identity, style) = make_request(writer.settings), writer.describe()
        known = BuildMemory().read(request, style.dialect)
        made = Recording(request, identity, style, known)
        request.state.mkdir(parents=True, exist_ok=True)
        writer.execute(made)
    guide = (ROOT / "docs" / "themes.md").read_text(encoding="utf-8")
    for line in (*_tell_pages(made.pages), *_tell_edge(), *_tell_settings()):
        assert line in guide.splitlines(), f"docs/themes.md lacks the line\n{line}"


def _tell_pages(pages: list[TemplateTarget]) -> Iterator[str]:
    given: dict[str, set[str]] = {}
    for page in pages:
        given.setdefault(str(page.template.name), set()).update(page.own)
    for name, values in sorted(given.items()):
        plain = sorted(value for value in values if "_page" not in value or value == "page_name")
        leaves = {"articles_page"} & values and ", and the pagination values"
        yield f"| `{name}` | {_quote(plain)}{leaves or ''} |"
    shared = sorted(name for name in pages[0].shared if not name.isupper())
    yield f"| every template | {_quote(shared)} |"


def _tell_edge() -> Iterator[str]:
    for form in FORMS:
        yield f"| `{form.template}` | `values`, `errors` |"
    for name, values in PAGE_VARIABLES.items():
        yield f"| `{name}.html` | {_quote(values)} |"
    for file, values in REFERENCE_VARIABLES.items():
        yield f"| `{file}` | {_quote(values)} |"
    for frame in FRAMES:
        yield f"| `{frame.file}` | what every template is given |"


def _tell_settings() -> Iterator[str]:
    for name, why in REFUSED.items():
        yield f"| `{name}` | {why} |"
    yield f"{_quote(sorted(IGNORED))}."
    yield f"{_quote(sorted(DEFAULT_CONFIG.keys() - REFUSED.keys() - IGNORED))}."


def _quote(names: object) -> str:
    return ", ".join(f"`{name}`" for name in names)  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.stdout.write("\n".join(_tell_settings()) + os.linesep)
