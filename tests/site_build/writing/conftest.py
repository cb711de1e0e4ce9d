"""A journal in a git repository, or without one, and the writer that works on it."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from edge_api.schema.writing import WriteAnswer, WriteRequest
from site_build.build.fingerprint import fingerprint_code
from site_build.content.library import ContentLibrary
from site_build.markup.convert import Dialect
from site_build.progress import Request
from site_build.writing.writer import SourceWriter

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PUBLISHED = """---
title: The first
slug: the-first
date: 2026-01-01T10:00:00Z
description: How it began.
---

It began [here](/journal/the-second/).
"""
SECOND = """---
title: The second
slug: the-second
date: 2026-02-01T10:00:00Z
description: How it went on.
aliases: [the-former]
---

It went on.
"""


class Journal:
    """A content folder, and requests to write in it."""

    def __init__(self, root: Path, *, has_git: bool) -> None:
        self.content, self.var = root / "content", root / "var"
        (self.content / "posts").mkdir(parents=True)
        (self.var / "spool").mkdir(parents=True)
        (self.content / "posts/the-first.md").write_text(PUBLISHED)
        (self.content / "posts/the-second.md").write_text(SECOND)
        if has_git:
            self.git("init", "--quiet", "--initial-branch=main")
            self.git("add", ".")
            self.git("commit", "--quiet", "--message=Begin")
        self.writer = SourceWriter(
            self.content, self.var, "https://journal.test", Dialect(), self._open_library
        )

    def _open_library(self) -> ContentLibrary:
        place = self.var / "none"
        request = Request(self.content, place, place, place, None, NOW, jobs=1)
        return ContentLibrary(request, fingerprint_code(), Dialect())

    def git(self, *words: str) -> str:
        """Run git as the owner does, and return what it prints."""
        name = {"GIT_AUTHOR_NAME": "Owner", "GIT_COMMITTER_NAME": "Owner"}
        mail = {"GIT_AUTHOR_EMAIL": "o@journal.test", "GIT_COMMITTER_EMAIL": "o@journal.test"}
        done = subprocess.run(
            ["git", *words],  # noqa: S607
            cwd=self.content.parent,
            env={**os.environ, **name, **mail},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def ask(self, operation: Any, author: str = "Claude", **values: Any) -> WriteAnswer:
        """Return the answer to a request; by default of a credential that may only draft."""
        given = {"may_publish": not author, "asked_at": NOW, **values}
        return self.writer.answer(
            WriteRequest(operation=operation, author=author, **given), given["asked_at"]
        )

    def read(self, path: str) -> str:
        """Return the text of a file of the content."""
        return (self.content / path).read_text()


@pytest.fixture(params=["git", "no git"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    """Return a journal of two posts, in a repository and in a plain folder."""
    return Journal(tmp_path, has_git=request.param == "git")


@pytest.fixture
def repository(tmp_path: Path) -> Journal:
    """Return a journal of two posts in a repository."""
    return Journal(tmp_path, has_git=True)
