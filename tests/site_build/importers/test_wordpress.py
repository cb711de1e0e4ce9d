"""Exports of WordPress: small ones written here, and those of real journals."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from site_build.importers.detect import read_journal
from site_build.importers.imported import Imported, UnreadableJournal
from site_build.importers.wordpress import read_wordpress
from tests.shared_material import SHARED, find_sites

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/"
 xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:wp="http://wordpress.org/export/1.2/">
<channel><title>A &amp; B</title><description>Of <![CDATA[<i>things</i>]]></description>
<language>de-DE</language><wp:wxr_version>1.2</wp:wxr_version>
<wp:base_site_url>https://old.example</wp:base_site_url>
<wp:base_blog_url>https://old.example/blog</wp:base_blog_url>
<wp:author><wp:author_login>jo</wp:author_login>
<wp:author_display_name>Jo Doe</wp:author_display_name></wp:author>
<wp:category><wp:term_id>7</wp:term_id><wp:category_nicename>child</wp:category_nicename>
<wp:category_parent>top</wp:category_parent><wp:cat_name>Child</wp:cat_name></wp:category>
"""

Export = Callable[..., Imported]


def item(content: str = "Words.", extra: str = "", **fields: str) -> str:
    """Return an item of an export."""
    values = {
        "post_id": "5",
        "post_date": "2013-07-01 01:30:00",
        "post_date_gmt": "2013-07-01 01:30:00",
        "post_name": "hello",
        "status": "publish",
        "post_type": "post",
        "post_password": "",
    } | fields
    link = values.pop("link", "https://old.example/blog/2013/07/hello/")
    title = values.pop("title", "Hello")
    excerpt = values.pop("excerpt", "")
    elements = "".join(f"<wp:{key}>{value}</wp:{key}>" for key, value in values.items())
    return (
        f"<item><title>{title}</title><link>{link}</link><dc:creator>jo</dc:creator>"
        f"<content:encoded><![CDATA[{content}]]></content:encoded>"
        f"<excerpt:encoded>{excerpt}</excerpt:encoded>{elements}{extra}</item>"
    )


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Return what reads an export with the items given."""

    def read(*items: str, head: str = HEAD) -> Imported:
        path = tmp_path / "export.xml"
        path.write_text(f"{head}{''.join(items)}</channel></rss>", encoding="utf-8")
        return read_wordpress(path)

    return read


def meta(key: str, value: str) -> str:
    """Return a note about an item."""
    return (
        f"<wp:postmeta><wp:meta_key>{key}</wp:meta_key>"
        f"<wp:meta_value>{value}</wp:meta_value></wp:postmeta>"
    )


def test_a_post_comes_with_all_that_it_had(export: Export) -> None:
    """Title, dates in the journal's zone, terms, author, summary, picture and addresses."""
    journal = export(
        item(
            extra='<category domain="category" nicename="child">Child</category>'
            '<category domain="post_tag" nicename="a-b">A b</category>'
            '<category domain="category" nicename="uncategorized">Uncategorized</category>'
            + meta("_wp_old_slug", "hallo")
            + meta("_thumbnail_id", "9"),
            title="Hello &amp;amp; &lt;em&gt;you&lt;/em&gt;",
            excerpt="In &lt;b&gt;short&lt;/b&gt;",
        ),
        item(
            post_id="9",
            post_type="attachment",
            status="inherit",
            post_parent="5",
            link="https://old.example/blog/2013/07/hello/sea/",
            attachment_url="https://old.example/blog/wp-content/uploads/2013/07/sea.jpg",
            excerpt="Summer",
            extra=meta("_wp_attachment_image_alt", "The sea"),
        ),
    )

    [text] = journal.texts
    assert (journal.title, journal.description, journal.lang) == ("A & B", "Of things", "de-DE")
    assert (journal.origin, journal.author) == ("https://old.example", "Jo Doe")
    assert (text.title, text.body, text.kind) == ("Hello & you", "Words.\n", "post")
    assert text.date is not None
    assert text.date.isoformat() == "2013-07-01T01:30:00"
    assert (text.tags, text.category, text.author) == (["A b", "Child"], "Child", "Jo Doe")
    assert (text.description, text.slug) == ("In short", "hello")
    assert text.image == "https://old.example/blog/wp-content/uploads/2013/07/sea.jpg"
    assert text.image_alt == "The sea"
    assert text.address == "/blog/2013/07/hello/"
    assert text.aliases == ["/blog/2013/07/hallo/", "/blog/?p=5"]
    assert journal.redirects["/blog/2013/07/hello/sea/"] == f"source:{text.source}"
    assert {
        "/blog/category/top/child/": "tag:Child",
        "/blog/category/child/": "tag:Child",
        "/blog/?cat=7": "tag:Child",
        "/blog/tag/a-b/": "tag:A b",
        "/blog/tag/a-b/feed/": "feed:A b",
        "/blog/author/jo/": "posts:",
        "/blog/2013/07/": "archive:",
        "/blog/feed/": "feed:",
        "/blog/comments/feed/": "feed:",
    }.items() <= journal.redirects.items()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "private"}, "private"),
        ({"status": "pending"}, "review"),
        ({"status": "future"}, "scheduled"),
        ({"post_password": "secret"}, "password"),
        ({"status": "draft", "post_date_gmt": "0000-00-00 00:00:00"}, None),
    ],
)
def test_unpublished_texts_become_drafts(
    export: Export, fields: dict[str, str], reason: str | None
) -> None:
    """Nothing of it gets an address, and a finding says why."""
    journal = export(item(**fields))

    [text] = journal.texts
    assert (text.status, text.address, text.aliases) == ("draft", "", [])
    assert [reason in each.what for each in journal.findings if reason] == [True] * bool(reason)
    assert "secret" not in repr(journal)


def test_items_that_are_no_texts_are_named(export: Export) -> None:
    """Pages of other kinds are named each; revisions and what is in the bin are counted."""
    journal = export(
        item(),
        item(post_type="product", post_id="6", title="Shirt"),
        item(post_type="acf-field-group", post_id="7"),
        item(status="trash", post_id="8"),
    )

    assert len(journal.texts) == 1
    assert [(each.what, each.kind) for each in journal.findings] == [
        ("'Shirt' of the kind product, at /blog/2013/07/hello/, is left out", "changed"),
        ("1 of the kind acf-field-group (publish) are no texts", "changed"),
        ("1 of the kind post (trash) are no texts", "changed"),
    ]


def test_addresses_of_lists(export: Export) -> None:
    """Parents of categories are in their addresses, each once; lists have several pages."""
    parent = (
        "<wp:category><wp:term_id>3</wp:term_id><wp:category_nicename>top</wp:category_nicename>"
        "<wp:category_parent>all</wp:category_parent></wp:category>"
    )
    terms = (
        '<category domain="category" nicename="child">Child</category>'
        '<category domain="post_tag" nicename="child">Small</category>'
    )

    journal = export(*(item(terms, terms, post_id=str(n)) for n in range(11)), head=HEAD + parent)

    assert {
        "/blog/category/all/top/child/": "tag:Child",
        "/blog/?tag=child": "tag:Small",
        "/blog/2013/07/hello/feed/": "feed:",
        "/blog/page/2/": "posts:",
    }.items() <= journal.redirects.items()
    assert not [old for old in journal.redirects if "//" in old]


def test_dates_are_those_that_the_journal_showed(export: Export) -> None:
    """Its zone is in no export, which is a finding."""
    [finding] = export(item(post_date_gmt="2013-06-30 23:30:00"), item(post_id="6")).findings

    assert "TIMEZONE" in finding.fix


def test_a_text_of_the_classic_editor(export: Export) -> None:
    """Blank lines begin paragraphs, single ones break lines, code keeps both."""
    journal = export(
        item(
            "One\ntwo\n\n<b>Three</b>\n<ul>\n<li>a</li>\n</ul>\nx\n\n"
            "<pre>a\n\n b</pre>\nEnd<!--more-->"
        )
    )

    assert (
        journal.texts[0].body == "One  \ntwo\n\n**Three**\n\n- a\n\nx\n\n```\na\n\n b\n```\n\nEnd\n"
    )


def test_a_text_of_blocks(export: Export) -> None:
    """Comments of blocks vanish, embeds become links, blocks without a text are named."""
    journal = export(
        item(
            "<!-- wp:paragraph -->\n<p>One\ntwo</p>\n<!-- /wp:paragraph -->\n\n"
            '<!-- wp:embed {"url":"https://youtu.be/x"} -->\n<figure><div>\nhttps://youtu.be/x\n'
            "</div></figure>\n<!-- /wp:embed -->\n"
            '<!-- wp:syntaxhighlighter/code {"language":"php"} -->\n<pre>a</pre>\n<!-- /wp:x -->\n'
            "<!-- wp:latest-posts /-->"
            '<!-- wp:block {"ref":7} /-->'
            '<pre class="wp-block-verse">a\n <em>b</em></pre>'
        ),
        item("<p>Again</p>", post_id="7", post_type="wp_block"),
    )

    assert (
        journal.texts[0].body
        == "One two\n\n<https://youtu.be/x>\n\n```php\na\n```\n\nAgain\n\na  \n *b*\n"
    )
    assert "latest-posts" in journal.findings[0].what
    assert len(journal.texts) == 1


@pytest.mark.parametrize(
    ("content", "body"),
    [
        (
            '[caption id="a"]<a href="/l"><img src="/p.jpg" alt="P"></a> The <i>sea</i>[/caption]',
            "[![P](/p.jpg)](/l)\n*The sea*",
        ),
        ('[caption caption="Old"]<img src="/p.jpg">[/caption]', "![](/p.jpg)\n*Old*"),
        (
            '[php]echo "&lt;a&gt;"; // [x]\n\n$a_b*c;[/php]',
            '```php\necho "<a>"; // [x]\n\n$a_b*c;\n```',
        ),
        ("[code lang='sql']SELECT *[/code]", "```sql\nSELECT *\n```"),
        ("[embed width=5]https://e.org/a_b[/embed]", "<https://e.org/a_b>"),
        ("[youtube=http://youtube.com/watch?v=x&w=640]", "<http://youtube.com/watch?v=x>"),
        ('[audio mp3="https://e.org/a.mp3"][/audio]', "<https://e.org/a.mp3>"),
        ("https://e.org/_a_", "<https://e.org/_a_>"),
        ("[[gallery]] and [sic] and [1]", r"\[gallery\] and \[sic\] and \[1\]"),
        ("[vimeo 12 w=5]", "[vimeo 12](https://vimeo.com/12)"),
        ("a [latex]x_1[/latex] b", "a $x_1$ b"),
    ],
)
def test_shortcodes(export: Export, content: str, body: str) -> None:
    """The shortcodes of WordPress itself become what they showed."""
    journal = export(item(content))

    assert journal.texts[0].body == f"{body}\n"
    assert not journal.findings


def test_unknown_shortcodes_are_named_and_leave_no_trace(export: Export) -> None:
    """The text between them is kept."""
    journal = export(
        item(
            '[box color="red"]In[/box] <b>[wpforms id="1"]</b>[quote]Q[/quote][su_x][toc]'
            "[insta-feed][map https://e.org][et_image src='https://e.org/a.png' alt='x']"
        )
    )

    assert journal.texts[0].body.split() == ["In", "Q", "![](https://e.org/a.png)"]
    assert [each.what for each in journal.findings] == [
        "holds what is not known here: box, et_image, insta-feed, map, quote, su_x, toc, wpforms"
    ]


@pytest.mark.parametrize("begin", ["[code]a ", "[caption a='b'", "[x_y z='", "[gallery ids='"])
def test_many_shortcodes_without_an_end_take_no_time(export: Export, begin: str) -> None:
    """Each is looked for once."""
    start = time.process_time()

    assert export(item(begin * 5_000)).texts
    assert time.process_time() - start < 5


def test_galleries_and_pictures_of_a_local_folder(export: Export, tmp_path: Path) -> None:
    """Pictures of the uploads folder come along, without the smaller copies of them."""
    folder = tmp_path / "uploads" / "2013" / "07"
    folder.mkdir(parents=True)
    for name in ("sea.jpg", "sea-300x200.jpg", "board-10x10.png"):
        (folder / name).write_bytes(b"x")
    url = "https://old.example/blog/wp-content/uploads/2013/07/"

    journal = export(
        item(f'<img src="{url}sea-300x200.jpg?w=9" alt="">\n\n[gallery ids="9" columns="3"]'),
        item(post_id="9", post_type="attachment", status="inherit", attachment_url=f"{url}sea.jpg"),
    )

    path = "blog/wp-content/uploads/2013/07"
    assert sorted(journal.files) == [f"{path}/board-10x10.png", f"{path}/sea.jpg"]
    assert journal.texts[0].body == f"![](/{path}/sea.jpg)\n\n![](/{path}/sea.jpg)\n"


def test_comments_are_kept_without_addresses(export: Export) -> None:
    """Spam is not; answers know what they answer."""
    comment = (
        "<wp:comment><wp:comment_id>1</wp:comment_id><wp:comment_author>Ann</wp:comment_author>"
        "<wp:comment_author_email>ann@example.org</wp:comment_author_email>"
        "<wp:comment_author_IP>192.0.2.1</wp:comment_author_IP>"
        "<wp:comment_date_gmt>2013-07-02 10:00:00</wp:comment_date_gmt>"
        "<wp:comment_content>Good</wp:comment_content>"
        "<wp:comment_approved>{}</wp:comment_approved>"
        "<wp:comment_parent>{}</wp:comment_parent></wp:comment>"
    )
    journal = export(
        item(extra=comment.format(1, 0) + comment.format(0, 1) + comment.format("spam", 0))
    )

    assert [(each["author"], each["text"], each["answers"]) for each in journal.comments] == [
        ("Ann", "Good", "0"),
        ("Ann", "Good", "1"),
    ]
    assert journal.comments[0]["post"] == "/blog/2013/07/hello/"
    assert "ann@example.org" not in repr(journal)
    assert "192.0.2.1" not in repr(journal)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (HEAD + item()[:-40], "is cut"),
        ("{}", "no journal of wordpress"),
        ("<rss><channel><title>A feed</title><item></item></channel></rss>", "no journal"),
        (HEAD + "</channel></rss>", "no post and no page"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + HEAD + item() + "</channel></rss>", "document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd">' + HEAD + "</channel></rss>", "document type"),
    ],
)
def test_an_incomplete_export_is_refused(tmp_path: Path, document: str, sentence: str) -> None:
    """A sentence says so."""
    path = tmp_path / "export.xml"
    path.write_text(document.replace('<?xml version="1.0" encoding="UTF-8"?>\n', ""))

    with pytest.raises(UnreadableJournal, match=sentence):
        read_journal(path, "wordpress")


def test_broken_characters_stop_nothing(tmp_path: Path) -> None:
    """Characters that XML does not allow vanish; bytes of Windows' encoding are read as such."""
    path = tmp_path / "export.xml"
    data = f"{HEAD}{item('a[b]c ü')}</channel></rss>".encode().replace(b"[b]", b"\x0b\x93x\x94")
    path.write_bytes(b"\xef\xbb\xbf" + data)

    assert read_wordpress(path).texts[0].body == "a“x”c ü\n"


def test_exports_in_several_files(export: Export, tmp_path: Path) -> None:
    """All exports of a folder are one journal; other files of XML are no exports."""
    (tmp_path / "2.xml").write_text(f"{HEAD}{item(post_id='6')}</channel></rss>")
    (tmp_path / "sitemap.xml").write_text("<urlset/>")
    export(item())

    assert [each.source for each in read_wordpress(tmp_path).texts] == ["2.xml/6", "export.xml/5"]


def test_one_bad_item_stops_no_other(export: Export) -> None:
    """It is named as left out."""
    journal = export(item(post_date="soon", post_date_gmt="soon", title="Bad"), item(post_id="6"))

    assert [text.title for text in journal.texts] == ["Hello"]
    assert [(each.kind, "'Bad'" in each.what) for each in journal.findings] == [("left out", True)]


def test_a_page_with_an_address_of_numbers(export: Export) -> None:
    """The address with its query is the text's own."""
    journal = export(
        item(post_type="page", link="https://old.example/blog/?page_id=5", title="", post_name="")
    )

    [text] = journal.texts
    assert (text.kind, text.address, text.aliases) == ("page", "/blog/?page_id=5", [])
    assert text.title == "Untitled 5"


@pytest.mark.size("test")
@pytest.mark.parametrize("name", find_sites("wxr-"))
def test_journals_of_others(name: str) -> None:
    """Each text that was public has its address; files broken as a whole are refused."""
    folder = SHARED / "sites" / name
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    protected = {each["url"] for each in expected["items"] if each.get("password_protected")}
    wanted = sorted(
        unquote(url).replace("//", "/") for url in expected["urls"] if url not in protected
    )
    found, refused = [], []
    for path in sorted((folder / "source").glob("*.xml")):
        try:
            texts = read_journal(path, "wordpress").texts
        except UnreadableJournal:
            refused.append(path.name)
            continue
        found += [each.address for each in texts if each.status == "published"]

    assert sorted(found) == wanted
    assert set(refused) <= {"malformed.xml", "missing-version-tag.xml"}


@pytest.mark.parametrize(
    ("content", "extra"),
    [
        ("Words.", meta("_jetpack_newsletter_access", "subscribers")),
        ("<!-- wp:jetpack/paywall /--><p>Words.</p>", ""),
        ("<!-- wp:premium-content/container --><p>Words.</p>", ""),
        *(
            (f"[{name}]Words.[/x]", "")
            for name in ("membership level=1", "members_only", "private")
        ),
        *((f"[{name}]Words.[/x]", "") for name in ("s2If x", "mepr-show if=1", "wlm_private")),
    ],
)
def test_texts_for_members_become_drafts(export: Export, content: str, extra: str) -> None:
    """Marks of plugins for members make a text a draft, and say so; others do not."""
    other = item("[restricted] words", meta("_jetpack_newsletter_access", "everybody"), post_id="6")
    journal = export(item(content, extra), other)
    assert [text.status for text in journal.texts] == ["draft", "published"]
    assert "members alone" in journal.findings[0].what


def test_uploads_that_were_not_for_readers(export: Export, tmp_path: Path) -> None:
    """Files that are sold, programs, copies of the site, and what a link leads to stay out."""
    names = {
        "2020/01/a.pdf",
        "tool/b.pdf",
        "woocommerce_uploads/c.pdf",
        "tool/d.pdf",
        "wc-logs/fatal.log",
        "backup.sql",
        "site.zip",
        "x.php",
    }
    for name in names:
        path = tmp_path / "uploads" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    url = "https://old.example/blog/wp-content/uploads"
    journal = export(item(f'<a href="{url}/tool/b.pdf">b</a> {url}/woocommerce_uploads/c.pdf'))
    assert {name.partition("uploads/")[2] for name in journal.files} == {
        "2020/01/a.pdf",
        "tool/b.pdf",
    }
    assert any("6 files of the uploads" in each.what for each in journal.findings)
