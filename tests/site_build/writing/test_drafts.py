"""Drafts of credentials: they are kept apart, and change nothing that readers see."""

from pathlib import Path

import pytest

from tests.site_build.writing.conftest import PUBLISHED, Journal

DRAFT = "# Two winters\n\nThe store has stood.\n"


def test_a_draft_is_kept_apart_from_the_content(journal: Journal) -> None:
    """It is in `var/drafts/`, complete, with the credential's name."""
    answer = journal.ask("save", markdown=DRAFT)

    assert answer.refusal == ""
    source = answer.source
    assert source is not None
    assert (source.slug, source.title, source.state) == ("two-winters", "Two winters", "draft")
    assert source.author == "Claude"
    assert (journal.var / "drafts/two-winters.md").read_text() == source.markdown
    assert sorted(each.name for each in (journal.content / "posts").iterdir()) == [
        "the-first.md",
        "the-second.md",
    ]


def test_a_draft_of_the_owner_is_in_the_content(journal: Journal) -> None:
    """The desk saves into the folder itself."""
    assert journal.ask("save", "", markdown=DRAFT).refusal == ""
    assert "status: draft" in journal.read("posts/two-winters.md")


def test_a_journal_that_git_ignores_is_a_plain_folder(tmp_path: Path) -> None:
    """As the demonstration is in a clone of this project: nothing of it is committed there."""
    around = Journal(tmp_path, has_git=True)
    (tmp_path / ".gitignore").write_text("/demo*/\n")
    before = around.git("rev-parse", "HEAD")
    journal = Journal(tmp_path / "demo[1]", has_git=False)

    saved = journal.ask("save", "", markdown=DRAFT)
    published = journal.ask("publish", "", slug="two-winters", base=saved.version)
    assert (saved.refusal, published.refusal) == ("", "")
    assert "status: draft" not in journal.read("posts/two-winters.md")
    assert around.git("rev-parse", "HEAD") == before


def test_a_change_names_the_version_that_was_read(journal: Journal) -> None:
    """Without one it is refused, and with an older one too; each answer has the present one."""
    first = journal.ask("save", markdown=DRAFT)
    unnamed = journal.ask("save", markdown=f"{DRAFT}\nMore.\n")
    second = journal.ask("save", markdown=f"{DRAFT}\nMore.\n", base=first.version)
    stale = journal.ask("save", markdown=f"{DRAFT}\nOther.\n", base=first.version)

    assert (unnamed.refusal, unnamed.version) == ("unnamed", first.version)
    assert second.refusal == ""
    assert (stale.refusal, stale.version) == ("stale", second.version)


def test_the_same_save_twice_is_one(journal: Journal) -> None:
    """A client that saw no answer may send the same again."""
    first = journal.ask("save", markdown=DRAFT)
    assert journal.ask("save", markdown=DRAFT) == first


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (DRAFT.replace("The", "<form action='/desk/'>The</form>"), "form"),
        (DRAFT.replace("The", "[x](javascript:alert) The"), "javascript"),
        (DRAFT.replace("The", "<button formaction='/desk/'>The</button>"), "button"),
        (DRAFT.replace("The", "<meta http-equiv='refresh' content='0'>The"), "meta"),
    ],
)
def test_html_of_a_credential_is_not_published(journal: Journal, text: str, word: str) -> None:
    """What only the owner may write keeps a draft from being published, and names its line."""
    saved = journal.ask("save", markdown=text)
    published = journal.ask("publish", "", slug="two-winters", base=saved.version, may_publish=True)
    assert published.refusal == "conflict"
    assert any(word in each.message for each in published.findings)
    assert not (journal.content / "posts/two-winters.md").exists()


def test_markdown_of_a_credential_is_published(journal: Journal) -> None:
    """All that Markdown makes by itself is allowed: code, tables, tasks, notes, links, pictures."""
    text = f"""{DRAFT}
## A part

[a link](https://example.org/ "named"), `code` and a note[^1].

```python
def f(): return 1
```

| a | b |
|:-:|--:|
| 1 | 2 |

3. three
4. four

- [x] done

$a^2$

[^1]: The note.
"""
    saved = journal.ask("save", markdown=text)
    done = journal.ask("publish", slug="two-winters", base=saved.version, may_publish=True)
    assert done.refusal == "", done.findings


@pytest.mark.parametrize(
    "head",
    [
        "status: published",
        "Status: published",
        "status: draft\nstatus: published",
        "status: hidden",
        "date: 2099-01-01",
        "date: 2020-01-01",
        "save_as: index.html",
        "URL: journal/the-first/",
        "template: other",
        "permalink: the-first",
        "slug: the-first",
        "slug: ../../x",
        "aliases: [the-first]",
        "aliases: [/journal/the-first/]",
        "published: true",
        "draft: false",
        '"status": published',
        "? status\n: published",
        "status: !!str published",
        "status: &a published",
    ],
)
def test_a_head_publishes_nothing(journal: Journal, head: str) -> None:
    """Whatever a draft's head says, no file of the content changes."""
    before = {each.name: each.read_bytes() for each in (journal.content / "posts").iterdir()}
    for slug in ("", "two-winters", "the-first", "The-First"):
        journal.ask("save", markdown=f"---\ntitle: X\n{head}\n---\n\nText.\n", slug=slug)
    for slug in ("x", "two-winters", "the-first"):
        version = journal.ask("get", slug=slug).version or None
        journal.ask("publish", slug=slug, base=version)
        journal.ask("withdraw", slug=slug, base=version)

    after = {each.name: each.read_bytes() for each in (journal.content / "posts").iterdir()}
    assert after == before
    assert PUBLISHED.encode() in after.values()


def test_a_credential_changes_no_public_post(journal: Journal) -> None:
    """A published post, and a scheduled one, are closed to it."""
    later = PUBLISHED.replace("2026-01-01", "2027-01-01").replace("the-first", "later")
    (journal.content / "posts/later.md").write_text(later)
    for slug in ("the-first", "later"):
        version = journal.ask("get", slug=slug).version
        answer = journal.ask("save", slug=slug, markdown=PUBLISHED, base=version)
        assert answer.refusal in {"forbidden", "conflict"}


@pytest.mark.parametrize("slug", ["../x", "a/b", ".hidden", "", "x" * 201, "a\0b", "é" * 101])
def test_a_slug_is_no_path(journal: Journal, slug: str) -> None:
    """A slug that no file can have is refused by name."""
    answer = journal.ask("get", slug=slug)
    assert answer.refusal in {"invalid", "not_found"}


def test_drafts_of_credentials_are_listed_first(journal: Journal) -> None:
    """Then come other drafts and scheduled posts; what is published is left out."""
    journal.ask("save", "", markdown="# A\n\nBy the owner.\n")
    journal.ask("save", markdown="# B\n\nBy an agent.\n")
    found = [(each.slug, each.author) for each in journal.ask("list").sources]
    assert found == [("b", "Claude"), ("a", "")]


def test_a_check_stores_nothing(journal: Journal) -> None:
    """It names the line of a broken link."""
    text = "---\ntitle: X\ndate: 2026-01-01\n---\n\n[x](/journal/nowhere/)\n"
    answer = journal.ask("check", markdown=text)
    assert [(each.line, each.severity) for each in answer.findings] == [(6, "warning")]
    assert not (journal.var / "drafts").exists()


def test_html_that_is_given_another_address_stays_untrusted(journal: Journal) -> None:
    """The owner renames an agent's draft; it stays the agent's, and its form is not published."""
    journal.ask("save", slug="draft-20260601-120000", markdown=f"{DRAFT}\n<form>x</form>\n")
    moved = {"slug": "two", "moved_from": "draft-20260601-120000"}
    saved = journal.ask("save", "", markdown=f"{DRAFT}\n<form>x</form>\n", **moved)
    assert saved.source is not None
    assert saved.source.author == "Claude"
    assert journal.ask("preview", "", slug="two").refusal == "conflict"
    assert journal.ask("publish", "", slug="two", base=saved.version).refusal == "conflict"
