"""Wrong, private or hostile content of one file of a journal harms no other."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from site_build.content.document import LARGEST_FILE
from site_build.importers.detect import detect, read_journal
from site_build.importers.dialects import DialectConverter
from site_build.importers.ghost import read_ghost
from site_build.importers.heads import read_yaml
from site_build.importers.html_to_markdown import convert
from site_build.importers.hugo import read_hugo
from site_build.importers.imported import Imported, Text, UnreadableJournal
from site_build.importers.liquid import convert_liquid
from site_build.importers.pelican_settings import read_settings
from site_build.importers.plan import plan_journal, summarize


@pytest.mark.parametrize(
    ("system", "body", "shown"),
    [
        (
            "Eleventy",
            "a {# secret #}{#- secret\n -#} b\n\n## C {#id}\n\n{# d",
            "a  b\n\n## C {#id}\n\n{# d",
        ),
        ("Zola", "a {# secret #} b", "a  b"),
        ("Markdown", "a %% secret %% b 100 %% c 50 %% %%\nsecret\n%%", "a  b 100 %% c 50 %% "),
    ],
)
def test_private_notes_stay_private(system: str, body: str, shown: str) -> None:
    """Comments of a dialect go; what only looks like one stays."""
    assert DialectConverter(system, {}, body, is_mdx=False).body == shown


@pytest.mark.parametrize("end", ["{% endcomment %}", ""])
def test_a_long_comment_stays_private(end: str) -> None:
    """Liquid bounds none, and refuses one that is never closed."""
    body = f"a {{% comment %}}{'secret ' * 5_000}{end}"
    assert convert_liquid(body, {}, str, lambda *_: None) == "a "


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_declaration_that_is_none_is_text() -> None:
    """The parser refuses it, and the whole text with it."""
    assert convert("<p>a</p><![x b") == "a\n\n\\<!\\[x b\n"


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_a_line_separator_is_a_blank_in_a_head(sign: str) -> None:
    """YAML would begin a line at it, and nothing else does."""
    assert read_yaml(f"a: b{sign}c\ntitle: d: e") == {"a": "b c", "title": "d: e"}


def test_a_language_may_have_any_name(tmp_path: Path) -> None:
    """It is in a pattern."""
    settings = '{"baseURL": "https://a.example/", "languages": {"zh(": {}, "en": {}}}'
    root = write(tmp_path, {"hugo.json": settings, "content/posts/a.md": "---\ntitle: A\n---\nB\n"})
    assert [text.title for text in read_hugo(root).texts] == ["A"]


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("hugo", "content/posts/{}.md", "---\ntitle: A\ndate: 2024-01-01\n---\nB\n"),
        ("jekyll", "_posts/2024-01-01-{}.md", "---\ntitle: A\n---\nB\n"),
        ("markdown_folder", "{}.md", "B\n"),
        ("pelican", "content/{}.md", "Title: A\nDate: 2024-01-01\n\nB\n"),
    ],
)
def test_a_text_that_cannot_be_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str, text: str
) -> None:
    """For any fault, the others come over."""
    settings = {"hugo.toml": "", "_config.yml": "", "pelicanconf.py": "SITENAME = 'A'"}
    root = write(tmp_path, settings | {file.format(each): text for each in ("good", "bad")})
    module = import_module(f"site_build.importers.{name}")

    def read_text(path: Path) -> str:
        if path.name.endswith("bad.md"):
            raise re.error("bad")
        return path.read_text()

    monkeypatch.setattr(module, "read_text", read_text)
    journal = getattr(module, f"read_{name}")(root)

    assert [text.source for text in journal.texts] == [file.format("good")]
    assert [each.source for each in journal.findings if each.kind == "left out"] == [
        file.format("bad")
    ]


def test_a_file_with_the_name_of_a_folder_is_named() -> None:
    """Both cannot be written."""
    files: dict[str, Path | bytes] = {"about": b"a", "about/p.txt": b"p", "posts": b"a"}
    journal = Imported("Test", [Text("a.md", "A", "A")], files)
    plan = plan_journal(journal, "journal")
    assert [name for name in plan.files if "about" in name] == ["content/about/p.txt"]
    assert [each.source for each in journal.findings if "a folder has" in each.what] == [
        "about",
        "posts",
    ]


def test_a_text_that_the_build_would_refuse_is_left_out() -> None:
    """For it is too long; it does not count as come over."""
    journal = Imported("Test", [Text("a.md", "A", "A"), Text("b.md", "B" * LARGEST_FILE, "B")])
    plan = plan_journal(journal, "journal")
    assert summarize(journal, plan)[:2] == (1, 2)
    assert sum(name.startswith("content/posts/") for name in plan.files) == 1


def test_redirects_of_ghost_are_json_with_tabs(tmp_path: Path) -> None:
    """YAML refuses a tab."""
    data = '{"data": {"posts": [{"id": "1", "title": "A", "slug": "a"}]}}'
    write(tmp_path, {"a.json": data, "redirects.json": '[\n\t{"from": "/b", "to": "/c"}\n]'})
    assert read_ghost(tmp_path).redirects["/b"] == "/c"


@pytest.mark.parametrize("value", [".*" * 7 + "x", "a{0,99}" * 20 + "x"])
def test_patterns_that_take_years_are_not_followed(tmp_path: Path, value: str) -> None:
    """However their repetitions are written."""
    write(tmp_path, {"pelicanconf.py": f"SITENAME = 'A'\nPATH_METADATA = {value!r}\n"})
    assert "cannot be followed safely" in str(read_settings(tmp_path, trust=False)[3])


def test_a_note_about_hugo_makes_no_journal_of_it(tmp_path: Path) -> None:
    """Its settings do; and a path that is not there is named."""
    assert detect(write(tmp_path, {"hugo.md": "A"}))[0] == "markdown"
    with pytest.raises(UnreadableJournal, match=r"there is no .*nope; check the path"):
        read_journal(tmp_path / "nope")
