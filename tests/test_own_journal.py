"""The content of `content/` decides if the tests of this project's posts run."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.own_journal import NOTICE, OWN_POSTS, ROOT, is_own_journal
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

POST = "---\ntitle: A post\nslug: a-post\ndate: 2026-03-01\n---\n\n```python\n1 / 0\n```\n"
STRAY = "```pyhton\na slip of the pen\n```\n"
OF_OWN_POSTS = "test_the_journal_is_clean"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout whose `content/` holds one post and one page of somebody else's."""
    shutil.copytree(ROOT / "tests" / "content", tmp_path / "tests" / "content")
    for name in ("conftest.py", "own_journal.py", "patience.py", "sizes.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    (tmp_path / "tests" / "judges").mkdir()
    shutil.copy(ROOT / "tests" / "judges" / "README.md", tmp_path / "tests" / "judges")
    (tmp_path / "tests" / "drills").symlink_to(ROOT / "tests" / "drills")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path in ROOT.glob("[!.]*"):
        if path.name not in {"content", "pyproject.toml", "tests"}:
            (tmp_path / path.name).symlink_to(path)
    for folder in ("posts", "pages"):
        (tmp_path / "content" / folder).mkdir(parents=True)
        (tmp_path / "content" / folder / "other.md").write_text(POST + STRAY, encoding="utf-8")
    return tmp_path


def run_papers(checkout: Path, *options: str) -> tuple[int, str]:
    """Run tests of a checkout's papers; return the exit status and what was printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        command, cwd=checkout, check=False, capture_output=True, text=True, timeout=600
    )
    return done.returncode, done.stdout + done.stderr


def test_content_of_others_leaves_out_the_tests_of_our_posts(checkout: Path) -> None:
    """No test reads posts of others, the rest passes, and one line says what did not run."""
    assert not is_own_journal(checkout / "content")
    assert not is_own_journal(checkout / "nowhere")
    _, listed = run_papers(checkout, "--collect-only", "tests/content")
    status, said = run_papers(checkout, "tests/content/test_papers.py")

    assert OF_OWN_POSTS not in listed
    assert "content/posts/" not in listed
    assert "test_every_block_of_code_runs[docs/operators.md]" in listed
    assert status == 0, said
    assert said.count(NOTICE) == listed.count(NOTICE) == 1
    assert "skipped" not in said


@pytest.mark.parametrize("name", [*OWN_POSTS[:2], *in_ci(*OWN_POSTS[2:])])
def test_one_of_our_posts_makes_the_journal_ours(name: str, checkout: Path) -> None:
    """Their tests are there, so that a post that is missing is found."""
    (checkout / "content" / "posts" / f"{name}.md").write_text(POST, encoding="utf-8")

    assert is_own_journal(checkout / "content")


@pytest.mark.size("ci")
def test_our_posts_are_tested_where_they_are(checkout: Path) -> None:
    """With one of them there, no test is left out, and the missing ones are found."""
    (checkout / "content" / "posts" / f"{OWN_POSTS[0]}.md").write_text(POST, encoding="utf-8")
    _, listed = run_papers(checkout, "--collect-only", "tests/content")
    status, said = run_papers(checkout, "tests/content/test_papers.py", "-k", OF_OWN_POSTS)

    assert f"test_every_block_of_code_runs[content/posts/{OWN_POSTS[0]}.md]" in listed
    assert "test_every_block_of_code_runs[README.md]" in listed
    assert (status, f"::{OF_OWN_POSTS}" in said) == (1, True)
    assert NOTICE not in listed + said
