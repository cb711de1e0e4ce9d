"""Binned drafts and former versions: what somebody wrote can be read again."""

import pytest

from tests.site_build.writing.conftest import Journal

DRAFT = "# Two winters\n\nThe store has stood.\n"


def former(journal: Journal, slug: str, version: str) -> str:
    """Return the text of a former version."""
    answer = journal.ask("former", "", slug=slug, base=version)
    assert answer.source is not None, answer.message
    assert answer.source.version == version
    return answer.source.markdown


@pytest.mark.parametrize("author", ["Claude", ""])
def test_a_binned_draft_can_be_read_again(journal: Journal, author: str) -> None:
    """It is listed no more; the history of its slug has it."""
    saved = journal.ask("save", author, markdown=DRAFT)
    assert saved.source is not None
    assert journal.ask("bin", "", slug="two-winters", base=saved.version).refusal == ""

    assert journal.ask("list").sources == ()
    assert journal.ask("get", slug="two-winters").refusal == "not_found"
    assert not [*(journal.content / "posts").glob("two-winters*")]
    versions = journal.ask("history", "", slug="two-winters").versions
    assert [each.version for each in versions] == [saved.version]
    assert former(journal, "two-winters", saved.version) == saved.source.markdown


def test_a_binned_draft_of_the_owner_is_one_commit(repository: Journal) -> None:
    """The removal is committed, and nothing is left staged."""
    saved = repository.ask("save", "", markdown=DRAFT)
    repository.ask("bin", "", slug="two-winters", base=saved.version)
    assert repository.git("status", "--porcelain", "--", "content") == ""
    assert repository.git("log", "--format=%s").splitlines() == [
        "Bin two-winters",
        "Save two-winters",
        "Begin",
    ]


def test_html_that_was_binned_stays_untrusted(journal: Journal) -> None:
    """The owner takes an agent's draft back; it is still published without its form."""
    saved = journal.ask("save", markdown=f"{DRAFT}\n<form action='/desk/'>x</form>\n")
    journal.ask("bin", "", slug="two-winters", base=saved.version)
    text = former(journal, "two-winters", saved.version)
    again = journal.ask("save", "", slug="two-winters", markdown=text)
    done = journal.ask("publish", "", slug="two-winters", base=again.version)
    assert done.refusal == "conflict"
    assert any("<form" in each.message for each in done.findings)


def test_what_is_public_is_not_binned(journal: Journal) -> None:
    """The answer names what to do before; a change that waits beside it can be binned."""
    version = journal.ask("get", slug="the-first").version
    answer = journal.ask("bin", "", slug="the-first", base=version)
    assert answer.refusal == "conflict"
    assert "withdraw" in answer.message

    changed = journal.read("posts/the-first.md").replace("began", "started")
    saved = journal.ask("save", "", slug="the-first", markdown=changed, base=version)
    assert journal.ask("bin", "", slug="the-first", base=saved.version).version == version


def test_a_bin_names_the_version_that_was_read(journal: Journal) -> None:
    """What somebody wrote meanwhile is not binned unseen."""
    saved = journal.ask("save", markdown=DRAFT)
    journal.ask("save", markdown=f"{DRAFT}More.\n", base=saved.version)
    assert journal.ask("bin", "", slug="two-winters", base=saved.version).refusal == "stale"
    assert journal.ask("bin", "", slug="two-winters").refusal == "unnamed"


def test_each_version_of_a_post_is_in_its_history(journal: Journal) -> None:
    """The newest is first; each can be read, and nothing is changed by reading."""
    saved = journal.ask("save", markdown=DRAFT)
    published = journal.ask("publish", "", slug="two-winters", base=saved.version)
    withdrawn = journal.ask("withdraw", "", slug="two-winters", base=published.version)
    versions = journal.ask("history", "", slug="two-winters").versions
    assert [each.version for each in versions] == [published.version]
    assert "status" not in former(journal, "two-winters", published.version)
    assert journal.ask("get", slug="two-winters").version == withdrawn.version


def test_a_version_of_another_post_is_not_shown(journal: Journal) -> None:
    """A version is looked for in the history of its post alone."""
    other = journal.ask("get", slug="the-second").version
    answer = journal.ask("former", "", slug="the-first", base=other)
    assert answer.refusal == "not_found"


def test_two_authors_of_one_draft_both_stay_in_its_history(journal: Journal) -> None:
    """What the owner changes in an agent's draft replaces nothing for good."""
    first = journal.ask("save", markdown=DRAFT)
    journal.ask("save", "", slug="two-winters", markdown=f"{DRAFT}More.\n", base=first.version)
    versions = journal.ask("history", "", slug="two-winters").versions
    assert [(each.version, each.author) for each in versions] == [(first.version, "Claude")]
