"""Journals of Jekyll, Octopress and Hexo."""

import json
from pathlib import Path

import pytest

from site_build.importers.imported import Imported, Text, UnreadableJournal
from site_build.importers.jekyll import read_jekyll
from tests.shared_material import SHARED, find_sites


@pytest.fixture
def read(tmp_path: Path) -> "Read":
    """Return a reader of a journal with the files that it is given."""
    return Read(tmp_path)


class Read:
    """Writes files, and reads the journal that they are."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, files: dict[str, str]) -> Imported:
        """Write files and read all."""
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        return read_jekyll(self.root)

    def one(self, body: str, head: str = "title: A", config: str = "title: Mine\n") -> Text:
        """Return the one post of a journal."""
        post = {"_config.yml": config, "_posts/2020-01-02-a.md": f"---\n{head}\n---\n{body}"}
        return self(post).texts[0]


@pytest.mark.parametrize(
    ("config", "head", "address"),
    [
        ("", "", "/2020/01/02/My-First.v2.html"),
        ("permalink: pretty", "", "/2020/01/02/My-First.v2/"),
        ("permalink: none", "category: Big News", "/big news/My-First.v2.html"),
        ("permalink: ordinal", "categories: a b", "/a/b/2020/002/My-First.v2.html"),
        ("permalink: /:short_year/:i_month/:i_day/:slug", "", "/20/1/2/my-first-v2"),
        ("permalink: /blog/:title.html", "slug: other", "/blog/other.html"),
        ("permalink: /:year-:month-:day-:title/", "", "/2020-01-02-My-First.v2/"),
        ("permalink: pretty", "permalink: /own/", "/own/"),
        ("baseurl: /b/\npermalink: pretty", "", "/b/2020/01/02/My-First.v2/"),
        ("collections:\n  posts:\n    permalink: /n/:title/", "", "/n/My-First.v2/"),
        (
            "defaults:\n- scope: {path: '', type: posts}\n  values: {permalink: /posts/:title/}",
            "",
            "/posts/My-First.v2/",
        ),
        # A time without a zone is UTC to Ruby, and the evening before in New York.
        ("timezone: America/New_York", "date: 2020-01-02 01:00", "/2020/01/01/My-First.v2.html"),
        ("timezone: America/New_York", "date: 2020-01-03", "/2020/01/03/My-First.v2.html"),
        ("", "date: sometime", "/2020/01/02/My-First.v2.html"),
    ],
)
def test_addresses_of_posts(read: Read, config: str, head: str, address: str) -> None:
    """Posts have the addresses that Jekyll gives them."""
    found = read(
        {"_config.yml": config, "_posts/2020-01-02-My-First.v2.md": f"---\n{head}\n---\nWords\n"}
    )
    assert [text.address for text in found.texts] == [address]


@pytest.mark.parametrize(
    ("style", "addresses"),
    [
        ("date", {"/about.html", "/team/", "/team/us.html", "/docs/a/b.html"}),
        ("pretty", {"/about/", "/team/", "/team/us/", "/docs/a/b/"}),
        ("/:title", {"/about", "/team/", "/team/us", "/docs/a/b"}),
    ],
)
def test_pages_are_imported(read: Read, style: str, addresses: set[str]) -> None:
    """Pages, in folders and collections too, end as posts do; a collection may have none."""
    found = read(
        {
            "_config.yml": f"permalink: {style}\n"
            "collections: {docs: {output: true}, hidden: {}}",
            "about.md": "---\ntitle: A\n---\nWords",
            "team/index.html": "---\n---\n<p>Words <b>here</b></p>",
            "team/us.markdown": "---\n---\nWords",
            "_docs/a/b.md": "---\n---\nWords",
            "_hidden/a.md": "---\n---\nWords",
            "_layouts/default.html": "---\n---\nWords",
        }
    )
    assert {text.address for text in found.texts} == addresses
    assert {text.kind for text in found.texts} == {"page"}
    assert next(text for text in found.texts if text.source == "team/index.html").body.strip() == (
        "Words **here**"
    )


def test_a_folder_of_collections(read: Read) -> None:
    """The folder in which all collections are is no category of the posts in it."""
    found = read(
        {
            "_config.yml": "collections_dir: all\ncollections: {notes: {output: true}}\n",
            "all/_posts/2020-01-02-a.md": "---\n---\nWords",
            "all/_notes/b.md": "---\n---\nWords",
        }
    )
    assert [text.address for text in found.texts] == ["/notes/b.html", "/2020/01/02/a.html"]


def test_the_front_matter_of_a_post_is_read(read: Read) -> None:
    """A head gives names, dates, tags, folders and pictures, and what themes call them."""
    found = read(
        {
            "_config.yml": "title: 'Mine: all'\nurl: https://a.example\nlang: en_GB\n"
            "author: {name: Ann}\ntimezone: Europe/Berlin\nplugins: [jekyll-feed]\n"
            "jekyll-archives: {permalinks: {tag: '/t/:name/'}}",
            "life/_posts/2020-01-02-a.md": "---\ntitle: A: b\ndate: 2020-01-02 10:00 +0000\n"
            "tags: [One two, b]\ncategories: c d\nlast_modified_at: 2021-01-01\n"
            "redirect_from: [/old/, older.html]\nheader:\n  teaser: /pics/a.png\n"
            "excerpt: Short\n---\n\nWords\n",
            "pics/a.png": "",
        }
    )
    (text,) = found.texts
    assert (found.title, found.origin, found.lang) == ("Mine: all", "https://a.example", "en-GB")
    assert (found.author, found.timezone) == ("Ann", "Europe/Berlin")
    assert (text.title, text.description, text.first_line) == ("A: b", "Short", 12)
    assert text.date is not None
    assert text.date.isoformat() == "2020-01-02T11:00:00+01:00"
    assert (text.tags, text.category) == (["One two", "b", "life", "c", "d"], "life")
    assert text.address == "/life/c/d/2020/01/02/a.html"
    assert (text.aliases, text.image) == (["/old/", "/older.html"], "source:pics/a.png")
    assert found.redirects["/t/one-two/"] == "tag:One two"
    assert found.redirects["/feed.xml"] == "feed:"
    assert list(found.files) == ["pics/a.png"]


def test_drafts_are_imported(read: Read) -> None:
    """An unpublished text is a draft without an address, and a broken head is left out."""
    found = read(
        {
            "_drafts/a.md": "---\ntitle: A\n---\nWords",
            "_posts/2020-01-02-b.md": "---\npublished: false\n---\nWords",
            "_posts/undated.md": "---\ntitle: C\n---\nWords",
            "_posts/2020-01-02-d.md": "---\ntitle: D\nnonsense\n---\nWords",
            "_posts/2020-01-02-e.textile": "---\ntitle: E\n---\nWords",
        }
    )
    assert [(text.status, text.address) for text in found.texts] == [("draft", "")] * 3
    assert [(each.source, each.line, each.kind) for each in found.findings] == [
        ("_posts/2020-01-02-d.md", 3, "left out"),
        ("_posts/2020-01-02-e.textile", 0, "left out"),
    ]


@pytest.mark.parametrize(
    ("line", "status", "found"),
    [
        ("published: no", "draft", ""),
        ("draft: yes", "draft", ""),
        ("private: on", "draft", ""),
        ("published: 2020-01-02", "published", ""),
        ("unlisted: true", "hidden", ""),
        ("published: soon", "draft", "`published: soon` in its head has no meaning here, so"),
        ("hidden: true", "draft", "`hidden: true` in its head has no meaning here, so"),
        ("date: 2026-99-99", "published", "`date: 2026-99-99` in its head has no meaning here"),
        ("updated: soon", "published", "`updated: soon` in its head has no meaning here"),
    ],
)
def test_words_about_readers(read: Read, line: str, status: str, found: str) -> None:
    """A text is kept from readers by any word that may mean so; what is not known is named."""
    text = read.one("Words", f"title: A\n{line}\nmoood: happy")
    journal = read({})
    assert (text.status, bool(text.address)) == (status, status != "draft")
    assert str(text.date)[:10] == "2020-01-02"
    assert [each.what[: len(found)] for each in journal.findings] == [found] * bool(found)
    assert journal.unread_keys == {"moood": 1}


def test_lists_are_redirected(read: Read) -> None:
    """Pages that a theme fills lead to what this journal has in their place, and are named."""
    found = read(
        {
            "index.html": "---\nlayout: home\n---\n{% for post in paginator.posts %}x{% endfor %}",
            "blog/archive.html": "---\n---\n<h1>All</h1>{% for p in site.posts %}x{% endfor %}",
            "tags.md": "---\nlayout: tags\npermalink: /all-tags/\n---\n",
            "404.md": "---\n---\nNothing here",
            "demo/index.html": "<p>No head</p>",
            "assets/site.css": "body {}",
            "Gemfile": "",
        }
    )
    assert found.texts == []
    assert found.redirects["/blog/archive.html"] == "archive:"
    assert found.redirects["/all-tags/"] == "tags:"
    assert "/" not in found.redirects
    assert {each.source for each in found.findings} == {
        "index.html",
        "blog/archive.html",
        "tags.md",
        "404.md",
    }
    assert list(found.files) == ["demo/index.html"]


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("{% highlight ruby linenos %}\na\n{% endhighlight %}", "```ruby\na\n```"),
        ("- a\n\n  {% highlight c %}\n  b\n  {% endhighlight %}", "- a\n\n  ```c\n  b\n  ```"),
        ("[a]({{ site.baseurl }}/x)", "[a](/base/x)"),
        ("[a]({{ '/x' | relative_url }})", "[a](/base/x)"),
        ("{{ site.title }}, {{page.title}}", "Mine, A"),
        ("[a]({% post_url 2020-01-02-a %}#b)", "[a](source:_posts/2020-01-02-a.md#b)"),
        ("[a]({% link _posts/2020-01-02-a.md %})", "[a](source:_posts/2020-01-02-a.md)"),
        ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
        ("`{% raw %}{{ x }}{% endraw %}`", "`{{ x }}`"),
        ("```\n${{ secrets.X }}\n```", "```\n${{ secrets.X }}\n```"),
        ("a{% comment %} b {% endcomment %}c", "ac"),
        ('{% include figure image_path="/a.png" alt="B" %}', "![B](source:a.png)"),
        (
            "{% include embed/youtube.html id='abcdefghijk' %}",
            "[YouTube](https://www.youtube.com/watch?v=abcdefghijk)",
        ),
        ("{% gist ann/1f %}", "[Gist](https://gist.github.com/ann/1f)"),
        (
            '<div>\n    {% include figure.liquid path="a.png" title="B" %}\n</div>',
            '<div>\n    <img src="source:a.png" alt="B">\n</div>',
        ),
        ("{% post_link 2020-01-02-a 'The 1st' %}", "[The 1st](source:_posts/2020-01-02-a.md)"),
        ("{% post_link 2020-01-02-a %}", "[2020-01-02-a](source:_posts/2020-01-02-a.md)"),
        ("* TOC\n{:toc}\n\na", "\na"),
        ("## A\n{: #b }\n", "## A {#b}\n"),
        ("a\nb\n{: .notice--warning}\n", "> [!WARNING]\n> a\n> b\n"),
        ("> a\n{: .prompt-tip }\n", "> [!TIP]\n> a\n"),
        ('![a](/b.png){: width="9" .left }\n_c_', "![a](/b.png)\n_c_"),
        ("a $$x$$ b\n\n$$\ny\n$$", "a $x$ b\n\n$$\ny\n$$"),
        ("`{: .a}`\n\n```\n{: .a}\n```", "`{: .a}`\n\n```\n{: .a}\n```"),
        ("{::nomarkdown}a{:/}", "a"),
        (
            "[a]({{ site.url }}{{ site.baseurl }}{% post_url 2020-01-02-a %})",
            "[a](source:_posts/2020-01-02-a.md)",
        ),
        ("{% include base_path %}[a]({{ base_path }}/b.pdf)", "[a](/base/b.pdf)"),
        ("{% twitter https://x.com/a/status/1 %}", "<https://x.com/a/status/1>"),
        ('{% if site.url == "https://a.example" %}b{% endif %}', "b"),
        ('{{ "now" | date: "%Y" }}', ""),
        ("{% include video.html src='/a.mp4' %}", "[/a.mp4](/a.mp4)"),
        (
            "{: .warning }\na\nb\n\n{: .tip-title }\n> c\n",
            "> [!WARNING]\n> a\n> b\n\n> [!TIP]\n> c\n",
        ),
    ],
)
def test_markdown_of_jekyll_is_converted(read: Read, written: str, read_as: str) -> None:
    """Liquid and kramdown become Markdown; code stays as it is."""
    assert read.one(written, config="title: Mine\nbaseurl: /base").body == read_as


def test_unknown_tags(read: Read) -> None:
    """Each tag that is not known is taken out, and named with its line."""
    found = read(
        {"_posts/2020-01-02-a.md": "---\ntitle: A\n---\n\na {% include ad.html %}b\n{{ site.x }}\n"}
    )
    assert found.texts[0].body == "\na b\n\n"
    assert [(each.line, each.what) for each in found.findings] == [
        (5, "{% include ad.html %} is taken out"),
        (6, "{{ site.x }} is taken out"),
    ]


def test_pictures_of_chirpy(read: Read) -> None:
    """A folder of pictures that the head names goes before their names."""
    text = read.one("![a](b.png) ![c](/d.png) ![e](https://f/g.png)", "media_subpath: /img/")
    assert text.body == "![a](/img/b.png) ![c](/d.png) ![e](https://f/g.png)"


def test_minimal_mistakes(read: Read) -> None:
    """Galleries are in the head, authors in a file of data, and a post may be elsewhere."""
    found = read(
        {
            "_data/authors.yml": "bo:\n  name: Bo Li\n",
            "_posts/2020-01-02-a.md": "---\nauthor: bo\ngallery:\n- image_path: /b.png\n  alt: C\n"
            "more: [{image_path: 'https://d/e.png'}]\n---\n{% include gallery caption='F' %}\n\n"
            "{% include gallery id='more' %}",
            "_posts/2020-01-03-b.md": "---\nredirect_to: https://g.example/\nauthor: Di\n---\n",
            "b.png": "",
        }
    )
    assert [text.author for text in found.texts] == ["Bo Li", "Di"]
    assert found.texts[0].body == "![C](source:b.png)\n\n![](https://d/e.png)"
    assert "<https://g.example/>" in found.texts[1].body


def test_a_page_with_words_around_a_list(read: Read) -> None:
    """A page with a loop stays a page where it says more than what the list is."""
    found = read(
        {"a.html": "---\n---\n" + "word " * 30 + "{% for p in site.data.x %}{{ p }}{% endfor %}"}
    )
    assert [text.address for text in found.texts] == ["/a.html"]
    assert "{" not in found.texts[0].body


def test_octopress(read: Read) -> None:
    """The source of Octopress is in a folder of its own."""
    found = read(
        {
            "_config.yml": "source: source\nroot: /\npermalink: /blog/:year/:month/:day/:title/",
            "source/_posts/2012-03-04-a.markdown": "---\ntitle: A\n---\n{% img /images/b.png C %}",
            "source/images/b.png": "",
            "plugins/x.md": "---\n---\nWords",
        }
    )
    (text,) = found.texts
    assert (text.source, text.address) == (
        "source/_posts/2012-03-04-a.markdown",
        "/blog/2012/03/04/a/",
    )
    assert text.body == "![C](source:source/images/b.png)"
    assert found.public_paths == {"source/images/b.png": "images/b.png"}


def test_hexo(read: Read) -> None:
    """Hexo dates posts in their heads, whose first line may be missing."""
    found = read(
        {
            "_config.yml": "title: H\nlanguage: zh-CN\ntimezone: Asia/Shanghai\n"
            "permalink: :year/:month/:day/:title/\nroot: /h/",
            "source/_posts/你好 x.md": "title: 你好\ndate: 2020-01-02 03:04:05\n"
            "tags:\n- a\ncategories:\n- [Web Dev, b]\n---\n"
            "<!-- more -->\n{% asset_img p.png A b %}\n{% code lang:js %}\nc\n{% endcode %}\n"
            "![](p.png) ![](/q.png) {% asset_link p.png D %} {% link e https://f.example %}\n",
            "source/q.png": "",
            "source/_posts/你好 x/p.png": "",
            "source/about/index.md": "---\ntitle: About\n---\nWords",
            "themes/x/README.md": "---\n---\nWords",
        }
    )
    post, page = found.texts
    assert (post.address, page.address) == ("/h/2020/01/02/你好 x/", "/h/about/")
    assert (post.tags, post.category) == (["a", "Web Dev", "b"], "Web Dev")
    picture = "(source:source/_posts/你好%20x/p.png)"
    assert post.body == (
        f"<!-- more -->\n![A b]{picture}\n```js\nc\n```\n"
        f"![]{picture} ![](source:source/q.png) [D]{picture} <https://f.example>\n"
    )
    assert found.redirects["/h/tags/a/"] == "tag:a"
    assert (found.system, found.lang) == ("Hexo", "zh-CN")


def test_addresses_of_hexo(read: Read) -> None:
    """A post has the address of its head; the path of `url` is before all addresses."""
    found = read(
        {
            "_config.yml": "url: https://a.example/b\npermalink: posts/:abbrlink.html\n",
            "source/_posts/c.md": "---\ntitle: C\ndate: 2020-01-02\nabbrlink: 3f\n---\nWords",
        }
    )
    assert (found.origin, found.texts[0].address) == ("https://a.example", "/b/posts/3f.html")
    assert found.redirects["/b/archives/"] == "archive:"


@pytest.mark.parametrize("config", ["title: A\nnonsense\n", "defaults: true\n"])
def test_broken_settings(read: Read, config: str) -> None:
    """Settings that cannot be read are refused with a sentence."""
    with pytest.raises(UnreadableJournal, match=r"_config\.yml"):
        read({"_config.yml": config})


@pytest.mark.parametrize("site", find_sites("jekyll-"))
def test_real_sites_keep_their_addresses(site: str) -> None:
    """Every post and page of real sites is read, at the address that it had."""
    folder = SHARED / "sites" / site
    expected = json.loads((folder / "expected.json").read_text())

    found = read_jekyll(folder / "source")

    addresses = {text.address for text in found.texts if text.status == "published"}
    assert set(expected["urls"]) - addresses == set()
    assert len(found.texts) <= len(expected["urls"]) + 1  # a home page with words of its own
    led = found.redirects.keys() | {alias for text in found.texts for alias in text.aliases}
    assert {old for old, _ in expected["aliases"]} <= led
    assert not [each for each in found.findings if each.kind == "left out"]


def test_texts_with_a_password_become_drafts(read: Read) -> None:
    """A password in a head is no secret of a public page."""
    assert read.one("Words.", "title: A\npassword: x").status == "draft"


def test_files_of_drafts_stay_out(read: Read) -> None:
    """A file beside a draft, and a copy of an editor, are not published."""
    journal = read({"_config.yml": "", "_drafts/plan.pdf": "x", "a.md~": "x", "b.pdf": "x"})
    assert list(journal.files) == ["b.pdf"]


def test_settings_in_toml(read: Read) -> None:
    """They are read as those in YAML are, and what they leave out stays out."""
    journal = read({"_config.toml": 'title = "Mine"\nexclude = ["in"]\n', "in/a.md": "A"})
    assert (journal.title, journal.texts) == ("Mine", [])
