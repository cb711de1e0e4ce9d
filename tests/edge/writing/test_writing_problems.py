"""Each problem of a source that an operation of writing declares, met over HTTP."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.problems import PROBLEMS, Code
from edge_api.operation.model import AnyOperation
from edge_api.writing.operations import OPERATIONS
from tests.edge.conftest import RunningEdge, error_of
from tests.edge.engines import ON_SQLITE

pytestmark = [ON_SQLITE, pytest.mark.size("test")]

DECLARED = [
    (operation, code)
    for operation in OPERATIONS
    for code in operation.problems
    if code != "unavailable"  # `tests/edge/test_problems.py`, where writing is off
]
POST = """---
title: Two winters
slug: two-winters
date: 2025-11-20T09:30:00Z
{status}---

The store has stood.
"""
DRAFT = POST.format(status="status: draft\n")
DRAFT_VERSION = "66e4022318579b4f4b6dc4c40ee7c374098511c7"
PUBLISHED = POST.format(status="")
PUBLISHED_VERSION = "e51e41edb0b511ce0b22ec6df0241f1af7068d7b"
MORE = f"{DRAFT}More.\n"
SOURCES: dict[Code, tuple[str, ...]] = {
    "not_found": (),
    "forbidden": (PUBLISHED,),
    "conflict": (DRAFT, DRAFT),
    "stale": (MORE,),
    "unnamed": (MORE,),
    "locked": (DRAFT,),
}
"""The files that there are where an operation meets a problem."""


def begin_merge(folder: Path) -> None:
    """Leave a merge unfinished in a repository around the content."""
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)  # noqa: S607
    (folder / ".git/MERGE_HEAD").write_text(DRAFT_VERSION)


@pytest.mark.parametrize(
    ("operation", "code"),
    [pytest.param(item, code, id=f"{item.name}-{code}") for item, code in DECLARED],
)
async def test_each_declared_problem_is_met(
    writable: RunningEdge, tmp_path: Path, operation: AnyOperation, code: Code
) -> None:
    """The answer has its status and a sentence, and the content is as it was."""
    for number, text in enumerate(SOURCES[code]):
        (tmp_path / f"content/posts/{number}.md").write_text(text)
    if code == "locked":
        begin_merge(tmp_path)
    key = await writable.key("posts:draft" if code == "forbidden" else "posts:publish")
    version = PUBLISHED_VERSION if code == "forbidden" else DRAFT_VERSION
    sent: dict[str, Any] = {} if code == "unnamed" else {"headers": {"If-Match": f'"{version}"'}}
    if operation.body is not None:
        sent["json"] = next(iter(operation.body.examples.values()))
    path = operation.path.replace("{slug}", "two-winters")

    async with writable.ask(operation.method, path, key, **sent) as answer:
        assert answer.status == PROBLEMS[code].status, await answer.text()
        assert await error_of(answer)
    files = sorted((tmp_path / "content").rglob("*.md"))
    assert [each.read_text() for each in files] == list(SOURCES[code])
