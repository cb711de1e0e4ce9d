"""The commands that the papers show to those who move in, typed beside small old journals."""

import json
import re
import shlex
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from site_build.importers.detect import SYSTEMS
from tests.content.fences import fits, read_fences
from tests.site_build.test_try import COMMAND, trying
from tests.site_build.workbench import ROOT, run

pytestmark = pytest.mark.size("test")

MOVING_IN = "docs/moving-in.md"
PAPERS = (MOVING_IN, "README.md", "docs/themes.md")
PROGRAM = COMMAND[:-1]
GIF = bytes.fromhex("47494638396101000100800000000000ffffff2c00000000010001000002024401003b")


class Command(NamedTuple):
    """A command that brings a journal over, as a paper shows it."""

    paper: str
    section: str
    """The heading above it."""
    words: tuple[str, ...]
    """After `fore-edge`."""
    promised: str
    """The output below it; it may be nothing."""

    @property
    def source(self) -> str:
        """The name of the old journal."""
        return self.words[1 if self.words[0] == "try" else self.words.index("--from") + 1]


class Journal(NamedTuple):
    """An old journal of one post, or of a few."""

    system: str
    """As `--as` has it."""
    name: str
    """As people write it."""
    files: dict[str, str | bytes]
    """Below a folder of the name that a command uses; of an export, in the folder where it is."""
    address: str = "/2020/oak/"
    """The path of the imported post, which has the word `gall`."""
    kept: tuple[str, ...] = ()
    """Further files of the new journal."""


PELICAN = Journal(
    "pelican",
    "Pelican",
    {
        "pelicanconf.py": 'SITENAME = "Ink"\nAUTHOR = "Ann"\nSITEURL = "https://ink.example"\n'
        'ARTICLE_URL = ARTICLE_SAVE_AS = "{date:%Y}/{slug}.html"\nPLUGINS = ["sitemap"]\n',
        "content/oak.md": "Title: Oak\nDate: 2020-01-02\nTags: trees\n\n"
        "A gall.\n\n![A gall]({static}/images/gall.gif)\n",
        "content/notebook.rst": "Notebook\n########\n\n:date: 2020-01-03\n\nA *leaf*.\n\n"
        ".. notebook:: leaf.ipynb\n",
        "content/images/gall.gif": GIF,
    },
    "/2020/oak.html",
    ("content/images/gall.gif",),
)
HUGO = Journal(
    "hugo",
    "Hugo",
    {
        "hugo.toml": 'baseURL = "https://ink.example/"\ntitle = "Ink"\n'
        '[permalinks]\nposts = "/:year/:slug/"\n',
        "content/posts/oak/index.md": '+++\ntitle = "Oak"\ndate = 2020-01-02\n+++\n'
        'A gall.\n\n{{< figure src="gall.gif" alt="A gall" >}}\n\n{{< unheard of="it" >}}\n',
        "content/posts/oak/gall.gif": GIF,
    },
    kept=("content/2020/oak/gall.gif",),
)
JEKYLL = Journal(
    "jekyll",
    "Jekyll",
    {
        "_config.yml": "title: Ink\nurl: https://ink.example\npermalink: /:year/:title/\n",
        "_posts/2020-01-02-oak.md": "---\ntitle: Oak\n---\n{% highlight python %}\ngall = 1\n"
        "{% endhighlight %}\n\n![A gall]({{ site.baseurl }}/img/gall.gif)\n",
        "img/gall.gif": GIF,
    },
    kept=("content/img/gall.gif",),
)
WORDPRESS = Journal(
    "wordpress",
    "WordPress",
    {
        "wordpress.xml": """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:wp="http://wordpress.org/export/1.2/">
<channel><title>Ink</title><link>https://ink.example</link><language>en</language>
<wp:wxr_version>1.2</wp:wxr_version><wp:base_site_url>https://ink.example</wp:base_site_url>
<item><title>Oak</title><link>https://ink.example/2020/oak/</link><dc:creator>ann</dc:creator>
<content:encoded><![CDATA[<p>A gall.</p>
<img src="https://ink.example/wp-content/uploads/2020/gall.gif" alt="A gall">]]></content:encoded>
<wp:post_id>12</wp:post_id><wp:post_date>2020-01-02 10:00:00</wp:post_date>
<wp:post_date_gmt>2020-01-02 10:00:00</wp:post_date_gmt><wp:post_name>oak</wp:post_name>
<wp:status>publish</wp:status><wp:post_type>post</wp:post_type>
<wp:comment><wp:comment_id>1</wp:comment_id><wp:comment_author>Bob</wp:comment_author>
<wp:comment_content>Well.</wp:comment_content><wp:comment_approved>1</wp:comment_approved>
</wp:comment></item></channel></rss>
""",
        "wp-content/uploads/2020/gall.gif": GIF,
    },
    kept=("content/wp-content/uploads/2020/gall.gif", "comments.json"),
)
GHOST_POST = {
    "id": "1",
    "title": "Oak",
    "slug": "oak",
    "html": '<p>A gall.</p><img src="__GHOST_URL__/content/images/gall.gif" alt="A gall">',
    "type": "post",
    "status": "published",
    "visibility": "public",
    "published_at": "2020-01-02T10:00:00.000Z",
}
GHOST = Journal(
    "ghost",
    "Ghost",
    {
        "ghost.json": json.dumps({"db": [{"data": {"posts": [GHOST_POST]}}]}),
        "redirects.json": '[{"from": "^/galls/?$", "to": "/oak/"}]',
        "members.csv": "email,name\nbob@example.org,Bob\n",
        "content/images/gall.gif": GIF,
    },
    "/oak/",
    ("content/content/images/gall.gif", "members.csv"),
)
SUBSTACK = Journal(
    "substack",
    "Substack",
    {
        "posts.csv": "post_id,post_date,is_published,type,audience,title,subtitle\n"
        "1.oak,2020-01-02T10:00:00.000Z,true,newsletter,everyone,Oak,Of ink\n",
        "posts/1.oak.html": "<p>A gall.</p>",
        "email_list.ink.csv": "email,created_at\nbob@example.org,2020-01-02\n",
    },
    "/p/oak/",
    ("members.csv",),
)
NOTES = Journal(
    "markdown",
    "Obsidian",
    {
        ".obsidian/app.json": "{}",
        "2020-01-02 Oak.md": "# Oak\n\n> [!tip] A gall\n\n![[gall.gif]] and [[Elm]]\n",
        "Elm.md": "Wood.\n",
        "files/gall.gif": GIF,
    },
    "/journal/oak/",
    ("content/files/gall.gif",),
)
JOURNALS = {
    "old-site": PELICAN,
    "old-pelican": PELICAN,
    "old-hugo": HUGO,
    "old-jekyll": JEKYLL,
    "wordpress.xml": WORDPRESS,
    "ghost.json": GHOST,
    "substack.zip": SUBSTACK,
    "notes": NOTES,
}
"""By the names that commands have for them."""


def read_commands(paper: str, text: str) -> Iterator[Command]:
    """Yield the commands of a paper that bring a journal over."""
    lines = text.split("\n")
    for fence in read_fences(text):
        heading = next((e for e in lines[fence.line :: -1] if e.startswith("## ")), "")
        for line, promised in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", fence.code, re.MULTILINE):
            name, *words = shlex.split(line, comments=True) or [""]
            if name == "fore-edge" and (words[0] == "try" or "--from" in words):
                yield Command(paper, heading[3:], tuple(words), promised)


SHOWN = [
    command
    for paper in PAPERS
    for command in read_commands(paper, (ROOT / paper).read_text(encoding="utf-8"))
]
TYPED = sorted({command.words for command in SHOWN})


def lay_out(journal: Journal, name: str, folder: Path) -> None:
    """Write an old journal into a folder under a name."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(folder / name, "w") as archive:
            for path, content in journal.files.items():
                archive.writestr(path, content)
        return
    root = folder if name in journal.files else folder / name
    for path, content in journal.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())


def check_output(words: tuple[str, ...], printed: str) -> None:
    """Assert that what was printed begins as each paper with this command says."""
    for command in SHOWN:
        if command.words == words:
            assert fits(f"{command.promised}…", printed, varies=True), (
                f"{command.paper} says\n{command.promised}\nwhere this is printed:\n{printed}"
            )


@pytest.mark.parametrize("words", TYPED, ids=" ".join)
def test_the_import_command_of_each_guide_works(words: tuple[str, ...], tmp_path: Path) -> None:
    """The commands of the guide build, serve the post, and print what the guide says."""
    source = next(command.source for command in SHOWN if command.words == words)
    journal = JOURNALS[source]
    lay_out(journal, source, tmp_path)

    if words[0] == "try":
        with trying(tmp_path / source, *words[2:]) as (printed, origin):
            with urlopen(f"{origin}{journal.address}") as page:  # noqa: S310  our own server
                assert b"gall" in page.read()
            check_output(words, printed)
        return
    made = run(*PROGRAM, *words, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    check_output(words, made.stdout)
    assert f"{words[1]} is a journal, from {journal.name}: " in made.stdout
    folder = tmp_path / words[1]
    built = run(*PROGRAM, "build", cwd=folder)
    assert built.returncode == 0, f"{built.stdout}{built.stderr}"
    place = folder / "build/current/site" / journal.address.strip("/")
    page = place if place.is_file() else place / "index.html"
    assert "gall" in page.read_text(encoding="utf-8")
    assert [name for name in journal.kept if not (folder / name).is_file()] == []


def test_every_system_has_a_section_with_its_command() -> None:
    """A section for each system, whose command is about a journal of that system."""
    sections = {
        command.section: JOURNALS[command.source].system
        for command in SHOWN
        if command.paper == MOVING_IN and command.source != "old-site"
    }
    assert [*sections.values()] == [*SYSTEMS]
    assert [name.lower() for name in sections][:-1] == [*SYSTEMS[:-1]]
    assert {command.source for command in SHOWN} == {*JOURNALS}


def test_commands_of_a_paper_are_read() -> None:
    """A command knows its section, its words and its output; others are left alone."""
    text = "## Old\n\n```console\n$ fore-edge init a\n$ fore-edge init a --from b  # so\nc\n```\n"

    assert list(read_commands("a.md", text)) == [
        Command("a.md", "Old", ("init", "a", "--from", "b"), "c\n")
    ]
