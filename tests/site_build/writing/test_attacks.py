"""Attacks on the process that writes: links, names, texts that cost time, races, and git."""

import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.site_build.writing.conftest import PUBLISHED, Journal

DRAFT = "# Two winters\n\nThe store has stood.\n"
POST = "posts/two-winters.md"
_LONG = {"slow": "*a_" * 300_000, "nested": "<div>\n" * 100_000}


def publish(journal: Journal, slug: str = "two-winters", author: str = "") -> str:
    """Save a draft of a credential and publish it; return the refusal, empty for none."""
    saved = journal.ask("save", author or "Claude", slug=slug, markdown=DRAFT)
    given = {"base": saved.version, "may_publish": True}
    return saved.refusal or journal.ask("publish", author, slug=slug, **given).refusal


@pytest.mark.parametrize("text", _LONG.values(), ids=_LONG)
def test_a_text_that_takes_long_is_kept_and_not_published(journal: Journal, text: str) -> None:
    """The answer comes in time, names the limit, and nothing that was typed is lost."""
    saved = journal.ask("save", slug="long", markdown=f"# Long\n\n{text}\n")
    assert saved.refusal == ""
    assert any("5 s to convert" in each.message for each in saved.findings)
    done = journal.ask("publish", "", slug="long", base=saved.version)
    assert done.refusal == "conflict"
    assert not (journal.content / "posts/long.md").exists()
    assert journal.ask("preview", "", slug="long").refusal == "conflict"


@pytest.mark.parametrize(
    "head",
    [
        "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b]",
        "title: !!python/object/apply:os.system ['touch sprung']",
        f"a: {'[' * 50_000}",
        f"a: {'{a: ' * 20_000}",
        f"a: {'9' * 100_000}",
        "<<: *x",
        "? [a, b]\n: c",
    ],
    ids=["bomb", "tag", "deep list", "deep map", "number", "merge", "key"],
)
def test_yaml_is_refused_where_it_is_no_head(journal: Journal, head: str) -> None:
    """A head that cannot be read is refused or kept as a draft; the next request is answered."""
    saved = journal.ask("save", slug="x", markdown=f"---\ntitle: X\n{head}\n---\n\nText.\n")
    if saved.refusal == "":
        done = journal.ask("publish", "", slug="x", base=saved.version)
        assert done.refusal == "conflict"
    assert not (journal.content / "posts/x.md").exists()
    assert journal.ask("list").refusal == ""
    assert not Path("sprung").exists()


@pytest.mark.parametrize("text", ["# A\n\n\0", "# A\n\n\ud800", f"# A\n\n{'a' * 1024 * 1024}"])
def test_bytes_that_no_file_takes_are_refused(journal: Journal, text: str) -> None:
    """NUL, half of a character, and more than 1 MiB are named."""
    answer = journal.ask("save", slug="x", markdown=text)
    assert answer.refusal == "invalid"
    assert answer.message.startswith("markdown: ")


@pytest.mark.parametrize(
    "text", ["\ufeff---\r\ntitle: X\r\nstatus: published\r\n---\r\n\r\nT.\r\n"]
)
def test_a_mark_and_other_ends_of_lines_publish_nothing(journal: Journal, text: str) -> None:
    """BOM and CRLF hide no status from the process."""
    saved = journal.ask("save", slug="x", markdown=text)
    assert saved.source is not None
    assert saved.source.state == "draft"


def test_a_linked_file_or_folder_is_not_written(journal: Journal, tmp_path: Path) -> None:
    """What a link names stays as it is, inside the content or outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "two-winters.md").write_text(PUBLISHED)
    (journal.content / POST).symlink_to(outside / "two-winters.md")
    assert publish(journal) == "conflict"
    (journal.content / POST).unlink()
    (journal.content / "posts").rename(tmp_path / "away")
    (journal.content / "posts").symlink_to(outside, target_is_directory=True)
    assert publish(journal) == "conflict"
    assert [each.name for each in outside.iterdir()] == ["two-winters.md"]
    assert (outside / "two-winters.md").read_text() == PUBLISHED


@pytest.mark.parametrize("name", ["--help", "-n", "--output=x", ".git", "HEAD", "two..winters"])
def test_a_slug_is_no_option_of_git(repository: Journal, name: str) -> None:
    """It is refused, or it is the name of a file and nothing else."""
    refusal = publish(repository, name)
    assert refusal in {"", "invalid"}
    committed = repository.git("ls-tree", "-r", "--name-only", "HEAD").split()
    assert (f"content/posts/{name}.md" in committed) == (refusal == "")
    assert repository.git("status", "--porcelain", "content") == ""


@pytest.mark.parametrize("author", ["--amend", "a <b@c>\nParent: x", "-"])
def test_the_name_of_a_credential_is_a_name(repository: Journal, author: str) -> None:
    """It is the author of its commit, whatever it looks like."""
    assert publish(repository, author=author) == ""
    assert repository.git("log", "-1", "--format=%s") == "Publish two-winters\n"


def test_a_branch_that_is_moved_meanwhile_loses_nothing(repository: Journal) -> None:
    """While somebody forces the branch back and forth, each post is committed or refused."""
    is_over = threading.Event()

    def move() -> None:
        other = repository.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Forced").strip()
        while not is_over.is_set():
            first = repository.git("rev-parse", "HEAD").strip()
            with suppress(subprocess.CalledProcessError):  # a commit has moved it meanwhile
                repository.git("update-ref", "refs/heads/main", other, first)
            is_over.wait(0.02)

    thread = threading.Thread(target=move)
    thread.start()
    refusals = {f"post-{n}": publish(repository, f"post-{n}") for n in range(5)}
    is_over.set()
    thread.join()
    for slug, refusal in refusals.items():
        is_there = (repository.content / f"posts/{slug}.md").exists()
        assert is_there == (refusal == "")
        assert is_there or repository.ask("get", slug=slug).source
    assert "error" not in repository.git("fsck", "--no-dangling")


def test_a_post_within_a_submodule_is_refused(repository: Journal) -> None:
    """The repository of another project gets no commit, and neither does ours."""
    inner = repository.content / "posts/inner"
    inner.mkdir()
    (inner / "two-winters.md").write_text(PUBLISHED.replace("the-first", "two-winters"))
    repository.git("-C", "content/posts/inner", "init", "--quiet")
    repository.git("-C", "content/posts/inner", "add", ".")
    repository.git("-C", "content/posts/inner", "commit", "--quiet", "--message=Inner")
    repository.git("add", ".")
    repository.git("commit", "--quiet", "--message=Module")
    before = repository.git("rev-parse", "HEAD")
    version = repository.ask("get", "", slug="two-winters").version
    answer = repository.ask("withdraw", "", slug="two-winters", base=version)
    assert answer.refusal
    assert repository.git("rev-parse", "HEAD") == before
    assert repository.git("status", "--porcelain", "content") == ""


@pytest.mark.parametrize("slug", ["the-second", "The-Second", "the-former", "about"])
def test_an_address_that_is_taken_is_not_given_again(journal: Journal, slug: str) -> None:
    """That of another post, in any case, and a former one: each refusal names it."""
    if slug == "about":
        (journal.content / "pages").mkdir()
        (journal.content / "pages/about.md").write_text("---\ntitle: About\n---\n\nText.\n")
    before = {each: each.read_bytes() for each in journal.content.rglob("*.md")}
    publish(journal, slug)
    assert {each: each.read_bytes() for each in before} == before
