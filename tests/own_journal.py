"""Tests of the journal's posts: they run only if `content/` is this project's journal.

Tests of the product have content of their own, so that they run whatever `content/` holds.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST_CONTENT = ROOT / "tests" / "edge" / "content"
"""A small journal: three public posts, a draft, a scheduled post, and two pages."""

OWN_POSTS = (
    "a-lead-is-safe",
    "decisions-and-what-they-cost",
    "how-this-site-is-built",
    "moving-in",
    "publishing-a-post",
    "running-it-in-production",
    "tables-your-tools-already-speak",
    "the-api-from-a-terminal",
    "the-api-from-javascript",
    "the-api-from-python",
    "what-a-fore-edge-is",
    "what-an-agent-may-do",
    "writing-from-a-phone",
    "your-journal-is-a-folder",
)
"""Names of the files. One of them is enough: a journal that lacks some of them is found faulty."""

NOTICE = "content/ is not this project's journal: tests of its posts do not run"


def is_own_journal(content: Path) -> bool:
    """Return whether a content folder has any of this project's posts."""
    return any((content / "posts" / f"{name}.md").exists() for name in OWN_POSTS)


IS_OWN = is_own_journal(ROOT / "content")
JUDGED_CONTENT = ROOT / "content" if IS_OWN else TEST_CONTENT
"""The journal that papers are tried on and whose pages are judged."""
