"""Every link of the journal, and every place in a page that one points at."""

import shutil
from pathlib import Path

import pytest

from tests.judges.pages.crawl import crawl
from tests.judges.pages.judging import follow_links
from tests.judges.pages.served import Served, serve
from tests.own_journal import TEST_CONTENT

pytestmark = pytest.mark.size("test")

_DEAD = """---
title: Dead
slug: dead
date: 2026-03-01
---

[a page](/none/) and [a place](/about/#nowhere), ![a picture](/images/none.png)
"""


async def test_no_link_is_dead(journal: Served, tmp_path: Path) -> None:
    """Links, pictures, sheets, scripts and fragments lead somewhere, without a redirect."""
    pages = crawl(journal)

    checked, broken = await follow_links(journal, *pages, folder=tmp_path)
    assert broken == []
    assert checked > len(pages)


@pytest.mark.size("ci")
async def test_dead_links_are_found(tmp_path: Path) -> None:
    """A page, a place in a page and a picture that are not there."""
    content = shutil.copytree(TEST_CONTENT, tmp_path / "content")
    (content / "posts" / "dead.md").write_text(_DEAD, encoding="utf-8")
    with serve(content, tmp_path) as served:
        _, broken = await follow_links(served, "/journal/dead/", folder=tmp_path)

    dead = {fault["url"].removeprefix(served.origin) for fault in broken}
    assert dead == {"/none/", "/about/#nowhere", "/images/none.png"}
