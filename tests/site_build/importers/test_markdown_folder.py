"""Folders of Markdown: of Obsidian, Astro, Eleventy, Zola, Next.js, or of no system."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from site_build.importers.imported import Imported, Text
from site_build.importers.markdown_folder import read_markdown_folder
from site_build.importers.plan import plan_journal, summarize
from site_build.importers.writer import write_journal
from tests.shared_material import SHARED, find_sites

SITES = SHARED / "sites"


def read(root: Path, files: dict[str, str | bytes]) -> tuple[Imported, dict[str, Text]]:
    """Write files, read the folder, and return it with its texts by source."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    journal = read_markdown_folder(root)
    return journal, {text.source: text for text in journal.texts}


def convert(root: Path, body: str, name: str = "note.md", **files: str) -> tuple[str, list[str]]:
    """Return what becomes of a body, and the sentences about it with their lines."""
    journal, texts = read(root, {name: body, **files})
    found = [f"{each.line}: {each.what}" for each in journal.findings if each.source == name]
    return texts[name].body, found


def test_a_plain_folder(tmp_path: Path) -> None:
    """Titles come from head, heading or name, dates from head or name, tags from folders."""
    journal, texts = read(
        tmp_path,
        {
            "vim/quit.md": "# Quit `vim` now\n\nText.\n\n```\n# no heading\n```\n",
            "posts/2024-01-05-a-walk.md": "We walked.\n",
            "2023/11/02/rain.md": "---\ntitle: Rain\ntags: [wet]\n---\n# Rain\n\nIt rains.\n",
            "log/x.md": "---\nTitle: X\ncreated: 2020-02-03 04:05\ndraft: true\n---\nX.\n",
            "README.md": "# My notes\n\nWelcome.\n",
            "LICENSE.md": "MIT\n",
            "empty.md": "\n",
            "broken.md": "---\ntitle: A\nText\n",
        },
    )
    assert journal.system == "Markdown"
    quit_, walk, rain, x = (
        texts[name]
        for name in (
            "vim/quit.md",
            "posts/2024-01-05-a-walk.md",
            "2023/11/02/rain.md",
            "log/x.md",
        )
    )
    assert (quit_.title, quit_.tags) == ("Quit vim now", ["vim"])
    assert "Quit" not in quit_.body
    assert "# no heading" in quit_.body
    assert (walk.title, str(walk.date)[:10], walk.tags) == ("A walk", "2024-01-05", [])
    assert (rain.title, str(rain.date)[:10], rain.tags) == ("Rain", "2023-11-02", ["wet"])
    assert "# Rain" not in rain.body
    assert (x.date, x.status) == (datetime(2020, 2, 3, 4, 5), "draft")  # noqa: DTZ001
    assert texts["README.md"].kind == "page"
    kinds = {each.source: each.kind for each in journal.findings}
    assert kinds == {"LICENSE.md": "changed", "broken.md": "left out", "empty.md": "changed"}


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("draft: true", "draft"),
        ("draft: 1", "draft"),
        ('draft: "on"', "draft"),
        ("isDraft: true", "draft"),
        ("draft: false", "published"),
        ("draft: no", "published"),
        ("published: false", "draft"),
        ("published: no", "draft"),
        ("published: off", "draft"),
        ("published: true", "published"),
        ("published: yes", "published"),
        ("published: 2020-02-03", "published"),
        ("published:", "published"),
        ("publish: False", "draft"),
        ("publish: no", "draft"),
        ("dg-publish: 0", "draft"),
        ("public: n", "draft"),
        ("permalink: false", "draft"),
        ("status: draft", "draft"),
        ("status: Unpublished", "draft"),
        ("status: hidden", "hidden"),
        ("status: [published]", "published"),
        ("status:", "published"),
        ("state: draft", "draft"),
        ("visibility: private", "draft"),
        ("visibility: public", "published"),
        ("private: true", "draft"),
        ("Private: yes", "draft"),
        ("listed: false", "hidden"),
        ("unlisted: yes", "hidden"),
        ("draft: no\nprivate: y\nlisted: no", "draft"),
    ],
)
def test_drafts(tmp_path: Path, line: str, status: str) -> None:
    """A text that its head keeps from the public, in any words, is kept here, too."""
    journal, texts = read(tmp_path, {"a.md": f"---\ntitle: A\n{line}\n---\nText.\n"})
    assert texts["a.md"].status == status
    assert not [each for each in journal.findings if each.source]
    assert not journal.unread_keys


@pytest.mark.parametrize(
    "line",
    [
        "draft: maybe",
        "draft:",
        "private:",
        "hidden: true",
        "publish: later",
        "published: 2026-13-45",
        "listed: friends",
        "visibility: family",
        "state: [draft, secret]",
        "status: seedling",
    ],
)
def test_unknown_words_about_readers(tmp_path: Path, line: str) -> None:
    """A word that is not known may mean private, so the text is a draft, and is reported."""
    journal, texts = read(tmp_path, {"a.md": f"---\ntitle: A\n{line}\n---\nText.\n"})
    word = line.replace("[draft, ", "").strip("]")
    assert texts["a.md"].status == "draft"
    assert [(each.source, each.what.split("`")[1].strip()) for each in journal.findings] == [
        ("a.md", word)
    ]
    assert "so it is a draft" in journal.findings[0].what


def test_a_program_in_place_of_a_head_says_draft(tmp_path: Path) -> None:
    """Flags of a program have no quotes."""
    body = "export const meta = {\n  title: 'A',\n  draft: true,\n}\n\nText.\n"
    _, texts = read(tmp_path, {"next.config.js": "", "posts/a.mdx": body})
    assert (texts["posts/a.mdx"].title, texts["posts/a.mdx"].status) == ("A", "draft")


def test_dates_and_keys_that_are_not_read_are_reported(tmp_path: Path) -> None:
    """A date that cannot be read makes a draft unless there is another; lost keys are counted."""
    journal, texts = read(
        tmp_path / "old",
        {
            "a.md": "---\ndate: 2026-13-45\nmoood: happy\n---\nText.\n",
            "b.md": "---\ndate: not a date\nmoood: sad\nrating: 5\n---\nText.\n",
            "2020-01-02-c.md": "---\ndate: 2026-99-99\nempty:\n---\nText.\n",
            "d.md": "---\ndate: 2020-01-02\nupdated: some day\n---\nText.\n",
            "e.md": "---\ndate: 2020-01-02\n---\nText.\n",
        },
    )
    assert {name: text.status for name, text in texts.items()} == {
        "2020-01-02-c.md": "published",
        "a.md": "draft",
        "b.md": "draft",
        "d.md": "published",
        "e.md": "published",
    }
    assert str(texts["2020-01-02-c.md"].date)[:10] == "2020-01-02"
    plan = plan_journal(journal, "x")
    summary = summarize(journal, plan)
    assert summary.needing == ["2020-01-02-c.md", "a.md", "b.md", "d.md"]
    write_journal(tmp_path / "new", plan.files, (journal, summary))
    report = (tmp_path / "new" / "import-report.md").read_text()
    for line in (
        "`a.md`: `date: 2026-13-45` in its head has no meaning here, so it is a draft",
        "`b.md`: `date: not a date` in its head has no meaning here, so it is a draft",
        "`2020-01-02-c.md`: `date: 2026-99-99` in its head has no meaning here",
        "`d.md`: `updated: some day` in its head has no meaning here",
        "`moood` (files: 2)",
        "`rating` (files: 1)",
    ):
        assert f"- {line}\n" in report
    found = json.loads((tmp_path / "new" / "import-report.json").read_text())["findings"]
    assert {"`moood` (files: 2)", "`rating` (files: 1)"} < {each["what"] for each in found}
    assert "empty" not in report


def test_words_of_eleventy_for_dates(tmp_path: Path) -> None:
    """Eleventy names the date of Git, or of the file, in place of a date."""
    files: dict[str, str | bytes] = {
        "eleventy.config.js": "",
        "posts/a.md": "---\ndate: git Last Modified\n---\nText.\n",
    }
    journal, texts = read(tmp_path, files)
    assert texts["posts/a.md"].status == "published"
    assert not journal.findings


def test_dates_of_git(tmp_path: Path) -> None:
    """A note without a date has the one of its first commit; no program that settings name runs."""
    read(tmp_path, {"a b/é.md": "# One\n\nText.\n"})
    ran = tmp_path / "ran"
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=no"]
    for words in (
        ["init", "-q"],
        ["add", "a b"],
        ["commit", "-qm", "One", "--date", "2019-05-06T07:08:09+02:00"],
        ["config", "log.showSignature", "true"],
        ["config", "gpg.program", str(program)],
        ["config", "core.fsmonitor", str(program)],
        ["config", "core.pager", str(program)],
        ["config", "diff.external", str(program)],
    ):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)

    _, texts = read(tmp_path, {"new.md": "New.\n"})

    assert texts["a b/é.md"].date == datetime.fromisoformat("2019-05-06T07:08:09+02:00")
    assert texts["new.md"].date is not None
    assert texts["new.md"].date.year > 2024
    assert not ran.exists()


def test_encodings(tmp_path: Path) -> None:
    """Byte order marks, UTF-16, Windows-1252 and its line ends are read."""
    _, texts = read(
        tmp_path,
        {
            "a.md": b"\xef\xbb\xbf---\r\ntitle: Bom\r\n---\r\nText\r\n",
            "b.md": "# Größe\n\nText\n".encode("utf-16"),
            "c.md": "# Größe\n\nText\n".encode("cp1252"),
        },
    )
    assert [texts[name].title for name in ("a.md", "b.md", "c.md")] == ["Bom", "Größe", "Größe"]


def test_notes_of_obsidian(tmp_path: Path) -> None:
    """Links, embeds, callouts, marks, comments and ids of blocks become Markdown; code stays."""
    body, found = convert(
        tmp_path,
        "See [[Other note]], [[sub/Deep|that]] and [[Other note#Big Idea]]; [[#Here]]. ^b1\n"
        "\n"
        "![[pic.png|300]] ![[Other note]] %%secret%% ==marked== [[Nowhere]]\n"
        "![Alt](pic.png) [x](https://example.com/pic.png)\n"
        "\n"
        "> [!faq]- Why [[Other note|so]]?\n"
        "> Because.\n"
        "\n"
        "> [!quote]\n"
        "> Words.\n"
        "\n"
        "| a | b |\n|---|---|\n| [[Other note\\|o]] | c |\n"
        "\n"
        "`[[Other note]]` and $a [[Other note]] b$ #tag\n"
        "\n"
        "```js {3} title=x\n[[Other note]] ==x== %%y%%\n```\n",
        **{
            ".obsidian/app.json": "{}",
            "Other note.md": "Other.",
            "a/sub/Deep.md": "Deep.",
            "files/pic.png": "x",
            "unused.png": "x",
        },
    )
    assert body == (
        "See [Other note](source:Other%20note.md), [that](source:a/sub/Deep.md) and "
        "[Other note](source:Other%20note.md#big-idea); [Here](#here).\n"
        "\n"
        "![](source:files/pic.png){width=300} [Other note](source:Other%20note.md)  "
        "<mark>marked</mark> Nowhere\n"
        "![Alt](source:files/pic.png) [x](https://example.com/pic.png)\n"
        "\n"
        "> [!IMPORTANT]\n> **Why [so](source:Other%20note.md)?**\n> \n> Because.\n"
        "\n"
        "\n> Words.\n"
        "\n"
        "| a | b |\n|---|---|\n| [o](source:Other%20note.md) | c |\n"
        "\n"
        "`[[Other note]]` and $a [[Other note]] b$ #tag\n"
        "\n"
        "```js\n[[Other note]] ==x== %%y%%\n```\n"
    )
    assert found == ["3: nothing has the name Nowhere"]
    assert set(read_markdown_folder(tmp_path).files) == {"files/pic.png"}


def test_components_of_mdx(tmp_path: Path) -> None:
    """Components leave words, pictures and links; what a program would compute is named by line."""
    body, found = convert(
        tmp_path,
        "---\ntitle: T\ndate: 2024-01-01\n---\n"
        "import pic from '../assets/pic.png'\n"
        "import { Box } from '@/components'\n"
        "\n"
        "<Box kind='a' title=\"It's here\" style={{ a: { b: 1 } }}>\n"
        "Inner **text**, {count} {/* note */}{' '}x.\n"
        "</Box>\n"
        "\n"
        '<Image src={pic} alt="A pic" /> <Image src="@/assets/two.png" alt="Two" />\n'
        '<figure>\n<Image src={pic} alt="Ours" />\n</figure>\n\n'
        '<YouTube id="abc" />\n'
        "<Chart data={[{ a: 1 }]}\n  onClick={() => go()} />\n"
        '<span style={{ color: "red" }} title="t">red</span>\n'
        "\n"
        "`<Box>` and `{x}`; $\\frac{a}{b}$\n"
        "\n"
        "```jsx {2} eval\nimport x from 'y'\n<Box>{x}</Box>\n```\n",
        "src/content/blog/t.mdx",
        **{"astro.config.mjs": ""},
    )
    assert body == (
        "\n"
        "\n\n> [!NOTE]\n> **It's here**\n> \n> Inner **text**,   x.\n\n\n\n"
        "![A pic](../assets/pic.png) ![Two](source:src/assets/two.png)\n"
        '<figure>\n<img src="../assets/pic.png" alt="Ours">\n</figure>\n\n'
        "[Video on YouTube](https://www.youtube.com/watch?v=abc)\n"
        "\n"
        '<span title="t">red</span>\n'
        "\n"
        "`<Box>` and `{x}`; $\\frac{a}{b}$\n"
        "\n"
        "```jsx\nimport x from 'y'\n<Box>{x}</Box>\n```\n"
    )
    assert found == [
        "9: the expression {count} is not known",
        "18: the component Chart is not known",
    ]


def test_shortcodes(tmp_path: Path) -> None:
    """Shortcodes and filters of Zola and Eleventy become what a reader can use, or are named."""
    body, found = convert(
        tmp_path,
        "+++\ntitle = 'T'\ndate = 2024-01-01\n+++\n"
        "[a](@/blog/b.md#c) {{ youtube(id='xyz') }} {% quote(author='me') %}Words{% end %}\n"
        "[i]({{ '/img/a.png' | url }}) {% image '/img/b.png', 'B' %}{{ page.title }}\n"
        '{{ figure(\n  src="c.png",\n  alt="C",\n  caption="A \'c\',\n  indeed"\n) }}\n',
        "content/blog/t.md",
        **{"content/_index.md": "+++\n+++\n", "zola.toml": 'base_url = "https://x.example/"\n'},
    )
    assert body == (
        "[a](source:content/blog/b.md#c) [Video on YouTube](https://www.youtube.com/watch?v=xyz) "
        "\n\n> Words\n> \n> — me\n\n\n"
        "[i](/img/a.png) ![](/img/b.png)\n"
        "![C](c.png)\n*A 'c', indeed*\n"
    )
    assert found == ["6: the component page is not known"]


HEAD = "---\ntitle: A Title\ndate: 2024-03-04\n{}---\nText.\n"


@pytest.mark.parametrize(
    ("system", "mark", "source", "more", "address"),
    [
        ("Astro", "astro.config.mjs", "src/content/blog/My Post.md", "", "/blog/my-post/"),
        ("Astro", "astro.config.mjs", "src/content/blog/a/index.mdx", "", "/blog/a/"),
        ("Astro", "astro.config.mjs", "src/pages/blog/a.md", "", "/blog/a/"),
        (
            "Astro",
            "astro.config.ts",
            "src/data/blog/_old/a.md",
            "pubDatetime: 2024-03-04\n",
            "/posts/a/",
        ),
        ("Astro", "astro.config.ts", "src/content/blog/a.md", "slug: b/c\n", "/blog/b/c/"),
        ("Eleventy", ".eleventy.js", "posts/2024-03-04-a.md", "", "/posts/2024-03-04-a/"),
        ("Eleventy", "eleventy.config.js", "content/blog/a.md", "", "/blog/a/"),
        (
            "Eleventy",
            ".eleventy.js",
            "src/posts/2024-03-04-a.md",
            "permalink: '/w/{{ page.date | date: \"%Y/%m/%d\" }}/{{ page.fileSlug }}/index.html'\n",
            "/w/2024/03/04/a/",
        ),
        (
            "Eleventy",
            ".eleventy.js",
            "src/a.md",
            "permalink: '{{ title | slugify }}.html'\n",
            "/a-title.html",
        ),
        ("Eleventy", ".eleventy.js", "src/a.md", "permalink: '{{ strange }}/'\n", ""),
        ("Zola", "content/_index.md", "content/blog/2024-03-04_A b.md", "", "/blog/a-b/"),
        ("Eleventy", "eleventy.config.js", "content/blog/a/a.md", "", "/blog/a/"),
        ("Zola", "content/_index.md", "content/blog/a.fr.md", "", "/fr/blog/a/"),
        ("Zola", "content/_index.md", "content/blog/a.pt-br.md", "", "/pt-br/blog/a/"),
        ("Zola", "config.toml", "content/blog/2024-03-04T10:00:00Z-a.md", "", "/blog/a/"),
        ("Zola", "content/_index.md", "content/blog/a.md", "path: x/y\n", "/x/y"),
        ("Zola", "content/_index.md", "content/blog/a.md", "slug: 'b\\1'\n", "/blog/b-1/"),
        ("Next.js", "next.config.js", "public/a/index.md", "", "/a/"),
        ("Next.js", "next.config.js", "data/blog/a.mdx", "", "/blog/a/"),
        ("Next.js", "next.config.mjs", "_posts/a.md", "", "/posts/a/"),
        ("Next.js", "next.config.js", "app/blog/posts/a.mdx", "", "/blog/a/"),
        ("Next.js", "next.config.mjs", "src/app/(site)/blog/a/page.mdx", "", "/blog/a/"),
        ("Gatsby", "gatsby-config.js", "content/blog/a/index.md", "", "/a/"),
        ("Docusaurus", "docusaurus.config.js", "blog/2024-03-04-a.md", "", "/blog/2024/03/04/a/"),
        ("Hexo", "source/_posts/x.md", "source/_posts/a.md", "", "/2024/03/04/a/"),
        ("VitePress", "docs/.vitepress/config.js", "docs/posts/a.md", "", "/posts/a.html"),
        ("Quartz", "quartz.config.ts", "content/My Notes/A b.md", "", "/My-Notes/A-b"),
        ("Obsidian", ".obsidian/app.json", "a/b.md", "", ""),
        ("Markdown", "x.txt", "a/b.md", "", ""),
    ],
)
def test_addresses(  # noqa: PLR0913, PLR0917 - a row of the table
    tmp_path: Path, system: str, mark: str, source: str, more: str, address: str
) -> None:
    """Each system's rule gives the old address of a text, or none where it cannot be known."""
    journal, texts = read(tmp_path, {mark: "", source: HEAD.format(more)})
    assert (journal.system, texts[source].address) == (system, address)
    assert texts[source].kind == "post"


def test_folder_data_of_eleventy(tmp_path: Path) -> None:
    """The address that a folder's data file gives to its texts is read, whatever its form."""
    _, texts = read(
        tmp_path,
        {
            ".eleventy.js": "",
            "src/posts/posts.json": '{"tags": "post", "permalink": "/w/{{ page.fileSlug }}/"}',
            "src/posts/2020/2020-01-02-a.md": HEAD.format(""),
            "src/log/log.11tydata.js": "module.exports = { layout: 'log', eleventyComputed: {\n"
            "  permalink: (data) => `/l/${data.slug || this.slug(data.page.fileSlug)}/` } }",
            "src/log/b.md": HEAD.format("slug: bee\n"),
        },
    )
    assert texts["src/posts/2020/2020-01-02-a.md"].address == "/w/a/"
    assert texts["src/log/b.md"].address == "/l/bee/"


def test_settings(tmp_path: Path) -> None:
    """Names of the journal and its redirects are read from settings as they are written."""
    journal, texts = read(
        tmp_path,
        {
            "next.config.js": "module.exports = { redirects: [\n"
            "  { source: '/older', destination: '/blog/a', permanent: true },\n"
            "  { source: '/away', destination: 'https://example.com/' } ] }\n",
            "public/_redirects": "/old/ /blog/a/ 301\n",
            "data/siteMetadata.js": "const siteMetadata = { title: 'Next & me', header: 'H',\n"
            "  author: 'Ann',\n  siteUrl: 'https://ann.example',\n  language: 'en-us',\n}\n",
            "data/blog/a.mdx": HEAD.format("tags: [Two Words]\nsummary: S\n"),
            "docs/how.md": "# How this works\n",
            "data/authors/default.md": "---\nname: Ann\n---\nI am.\n",
            "README.md": "# Template\n\nRun npm.\n",
        },
    )
    assert journal.redirects["/older"] == "/blog/a"
    assert journal.redirects["/old/"] == "/blog/a/"
    assert journal.redirects["/away"] == "https://example.com/"
    assert (journal.title, journal.author) == ("Next & me", "Ann")
    assert (journal.origin, journal.lang) == ("https://ann.example", "en-us")
    assert journal.redirects["/tags/two-words/"] == "tag:Two Words"
    assert journal.redirects["/feed.xml"] == "feed:"
    assert texts["data/blog/a.mdx"].description == "S"
    assert texts["data/authors/default.md"].kind == "page"
    assert not {"README.md", "docs/how.md"} & set(texts)


def test_media(tmp_path: Path) -> None:
    """Pictures that texts name keep their old paths; code and unnamed files are left out."""
    journal, _ = read(
        tmp_path,
        {
            "astro.config.mjs": "",
            "public/img/a b.png": "x",
            "public/script.js": "x",
            "src/assets/unused.png": "x",
            "src/assets/hero.jpg": "x",
            "src/content/blog/a.md": HEAD.format("heroImage: ../../assets/hero.jpg\n")
            + "![](/img/a%20b.png) [s](/script.js)\n",
        },
    )
    assert set(journal.files) == {"img/a b.png", "assets/hero.jpg"}
    assert journal.public_paths["public/img/a b.png"] == "img/a b.png"
    assert journal.texts[0].image == "../../assets/hero.jpg"


def test_aliases(tmp_path: Path) -> None:
    """Aliases of Obsidian are names, those of Zola are paths."""
    head = HEAD.format("aliases: [Old name, /old/path/]\n")
    _, texts = read(tmp_path / "one", {".obsidian/app.json": "", "a.md": head})
    assert texts["a.md"].aliases == ["/old/path/"]
    _, texts = read(tmp_path / "two", {"zola.toml": "", "content/a.md": head.replace(" name", "")})
    assert texts["content/a.md"].aliases == ["/Old", "/old/path/"]


def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    """A text or picture that a link takes from elsewhere is not read."""
    read(tmp_path / "other", {"secret.md": "# Secret\n", "x.md": "X"})
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.md").symlink_to(tmp_path / "other" / "secret.md")
    _, texts = read(root, {"a.md": "# A\n\nText\n"})
    assert set(texts) == {"a.md"}


@pytest.mark.size("test")
@pytest.mark.parametrize("site", [*find_sites("folder-"), *find_sites("next-")])
def test_real_folders(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All texts of a real folder come with titles and dates, and keep their addresses."""
    expected = json.loads((SITES / site / "expected.json").read_text())
    journal = read_markdown_folder(SITES / site / "source")
    addresses = {text.address for text in journal.texts if text.status == "published"}
    met = len(addresses & set(expected["urls"]))
    with capsys.disabled():
        print(f"{site}: {len(journal.texts)} of {expected['posts']} texts, ", end="")  # noqa: T201
        print(f"{met} of {len(expected['urls'])} addresses")  # noqa: T201
    assert len(journal.texts) == expected["posts"]
    assert met == len(expected["urls"])
    texts = {text.source: text for text in journal.texts}
    for item in expected["items"]:
        text = texts[item["source"]]
        assert text.title == item["title"].replace("`", "")
        assert item.get("date", str(text.date)[:10]) == str(text.date)[:10]
        assert {item["category"]} <= set(text.tags) if "category" in item else True
    for old, new in expected.get("aliases", []):
        assert journal.redirects[old].strip("/") == new.strip("/")
    assert all(
        text.date and text.date.astimezone(UTC) < datetime.now(UTC) for text in journal.texts
    )


def test_markdown_within_components_and_shortcodes(tmp_path: Path) -> None:
    """Inner Markdown loses its margin, components of other systems are those of Hugo."""
    body, found = convert(
        tmp_path,
        "---\ntitle: T\ndate: 2024-01-01\n---\n"
        '<Panel title="One">\n  Some **text**\n\n    ```js\n    <Box>\n    ```\n'
        '  <Aside type="tip">\n    {count}\n    Look\n  </Aside>\n</Panel>\n'
        'A <Link href="/x/">link</Link>.\n\n![a](@/assets/a.png)\n',
        "src/content/blog/t.mdx",
        **{"astro.config.mjs": ""},
    )
    assert [line for line in body.split("\n") if line.strip("> ")] == [
        "**One**",
        "Some **text**",
        "  ```js",
        "  <Box>",
        "  ```",
        "> [!TIP]",
        "> Look",
        "A [link](/x/).",
        "![a](source:src/assets/a.png)",
    ]
    assert found == [
        "12: the expression {count} is not known",
        "5: the component Panel is not known",
    ]


def test_blocks_of_templates(tmp_path: Path) -> None:
    """Highlighted code is code; what is raw stays; a list of Zola is known by its address."""
    body, found = convert(
        tmp_path,
        HEAD.format("").replace("Text.", "")
        + '{% highlight "js" %}\na = {{ b }}\n{% endhighlight %}\n'
        "{% raw %}{{ c }}{% endraw %} {% if d %}e{% endif %}",
        "posts/a.md",
        **{".eleventy.js": ""},
    )
    assert body.split() == ["```js", "a", "=", "{{", "b", "}}", "```", "{{", "c", "}}", "e"]
    assert found == ["9: the component if is not known"]
    body, _ = convert(
        tmp_path / "zola",
        "[l](@/blog/_index.md) {{/* x() */}}",
        "content/a.md",
        **{"config.toml": ""},
    )
    assert body == "[l](/blog/) `{{ x() }}`"


def test_a_vault_of_which_a_part_is_public(tmp_path: Path) -> None:
    """If some notes say that they are public, others are drafts; a picture may be a link."""
    picture = '---\npublish: true\nimage: "[[a b.png]]"\n---\nText ![[a b.png]]\n'
    journal, texts = read(
        tmp_path,
        {".obsidian/app.json": "", "a.md": picture, "b.md": "Own.\n", "x/a b.png": "x"},
    )
    assert {name: text.status for name, text in texts.items()} == {
        "a.md": "published",
        "b.md": "draft",
    }
    assert texts["a.md"].image == "source:x/a%20b.png"
    assert [each.what[:28] for each in journal.findings] == ["notes without `publish: true"]


@pytest.mark.parametrize("line", ["publish: yes", "dg-publish: 'on'", "public: true"])
def test_ways_to_say_that_a_note_is_public(tmp_path: Path, line: str) -> None:
    """One note that says so, in any words, makes the others drafts."""
    _, texts = read(tmp_path, {"a.md": f"---\n{line}\n---\nText.\n", "b.md": "Own.\n"})
    assert {name: text.status for name, text in texts.items()} == {
        "a.md": "published",
        "b.md": "draft",
    }


def test_files_that_are_no_texts_are_left_out(tmp_path: Path) -> None:
    """Themes, pages of errors, drawings and the manual of Quartz stay away; what is private too."""
    _, texts = read(
        tmp_path,
        {
            "quartz.config.ts": "",
            "docs/index.md": HEAD.format(""),
            "content/private/a.md": HEAD.format(""),
            "content/404.md": HEAD.format(""),
            "content/b.excalidraw.md": HEAD.format(""),
            "themes/x/content/c.md": HEAD.format(""),
        },
    )
    assert {name: text.status for name, text in texts.items()} == {"content/private/a.md": "draft"}


def test_heads_that_are_programs(tmp_path: Path) -> None:
    """The exports of a text of Next.js are its head."""
    _, texts = read(
        tmp_path,
        {
            "next.config.mjs": "",
            "src/app/blog/a/page.mdx": "import x from 'x'\n\nexport const article = {\n"
            "  author: 'Ann',\n  date: '2022-09-05',\n  title: \"It's T\",\n}\n\nText.\n",
        },
    )
    (text,) = texts.values()
    assert (text.title, text.author, str(text.date)[:10]) == ("It's T", "Ann", "2022-09-05")
    assert text.body.strip() == "Text."


def test_settings_of_astro_and_eleventy(tmp_path: Path) -> None:
    """Redirects of Astro, the author's table and the time zone are read; originals come first."""
    journal, _ = read(
        tmp_path,
        {
            "astro.config.mjs": "redirects: {\n '/a': '/b/',\n"
            " '/c': { status: 302, destination: '/d' } }\n",
            "src/config.ts": 'timezone: "Asia/Bangkok",\nauthor: {\nname: "Ann",\nlang: "en",\n',
            "src/content/blog/a.md": HEAD.format("lang: de\n"),
            "src/content/blog/b.md": HEAD.format("lang: en\n"),
        },
    )
    assert (journal.redirects["/a"], journal.redirects["/c"]) == ("/b/", "/d")
    assert (journal.timezone, journal.author) == ("Asia/Bangkok", "Ann")
    assert [text.lang for text in journal.texts] == ["en", "de"]


def test_directives(tmp_path: Path) -> None:
    """Boxes of Docusaurus, Starlight and VitePress are alerts, with their titles; code stays."""
    body, found = convert(
        tmp_path,
        ":::tip[My title]\nA **b**\n:::\n\n:::warning Two words\nC\n:::\n\n:::note\nD\n:::\n\n"
        '::github{repo="a/b"}\nAnd :spoiler[E].\n\n```\n:::note\n```\n',
        "src/content/blog/t.md",
        **{"astro.config.mjs": ""},
    )
    assert [line for line in body.split("\n") if line.strip("> ")] == [
        "> [!TIP]",
        "> **My title**",
        "> A **b**",
        "> [!WARNING]",
        "> **Two words**",
        "> C",
        "> [!NOTE]",
        "> D",
        "[Code on GitHub](https://github.com/a/b)",
        "And E.",
        "```",
        ":::note",
        "```",
    ]
    assert not found


def test_heads_of_eleventy_may_be_programs(tmp_path: Path) -> None:
    """A head in JavaScript is read as text, not run, and does not stay in the text."""
    head = '---js\nconst title = "T";\nconst nav = {\n\tkey: "K"\n};\n---\nText.\n'
    _, texts = read(tmp_path, {"eleventy.config.js": "", "content/about.md": head})
    assert (texts["content/about.md"].title, texts["content/about.md"].body) == ("T", "Text.\n")


def test_tables_of_a_starter(tmp_path: Path) -> None:
    """The starter of Next.js names its author `default`, and has pictures in a list."""
    head = HEAD.format("images: ['/static/c.png']\nauthors: ['default']\n")
    _, texts = read(tmp_path, {"next.config.js": "", "data/blog/a.mdx": head})
    assert (texts["data/blog/a.mdx"].author, texts["data/blog/a.mdx"].image) == (
        "",
        "/static/c.png",
    )


def test_unpublished_texts_stay_unpublished(tmp_path: Path) -> None:
    """Passwords, folders without addresses and files of drafts stay out; unlisted is hidden."""
    journal, texts = read(
        tmp_path,
        {
            "eleventy.config.js": "",
            "a.md": "---\npassword: x\n---\n![](a.png)\n",
            "b.md": "---\nunlisted: true\n---\n![](b.png) ![](c.png)\n",
            "people/people.json": '{"permalink": false, "layout": "a/b.njk"}',
            "people/jo.md": "---\ntitle: Jo\n---\nWords.\n",
            "a.png": b"",
            "b.png": b"",
            "private/c.png": b"",
        },
    )
    statuses = {source: text.status for source, text in texts.items()}
    assert statuses == {"a.md": "draft", "b.md": "hidden", "people/jo.md": "draft"}
    assert list(journal.files) == ["b.png"]
    assert any("password" in each.what for each in journal.findings)
