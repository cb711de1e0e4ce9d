"""Publishing, scheduling and withdrawing: the content changes, in one commit of one file."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from site_build.writing.commits import Repository
from tests.site_build.writing.conftest import NOW, Journal

DRAFT = "# Two winters\n\nThe store has stood.\n"
POST = "posts/two-winters.md"


def publish(journal: Journal, **values: object) -> None:
    """Save a draft of an agent, and publish it as the owner."""
    saved = journal.ask("save", markdown=DRAFT)
    done = journal.ask("publish", "", slug="two-winters", base=saved.version, **values)
    assert done.refusal == "", done.message


def test_a_draft_becomes_a_post(journal: Journal) -> None:
    """It has the date of the press and no status, and the draft is gone."""
    publish(journal)
    text = journal.read(POST)
    assert "date: 2026-06-01T12:00:00Z\n" in text
    assert "status" not in text
    assert not [*(journal.var / "drafts").glob("two-winters*")]


def test_a_draft_appears_later(journal: Journal) -> None:
    """It has the date that was asked for, and is listed as scheduled."""
    publish(journal, at=NOW + timedelta(days=1))
    assert "date: 2026-06-02T12:00:00Z\n" in journal.read(POST)
    assert [each.state for each in journal.ask("list").sources] == ["scheduled"]


def test_a_past_instant_is_refused(journal: Journal) -> None:
    """Nobody schedules into the past by mistake."""
    saved = journal.ask("save", markdown=DRAFT)
    late = NOW - timedelta(days=1)
    answer = journal.ask("publish", "", slug="two-winters", base=saved.version, at=late)
    assert answer.refusal == "invalid"


def test_a_post_is_withdrawn_and_published_again(journal: Journal) -> None:
    """It keeps its date."""
    publish(journal)
    version = journal.ask("get", "", slug="two-winters").version
    withdrawn = journal.ask("withdraw", "", slug="two-winters", base=version)
    assert "status: draft" in journal.read(POST)
    later = NOW + timedelta(days=3)
    journal.ask("publish", "", slug="two-winters", base=withdrawn.version, asked_at=later)
    assert "date: 2026-06-01T12:00:00Z\n" in journal.read(POST)


def test_a_change_of_a_post_waits_beside_it(journal: Journal) -> None:
    """What the owner types into a published post is seen when it is published."""
    version = journal.ask("get", "", slug="the-first").version
    text = journal.read("posts/the-first.md").replace("began", "started")
    saved = journal.ask("save", "", slug="the-first", markdown=text, base=version)
    assert saved.source is not None
    assert saved.source.is_changed
    assert "started" not in journal.read("posts/the-first.md")
    done = journal.ask("publish", "", slug="the-first", base=saved.version)
    assert done.refusal == "", done.message
    assert "started" in journal.read("posts/the-first.md")
    assert "date: 2026-01-01T10:00:00Z" in journal.read("posts/the-first.md")


def test_a_former_address_is_not_given_again(journal: Journal) -> None:
    """A slug that another post had is named."""
    saved = journal.ask("save", slug="the-former", markdown=DRAFT)
    done = journal.ask("publish", "", slug="the-former", base=saved.version)
    assert done.refusal == "conflict"
    assert "former address" in done.message


def test_each_publication_is_one_commit_of_one_file(repository: Journal) -> None:
    """Its author is who wrote; what the owner has changed or staged stays as it was."""
    (repository.content / "posts/the-first.md").write_text("changed by hand")
    (repository.content / "notes.md").write_text("staged")
    repository.git("add", "content/notes.md")
    before = repository.git("status", "--porcelain")
    publish(repository)

    assert repository.git("status", "--porcelain") == before
    assert repository.git("show", "--format=%an %s", "--name-only").split("\n\n") == [
        "owner Publish two-winters",
        f"content/{POST}\n",
    ]


def test_a_file_with_changes_is_left_alone(repository: Journal) -> None:
    """The owner's own changes are committed by the owner."""
    version = repository.ask("get", "", slug="the-first").version
    saved = repository.ask(
        "save", "", slug="the-first", markdown=repository.read("posts/the-first.md"), base=version
    )
    file = repository.content / "posts/the-first.md"
    file.write_text(f"{file.read_text()}\nBy hand.\n")
    done = repository.ask("publish", "", slug="the-first", base=saved.version)
    assert (done.refusal, file.read_text().endswith("By hand.\n")) == ("conflict", True)
    again = repository.ask("save", "", slug="the-first", markdown="# X\n", base=saved.version)
    done = repository.ask("publish", "", slug="the-first", base=again.version)
    assert "not committed" in done.message
    assert file.read_text().endswith("By hand.\n")


@pytest.mark.parametrize(
    ("name", "refusal"),
    [("MERGE_HEAD", "locked"), ("rebase-merge", "locked"), ("index.lock", "unavailable")],
)
def test_an_unfinished_merge_is_waited_for(repository: Journal, name: str, refusal: str) -> None:
    """A merge, a rebase or a lock refuses a publication, and changes no file."""
    saved = repository.ask("save", markdown=DRAFT)
    (repository.content.parent / ".git" / name).write_text("")
    done = repository.ask("publish", "", slug="two-winters", base=saved.version)
    assert done.refusal == refusal
    assert not (repository.content / POST).exists()


def test_git_runs_no_program_of_the_repository(repository: Journal, tmp_path: Path) -> None:
    """Hooks, filters, fsmonitor and signing are off."""
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        (repository.content.parent / ".git/hooks" / name).write_text(trap.read_text())
        (repository.content.parent / ".git/hooks" / name).chmod(0o755)
    for key in ("core.fsmonitor", "filter.trap.clean", "gpg.program", "core.editor"):
        repository.git("config", key, str(trap))
    repository.git("config", "commit.gpgSign", "true")
    (repository.content.parent / ".gitattributes").write_text("*.md filter=trap\n")
    (tmp_path / "sprung").unlink(missing_ok=True)
    publish(repository)
    assert not (tmp_path / "sprung").exists()


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_killed_publication_is_finished(
    repository: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watcher that was killed between file and commit commits at its next start."""
    saved = repository.ask("save", markdown=DRAFT)
    commit = Repository.commit
    monkeypatch.setattr(Repository, "commit", _die)
    with pytest.raises(KeyboardInterrupt):
        repository.ask("publish", "", slug="two-winters", base=saved.version)
    assert repository.git("log", "--format=%s").split() == ["Begin"]

    monkeypatch.setattr(Repository, "commit", commit)
    repository.writer.store.recover()
    assert "Publish two-winters" in repository.git("log", "--format=%s")
    assert not [*(repository.var / "drafts").glob("two-winters*")]


def test_former_versions_are_kept_without_git(tmp_path: Path) -> None:
    """A published post that was changed has its former version below `var/versions/`."""
    journal = Journal(tmp_path, has_git=False)
    version = journal.ask("get", "", slug="the-first").version
    journal.ask("withdraw", "", slug="the-first", base=version)
    kept = (journal.var / "versions").glob("*.md")
    assert [each.name for each in kept] == [f"the-first-{version}.md"]


def test_an_instant_of_another_zone_is_that_instant(journal: Journal) -> None:
    """An agent and a desk name it with their own offset; the head has it in UTC."""
    publish(journal, at=datetime(2026, 6, 2, 9, tzinfo=timezone(timedelta(hours=5))))
    assert "date: 2026-06-02T04:00:00Z\n" in journal.read(POST)


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-14))])
def test_an_instant_that_no_build_reaches_is_refused(journal: Journal, zone: timezone) -> None:
    """No build could be made for it, and the watcher would end."""
    saved = journal.ask("save", markdown=DRAFT)
    at = datetime(9999, 12, 31, 23, 59, 59, tzinfo=zone)
    answer = journal.ask("publish", "", slug="two-winters", base=saved.version, at=at)
    assert (answer.refusal, answer.message[:3]) == ("invalid", "at:")
