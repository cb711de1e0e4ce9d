"""Builds that follow one another: each is served as an edge that starts with it serves it."""

import asyncio
import json
import logging
import random
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.problems import Problem
from edge_api.journal import search_index_files
from edge_api.journal.builds import (
    Build,
    BuildManager,
    BuildRefusal,
    IndexContents,
    PostSearch,
    read_index,
)
from edge_api.journal.search_index_files import SearchOpener
from edge_api.schema.index import INDEX_FILE, INDEX_SEPARATOR
from tests.edge.small_builds import SITE_URL, make_post, point_at, write_build

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

WORDS = ("ink", "paper", "thread", "glue", "linen", "board", "awl", "bone")
EDITS = 40


@asynccontextmanager
async def serving(build_dir: Path, prefix: Path | None = None) -> AsyncIterator[BuildManager]:
    """Yield a build manager that has taken the current build in, and keeps every index."""
    builds = BuildManager(build_dir, SITE_URL, SearchOpener(prefix, 1))
    try:
        await builds.refresh()
        yield builds
    finally:
        await builds.close()


async def describe(build: Build) -> Mapping[str, Any]:
    """Return all that a build answers with."""
    posts = build.posts
    return {
        "head": build.head,
        "entries": [
            (each.cursor, each.tags, each.summary, each.document.body, each.path, each.digest)
            for each in posts.entries
        ],
        "digest": posts.digest,
        "list": posts.full_list.body,
        "files": {path: (file.name, file.codings) for path, file in build.files.items()},
        "found": [await build.search.find(word, 50) for word in WORDS],
        "results": [await build.search.search(word, 50) for word in (*WORDS, "linnen", "papers")],
    }


def edit(dice: random.Random, posts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return posts of which some were changed, added, removed, renamed or moved in time."""
    made = [dict(post) for post in posts]
    for _ in range(dice.randint(1, 3)):
        words, change = " ".join(dice.choices(WORDS, k=6)), dice.randrange(5)
        if change == 0 or len(made) < 2:
            number = dice.randrange(10**9)
            made.append(make_post(f"post-{number}", dice.randrange(300), content=words))
            continue
        at = dice.randrange(len(made))
        if change == 1:
            made.pop(at)
        elif change == 2:
            made[at].update(title=f"About {words}", content_html=f"<p>{words}</p>")
        elif change == 3:
            slug = f"named-{dice.randrange(10**9)}"
            made[at].update(slug=slug, url=f"{SITE_URL}/journal/{slug}/")
        else:
            moved = make_post(made[at]["slug"], dice.randrange(300))
            made[at].update((name, moved[name]) for name in ("publishedAt", "published_at"))
    made.sort(key=lambda post: post["slug"])
    return sorted(made, key=lambda post: post["publishedAt"], reverse=True)


async def test_a_swap_serves_what_a_start_serves(tmp_path: Path) -> None:
    """After random edits, and after going back to the build before, whatever is kept of others."""
    dice = random.Random(56)  # noqa: S311  no secret
    folder = tmp_path / "builds"
    posts = [make_post(f"post-{day}", day, content=WORDS[day % 8]) for day in reversed(range(30))]
    folders = [write_build(folder, "build-0000", posts)]
    point_at(folder, folders[0])
    (tmp_path / "kept").mkdir()
    async with serving(folder, tmp_path / "kept" / "search") as builds:
        for number in range(1, EDITS):
            posts = edit(dice, posts)
            extra = {f"of-{number}.txt": "x", "same.css": "x", "same.css.br": str(number)}
            folders.append(write_build(folder, f"build-{number:04}", posts, extra))
            back = folders[-2] if number % 3 == 0 else folders[-1]
            for each in {back: None, folders[-1]: None}:
                point_at(folder, each)
                await builds.refresh()
                async with serving(folder) as anew:
                    assert builds.error == anew.error == ""
                    assert await describe(builds.build()) == await describe(anew.build())


def test_what_is_known_refuses_as_ever(tmp_path: Path) -> None:
    """A damaged index gets the same sentence after a good one, wherever the damage is."""
    posts = [make_post(slug, 99 - day) for day, slug in enumerate(WORDS)]
    good = write_build(tmp_path, "build-0001", posts) / INDEX_FILE
    _, known = read_index(good)
    raw, sentences = good.read_bytes(), set[str]()
    dice = random.Random(56)  # noqa: S311  no secret
    bad = tmp_path / INDEX_FILE
    for position in (*dice.sample(range(len(raw)), 300), raw.index(INDEX_SEPARATOR)):
        bad.write_bytes(raw[:position] + bytes([raw[position] ^ 0x04]) + raw[position + 1 :])
        outcomes = []
        for entries in ((), known.entries):
            with suppress(BuildRefusal):
                outcomes.append(read_index(bad, entries)[1].digest)
                continue
            with pytest.raises(BuildRefusal) as refused:
                read_index(bad, entries)
            outcomes.append(str(refused.value))
            sentences.add(str(refused.value))
        assert outcomes[0] == outcomes[1]
    assert len(sentences) > 20


async def test_one_bad_line_leaves_the_build_before(tmp_path: Path) -> None:
    """The line is named, though all others are known."""
    posts = [make_post(slug, 99 - day) for day, slug in enumerate(WORDS)]
    point_at(tmp_path, write_build(tmp_path, "build-0001", posts))
    async with serving(tmp_path) as builds:
        served = builds.build()
        damaged = [*posts[:3], {**posts[3], "readingMinutes": 0}, *posts[4:]]
        point_at(tmp_path, write_build(tmp_path, "build-0002", damaged))
        await builds.refresh()
        assert "damaged in line 5 (readingMinutes" in builds.error
        assert builds.build() is served


async def test_builds_share_what_is_equal(tmp_path: Path) -> None:
    """The memory of two builds is that of one, and of what differs."""
    posts = [make_post(slug, 99 - day) for day, slug in enumerate(WORDS)]
    point_at(tmp_path, write_build(tmp_path, "build-0001", posts))
    async with serving(tmp_path) as builds:
        before = builds.build()
        posts[2]["title"] = "Another"
        coded = {"journal/ink/index.html.br": "x"}
        point_at(tmp_path, write_build(tmp_path, "build-0002", posts, coded))
        await builds.refresh()
        after = builds.build()

    pairs = zip(before.posts.entries, after.posts.entries, strict=True)
    assert [one is other for one, other in pairs].count(False) == 1
    files = [path for path in after.files if after.files[path] is not before.files[path]]
    assert files == ["/journal/ink/"]


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no process of ours start."""
    monkeypatch.setattr(sys, "executable", "/missing")


@pytest.mark.parametrize("most", [3, 1])
async def test_a_few_changes_need_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, most: int
) -> None:
    """A thread changes the kept index for them; for more posts a process is started."""
    (tmp_path / "kept").mkdir()
    posts = [make_post(slug, 99 - day) for day, slug in enumerate(WORDS)]
    point_at(tmp_path, write_build(tmp_path, "build-0001", posts))
    async with serving(tmp_path, tmp_path / "kept" / "search") as builds:
        assert await builds.build().search.find("words", 1) == ["ink"]
        monkeypatch.setattr(sys, "executable", "/missing")
        monkeypatch.setattr(search_index_files, "MAX_POSTS_IN_THREAD", most)
        for post in posts[:3]:
            post["content_html"] = "<p>changed</p>"
        point_at(tmp_path, write_build(tmp_path, "build-0002", posts))
        with caplog.at_level(logging.WARNING):
            await builds.refresh()
        assert await builds.build().search.find("changed", 9) == [*WORDS[:3]]

    kept = [path.name for path in (tmp_path / "kept").iterdir()]
    assert ([name for name in kept if "build-0002" in name] != []) == (most == 3)
    assert bool(caplog.messages) == (most == 1)


class Opened:
    """Opens searches, and keeps them."""

    def __init__(self) -> None:
        self.searches: list[PostSearch] = []

    async def __call__(self, folder: Path, reading: asyncio.Future[IndexContents]) -> PostSearch:
        """Open as ever."""
        self.searches.append(await SearchOpener()(folder, reading))
        return self.searches[-1]


async def test_a_build_removed_while_it_is_read_leaves_nothing(tmp_path: Path) -> None:
    """Its index was read; its pages are gone; its search is closed, and the old one stays."""
    point_at(tmp_path, write_build(tmp_path, "build-0001", [make_post("ink")]))
    opener = Opened()
    builds = BuildManager(tmp_path, SITE_URL, opener)
    await builds.refresh()
    gone = write_build(tmp_path, "build-0002", [make_post("paper")])
    shutil.rmtree(gone / "site")
    point_at(tmp_path, gone)
    await builds.refresh()

    assert builds.build().head.build_id == "build-0001"
    assert "its site cannot be read: No such file" in builds.error
    assert await builds.build().search.find("ink", 1) == ["ink"]
    (_, search) = opener.searches
    with pytest.raises(Problem, match="closed"):
        await search.find("paper", 1)
    await builds.close()


def test_an_index_says_which_posts_it_has(tmp_path: Path) -> None:
    """Its digest changes with its head and with each post, and does not depend on what is known."""
    posts = [make_post(slug, 99 - day) for day, slug in enumerate(WORDS)]
    digests = set[str]()
    for number in range(len(posts)):
        changed = [*posts[:number], {**posts[number], "title": "New"}, *posts[number + 1 :]]
        path = write_build(tmp_path, f"build-100{number}", changed) / INDEX_FILE
        digests.add(read_index(path)[1].digest)
    head = path.read_bytes().replace(b"A small journal.", b"Another journal.")
    path.write_bytes(head)
    digests.add(read_index(path)[1].digest)
    assert len(digests) == len(posts) + 1
    assert json.loads(head)["head"]["count"] == len(posts)
