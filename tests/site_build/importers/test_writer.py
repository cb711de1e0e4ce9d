"""A journal of another system becomes one of this: addresses, heads, links, files and reports."""

import io
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PIL import Image

from site_build.content.document import read_document
from site_build.errors import BuildError
from site_build.importers.detect import detect
from site_build.importers.imported import Imported, Text, UnreadableJournal
from site_build.importers.links import Links, rewrite_links, write_link
from site_build.importers.plan import Plan, plan_journal, summarize
from site_build.importers.writer import write_journal

MARCH = datetime.fromisoformat("2020-03-01")
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>'


def make_post(name: str, body: object = "Words.", **more: object) -> Text:
    """Return a post of March 2020 at a dated address."""
    values = {
        "title": name.capitalize(),
        "address": f"/2020/03/{name}/",
        "date": MARCH,
    }
    return Text(f"content/post/{name}.md", str(body), **{**values, **more})  # type: ignore[arg-type]


def make_journal(*texts: Text, **more: object) -> Imported:
    """Return a journal with these texts."""
    values = {"title": "Ink", "origin": "https://old.example", "timezone": "Europe/Rome"}
    return Imported("Hugo", texts=list(texts), **{**values, **more})  # type: ignore[arg-type]


def read(plan: Plan, name: str) -> str:
    """Return a planned file's text."""
    content = plan.files[name]
    assert isinstance(content, bytes)
    return content.decode()


def check_heads(plan: Plan) -> None:
    """Assert that the build takes every text."""
    for name in plan.files:
        if name.endswith(".md"):
            path = name.removeprefix("content/")
            document, findings = read_document(path, read(plan, name).encode(), plan.rules)
            assert document, findings


def test_posts_stay_where_they_were() -> None:
    """The form that most posts share is the journal's; others lead to where they are now."""
    plan = plan_journal(
        make_journal(
            make_post("oak"),
            make_post("elm"),
            make_post("ash", address="/news/ash.html"),
            make_post("fir", address="/?p=12"),
            Text("about.md", "We.", "About", "/about.html", "page"),
        ),
        "ink",
    )
    assert plan.settings["ARTICLE_URL"] == "{date:%Y}/{date:%m}/{slug}/"
    assert plan.settings["PAGE_URL"] == "{slug}.html"
    assert {"2020/03/oak/", "2020/03/elm/", "about.html"} <= plan.addresses
    assert "aliases: [/news/ash.html]" in read(plan, "content/posts/ash.md")
    assert read(plan, "content/redirects.txt") == "/?p=12 /2020/03/fir/\n"
    check_heads(plan)


def test_two_posts_with_one_address_are_kept() -> None:
    """The second gets a slug of its own, with a finding, and its address leads to the first."""
    journal = make_journal(make_post("oak"), make_post("oak", title="Another oak"))
    plan = plan_journal(journal, "ink")
    assert [document.slug for _, document, _ in plan.texts] == ["oak", "oak-2"]
    assert [each.what for each in journal.findings if "`oak-2`" in each.what]
    assert summarize(journal, plan)[:2] == (2, 2)
    check_heads(plan)


def test_one_slug_in_two_months_is_two_slugs() -> None:
    """Feeds and the API know a post by its slug, so the second moves and is led to."""
    later = make_post("oak", address="/2021/01/oak/", date=MARCH.replace(2021, 1))
    plan = plan_journal(make_journal(make_post("oak"), later), "ink")
    assert "aliases: [/2021/01/oak/]" in read(plan, "content/posts/oak-2.md")
    assert plan.answers("/2021/01/oak/")


@pytest.mark.parametrize(
    ("more", "finding"),
    [
        ({"tags": ["paper", "🎉"]}, "`tags`"),
        ({"lang": "not a language"}, "`lang`"),
        ({"series": "x" * 200}, "`series`"),
        ({"date": None}, "it had no date"),
        ({"title": ""}, "it had no title"),
        ({"updated": datetime(1999, 1, 1, tzinfo=UTC)}, ""),
        ({"date": datetime(1, 1, 1, tzinfo=UTC)}, "it had no date"),
        ({"slug": "../x", "address": "/%/"}, ""),
        ({"title": "A\x00: 'b' \udc80 # c\n- d"}, ""),
        ({"description": "long " * 80}, ""),
        ({"description": None}, ""),
        ({"body": "x\x00y"}, ""),
        ({"image": "/a (1).svg"}, ""),
    ],
)
def test_a_value_that_the_build_refuses_is_fixed(more: Mapping[str, object], finding: str) -> None:
    """The post is built, and what was taken out is a finding."""
    journal = make_journal(make_post("elm"), make_post("oak", **more), files={"a (1).svg": SVG})
    check_heads(plan_journal(journal, "ink"))
    assert not finding or [each for each in journal.findings if each.what.startswith(finding)]


def test_links_lead_between_files() -> None:
    """Addresses, sources, files and the old host are met; code, and what is elsewhere, stay."""
    body = """[a](/2020/03/elm/#top "t") [b](elm.md) [c](../elm/) [d](https://www.old.example/2020/03/elm)
[e](source:content/post/elm.md#x) ![p](/img/a%20b.svg)
<img src='/img/a b.svg' srcset="/img/x.svg 2x">
[f](https://else.example/2020/03/elm/) [g](#here) `[h](/2020/03/elm/)` [i](<../elm/index.html>)

```
[j](/2020/03/elm/)
```

[k]: /tag/ink/ "title"
[l](/gone/) [m](source:content/gone.md)
"""
    journal = make_journal(
        make_post("oak", body),
        make_post("elm"),
        files={"img/a b.svg": SVG},
        redirects={"/tag/ink/": "tags:"},
    )
    oak = read(plan_journal(journal, "ink"), "content/posts/oak.md").partition("---\n\n")[2]
    assert (
        oak
        == """[a](elm.md#top "t") [b](elm.md) [c](elm.md) [d](elm.md)
[e](elm.md#x) ![p](../img/a%20b.svg)
<img src='../img/a%20b.svg'>
[f](https://else.example/2020/03/elm/) [g](#here) `[h](/2020/03/elm/)` [i](<elm.md>)

```
[j](/2020/03/elm/)
```

[k]: /tags/ "title"
[l](/gone/) [m](/content/gone.md)
"""
    )
    assert [(each.line, each.what) for each in journal.findings] == [
        (11, "the link `/gone/` leads to nothing that came over"),
        (11, "the link `content/gone.md` leads to nothing that came over"),
    ]


def test_links_to_what_every_journal_has_are_kept() -> None:
    """The home page, lists, feeds and forms answer here too; the menu has them anyway."""
    body = "[a](/) [b](https://old.example) [c](/feed.xml) [d](/contact) [e](/tags/ink/)"
    journal = make_journal(make_post("oak", body, tags=["Ink"]))
    journal.menu = [("Home", "/"), ("Contact", "/contact/"), ("Ink", "/tags/ink/")]
    plan = plan_journal(journal, "ink")
    text = read(plan, "content/posts/oak.md").partition("---\n\n")[2]
    assert text == "[a](/) [b](/) [c](/feed.xml) [d](/contact/) [e](/tags/ink/)\n"
    assert journal.findings == []
    assert plan.settings["MENUITEMS"] == [("Ink", "/tags/ink/")]


def test_a_link_to_an_alias_of_two_texts_leads_to_the_first() -> None:
    """The first has the alias, so links and visitors come to the same text."""
    oak, elm = (make_post(name, aliases=["/old/"]) for name in ("oak", "elm"))
    plan = plan_journal(make_journal(oak, elm, make_post("ash", "[a](/old/)")), "ink")

    assert "aliases: [/old/]" in read(plan, "content/posts/oak.md")
    assert "aliases" not in read(plan, "content/posts/elm.md")
    assert read(plan, "content/posts/ash.md").endswith("[a](oak.md)\n")


def test_a_link_with_brackets_is_one_link() -> None:
    """Brackets in an address, which a pattern might cut, are read as Markdown reads them."""
    links = Links("", {"a_(b)": "posts/a.md"}, {})
    seen = []

    def replace(link: str, at: int) -> str:
        seen.append((link, at))
        found = links.find(link)
        assert found
        return write_link(*found, "posts/b.md")

    assert rewrite_links("x [a](/a_(b)) y", replace) == "x [a](a.md) y"
    assert seen == [("/a_(b)", 6)]


def test_files_keep_their_paths_or_are_named(tmp_path: Path) -> None:
    """A file that cannot be published is a finding, and never leaves the folder."""
    unread = tmp_path / "gone.pdf"
    files = {
        "img/a.svg": SVG,
        "img/no.png": b"<html>",
        "../out.txt": b"x",
        ".htaccess": b"x",
        "feed.xml": b"x",
        "2020/03/oak/index.html": b"x",
        f"{'x' * 230}.txt": b"x",
        "note.md": b"x",
        "gone.pdf": unread,
    }
    journal = make_journal(make_post("oak"), files=files)
    plan = plan_journal(journal, "ink")
    kept = {name for name in plan.files if name.startswith("content/") and "." in name}
    assert kept == {
        "content/img/a.svg",
        "content/posts/oak.md",
        "content/pages/contact.md",
        "content/redirects.txt",
    }
    named = {re.findall("`(.*)`", each.what)[0] for each in journal.findings}
    assert named == files.keys() - {"img/a.svg"}
    assert plan.settings["STATIC_PATHS"] == ["images", "img"]


def test_a_large_picture_that_was_cut_is_named() -> None:
    """The build would refuse the text that shows it; those that are whole are not unpacked."""
    whole = io.BytesIO()
    Image.effect_noise((1600, 1000), 90).save(whole, "PNG")
    data = whole.getvalue()
    files = {"a.png": data, "b.png": data[:-200_000], "c.jpg": b"\xff\xd8" * 500_000}
    plan = plan_journal(make_journal(make_post("oak"), files=dict(files)), "ink")
    assert len(data) > 700_000
    assert {f"content/{name}" for name in files} & plan.files.keys() == {"content/a.png"}


def test_lists_of_the_old_journal_lead_to_those_of_the_new() -> None:
    """Special targets become addresses, and what leads nowhere is a finding."""
    journal = make_journal(
        make_post("oak", tags=["Ink"]),
        redirects={
            "/index.xml": "feed:",
            "/tag/ink/": "tag:Ink",
            "/tag/ink/feed/": "feed:Ink",
            "/tag/none/": "tag:none",
            "/page/2/": "posts:",
            "/?p=1": "source:content/post/oak.md",
            "/old oak/": "/2020/03/oak/",
            "/tags/ink/": "tag:Ink",
            "/lost/": "source:content/post/lost.md",
        },
    )
    plan = plan_journal(journal, "ink")
    assert read(plan, "content/redirects.txt").splitlines() == [
        "/index.xml /feed.xml",
        "/tag/ink/ /tags/ink/",
        "/tag/ink/feed/ /tags/ink/feed.xml",
        "/tag/none/ /tags/",
        "/page/2/ /journal/",
        "/?p=1 /2020/03/oak/",
        "/old%20oak/ /2020/03/oak/",
    ]
    summary = summarize(journal, plan)
    assert summary.missing == ["/lost/"]
    assert str(summary) == "1 of 1 posts · 9 of 10 old addresses answer · 0 files need you"


def test_settings_that_the_build_refuses_are_named() -> None:
    """A form where the edge answers and an unknown zone are left out, with findings."""
    journal = make_journal(make_post("oak", address="/api/oak/"), timezone="Mars/Olympus")
    plan = plan_journal(journal, "ink")
    assert "ARTICLE_URL" not in plan.settings
    assert "TIMEZONE" not in plan.settings
    assert len([each for each in journal.findings if each.what.startswith("the setting")]) == 2


def test_texts_keep_the_folders_of_their_authors() -> None:
    """Without an address to keep, the source's folders stay."""
    texts = [Text(f"notes/{name}.md", "x", name, date=MARCH) for name in ("git/a", "vim/b")]
    plan = plan_journal(Imported("Markdown", texts=texts), "ink")
    assert {"content/posts/git/git-a.md", "content/posts/vim/vim-b.md"} <= plan.files.keys()


def test_members_and_comments_are_private(tmp_path: Path) -> None:
    """They are beside the content, and their owner alone may read them."""
    journal = make_journal(
        make_post("oak"),
        members=[{"email": "ann@ink.example", "name": 'Ann "A"'}],
        comments=[{"post": "/2020/03/oak/", "author": "Bob", "date": "", "text": "Good."}],
    )
    write_journal(tmp_path / "new", plan_journal(journal, "ink").files)
    for name in (".env", "members.csv", "comments.json"):
        assert (tmp_path / "new" / name).stat().st_mode & 0o777 == 0o600
    said = (tmp_path / "new" / "members.csv").read_text("utf-8").splitlines()
    assert said == ["email,name,created_at,note", 'ann@ink.example,"Ann ""A""",,']


def bring(folder: Path, *texts: Text) -> list[str]:
    """Import these texts into a folder, as `init` does; return what stays as it was."""
    journal = make_journal(*texts)
    plan = plan_journal(journal, "ink")
    return write_journal(folder, plan.files, (journal, summarize(journal, plan)))


def test_an_import_again_leaves_what_a_person_changed(tmp_path: Path) -> None:
    """Files as the import wrote them follow the source; edited and removed ones stay so."""
    folder = tmp_path / "new"
    bring(folder, make_post("oak"), make_post("elm"), make_post("ash"), make_post("fir"))
    posts = folder / "content" / "posts"
    (posts / "oak.md").write_text("edited")
    (posts / "elm.md").unlink()
    (posts / "own.md").write_text("own")

    again = make_post("oak", "New."), make_post("elm", "New."), make_post("ash", "New.")
    for _ in range(2):  # what is remembered of the first time holds for all later ones
        kept = bring(folder, *again)
        assert kept == ["content/posts/oak.md", "content/posts/elm.md"]
        assert sorted(each.name for each in posts.iterdir()) == ["ash.md", "oak.md", "own.md"]
        assert (posts / "oak.md").read_text() == "edited"
        assert "New." in (posts / "ash.md").read_text()
    assert "`content/posts/oak.md`" in (folder / "import-report.md").read_text("utf-8")
    assert json.loads((folder / "import-report.json").read_text("utf-8"))["kept"] == kept
    bring(folder, *again[:2])
    report = (folder / "import-report.md").read_text("utf-8")
    assert (
        "1 files removed, since the old journal has them no more\n\n- `content/posts/ash.md`"
        in report
    )


def test_an_import_again_keeps_an_edited_text_that_the_old_journal_removed(tmp_path: Path) -> None:
    """Only those removed texts go that are still as the import wrote them."""
    bring(tmp_path, *map(make_post, ("oak", "elm", "ash", "fir", "yew")))
    posts = tmp_path / "content" / "posts"
    (posts / "elm.md").write_text("edited")

    bring(tmp_path, *map(make_post, ("oak", "fir", "yew")))

    assert (posts / "elm.md").read_text() == "edited"
    assert not (posts / "ash.md").exists()


def test_the_second_part_of_an_export_does_not_replace_the_first(tmp_path: Path) -> None:
    """An export with almost none of the imported texts is refused, and nothing is removed."""
    folder = tmp_path / "ink"
    for names, is_taken in ((("oak", "elm", "ash"), True), (("fir", "yew", "box"), False)):
        journal = make_journal(*map(make_post, names))
        plan = plan_journal(journal, "ink")
        came = journal, summarize(journal, plan)
        if is_taken:
            write_journal(folder, plan.files, came)
        else:
            with pytest.raises(BuildError, match="put all exports into one folder"):
                write_journal(folder, plan.files, came)
    assert sorted(path.name for path in folder.glob("content/posts/*")) == [
        "ash.md",
        "elm.md",
        "oak.md",
    ]


def test_a_killed_import_leaves_nothing_half_made(tmp_path: Path) -> None:
    """The folder appears whole; what a killed one left beside it is in nobody's way."""
    (tmp_path / ".new-0000" / "journal" / "content").mkdir(parents=True)
    with pytest.raises(FileNotFoundError):
        write_journal(tmp_path / "new", {"a.txt": b"x", "b.txt": tmp_path / "gone"})
    assert [each.name for each in tmp_path.iterdir()] == [".new-0000"]
    assert bring(tmp_path / "new", make_post("oak")) == []
    assert (tmp_path / "new" / "content" / "posts" / "oak.md").exists()


def test_a_folder_with_a_journal_is_left_alone(tmp_path: Path) -> None:
    """A sentence names what is there, and nothing is written."""
    (tmp_path / "new" / "content").mkdir(parents=True)
    with pytest.raises(BuildError, match="already has content; choose another folder"):
        bring(tmp_path / "new", make_post("oak"))
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["content"]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("hugo", {"config.toml": "baseURL = 'x'", "content/a.md": ""}),
        ("hugo", {"site/hugo.yaml": "", "README.md": ""}),
        ("markdown", {"config.toml": "base_url = 'x'", "content/a.md": ""}),
        ("jekyll", {"_config.yml": "", "_posts/2020-01-01-a.md": ""}),
        ("pelican", {"settings/site.py": "SITENAME: str = 'x'", "articles/a.md": ""}),
        ("wordpress", {"ink.xml": "<rss xmlns:wp='http://wordpress.org/export/1.2/'>"}),
        ("ghost", {"ink.json": '{"db": [{}]}', "package.json": "{}"}),
        ("substack", {"ink.zip": "PK\x03\x04"}),
        ("markdown", {"a/b/c.md": "# C"}),
        ("markdown", {"astro.config.mjs": "", "src/content/blog/a.mdx": ""}),
    ],
)
def test_a_system_is_found_by_its_files(
    tmp_path: Path, name: str, files: Mapping[str, str]
) -> None:
    """The marks of a system are found in the folder, or in one of its folders."""
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert detect(tmp_path)[0] == name


def test_an_export_is_found_as_a_file(tmp_path: Path) -> None:
    """The file itself, and the folder that has it alone, are the same export."""
    file = tmp_path / "ink.xml"
    file.write_text("<rss xmlns:wp='http://wordpress.org/export/1.2/'>")
    assert detect(file) == detect(tmp_path) == ("wordpress", file)


@pytest.mark.parametrize("files", [(), ("a.txt",), ("a.xml",)])
def test_a_folder_that_is_no_journal_is_refused(tmp_path: Path, files: tuple[str, ...]) -> None:
    """One sentence says what a journal would be."""
    for name in files:
        (tmp_path / name).write_text("<nothing/>")
    for path in (tmp_path, tmp_path / "missing", *(tmp_path / name for name in files)):
        with pytest.raises(UnreadableJournal, match="is no journal that can be read"):
            detect(path)


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    """A folder that is there, in one that may not be written, gets the journal and no more."""
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "notes.txt").write_text("own")
    bring(tmp_path / "new", make_post("oak"))
    assert {each.name for each in (tmp_path / "new").iterdir()} == {
        ".env",
        ".gitignore",
        "content",
        "import-report.json",
        "import-report.md",
        "notes.txt",
        "pelicanconf.py",
    }


def test_a_text_at_the_address_of_a_tag_keeps_it() -> None:
    """Pages of tags are elsewhere then."""
    tags = {"TAG_URL": "tag/{slug}/", "TAG_SAVE_AS": "tag/{slug}/index.html"}
    for address, kept in (("/tag/oak/", False), ("/tags/oak/", True)):
        text = make_post("oak", tags=["oak"], address=address)
        plan = plan_journal(make_journal(text, settings=tags), "ink")
        assert ("TAG_URL" in plan.settings) is kept
        assert plan.answers(address)


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    """A source with `..` has its folder below the root; names of files or of a report are held."""
    sources = ("e/a/b/c/d/e/f/g/h/1", f"e/a/b/c/d/e/f/g/h/{'../' * 12}x/2", "//y/3")
    plan = plan_journal(make_journal(*(Text(each, "Words.", "A") for each in sources)), "ink")
    assert not [name for name in plan.files if ".." in name or name.startswith("/")]
    for name in ("content/../../x.md", "/etc/x.md"):
        with pytest.raises(BuildError, match="is not below"):
            write_journal(tmp_path / "new", {name: b""})
    assert not (tmp_path / "new").exists()
    (tmp_path / "x.md").write_text("")
    journal = tmp_path / "old"
    journal.mkdir()
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (journal / "import-report.json").write_text(json.dumps({"digests": {"../x.md": digest}}))
    imported = make_journal(make_post("oak"))
    plan = plan_journal(imported, "ink")
    with pytest.raises(BuildError, match="is not below"):
        write_journal(journal, plan.files, (imported, summarize(imported, plan)))
    assert (tmp_path / "x.md").exists()
