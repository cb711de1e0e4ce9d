"""Exports of Substack, written here."""

import io
import json
import re
import zipfile
from html import escape
from pathlib import Path

import pytest

from site_build.importers.detect import read_journal
from site_build.importers.imported import UnreadableJournal
from site_build.importers.substack import read_substack

COLUMNS = "post_id,post_date,is_published,type,audience,title,subtitle,podcast_url"
ROWS = f"""{COLUMNS}
11.first,2021-03-01T12:00:00.000Z,true,newsletter,everyone,"First, of all",Sub,
12.paid,2021-03-02T12:00:00.000Z,true,newsletter,only_paid,Paid,,
13.draft,,false,newsletter,everyone,Draft,,
14.talk,2021-03-03T12:00:00.000Z,true,podcast,everyone,Talk,,https://e.org/a.mp3
15.gone,2021-03-04T12:00:00.000Z,true,thread,everyone,Gone,,
"""
BODY = """<p>A<a class="footnote-anchor" id="footnote-anchor-1" href="#footnote-1">1</a></p>
<div class="captioned-image-container"><figure><a class="image-link" href="/l">
<div class="image2-inset"><picture><source type="image/webp" srcset="x">
<img src="https://substackcdn.com/a.png" alt="P"></picture><div class="image-link-expand">x</div>
</div></a><figcaption class="image-caption">C</figcaption></figure></div>
<div class="subscription-widget-wrap"><p>Subscribe!</p></div>
<p class="button-wrapper"><a href="https://x.substack.com/subscribe?">Subscribe now</a></p>
<div class="tweet" data-attrs="{&quot;url&quot;:&quot;https://twitter.com/a/1&quot;}"></div>
<div class="footnote"><a id="footnote-1" href="#footnote-anchor-1">1</a>
<div class="footnote-content"><p>Note</p></div></div>"""
FILES = {
    "posts.csv": ROWS,
    "posts/11.first.html": BODY,
    "posts/12.paid.html": "<p>P</p>",
    "posts/13.draft.html": "<p>D</p>",
    "posts/14.talk.html": "<p>T</p>",
    "email_list.x.csv": "email,email_disabled,created_at\na@e.org,true,2021-01-01\n",
}


def pack(folder: Path, files: dict[str, str]) -> Path:
    """Return a zip of the files."""
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize("is_packed", [True, False])
def test_a_whole_export_is_imported(tmp_path: Path, is_packed: bool) -> None:  # noqa: FBT001 - a parameter
    """Posts with addresses, drafts of what was paid for, members; what has no text is left out."""
    root = pack(tmp_path, FILES)
    if not is_packed:
        root = tmp_path / "unpacked"
        zipfile.ZipFile(tmp_path / "export.zip").extractall(root)

    journal = read_substack(root)

    first, paid, draft, talk = journal.texts
    assert (first.title, first.address, first.description) == ("First, of all", "/p/first", "Sub")
    assert first.date is not None
    assert first.date.isoformat() == "2021-03-01T12:00:00+00:00"
    assert re.sub(r"\n[ \n]*\n", "\n\n", first.body) == (
        "A[^1]\n\n[![P](https://substackcdn.com/a.png)](/l)\n*C*\n\n"
        "<https://twitter.com/a/1>\n\n[^1]: Note\n"
    )
    assert [each.status for each in (paid, draft, talk)] == ["draft", "draft", "published"]
    assert talk.body == "[a.mp3](https://e.org/a.mp3)\n\nT\n"
    assert [(e["email"], e["note"]) for e in journal.members] == [("a@e.org", "wants no mail. ")]
    assert [(each.source, each.kind) for each in journal.findings] == [
        ("posts/12.paid.html", "changed"),
        ("posts/15.gone.html", "left out"),
        ("", "changed"),
    ]


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ('<div class="latex-rendered" data-attrs="{D:Dpersistent}"></div>', "$$\\frac{a}{b}$$"),
        (
            '<div class="image-gallery-embed" data-attrs="{D:Dgallery}"></div>',
            "![](/1.png)\n\n![](/2.png)",
        ),
        (
            '<div class="preformatted-block"><label class="hide-text">x</label><pre>a</pre></div>',
            "```\na\n```",
        ),
        ('<p class="button-wrapper"><a href="https://s.org/p/a?action=share">Share</a></p>', ""),
        ('<p class="button-wrapper"><a href="https://s.org/p/a/comments">Comment</a></p>', ""),
        ('<div class="pullquote"><p>a</p></div>', "> a"),
    ],
)
def test_elements_of_its_editor_become_markdown(tmp_path: Path, html: str, markdown: str) -> None:
    """Formulas and galleries are in the data of their elements; buttons are no text."""
    gallery = {"gallery": {"images": [{"src": "/1.png"}, {"src": "/2.png"}]}}
    for name, data in (
        ("persistent", {"persistentExpression": r"\frac{a}{b}"}),
        ("gallery", gallery),
    ):
        html = html.replace(f"{{D:D{name}}}", escape(json.dumps(data)))

    journal = read_substack(pack(tmp_path, {"posts.csv": ROWS, "posts/11.first.html": html}))

    assert re.sub(r"\n[ \n]*\n", "\n\n", journal.texts[0].body).strip() == markdown


def test_the_host_is_found_by_links_to_posts(tmp_path: Path) -> None:
    """Links to other journals say nothing of it; a poll is named as left out."""
    body = (
        '<a href="https://me.org/p/talk">a</a> <a href="https://you.org/p/other">b</a>'
        '<div class="poll-embed" data-attrs="{}"></div>'
    )

    journal = read_substack(pack(tmp_path, FILES | {"posts/11.first.html": body}))

    assert journal.origin == "https://me.org"
    assert ["poll" in each.what for each in journal.findings if each.source[6:8] == "11"] == [True]


def test_hostile_archives_write_nothing(tmp_path: Path) -> None:
    """A name that leads out of the folder is only a name."""
    files = {"../../posts.csv": ROWS, "/etc/11.first.html": "<p>A</p>"}
    root = tmp_path / "in"
    root.mkdir()

    journal = read_substack(pack(root, files))

    assert [text.title for text in journal.texts] == ["First, of all"]
    assert [*tmp_path.iterdir()] == [root]


def test_an_incomplete_export_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No zip, a zip that is cut, one without its table, and one that unpacks to too much."""
    path = pack(tmp_path, FILES)
    whole = path.read_bytes()
    for data in (b"", b"no zip", whole[: len(whole) // 2]):
        path.write_bytes(data)
        with pytest.raises(UnreadableJournal, match="no journal of substack"):
            read_journal(path, "substack")
    with pytest.raises(UnreadableJournal, match="no journal of substack"):
        read_journal(pack(tmp_path, {"a.html": "x"}), "substack")
    monkeypatch.setattr("site_build.importers.substack.LARGEST_EXPORT", 1000)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("posts.csv", "a" * 5000)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(UnreadableJournal, match="unpack it yourself"):
        read_journal(path, "substack")
