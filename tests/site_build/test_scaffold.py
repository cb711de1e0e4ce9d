"""Starting a post: a file that is right from the first moment, and never somebody else's."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from site_build.cli.new import start_post
from site_build.content.document import read_document
from site_build.errors import BuildError
from site_build.text import LONGEST_SLUG, make_slug

NOW = datetime(2026, 3, 1, 9, 30, 15, 123456, tzinfo=UTC)


def test_a_new_post(tmp_path: Path) -> None:
    """A post is started as a draft, with its slug made from the title and its date in UTC."""
    path = start_post(tmp_path, "Hello,  World: a start", NOW, ["one", "two: three"])

    assert path == tmp_path / "posts" / "hello-world-a-start.md"
    assert path.read_text(encoding="utf-8") == (
        "---\n"
        "title: 'Hello, World: a start'\n"
        "slug: hello-world-a-start\n"
        "date: 2026-03-01T09:30:15Z\n"
        "tags: [one, 'two: three']\n"
        "description:\n"
        "status: draft\n"
        "---\n\n"
    )
    document, findings = read_document("posts/a.md", path.read_bytes())
    assert not findings
    assert document
    assert (document.draft, document.tags) == (True, ("one", "two: three"))


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Hello, World", "hello-world"),
        ("Don\u2019t panic: it's 10% of C++", "dont-panic-its-10-of-c"),
        ("Ünïcödé & Straße", "unicode-strasse"),
        ("你好,世界", "ni-hao-shi-jie"),
        ("Привет, мир", "privet-mir"),
        ("  --a__b--  ", "a-b"),
        ("word " * 40, "-".join(["word"] * 16)),
        ("x" * 200, "x" * LONGEST_SLUG),
        ("🎉", ""),
        ("", ""),
    ],
)
def test_slugs(title: str, slug: str) -> None:
    """A slug is made of plain letters and digits, whatever the title's script, cut at a word."""
    assert make_slug(title) == slug


@pytest.mark.parametrize(
    ("title", "name"),
    [("🎉", "post-2026-03-01"), ("yes", "yes"), ("2024", "2024"), ("日本語", "ri-ben-yu")],
)
def test_titles_that_need_care(tmp_path: Path, title: str, name: str) -> None:
    """Titles that YAML takes for something else, or that give no slug, still start a post."""
    document, findings = read_document(
        f"posts/{name}.md", start_post(tmp_path, title, NOW).read_bytes()
    )

    assert not findings
    assert document
    assert (document.title, document.slug) == (title, name)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A second post of the same name is refused, and the first stays as it was."""
    path = start_post(tmp_path, "Hello", NOW)
    path.write_text("mine")

    with pytest.raises(BuildError, match=r"hello\.md exists already; choose another title"):
        start_post(tmp_path, "Hello!", NOW)
    assert path.read_text() == "mine"


def test_a_slug_is_used_once(tmp_path: Path) -> None:
    """A slug that another file has in its head is refused; a page may have the same."""
    start_post(tmp_path, "Hello", NOW).rename(tmp_path / "posts" / "other.md")
    (tmp_path / "posts" / "p.md").write_text("Title: Of ink\nDate: 2026-01-01\n\nWords.\n")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "about.md").write_text("---\ntitle: About\nslug: about\n---\n")

    with pytest.raises(BuildError, match=r"other\.md has the slug hello already"):
        start_post(tmp_path, "Hello", NOW)
    with pytest.raises(BuildError, match=r"p\.md has the slug of-ink already"):
        start_post(tmp_path, "Of ink", NOW)
    assert start_post(tmp_path, "About", NOW).name == "about.md"


@pytest.mark.parametrize(
    ("title", "tags", "message"),
    [
        ("a\x07b", [], "`title` holds the control character U\\+0007; take it out"),
        ("Page", [], "`slug` is 'page', an address of the site itself; choose another"),
        ("a", ["+"], "a tag is '\\+', which gives no address; use a letter or a digit"),
    ],
)
def test_an_invalid_head_is_not_written(
    tmp_path: Path, title: str, tags: list[str], message: str
) -> None:
    """A head that the reader would refuse is not written."""
    with pytest.raises(BuildError, match=message):
        start_post(tmp_path, title, NOW, tags)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Without a content folder nothing is started."""
    with pytest.raises(BuildError, match="nowhere cannot be read: No such file"):
        start_post(tmp_path / "nowhere", "Hello", NOW)


@settings(max_examples=100)
@given(st.text(max_size=30), st.lists(st.text(max_size=8), max_size=3))
def test_any_title(tmp_path_factory: pytest.TempPathFactory, title: str, tags: list[str]) -> None:
    """For any title and tags, the file is right or there is none."""
    folder = tmp_path_factory.mktemp("content")
    try:
        path = start_post(folder, title, NOW, tags)
    except BuildError:
        assert os.listdir(folder) == []  # noqa: PTH208 - only whether there is anything
        return
    document, findings = read_document("posts/a.md", path.read_bytes())
    assert document
    assert not findings
    assert document.title == " ".join(title.split())
