"""Sites of Pelican, as their owners have them."""

import json
import os
from pathlib import Path

import pytest

from site_build.importers.imported import Imported, Text, UnreadableJournal
from site_build.importers.pelican import read_pelican
from tests.shared_material import SHARED, find_sites

SETTINGS = "SITENAME = 'Notes'\nPATH = 'content'\nTIMEZONE = 'UTC'\n"


def make(root: Path, settings: str = "", **texts: str) -> Path:
    """Write a site: settings, and texts by their paths with `__` for a slash."""
    for name, text in {"pelicanconf.py": SETTINGS + settings, **texts}.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def post(more: str = "", body: str = "Words.", title: str = "A Post") -> str:
    """Return a post as stock Pelican reads it."""
    return f"Title: {title}\nDate: 2024-03-01 10:00\n{more}\n{body}\n"


def only(imported: Imported) -> Text:
    """Return the only text."""
    (text,) = imported.texts
    return text


def read(root: Path, settings: str = "", **texts: str) -> Imported:
    """Write a site and read it."""
    return read_pelican(make(root, settings, **texts))


@pytest.mark.size("test")
@pytest.mark.parametrize("name", find_sites("pelican-"))
def test_real_sites(name: str) -> None:
    """All addresses of real sites are met, and no syntax of Pelican is left in a link."""
    folder = SHARED / "sites" / name
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    imported = read_pelican(folder / "source")
    public = [text for text in imported.texts if text.status == "published"]
    missing = set(expected["urls"]) - {text.address for text in public}

    assert missing == set()
    assert len(public) == expected["posts"] + expected["pages"]
    assert not [each for each in imported.findings if each.kind == "left out"]
    assert not [text.source for text in public if "]({" in text.body]
    assert {text.address for text in imported.texts if text.status == "hidden"} == set(
        expected.get("hidden", ())
    )


def test_a_post_and_its_head(tmp_path: Path) -> None:
    """The head is that of the text, whatever the case of its keys."""
    more = "TAGS: one, Two\ncategory: Life\nauthors: Ann; Bob\nsummary: Short *one*\nSlug: own\n"
    more += "modified: 2024-04-01\nseries: Days\ncover: images/a.png\nstatus: hidden\n"
    text = only(read(tmp_path, **{"content/a.md": post(more)}))

    assert (text.title, text.address, text.slug) == ("A Post", "/own.html", "own")
    assert (text.tags, text.category, text.author) == (["one", "Two", "Life"], "Life", "Ann")
    assert (text.description, text.series, text.image) == ("Short one", "Days", "/images/a.png")
    assert (text.status, text.kind, text.first_line) == ("hidden", "post", 13)
    assert text.date
    assert text.date.isoformat() == "2024-03-01T10:00:00+00:00"
    assert text.updated
    assert text.body.strip() == "Words."


def test_yaml_heads(tmp_path: Path) -> None:
    """A head between lines of dashes is YAML; a list of tags is one, a number is text."""
    head = "---\ntitle: A: B\ndate: 2024-01-02\ntags:\n  - x\n  - 2024\nslug: 007\n---\n\nWords.\n"
    text = only(read(tmp_path, **{"content/a.mkd": head}))

    assert (text.title, text.tags, text.address) == ("A: B", ["x", "2024"], "/007.html")
    assert text.first_line == 9


def test_settings_are_followed_into_other_files(tmp_path: Path) -> None:
    """Settings in a folder of their own, with types, imports, joins and sums, are read."""
    files = {
        "conf/base.py": "import os\nfrom .names import *\nSITENAME: str = NAME + '!'\n"
        "PATH = os.path.join('..', 'text')\nBLOG = 'blog'\nARTICLE_URL = f'{BLOG}/{{slug}}/'\n"
        "ARTICLE_SAVE_AS = ARTICLE_URL + 'index.html'\nHOSTS = [each for each in ()]\n",
        "conf/names.py": "from .base import *\nNAME = 'Mine'\n",
        "conf/publish.py": "from .base import *\nSITEURL = 'https://ann.example/'\n",
        "text/one.md": post(),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    imported = read_pelican(tmp_path)

    assert (imported.title, imported.origin) == ("Mine!", "https://ann.example")
    assert only(imported).address == "/blog/a-post/"
    assert [(each.source, each.line) for each in imported.findings if "HOSTS" in each.what] == [
        ("conf/base.py", 8)
    ]


def test_settings_run_only_with_trust(tmp_path: Path) -> None:
    """A program is read; its owner can have it run, but not root for another user."""
    root = make(
        tmp_path,
        "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
        "SITENAME = ''.join(['M', 'e'])\n",
        **{"content/a.md": post()},
    )

    assert read_pelican(root).title == "A Pelican Blog"
    assert not (root / "ran").exists()
    assert read_pelican(root, trust=True).title == "Me"
    assert (root / "ran").exists()
    if os.geteuid() == 0:
        os.chown(root / "pelicanconf.py", 12345, 12345)
        with pytest.raises(UnreadableJournal, match="not as root"):
            read_pelican(root, trust=True)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [("print 'two'\n", r"pelicanconf\.py:4: "), ("(" * 3000, r"pelicanconf\.py:\d+: ")],
)
def test_settings_that_are_no_python(tmp_path: Path, settings: str, sentence: str) -> None:
    """A file that cannot be parsed is refused with the line."""
    with pytest.raises(UnreadableJournal, match=sentence):
        read(tmp_path, settings)


def test_a_folder_without_settings(tmp_path: Path) -> None:
    """A folder that is no site is refused."""
    (tmp_path / "setup.py").write_text("NAME = 'x'\n", encoding="utf-8")
    with pytest.raises(UnreadableJournal, match="has no settings of Pelican"):
        read_pelican(tmp_path)


def test_hostile_settings(tmp_path: Path) -> None:
    """Values that grow without end and expressions that take years are named, not followed."""
    lists = "A = ['x']\n" + "A = [A, A, A, A, A, A, A, A]\n" * 30
    slow = "FILENAME_METADATA = '((a+)+)+$'\nARTICLE_URL = '{slug:>9999999999}'\n"
    imported = read(tmp_path, lists + slow, **{f"content/{'a' * 60}b.md": post()})
    named = " ".join(each.what for each in imported.findings)

    assert "A is computed" in named
    assert "FILENAME_METADATA cannot be followed" in named
    assert "ARTICLE_URL cannot be followed" in named
    assert only(imported).address == "/a-post.html"


def test_settings_that_stay(tmp_path: Path) -> None:
    """Plain settings of a theme stay; those without effect here are named with the reason."""
    imported = read(
        tmp_path,
        "LINKS = (('A', 'https://a.example'),)\nTHEME = 'x'\nPLUGINS = ['sitemap']\n"
        "MENUITEMS = (('Talks', '/talks/'),)\nDEFAULT_PAGINATION = 5\nTYPOGRIFY = True\n"
        "GITHUB_URL = 'https://github.com/ann'\n",
    )

    assert imported.settings["LINKS"] == (("A", "https://a.example"),)
    assert imported.settings["DEFAULT_PAGINATION"] == 5
    assert imported.settings["GITHUB_URL"] == "https://github.com/ann"
    assert imported.settings["TAG_URL"] == "tag/{slug}.html"
    assert not {"THEME", "PLUGINS", "TYPOGRIFY", "SITENAME", "PATH"} & imported.settings.keys()
    assert imported.menu == [("Talks", "/talks/")]
    named = " ".join(each.what for each in imported.findings)
    assert "PLUGINS is not taken over: plugins are not installed" in named
    assert "TYPOGRIFY is not taken over" in named


def test_addresses_of_all_kinds(tmp_path: Path) -> None:
    """Dates, categories, translations, names of files and the head itself make addresses."""
    imported = read(
        tmp_path,
        "ARTICLE_URL = '{date:%Y}/{category}/{slug}/'\n"
        "ARTICLE_SAVE_AS = '{date:%Y}/{category}/{slug}/index.html'\n"
        "FILENAME_METADATA = r'(?P<date>\\d{4}-\\d{2}-\\d{2})-(?P<slug>.*)'\n"
        "PATH_METADATA = r'pages/(?P<full>.+)\\.md'\nPAGE_URL = '{full}/'\n"
        "PAGE_SAVE_AS = '{full}/index.html'\nARTICLE_PATHS = ['blog']\n",
        **{
            "content/blog/My Life/2020-01-02-one.md": "Title: One\n\nx\n",
            "content/blog/2021-01-02-two.md": "Title: Two\nLang: fr\n\nx\n",
            "content/blog/2022-01-02-three.md": "Title: T\nurl: t/\nsave_as: t/index.html\n\nx\n",
            "content/blog/2022-01-02-four.md": "Title: F\nurl: four\nsave_as: four.html\n\nx\n",
            "content/pages/a/b.md": "Title: B\n\nx\n",
            "content/elsewhere.md": post(),
        },
    )
    addresses = {text.source.removeprefix("content/"): text.address for text in imported.texts}

    assert addresses == {
        "blog/My Life/2020-01-02-one.md": "/2020/my-life/one/",
        "blog/2021-01-02-two.md": "/two-fr.html",
        "blog/2022-01-02-three.md": "/t/",
        "blog/2022-01-02-four.md": "/four",
        "pages/a/b.md": "/a/b/",
    }
    assert [text.aliases for text in imported.texts if text.title == "F"] == [["/four.html"]]


def test_sites_within_the_site(tmp_path: Path) -> None:
    """Texts of a language that has a site of its own are below it."""
    text = only(
        read(
            tmp_path,
            "PLUGINS = ['i18n_subsites']\nI18N_SUBSITES = {'fr': {'SITENAME': 'Carnet'}}\n",
            **{"content/a.md": post("Lang: fr\n")},
        )
    )

    assert (text.address, text.lang) == ("/fr/a-post.html", "fr")


def test_texts_that_pelican_left_out(tmp_path: Path) -> None:
    """A text without a date is a draft, and one that cannot be read is named."""
    imported = read(
        tmp_path,
        **{
            "content/README.md": "# Read me\n",
            "content/draft.md": post("Status: draft\n"),
            "content/skip.md": post("Status: skip\n"),
            "content/bad.md": "Title: Bad\nDate: never\n\nx\n",
            "content/book.ipynb": "{}",
        },
    )

    assert [(text.source, text.status, text.address) for text in imported.texts] == [
        ("content/README.md", "draft", ""),
        ("content/draft.md", "draft", ""),
        ("content/skip.md", "draft", ""),
    ]
    undated, finding, other = imported.findings
    assert (undated.source, undated.kind) == ("content/README.md", "changed")
    assert "no title or no date" in undated.what
    assert (other.source, other.kind) == ("content/book.ipynb", "left out")
    assert (finding.source, finding.kind) == ("content/bad.md", "left out")
    assert "'never' is not a valid date" in finding.what


@pytest.mark.parametrize(
    ("line", "status", "found"),
    [
        ("Status: hidden", "hidden", ""),
        ("Draft: yes", "draft", ""),
        ("Private: on", "draft", ""),
        ("Published: no", "draft", ""),
        ("Status: secret", "draft", "`status: secret` in its head has no meaning here, so"),
        ("Private:", "draft", "`private:` in its head has no meaning here, so"),
    ],
)
def test_words_about_readers(tmp_path: Path, line: str, status: str, found: str) -> None:
    """A text is kept from readers by any word that may mean so; what is not known is named."""
    imported = read(tmp_path, **{"content/a.md": post(f"{line}\nMoood: happy\n")})
    assert (only(imported).status, bool(only(imported).address)) == (status, status != "draft")
    assert [each.what[: len(found)] for each in imported.findings] == [found] * bool(found)
    assert imported.unread_keys == {"moood": 1}


def test_links_between_sources_are_converted(tmp_path: Path) -> None:
    """Links to texts and files name them; files come with their old paths; code is left alone."""
    body = (
        "[a]({filename}../b.md#part) [b](|filename|/b.md) ![p]({static}/pics/a b.png)\n"
        '<img src="{attach}near.png"> [t]({tag}Big Tag)\n\n[r]: {filename}/b.md "Title"\n\n'
        "`[x]({filename}/b.md)`\n\n```\n[x]({filename}/b.md)\n```\n[out]({static}../../../secret)\n"
    )
    (tmp_path.parent / "secret").write_text("x", encoding="utf-8")
    imported = read(
        tmp_path,
        "ARTICLE_URL = 'p/{slug}/'\nARTICLE_SAVE_AS = 'p/{slug}/index.html'\n",
        **{
            "content/sub/a.md": post(body=body),
            "content/b.md": post(title="B"),
            "content/pics/a b.png": "png",
            "content/sub/near.png": "png",
            "content/images/c.png": "png",
        },
    )
    text = next(text for text in imported.texts if text.source == "content/sub/a.md")

    assert text.body.strip().split("\n") == [
        (
            "[a](source:content/b.md#part) [b](source:content/b.md) "
            "![p](source:content/pics/a%20b.png)"
        ),
        '<img src="source:content/sub/near.png"> [t](/tag/big-tag.html)',
        "",
        '[r]: source:content/b.md "Title"',
        "",
        "`[x]({filename}/b.md)`",
        "",
        "```",
        "[x]({filename}/b.md)",
        "```",
        "[out](/secret)",
    ]
    assert imported.public_paths == {
        "content/images/c.png": "images/c.png",
        "content/pics/a b.png": "pics/a b.png",
        "content/sub/near.png": "p/a-post/near.png",
    }
    assert imported.files.keys() == set(imported.public_paths.values())


def test_syntax_of_plugins(tmp_path: Path) -> None:
    """Tags become pictures and links, or are named with their line; languages of code are kept."""
    body = (
        "{% img left /images/a.png 300 200 A cat %}\n{% youtube abc %}\n"
        "{% notebook work.ipynb %}\n\n    {% raw %}\n\n"
        "    :::python\n    a = 1\n\n    b = 2\n\nEnd.\n"
    )
    imported = read(tmp_path, **{"content/a.md": post(body=body)})

    assert only(imported).body.strip() == (
        "![A cat](/images/a.png)\n<https://www.youtube.com/watch?v=abc>\nwork.ipynb\n\n"
        # The build knows the first line of such code.
        "    {% raw %}\n\n    :::python\n    a = 1\n\n    b = 2\n\nEnd."
    )
    assert [(each.source, each.line) for each in imported.findings] == [
        ("content/a.md", 5),
        ("content/a.md", 6),
    ]


def test_html_with_a_head(tmp_path: Path) -> None:
    """A page of HTML that says its date is a post; another is a file where files are."""
    head = '<title>Page</title><meta name="date" content="2024-01-01">'
    head += '<meta name="keywords" content="x, y">'
    html = f"<html><head>{head}</head><body><p>Some <b>bold</b> words.</p></body></html>"
    imported = read(
        tmp_path, **{"content/a.html": html, "content/images/b.html": "<p>Not a post</p>"}
    )
    text = only(imported)

    assert (text.title, text.tags, text.body.strip()) == (
        "Page",
        ["x", "y"],
        "Some **bold** words.",
    )
    assert list(imported.files) == ["images/b.html"]


def test_lists_and_feeds(tmp_path: Path) -> None:
    """Pages of tags, categories and authors, their further leaves, periods and feeds lead on."""
    head = "Tags: Red Ink\nCategory: Life\nAuthor: Ann\n"
    texts = {f"content/{number}.md": post(head, title=f"P{number}") for number in range(3)}
    imported = read(
        tmp_path,
        "DEFAULT_PAGINATION = 2\nYEAR_ARCHIVE_SAVE_AS = '{date:%Y}/index.html'\n"
        "TAG_FEED_ATOM = 'feeds/tag/%s.xml'\nFEED_RSS = 'rss.xml'\n",
        **texts,
    )

    assert imported.redirects == {
        "/index2.html": "posts:",
        "/tags.html": "tags:",
        "/categories.html": "tags:",
        "/authors.html": "posts:",
        "/archives.html": "archive:",
        "/tag/red-ink.html": "tag:Red Ink",
        "/tag/red-ink2.html": "tag:Red Ink",
        "/category/life.html": "tag:Life",
        "/category/life2.html": "tag:Life",
        "/author/ann.html": "posts:",
        "/author/ann2.html": "posts:",
        "/2024/": "archive:",
        "/rss.xml": "feed:",
        "/feeds/all.atom.xml": "feed:",
        "/feeds/tag/red-ink.xml": "feed:Red Ink",
        "/feeds/life.atom.xml": "feed:Life",
        "/feeds/ann.atom.xml": "feed:",
        "/feeds/ann.rss.xml": "feed:",
    }


def test_content_beside_the_settings(tmp_path: Path) -> None:
    """A site whose content is its own folder has no texts in what Pelican made."""
    imported = read(
        tmp_path,
        "PATH = '.'\nOUTPUT_PATH = 'docs/'\n",
        **{"a.md": post(), "docs/a.md": post(), "theme/readme.md": "x"},
    )

    assert [text.source for text in imported.texts] == ["a.md"]


def test_nested_text_is_named(tmp_path: Path) -> None:
    """A text that is too deep is left out by itself, and named."""
    deep = "\n".join(f"{' ' * 2 * depth}- x\n" for depth in range(400))
    imported = read(
        tmp_path,
        **{"content/a.rst": f"T\n#\n\n:date: 2024-01-01\n\n{deep}", "content/b.md": post()},
    )

    assert {text.source for text in imported.texts} >= {"content/b.md"}
    assert len(imported.texts) + len(imported.findings) == 2


def test_odd_settings_stop_no_text(tmp_path: Path) -> None:
    """Settings of another shape than Pelican's lose no text."""
    imported = read(
        tmp_path,
        "MENUITEMS = ('a', ('B', '/b/', 'icon'))\nEXTRA_PATH_METADATA = {'images/x.png': 'y'}\n"
        "TAG_SAVE_AS = '{nothing}.html'\nPAGINATED_TEMPLATES = ['index']\n",
        **{"content/a.md": post("Tags: x\n"), "content/images/x.png": "png"},
    )

    assert only(imported).address == "/a-post.html"
    assert imported.menu == [("B", "/b/")]
    assert [each.source for each in imported.findings if each.kind == "left out"] == [
        "content/images/x.png"
    ]


def test_unpublished_texts_stay_unpublished(tmp_path: Path) -> None:
    """A password makes a draft, IGNORE_FILES leave out, and settings that may be secret stay."""
    imported = read_pelican(
        make(
            tmp_path,
            "IGNORE_FILES = ['inner', '*.tmp.md']\nAPI_TOKEN = 'x'\nPLUGINS = ['jinja2content']\n",
            **{
                "content/a.md": post("Password: x\n"),
                "content/b.md": post("Slug: b\n", "{{ API_TOKEN }} {{ SITENAME }}"),
                "content/inner/c.md": post("Slug: c\n"),
                "content/d.tmp.md": post("Slug: d\n"),
            },
        )
    )
    assert [text.status for text in imported.texts] == ["draft", "published"]
    assert imported.texts[1].body.strip() == "{{ API_TOKEN }} Notes"
    assert any("API_TOKEN" in each.what for each in imported.findings if each.line)
