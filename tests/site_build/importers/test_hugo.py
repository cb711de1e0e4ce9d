"""Journals of Hugo: what they hold, and the addresses that they had."""

import json
from pathlib import Path

import pytest

from site_build.importers.hugo import read_hugo
from site_build.importers.imported import Imported, Text, UnreadableJournal
from site_build.importers.plan import plan_journal
from tests.shared_material import SHARED, find_sites

POST = "---\ntitle: {}\ndate: 2024-03-05T10:00:00+01:00\n---\n\nWords.\n"


def read(root: Path, files: dict[str, str]) -> Imported:
    """Write a journal of Hugo and read it."""
    for name, content in {"hugo.toml": 'baseURL = "https://a.example/"\n', **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return read_hugo(root)


def find(journal: Imported, source: str) -> Text:
    """Return the text of a source below `content`."""
    return next(text for text in journal.texts if text.source == f"content/{source}")


def convert(root: Path, body: str, **files: str) -> tuple[str, Imported]:
    """Return a body in Markdown, without blanks around it, and the journal that it is in."""
    own = {"content/posts/a.md": f"---\ntitle: A\ndate: 2024-01-01\n---\n{body}\n"}
    journal = read(root, own | files)
    return find(journal, "posts/a.md").body.strip(), journal


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("hugo.toml", 'Title = "T"\nlocale = "de"\n[params]\nauthor = "Ann"\nDescription = "D"\n'),
        (
            "config.yaml",
            "title: T\nlanguageCode: de\nparams: {author: {name: Ann}, description: D}\n",
        ),
        (
            "config.json",
            '{"title": "T", "locale": "de", "params": {"author": ["Ann"], "description": "D"}}',
        ),
    ],
)
def test_settings_are_read_in_each_form(tmp_path: Path, name: str, settings: str) -> None:
    """TOML, YAML and JSON say the same, in any case of their keys."""
    (tmp_path / name).write_text(settings)

    journal = read_hugo(tmp_path)

    assert (journal.title, journal.lang) == ("T", "de")
    assert (journal.author, journal.description) == ("Ann", "D")


def test_settings_may_be_a_folder_with_a_file_a_part(tmp_path: Path) -> None:
    """Parts and languages are named by files, and those of production go before the others."""
    journal = read(
        tmp_path,
        {
            "config/_default/hugo.yaml": "baseURL: http://localhost/\ndefaultContentLanguage: en\n",
            "config/_default/languages.en.toml": 'title = "T"\n[params.author]\nname = "Ann"\n',
            "config/_default/menus.en.toml": '[[main]]\nname = "Far"\nurl = "https://b.example/"\n'
            'weight = 20\n[[main]]\nname = "Near"\npageRef = "about"\nweight = 3\n',
            "config/_default/permalinks.toml": 'posts = "/:year/:slug/"\n',
            "config/production/hugo.yaml": "baseURL: https://a.example/blog\n",
            "hugo.toml": "",
            "content/posts/one.md": POST.format("One Two"),
        },
    )

    assert (journal.title, journal.author, journal.lang) == ("T", "Ann", "en")
    assert journal.origin == "https://a.example"
    assert journal.menu == [("Near", "/blog/about"), ("Far", "https://b.example/")]
    assert find(journal, "posts/one.md").address == "/blog/2024/one-two/"


def test_settings_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """A broken file is named with its line, and a folder without settings is no journal of Hugo."""
    with pytest.raises(UnreadableJournal, match=r"hugo\.toml: .* line 2"):
        read(tmp_path, {"hugo.toml": 'title = "T"\nbad\n'})
    (tmp_path / "hugo.toml").unlink()
    with pytest.raises(UnreadableJournal, match="no settings of Hugo"):
        read_hugo(tmp_path)


@pytest.mark.parametrize(
    ("settings", "file", "head", "address"),
    [
        ("", "posts/My Post.md", "title: T", "/posts/my-post/"),
        ("", "posts/it/index.md", "title: T", "/posts/it/"),
        ("", "posts/Größe Ärger.md", "title: T", "/posts/größe-ärger/"),
        ("removePathAccents = true", "posts/é.md", "title: T", "/posts/e/"),
        ("disablePathToLower = true", "posts/Big.md", "title: T", "/posts/Big/"),
        ("uglyURLs = true", "posts/a.md", "title: T", "/posts/a.html"),
        ("", "posts/a.md", "slug: other", "/posts/other/"),
        ("", "posts/a.md", "url: /2020/my.html", "/2020/my.html"),
        ("", "posts/a.md", "URL: x/y", "/x/y/"),
        (
            'permalinks.posts = "/:year/:month/:day/:title/"',
            "posts/a.md",
            "title: 'Oh, no & yes: 1.0 ?'",
            "/2024/03/05/oh-no-yes-1.0/",
        ),
        (
            'permalinks.page.posts = "/:monthname/:filename"',
            "posts/a/b.md",
            "title: T",
            "/march/b/",
        ),
        (
            'permalinks.posts = "/:sections[1:]/:slugorfilename/"',
            "posts/a/b.md",
            "title: T",
            "/a/b/",
        ),
        (
            'permalinks.posts = "/:section/:slug/"',
            "posts/a/index.md",
            "title: C++ now",
            "/posts/c-now/",
        ),
        (
            'frontmatter.date = [":filename", ":default"]',
            "posts/2020-01-02-old.md",
            "title: T",
            "/posts/old/",
        ),
    ],
)
def test_a_text_has_the_address_that_hugo_gave_it(
    tmp_path: Path, settings: str, file: str, head: str, address: str
) -> None:
    """Paths, heads and settings make the address as Hugo does."""
    journal = read(
        tmp_path,
        {"hugo.toml": settings, f"content/{file}": f"---\n{head}\ndate: 2024-03-05\n---\nWords.\n"},
    )

    assert [text.address for text in journal.texts] == [address]


def test_languages_are_read_from_names_or_folders(tmp_path: Path) -> None:
    """Each language has its own addresses; the journal's own has none in front."""
    settings = (
        'defaultContentLanguage = "de"\n[languages.de]\nweight = 2\n[languages.en]\nweight = 1\n'
    )
    journal = read(
        tmp_path / "names",
        {
            "hugo.toml": settings,
            "content/posts/a/index.md": POST.format("A"),
            "content/posts/a/index.en.md": POST.format("A"),
            "content/posts/a/p.png": "",
        },
    )

    assert {text.source: (text.lang, text.address) for text in journal.texts} == {
        "content/posts/a/index.md": ("", "/posts/a/"),
        "content/posts/a/index.en.md": ("en", "/en/posts/a/"),
    }
    assert journal.lang == "de"
    assert list(journal.files) == ["posts/a/p.png"]
    settings = (
        "defaultContentLanguageInSubdir = true\n"
        '[languages.en]\ncontentDir = "content/en"\n[languages.fr]\ncontentDir = "content/fr"\n'
    )
    folders = {f"content/{lang}/posts/a.md": POST.format("A") for lang in ("en", "fr")}
    journal = read(tmp_path / "folders", {"hugo.toml": settings, **folders})
    assert [text.address for text in journal.texts] == ["/en/posts/a/", "/fr/posts/a/"]


def test_a_head_is_read_whole(tmp_path: Path) -> None:
    """Tags, series, authors, pictures and aliases come from the head, in whatever form."""
    head = (
        '+++\nTitle = "T"\ndate = 2024-03-05\nlastmod = 2024-04-01\ndescription = "D"\n'
        'tags = ["x", "y"]\ncategories = ["z"]\nseries = ["s"]\nauthors = [{name = "Ann"}]\n'
        'aliases = ["/old/", "older"]\ncover = {image = "p.png", alt = "a hill"}\n+++\nText.\n'
    )
    journal = read(tmp_path, {"content/posts/t/index.md": head, "content/posts/t/p.png": "picture"})

    text = journal.texts[0]
    assert (text.tags, text.category, text.series) == (["x", "y", "z"], "z", "s")
    assert (text.author, text.description, text.kind) == ("Ann", "D", "post")
    assert (text.image, text.image_alt) == ("source:content/posts/t/p.png", "a hill")
    assert text.aliases == ["/old/", "/posts/older"]
    assert str(text.date) < str(text.updated)
    assert text.first_line == 13


def test_the_feature_picture_of_a_bundle_becomes_its_image(tmp_path: Path) -> None:
    """Themes take a picture by its name where the head names none."""
    files = {"content/posts/t/index.md": POST.format("T"), "content/posts/t/feature-x.jpg": ""}

    assert read(tmp_path, files).texts[0].image == "source:content/posts/t/feature-x.jpg"


@pytest.mark.parametrize(
    ("head", "status", "found"),
    [
        ("draft: true", "draft", ""),
        ("draft: yes", "draft", ""),
        ("published: off", "draft", ""),
        ("params: {private: true}", "draft", ""),
        ("unlisted: true", "hidden", ""),
        ("draft: maybe", "draft", "`draft: maybe` in its head has no meaning here, so"),
        ("hidden: true", "draft", "`hidden: true` in its head has no meaning here, so"),
        ("date: 2026-13-45", "draft", "`date: 2026-13-45` in its head has no meaning here, so"),
        ("lastmod: soon", "published", "`updated: soon` in its head has no meaning here"),
        ("date: 2999-01-01", "published", ""),
        ("expiryDate: 2001-01-01", "draft", "its last day is over"),
        ("date: 2020-01-01\npublishDate: 2999-01-01", "draft", "its first day is to come"),
        ("publishDate: 2999-01-01", "published", ""),
        ("headless: true", "draft", "no page of its own"),
        ("build: {render: never}", "draft", "no page of its own"),
        ("password: hidden", "draft", "encrypted"),
        ("_build: {list: never}", "hidden", ""),
    ],
)
def test_unpublished_texts_stay_unpublished(
    tmp_path: Path, head: str, status: str, found: str
) -> None:
    """Drafts stay drafts; what else was not shown becomes one, and is reported."""
    journal = read(tmp_path, {"content/posts/a.md": f"---\ntitle: A\n{head}\n---\nText.\n"})

    assert journal.texts[0].status == status
    assert [found in each.what for each in journal.findings] == [True] * bool(found)


def test_pages_posts_and_sections_are_distinguished(tmp_path: Path) -> None:
    """Dated texts of main sections are posts; sections with a text are pages, others lists."""
    journal = read(
        tmp_path,
        {
            "hugo.toml": 'params.mainSections = ["Posts"]',
            "content/_index.md": "Welcome.",
            "content/notes/n.md": POST.format("N"),
            "content/about.md": POST.format("About"),
            "content/archives.md": "---\ntitle: Archive\naliases: [/all/]\n---\n",
            "content/posts/_index.md": "---\ntitle: Posts\n---\n",
            "content/posts/a.md": POST.format("A"),
            "content/talks/_index.md": "---\ntitle: Talks\n---\nThat I gave.\n",
        },
    )

    assert {text.address: (text.kind, text.status) for text in journal.texts} == {
        "": ("page", "draft"),
        "/about/": ("page", "published"),
        "/posts/a/": ("post", "published"),
        "/notes/n/": ("page", "published"),
        "/talks/": ("page", "published"),
    }
    assert journal.redirects["/archives/"] == journal.redirects["/all/"] == "archive:"
    assert journal.redirects["/posts/"] == "posts:"
    assert "/" not in journal.redirects


def test_lists_feeds_and_leaves_lead_somewhere(tmp_path: Path) -> None:
    """Sections, tags and all leaves of lists that the old journal had are redirected."""
    post = "---\ntitle: A\ndate: 2024-01-01\ntags: [Big Cats]\nseries: [S]\n---\nText.\n"
    settings = '[pagination]\npagerSize = 2\n[taxonomies]\ntag = "tags"\nseries = "series"\n'
    posts = {f"content/posts/{number}.md": post for number in range(3)}
    posts["content/tags/big-cats/_index.md"] = "---\ntitle: Big Cats\n---\n"

    redirects = read(tmp_path, {"hugo.toml": settings, **posts}).redirects

    assert redirects["/page/2/"] == "home:"
    assert "/page/3/" not in redirects
    assert (redirects["/index.xml"], redirects["/tags/"]) == ("feed:", "tags:")
    assert redirects["/tags/big-cats/"] == "tag:Big Cats"
    assert redirects["/tags/big-cats/index.xml"] == "feed:Big Cats"
    assert redirects["/tags/big-cats/page/2/"] == "tag:Big Cats"
    assert redirects["/series/s/"] == "archive:"
    assert redirects["/posts/page/2/"] == "posts:"


def test_files_keep_their_addresses(tmp_path: Path) -> None:
    """Files of `static` lie at the root, those of a bundle beside it; sources stay at home."""
    journal = read(
        tmp_path,
        {
            "hugo.toml": 'baseURL = "https://a.example/b/"\n',
            "static/img/a.png": "",
            "content/posts/x.png": "",
            "content/posts/t/index.md": "---\nslug: u\ndate: 2024-01-01\n---\n![](/img/b.png)\n",
            "content/posts/t/in/y.png": "",
            "content/posts/t/part.md": "Inner.",
            "assets/img/b.png": "",
            "assets/img/c.png": "",
            "layouts/index.html": "",
        },
    )

    assert set(journal.files) == {
        "b/img/a.png",
        "b/posts/x.png",
        "b/posts/u/in/y.png",
        "b/img/b.png",
    }
    assert journal.public_paths["content/posts/t/in/y.png"] == "b/posts/u/in/y.png"
    assert find(journal, "posts/t/index.md").body.strip() == "![](source:assets/img/b.png)"
    assert find(journal, "posts/t/part.md").status == "draft"


def test_a_bad_text_stops_no_other(tmp_path: Path) -> None:
    """A head that cannot be read and a format that is not known are left out, and named."""
    journal = read(
        tmp_path,
        {
            "content/posts/bad.md": "+++\ntitle = \n+++\nText.\n",
            "content/posts/good.md": POST.format("Good"),
            "content/posts/other.org": "* Other",
        },
    )

    assert [text.title for text in journal.texts] == ["Good"]
    assert [(each.source, each.line, each.kind) for each in journal.findings] == [
        ("content/posts/bad.md", 2, "left out"),
        ("content/posts/other.org", 0, "left out"),
    ]
    assert not journal.files


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{{< figure src="a.png" alt="A" >}}', "![A](a.png)"),
        (
            '{{< figure src="a.png" caption="A *hill*" link="b.png" >}}',
            "[![A *hill*](a.png)](b.png)\n*A *hill**",
        ),
        ('{{% img src="a b.png" %}}', "![](a%20b.png)"),
        ("{{< youtube abc >}}", "[Video on YouTube](https://www.youtube.com/watch?v=abc)"),
        ('{{< youtube id="https://youtu.be/abc" >}}', "[Video on YouTube](https://youtu.be/abc)"),
        ("{{< gist ann 12 >}}", "[Code on GitHub](https://gist.github.com/ann/12)"),
        (
            '{{< highlight go "linenos=table" >}}\na := `{{ .X }}`\n{{< /highlight >}}',
            "```go\na := `{{ .X }}`\n```",
        ),
        (
            '{{% notice tip "Look" %}}\nA\n\nB\n{{% /notice %}}',
            "> [!TIP]\n> **Look**\n> \n> A\n> \n> B",
        ),
        ("{{< warning >}}\nA\n{{< /warning >}}", "> [!WARNING]\n> A"),
        ('{{< alert "twitter" >}}A{{< /alert >}}', "> [!NOTE]\n> A"),
        ("> [!info]+ Look\n> A", "> [!NOTE]\n> **Look**\n> \n> A"),
        ('{{< timelineItem header="One" >}}\nA\n{{< /timelineItem >}}', "**One**\n\nA"),
        (
            '{{< details summary="More" >}}\n**A**\n{{< /details >}}',
            '<details markdown="1">\n<summary>More</summary>\n\n**A**\n\n</details>',
        ),
        (
            '{{< tabs >}}{{< tab "One" >}}\n- {{< u >}}A{{< /u >}}\n{{< /tab >}}{{< /tabs >}}',
            "**One**\n\n- A",
        ),
        (
            "1. B\n   {{< highlight sh >}}\nls\n{{< /highlight >}}",
            "1. B\n   \n\n   ```sh\n   ls\n   ```",
        ),
        ('{{< button href="/x/" >}}Go{{< /button >}}', "[Go](/x/)"),
        ("A<!--more-->B", "AB"),
        ("`{{</* figure */>}}`", "`{{< figure >}}`"),
        ("```\n{{</* figure */>}}\n```", "```\n{{< figure >}}\n```"),
        ("Write {{%/* ref */%}}.", "Write `{{% ref %}}`."),
        ("```go {linenos=true,hl_lines=[1]}\nx\n```", "```go\nx\n```"),
        ("```\n[a](b.md) {{ .X }}\n```", "```\n[a](b.md) {{ .X }}\n```"),
    ],
)
def test_shortcodes_become_markdown(tmp_path: Path, old: str, new: str) -> None:
    """Shortcodes of Hugo and its themes are written in Markdown, without a finding."""
    body, journal = convert(tmp_path, old)

    assert body == new
    assert not journal.findings


def test_unknown_shortcodes_leave_what_a_reader_can_use(tmp_path: Path) -> None:
    """Inner text, pictures and links stay; each is named with its line; nothing leaks."""
    old = (
        "{{< own >}}Inner {{< note >}}N{{< /note >}}{{< /own >}}\n\n"
        '{{< slides "https://b.example/1" >}}\n\n{{% mine src="/a.png" %}}'
        "{{< gallery x=1 />}}{{< youtube >}}"
    )

    body, journal = convert(tmp_path, old)

    assert body == (
        "Inner \n\n> [!NOTE]\n> N\n\n\n\n[https://b.example/1](https://b.example/1)\n\n![](/a.png)"
    )
    assert sorted((each.line, each.what.split()[2]) for each in journal.findings) == [
        (5, "own"),
        (7, "slides"),
        (9, "gallery"),
        (9, "mine"),
        (9, "youtube"),
    ]


def test_references_find_their_texts(tmp_path: Path) -> None:
    """References by name, path and relative path lead to sources; one that is wrong is named."""
    old = (
        '[1]({{< ref "b.md#x" >}}) [2]({{% relref "/posts/b" %}}) [3](../notes/C.md#y) '
        '[4]({{< relref "notes/C" >}}) [5]({{< ref "none.md" >}}) [6]({{< ref "/tags/t" >}}) '
        '<a href="{{< ref "b" >}}">7</a> [8](/posts/b/)\n\n[9]: b.md'
    )

    body, journal = convert(
        tmp_path,
        old,
        **{
            "content/posts/b/index.md": POST.format("B"),
            "content/notes/C.md": POST.format("C"),
        },
    )

    assert body == (
        "[1](source:content/posts/b/index.md#x) [2](source:content/posts/b/index.md) "
        "[3](source:content/notes/C.md#y) [4](source:content/notes/C.md) [5](none.md) "
        '[6](/tags/t) <a href="source:content/posts/b/index.md">7</a> [8](/posts/b/)\n\n'
        "[9]: source:content/posts/b/index.md"
    )
    assert [each.what for each in journal.findings] == ["the ref 'none.md' leads nowhere"]


def test_no_alias_takes_the_page_with_the_form(tmp_path: Path) -> None:
    """The theme Stack has a page with the alias `contact`, where each journal has its form."""
    about = "---\ntitle: About\naliases: [/contact, about-us]\n---\nText.\n"
    files = {"content/page/about.md": about, "content/posts/a.md": POST.format("A")}

    plan = plan_journal(read(tmp_path, files), "journal")

    heads = {document.address: head["aliases"] for _, document, head in plan.texts}
    assert heads["page/about/"] == ["/page/about-us/"]


@pytest.mark.size("test")
@pytest.mark.parametrize("site", find_sites("hugo-"))
def test_real_journals_keep_their_addresses(site: str) -> None:
    """At least 99 % of the old addresses are those of texts or redirected, and nothing leaks."""
    folder = SHARED / "sites" / site
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))

    journal = read_hugo(folder / "source")

    public = [text for text in journal.texts if text.status != "draft"]
    answering = {text.address for text in public} | journal.redirects.keys()
    met = [url for url in expected["urls"] if url in answering]
    print(f"{site}: {len(met)} of {len(expected['urls'])} addresses")  # noqa: T201
    assert len(met) >= 0.99 * len(expected["urls"])
    assert not [each for each in journal.findings if each.kind == "left out"]
    assert sum(text.status == "draft" for text in journal.texts) == expected["drafts"]
    aliases = {alias for text in public for alias in text.aliases}
    assert {old for old, _ in expected["aliases"]} <= aliases
    assert not [text.source for text in journal.texts if "{{<" in text.body or "{{%" in text.body]


@pytest.mark.parametrize(
    ("handed", "status"),
    [
        ("{draft: true}", "draft"),
        ("[{_target: {kind: page}, build: {render: never}}]", "draft"),
        ("{target: {path: '/{posts,notes}/**'}, draft: true}", "draft"),
        ("{target: {path: /other/**}, draft: true}", "published"),
        ("{target: {kind: section}, draft: true}", "published"),
    ],
)
@pytest.mark.parametrize("place", ["content/posts/_index.md", "content/_index.md", "hugo.yaml"])
def test_cascaded_front_matter_is_applied(
    tmp_path: Path, place: str, handed: str, status: str
) -> None:
    """A draft by the head of its section, of the home page or by the settings stays one."""
    files = {place: f"---\ncascade: {handed}\n---\n".removeprefix("---\n" * place.startswith("h"))}
    files["hugo.yaml"] = files.get("hugo.yaml", "a: b").removesuffix("---\n")
    texts = {
        "content/posts/Deep/a.md": POST.format("A"),
        "content/posts/b.md": "---\ndraft: false\nbuild: {render: always}\n---\nB\n",
    }

    journal = read(tmp_path, files | texts)

    assert find(journal, "posts/Deep/a.md").status == status
    assert find(journal, "posts/b.md").status == "published"


def test_a_section_hands_nothing_to_another(tmp_path: Path) -> None:
    """Only what lies below a section has what its head hands down."""
    handed = "---\ncascade: {draft: true, params: {author: Ann}}\n---\n"
    files = {"content/old/_index.md": handed, "content/posts/a.md": POST.format("A")}

    assert find(read(tmp_path, files), "posts/a.md").status == "published"


def test_a_translation_leaves_the_original_its_name(tmp_path: Path) -> None:
    """Texts in the language of the journal come first, as names and forms are given in turn."""
    settings = "[languages.en]\nweight = 1\n[languages.de]\nweight = 2\n"
    files = {f"content/posts/a/index{each}.md": POST.format("A") for each in ("", ".de")}

    journal = read(tmp_path, {"hugo.toml": settings, **files})

    assert [text.lang for text in journal.texts] == ["", "de"]


def test_redirects_of_a_host_are_read(tmp_path: Path) -> None:
    """Redirects of Netlify are kept; their file is not served."""
    files = {
        "static/_redirects": "# Old\n/old  /posts/a/  301\n",
        "netlify.toml": '[[redirects]]\nfrom = "/older"\nto = "/posts/a/"\n',
        "content/posts/a.md": POST.format("A"),
    }

    journal = read(tmp_path, files)

    assert journal.redirects["/old"] == journal.redirects["/older"] == "/posts/a/"
    assert not journal.files


def test_parameters_and_types(tmp_path: Path) -> None:
    """Parameters replace their names in texts; heads have them in a table too; all authors come."""
    settings = 'params.mainSections = ["post"]\nparams.shop = "Inn"\n'
    head = (
        "---\ntitle: T\ndate: 2024-01-01\ntype: post\nparams: {authors: [Ann, {name: Bob}]}\n---\n"
    )
    body = '{{< param shop >}} {{% param "Title" %}} {{< param gone >}}'

    journal = read(tmp_path, {"hugo.toml": settings, "content/blog/a.md": head + body})

    text = journal.texts[0]
    assert (text.kind, text.author, text.body.strip()) == ("post", "Ann, Bob", "Inn T")
    assert [each.what for each in journal.findings] == ["the shortcode param is not known"]


def test_published_false_is_a_draft(tmp_path: Path) -> None:
    """Hugo takes `published: false` for a draft; a day there is none."""
    head = "---\ntitle: A\ndate: 2024-01-01\npublished: {}\n---\nWords.\n"
    files = {f"content/posts/{e}.md": head.format(e) for e in ("false", "2024-01-01")}
    journal = read(tmp_path, files)
    assert find(journal, "posts/false.md").status == "draft"
    assert find(journal, "posts/2024-01-01.md").status == "published"


def test_built_drafts_are_public_and_lost_keys_are_counted(tmp_path: Path) -> None:
    """A journal that shows its drafts has none, except what is private; taxonomies are read."""
    files = {
        "hugo.toml": "buildDrafts = true\n[taxonomies]\ntag = 'tags'\ntopic = 'topics'\n",
        "content/posts/a.md": "---\ntitle: A\ndraft: yes\ntopics: [x]\nMoood: happy\n---\nText.\n",
        "content/posts/b.md": "---\ntitle: B\npublished: no\nprivate: yes\nmoood: sad\n---\nB.\n",
    }
    journal = read(tmp_path, files)
    assert find(journal, "posts/a.md").status == "published"
    assert find(journal, "posts/b.md").status == "draft"
    assert journal.unread_keys == {"moood": 2}


def test_files_of_a_draft_are_not_published(tmp_path: Path) -> None:
    """Files beside a draft stay out and are named; those of a text with two languages come."""
    draft = POST.format("A").replace("title", "draft: true\ntitle")
    journal = read(
        tmp_path,
        {
            "hugo.toml": 'baseURL = "https://a.example/"\n[languages.en]\n[languages.de]\n',
            "content/posts/secret/index.md": draft,
            "content/posts/secret/salary.pdf": "x",
            "content/posts/both/index.md": draft,
            "content/posts/both/index.de.md": POST.format("B"),
            "content/posts/both/b.pdf": "x",
            "content/posts/c.Rmd": "x",
        },
    )
    assert [name.rpartition("/")[2] for name in journal.files] == ["b.pdf"]
    assert any(each.source.endswith("salary.pdf") for each in journal.findings)
