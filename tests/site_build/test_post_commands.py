"""`post publish`, `schedule` and `withdraw`: the head says it, and every other byte stays."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edge_api.schema.environment import BUILD
from site_build.content.document import read_document
from tests.site_build.test_commands import Run, run

pytestmark = pytest.mark.size("test")
__all__ = ["run"]

HEAD = "title: Of ink # a comment\nslug: ink\n"
NOW = "now"
"""Stands for the present instant."""


@pytest.fixture
def content(tmp_path: Path) -> Path:
    """Return a content folder with a post and a page."""
    for kind in ("posts", "pages"):
        (tmp_path / "content" / kind).mkdir(parents=True)
        date = "date: 2026-01-01\n" if kind == "posts" else ""
        text = f"---\ntitle: Other\nslug: other-{kind}\n{date}---\nWords.\n"
        (tmp_path / "content" / kind / "other.md").write_text(text)
    return tmp_path / "content"


def write(content: Path, lines: str, name: str = "ink", ends: str = "\n") -> Path:
    """Write a post with lines in its head."""
    path = content / "posts" / f"{name}.md"
    path.write_bytes(f"---\n{HEAD}{lines}---\n\nstatus: draft\n".replace("\n", ends).encode())
    return path


def read(path: Path) -> str:
    """Return what follows the usual lines of the head, with the present instant as a word."""
    text = path.read_bytes().decode().replace("\r\n", "\n")
    assert text.startswith(f"---\n{HEAD}")
    assert text.endswith("---\n\nstatus: draft\n")
    lines = text.removeprefix(f"---\n{HEAD}").removesuffix("---\n\nstatus: draft\n")
    for seconds in range(120):
        instant = datetime.now(UTC) - timedelta(seconds=seconds)
        lines = lines.replace(f"{instant:%Y-%m-%dT%H:%M:%SZ}", NOW)
    return lines


FUTURE = "2999-01-01T00:00:00Z"
STARTED = "2026-03-01T09:30:15Z  # when it was started"
EDITS = [
    # A draft is published: dated now if it has no date, one that is to come, or only that of `new`.
    ("publish", "status: draft\n", f"date: {NOW}\n"),
    ("publish", f"date: {STARTED}\nstatus: draft\n", f"date: {NOW}\n"),
    ("publish", f"date: {FUTURE} # so\nstatus: draft\n", f"date: {NOW} # so\n"),
    ("publish", "date:\nstatus: draft\ntags: [a]\n", f"date: {NOW}\ntags: [a]\n"),
    ("publish", "status: 'draft' # yet\ndate: 2026-03-01\n", "date: 2026-03-01\n"),
    # A date that somebody chose stays, though the status was misspelt.
    ("publish", "date: 2020-01-01\nstatus: drfat\n", "date: 2020-01-01\n"),
    # A scheduled post is published now; what is hidden stays out of lists.
    ("publish", f"date: {FUTURE}\nstatus: hidden\n", f"date: {NOW}\nstatus: hidden\n"),
    ("schedule", "date: 2026-03-01\nstatus: hidden\n", f"date: {FUTURE}\nstatus: hidden\n"),
    ("publish", f"date: {FUTURE}\n", f"date: {NOW}\n"),
    ("schedule", "date: 2026-03-01\n", f"date: {FUTURE}\n"),
    ("schedule", f"date: {STARTED}\nstatus: draft\n", f"date: {FUTURE}\n"),
    ("schedule", "status: draft\n", f"date: {FUTURE}\n"),
    ("withdraw", "date: 2026-03-01\n", "date: 2026-03-01\nstatus: draft\n"),
    (
        "withdraw",
        "status: published # yes\ndate: 2026-03-01\n",
        "status: draft # yes\ndate: 2026-03-01\n",
    ),
    ("withdraw", f"date: {FUTURE}\n", f"date: {FUTURE}\nstatus: draft\n"),
]


@pytest.mark.parametrize(("action", "before", "after"), EDITS)
def test_an_action_changes_the_head_alone(
    content: Path, run: Run, action: str, before: str, after: str
) -> None:
    """Comments, order, quotes and line ends of all else stay; the post says what it should."""
    ends = "\r\n" if "# so" in before else "\n"
    path = write(content, before, ends=ends)
    words = [FUTURE] if action == "schedule" else []
    result = run("post", action, "ink", *words, "--content", content)
    document, findings = read_document("posts/ink.md", path.read_bytes())

    assert (result.status, result.err) == (0, "")
    assert read(path) == after
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") * (ends == "\r\n")
    assert findings == []
    assert document
    assert document.draft is (action == "withdraw")
    assert result.out.startswith(f"{path} is ")


@pytest.mark.parametrize(
    ("action", "before", "sentence"),
    [
        ("publish", "date: 2026-03-01\n", "is published already; nothing is changed\n"),
        (
            "publish",
            "date: 2026-03-01\nstatus: hidden\n",
            "is published already; nothing is changed\n",
        ),
        (
            "withdraw",
            "date: 2026-03-01\nstatus: draft\n",
            "is a draft already; nothing is changed\n",
        ),
    ],
)
def test_repeated_actions_do_not_touch_the_file(
    content: Path, run: Run, action: str, before: str, sentence: str
) -> None:
    """Neither a second publication nor a second withdrawal touches the file."""
    path = write(content, before)
    result = run("post", action, "ink", "--content", content)

    assert (result.status, result.out) == (0, f"{path} {sentence}")
    assert read(path) == before


def test_pelicans_head_is_changed_too(content: Path, run: Run) -> None:
    """It has no fences; its lines are those of a post all the same."""
    path = content / "posts" / "pelican.md"
    path.write_text("Title: P\nSlug: pelican\nStatus: draft\nDate: 2026-03-01\n\nWords.\n")
    words = ("--content", content)

    assert run("post", "publish", "pelican", *words).status == 0
    assert path.read_text() == "Title: P\nSlug: pelican\nDate: 2026-03-01\n\nWords.\n"
    assert run("post", "withdraw", "pelican", *words).status == 0
    expected = "Title: P\nSlug: pelican\nDate: 2026-03-01\nstatus: draft\n\nWords.\n"
    assert path.read_text() == expected


def test_a_draft_with_faults_is_not_published_but_withdrawn(content: Path, run: Run) -> None:
    """Readers would not see it; a post that has to go goes, whatever is wrong with it."""
    path = write(content, "date: 2026-02-30\nstatus: draft\ntags: {}\n")
    for words in (("publish", "ink"), ("schedule", "ink", FUTURE)):
        result = run("post", *words, "--content", content)
        assert result.status == 1
        assert "  error  `tags` is " in result.out
        assert result.err == f"nothing is changed: fix {path} before readers see it\n"
        assert "status: draft" in path.read_text()
    path = write(content, "date: 2026-02-30\n")

    assert run("post", "withdraw", "ink", "--content", content).status == 0
    assert read(path) == "date: 2026-02-30\nstatus: draft\n"


def test_invalid_arguments_change_nothing(content: Path, run: Run) -> None:
    """An unknown slug names the nearest, two posts are both named, and the past is no schedule."""
    first, second = write(content, "status: draft\n"), write(content, "", "second")
    texts = [first.read_bytes(), second.read_bytes()]
    words = ("--content", content)

    twice = run("post", "publish", "ink", *words)
    assert (twice.status, twice.out) == (1, "")
    assert twice.err == f"{first} and {second} have the slug ink; give one of them another\n"
    second.unlink()
    assert (
        run("post", "publish", "inc", *words).err
        == "no post has the slug 'inc'; did you mean 'ink'?\n"
    )
    page = run("post", "withdraw", "other-pages", *words)
    assert page.status == 1
    assert "no post has the slug 'other-pages'; did you mean 'other-posts'?" in page.err
    past = run("post", "schedule", "ink", "2026-03-01", *words)
    assert past.status == 2
    assert "2026-03-01T00:00:00Z is past; `post publish ink` publishes it now" in past.err
    assert first.read_bytes() == texts[0]


def test_a_page_is_no_post(content: Path, run: Run) -> None:
    """Even if it cannot be read."""
    page = content / "pages" / "about.md"
    for text in ("---\ntitle: About\nslug: about\n---\n", "---\ntitle: [About\nslug: about\n---\n"):
        page.write_text(text)
        result = run("post", "withdraw", "about", "--content", content)
        assert (result.status, page.read_text()) == (1, text)


def test_a_head_in_one_line_is_left_to_its_author(content: Path, run: Run) -> None:
    """A mapping in braces has no lines to change."""
    path = content / "posts" / "flow.md"
    path.write_text("---\n{title: F, slug: flow, date: 2026-03-01, status: draft}\n---\nWords.\n")
    text = path.read_bytes()
    result = run("post", "publish", "flow", "--content", content)

    assert result.status == 1
    assert path.read_bytes() == text


def test_the_command_reports_the_new_state_and_its_date(content: Path, run: Run) -> None:
    """Its date, and the build that shows it, which a watcher makes."""
    words = ("--content", content)
    path = write(content, "date: 2026-03-01\nstatus: draft\n")
    then = f"; readers see the change with the next build, which {BUILD} watch makes by itself\n"

    result = run("post", "publish", "ink", *words).out
    assert result == f"{path} is published, dated 2026-03-01T00:00:00Z{then}"
    result = run("post", "schedule", "ink", FUTURE, *words).out
    assert result == f"{path} is scheduled, dated {FUTURE}{then}"
    assert run("post", "withdraw", "ink", *words).out == f"{path} is a draft{then}"


def test_a_new_draft_gets_its_date_when_it_is_published(content: Path, run: Run) -> None:
    """Until then its date is that of its start; a date that was chosen stays."""
    words = ("--content", content)
    run("new", "Ink", *words)
    path = content / "posts" / "ink.md"
    assert "Z  # when it was started\n" in path.read_text()
    run("post", "publish", "ink", *words)
    text = path.read_text()
    assert "started" not in text
    assert "status" not in text
    run("post", "withdraw", "ink", *words)
    run("post", "publish", "ink", *words)
    assert path.read_text() == text

    run("new", "Chosen", "--date", "2026-03-01", *words)
    run("post", "publish", "chosen", *words)
    assert "\ndate: 2026-03-01T00:00:00Z\n" in (content / "posts" / "chosen.md").read_text()


def test_a_change_is_one_commit(content: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The post alone is committed, unless the owner has other changes of it; all else stays."""
    for name in (
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ):
        monkeypatch.setenv(name, "ann")
    path = write(content, "date: 2026-03-01\nstatus: draft\n")
    other = content / "posts" / "other.md"

    def git(*words: str) -> str:
        command = ["git", "-C", str(content), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message=Begin")
    other.write_text("---\ntitle: Other\n---\nMine.\n")
    git("add", "posts/other.md")
    said = run("post", "publish", "ink", "--content", content).out

    assert "not committed" not in said
    assert (
        git("log", "-1", "--format=%an %s", "--name-only") == "owner Publish ink\n\nposts/ink.md\n"
    )
    assert git("status", "--porcelain") == "M  posts/other.md\n"
    path.write_text(path.read_text() + "More.\n")
    said = run("post", "withdraw", "ink", "--content", content).out
    assert f"{path} is not committed: it has other changes that wait for your commit\n" in said
    assert f"{path} is a draft" in said
    assert git("log", "-1", "--format=%s") == "Publish ink\n"
    (content / ".git/MERGE_HEAD").touch()
    said = run("post", "publish", "ink", "--content", content).out
    assert f"{path} is not committed: a merge is not finished" in said
    assert f"{path} is published" in said


def test_list_shows_the_state(content: Path, run: Run) -> None:
    """All posts and pages are listed, unless some are named."""
    write(content, f"date: {FUTURE}\n")
    write(content, "date: 2026-03-01\nstatus: draft\n", "second")
    (content / "posts" / "second.md").write_text(
        (content / "posts" / "second.md").read_text().replace("slug: ink", "slug: second")
    )
    lines = [line.split() for line in run("list", "--content", content).out.splitlines()]

    assert lines[0][1] == "STATE"
    assert sorted(line[:2] for line in lines[1:]) == [
        ["ink", "scheduled"],
        ["other-pages", "published"],
        ["other-posts", "published"],
        ["second", "draft"],
    ]
