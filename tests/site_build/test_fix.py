"""`check --fix`: what has one right answer is fixed with consent, and nothing else changes."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from stat import S_IMODE

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from site_build.addresses import SourceRules
from site_build.content.document import read_document
from site_build.content.edits import fix_head, rewrite
from site_build.errors import BuildError
from tests.site_build.test_commands import BARE, ROOT, Run, content, run
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")
__all__ = ["content", "run"]

RULES = SourceRules()
HEAD = "title: A\nslug: a\ndate: 2026-03-01\n"

FIXED = [
    ("date: March 5, 2026", "date: 2026-03-05"),
    ("date: 2024-12-07 07:00:00 +0200  # so", "date: 2024-12-07T07:00:00+02:00  # so"),
    ("date: '2024/3/4 9:30'", "date: 2024-03-04T09:30:00"),
    ("date: 2024-12-07 07:00 EST", "date: 2024-12-07T07:00:00-05:00"),
    ("Date: 2026-03-01", "date: 2026-03-01"),
    ("created: 5 Mar 2026", "date: 2026-03-05"),
    ("publishDate: 2026-03-01T10:00:00Z", "date: 2026-03-01T10:00:00Z"),
    ("tags: ink, new paper", "tags: [ink, new paper]"),
    ("tags: 'a: b'", "tags: ['a: b']"),
    ("tags: 2024 # year", "tags: ['2024'] # year"),
    ("TAGS: [ink]", "tags: [ink]"),
    ("keywords: ink; paper", "tags: [ink, paper]"),
    ("categories:\n- ink\n- paper", "tags:\n- ink\n- paper"),
    ("status: Draft", "status: draft"),
    ("draft: true", "status: draft"),
    ("draft: no", "status: published"),
    ("published: false", "status: draft"),
    ("Series : On ink", "series : On ink"),
    ("lastmod: 7 Mar 2026 # edited", "updated: 2026-03-07 # edited"),
]

LEFT = [
    "date: 03/04/2024",
    "date: May 2024",
    "date: 2024-12-07 07:00 CET",
    "date: soon",
    "updated: 2026-03-01T10:00:00+02:00",
    "tags: [ink, 'new paper']",
    "tags: [2024, 3.10]",
    "tags: []",
    "tags:",
    "permalink: other",
    "url: /other/",
    "slug: A_b",
    "subject: ink",
    "hidden: true",
    "draft: perhaps",
    "draft: true\nstatus: published",
    "tags: [a]\nkeywords: [b]",
    "tags: [a]\nTags: [b]",
    "title: Notes: one",
    "tags: &a [b]",
    "tags: [a, [b]]",
    "{title: A}",
]


def write(line: str) -> str:
    """Return a post with a line in its head, in the place of the usual one where it has one."""
    names = {"created": "date", "publishdate": "date"}
    key = line.partition(":")[0].strip().lower()
    head = [each for each in HEAD.splitlines() if not each.startswith(names.get(key, key))]
    return "\n".join(["---", *head, line, "---", "", "Date: March 5, 2026\n"])


@pytest.mark.parametrize(("line", "fixed"), FIXED)
def test_unambiguous_findings_are_fixed(line: str, fixed: str) -> None:
    """Its finding is gone afterwards; all other bytes stay, and a second fix finds nothing."""
    text = write(line)
    for ends, mark in (("\n", b""), ("\r\n", b"\xef\xbb\xbf"), ("\r", b"")):
        raw = mark + text.replace("\n", ends).encode()
        expected = mark + text.replace(line, fixed).replace("\n", ends).encode()
        done = fix_head("posts/a.md", raw, RULES)

        assert done == expected
        assert fix_head("posts/a.md", done, RULES) == done
    document, findings = read_document("posts/a.md", done, RULES)
    assert findings == []
    assert document


@pytest.mark.parametrize("line", LEFT)
def test_ambiguous_findings_are_not_fixed(line: str) -> None:
    """An ambiguous date, another address, a key that is given twice: the author decides."""
    raw = write(line).encode()

    assert fix_head("posts/a.md", raw, RULES) == raw


def test_a_head_of_pelicans_is_as_right_as_any() -> None:
    """Its keys may have any case, and its dates and tags their own form."""
    raw = b"Title: A\nDate: March 5, 2026\nTags: a, b\n\nText.\n"

    assert fix_head("posts/a.md", raw, RULES) == raw


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=80), st.lists(st.sampled_from([line for line, _ in FIXED] + LEFT)))
def test_no_address_changes_and_no_error_comes(body: bytes, lines: list[str]) -> None:
    """For any file a fix raises nothing, and what could be read says the same."""
    raw = "\n".join(["---", HEAD.rstrip(), *lines, "---", ""]).encode() + body
    done = fix_head("posts/a.md", raw, RULES)
    (was, found), (now, finds) = (read_document("posts/a.md", each, RULES) for each in (raw, done))

    assert done.endswith(body)
    assert sum(e.severity == "error" for e in finds) <= sum(e.severity == "error" for e in found)
    if was:
        assert now
        assert (now.address, now.draft, now.published) == (was.address, was.draft, was.published)


def test_check_fixes_with_consent(content: Path, run: Run) -> None:
    """Without an answer nothing is written; with --yes it is, and the findings are gone."""
    path = content / "posts" / "b.md"
    path.write_bytes(write("Tags: 2024, ink").replace("slug: a", "slug: b").encode())
    path.chmod(0o640)
    before = path.read_bytes()
    asked = run("check", "--fix", "--content", content)

    assert asked.status == 1
    assert "-Tags: 2024, ink\n+tags: ['2024', ink]\n" in asked.out
    assert "nothing is written; 1 file can be fixed: check --fix --yes writes them" in asked.out
    assert path.read_bytes() == before
    agreed = run("check", "--fix", "--yes", "--content", content)
    assert (agreed.status, agreed.err) == (0, "")
    assert agreed.out.splitlines()[-2:] == ["1 file changed", "0 errors, 0 warnings in 2 files"]
    assert path.read_bytes() == before.replace(b"Tags: 2024, ink", b"tags: ['2024', ink]")
    assert S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.md", "b.md"]
    again = run("check", "--fix", "--content", content)
    assert (again.status, again.out.splitlines()[0]) == (
        0,
        "nothing has a form that can be fixed for you",
    )


@pytest.mark.parametrize(
    ("answer", "is_written"),
    [("y\n", True), *in_ci(("\n", False), ("n\n", False), ("\x04", False))],
)
def test_a_terminal_is_asked(content: Path, answer: str, is_written: bool) -> None:  # noqa: FBT001
    """The difference comes first, in colours, and only a yes writes it."""
    path = content / "posts" / "a.md"
    path.write_text(write("Tags: [\u202eink]"), "utf-8")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "site_build", "check", "--fix", "--content", content],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**BARE, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    said = b""
    while b"[y/N] " not in said:
        said += os.read(ours, 65_536)
    assert b"\x1b[31m-Tags: [\xef\xbf\xbdink]" in said
    assert b"Tags: " in path.read_bytes()
    os.write(ours, answer.encode())
    try:
        while chunk := os.read(ours, 65_536):
            said += chunk
    except OSError:
        pass  # Linux says so that the terminal was hung up.
    os.close(ours)

    assert process.wait(60) == int(not is_written)
    assert (b"tags: " in path.read_bytes()) is is_written


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    """Somebody's edit is never lost; nothing else is left in the folder either."""
    path = tmp_path / "a.md"
    path.write_text("theirs")
    with pytest.raises(BuildError, match=r"a\.md was changed meanwhile; it is left as it is"):
        rewrite(tmp_path, "a.md", b"before", b"after")

    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.md", "theirs")]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, run: Run) -> None:
    """Neither a link to a file nor one to a folder; a link within the folder is followed."""
    outside, content = tmp_path / "outside", tmp_path / "content"
    outside.mkdir()
    (content / "posts").mkdir(parents=True)
    (outside / "b.md").write_text(write("Tags: [ink]"))
    (content / "posts" / "b.md").symlink_to(outside / "b.md")
    (content / "posts" / "more").symlink_to(outside)
    (content / "posts" / ".a").write_text(write("Tags: [ink]"))
    (content / "posts" / "a.md").symlink_to(".a")
    result = run("check", "--fix", "--yes", "--content", content)

    assert "1 file changed" in result.out
    assert (outside / "b.md").read_text() == write("Tags: [ink]")
    assert (content / "posts" / "a.md").is_symlink()
    assert (content / "posts" / ".a").read_text() == write("tags: [ink]")


def test_one_bad_file_does_not_keep_the_others_from_it(
    content: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be written is named, the others are fixed, and the status says so."""
    for name in ("b", "c"):
        text = write("Tags: [ink]").replace("slug: a", f"slug: {name}")
        (content / "posts" / f"{name}.md").write_text(text)
    may = os.access
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode, **more: (
            (mode != os.W_OK or not str(path).endswith("b.md")) and may(path, mode, **more)
        ),
    )
    result = run("check", "--fix", "--yes", "--content", content)

    assert result.status == 1
    assert result.err == f"{content}/posts/b.md is not writable; fix its permissions\n"
    assert "1 file changed" in result.out
    assert "tags: [ink]" in (content / "posts" / "c.md").read_text()
