"""Parts of the benchmarks on small sites and stores: no time is judged here."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from benchmarks.builders import HUGO, OURS, Site
from benchmarks.cost import Cost
from benchmarks.ground import Edge, Ground
from benchmarks.parts import desk, editing, memory
from benchmarks.parts.desk import sign_in
from benchmarks.parts.editing import Edit, keeping, reach, time_edit, watching
from benchmarks.parts.memory import Seen, describe
from benchmarks.parts.searching import list_paths, write_texts
from benchmarks.parts.starting import compare
from benchmarks.server import Took

pytestmark = pytest.mark.size("ci")

POSTS = 3


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Return a ground of a few posts."""
    return Ground(tmp_path_factory.mktemp("ground"), (POSTS,))


@pytest.fixture(scope="module")
def edge(ground: Ground) -> Iterator[Edge]:
    """Run an edge over it, with some leads."""
    with ground.edge("parts", posts=POSTS, leads=200) as running:
        yield running


def test_a_start_is_measured_to_the_first_page(edge: Edge) -> None:
    """By the clock and by processor time, its children included."""
    assert 0 < edge.took.processor <= edge.server.processor_seconds()
    assert edge.took.seconds > 0


def test_takes_are_compared_round_by_round() -> None:
    """By the clock and by processor time."""
    reached = compare([Took(2, 1), Took(6, 4)], [Took(1, 2), Took(2, 2)])

    assert list(reached.rounds) == [2, 3]
    assert list(reached.costs) == [0.5, 2]


def test_the_desk_shows_every_screen_that_is_measured(edge: Edge) -> None:
    """To who signed in; a key that opens nothing ends the measurement."""

    async def ask() -> None:
        async with ClientSession(edge.server.origin, headers={"Cookie": sign_in(edge)}) as session:
            for name, paths in desk.list_screens(edge).items():
                async with session.get(paths[0], allow_redirects=False) as answer:
                    assert answer.status == 200, name
                    assert "<main" in await answer.text(), name

    asyncio.run(ask())
    with pytest.raises(SystemExit, match="answered 400 in place of a session"):
        sign_in(Edge(edge.server, "fe_sk_wrong", "", edge.took))


def test_a_mixed_load_has_every_kind_of_request(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Downloads too, and memory is looked at meanwhile."""
    monkeypatch.setattr(memory, "SHARES", dict.fromkeys(memory.SHARES, 1))
    seen = asyncio.run(memory.load(edge, 4))

    assert {*seen.answers} == {*memory.SHARES, "download"}
    assert all(weight > 20 for _, weight in seen.weights)


def test_growth_is_that_of_the_last_quarter() -> None:
    """What a start takes is no growth."""
    early = [(float(at), 50.0 + at) for at in range(60)]
    late = [(float(at), 110 + (at - 60) / 60) for at in range(60, 80)]
    seen = Seen([*early, *late])
    seen.answers["page"] = 1200

    assert seen.growth() == pytest.approx(1)
    section = describe({"idle": 50.0}, seen, 20)
    assert section.reached["memory, growth"].value == pytest.approx(1)
    assert section.reached["memory, idle"].value == 50
    assert "1,200 requests, 1 a second: 1,200 x page" in section.about


def test_datasette_is_asked_for_the_same_words(ground: Ground, tmp_path: Path) -> None:
    """Its table finds what stands in a text, by stems as the edge does."""
    database = tmp_path / "words.db"
    write_texts(ground.site(POSTS) / "current" / "posts.json", database)
    ours, theirs = list_paths(database, ["a b"])

    assert ours[0] == "/api/public/v1/search?q=a%20b&limit=6"
    assert theirs[0].startswith("/words/posts.json?")
    assert theirs[0].endswith("_search=a%20b&_size=6")
    assert len({*ours}) == len({*theirs}) == len(ours) == len(theirs)
    with sqlite3.connect(database) as connection:
        (count,) = connection.execute("SELECT count(*) FROM posts_fts('the')").fetchone()
    connection.close()
    assert count == POSTS


def test_an_edit_is_followed_to_the_reader(ground: Ground) -> None:
    """The watcher builds it, the edge serves it, and the text is as before in the end."""
    home = ground.site(POSTS).parent
    site = Site(OURS, home, [])
    post = site.posts[1]
    before = post.read_text(encoding="utf-8")
    with (
        keeping(home / "content") as kept,
        ground.edge("edited", posts=POSTS, leads=0) as edge,
        watching(home) as watcher,
    ):
        kept.append((post, before))
        edit = asyncio.run(time_edit(site, post, before, edge, watcher))
        assert "An afterthought" in post.read_text(encoding="utf-8")

    assert post.read_text(encoding="utf-8") == before
    assert min(edit.built.seconds, edit.built.processor, edit.swap.seconds, edit.longest) > 0


def test_an_edit_that_nobody_builds_ends_the_run(
    ground: Ground, edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the name of the post."""
    monkeypatch.setattr(editing, "_PATIENCE", 0.2)
    home = ground.site(POSTS).parent
    site = Site(OURS, home, [])
    post = site.posts[0]
    before = post.read_text(encoding="utf-8")
    with keeping(home / "content") as kept:
        kept.append((post, before))
        with pytest.raises(SystemExit, match=f"{post.stem} was not built within"):
            asyncio.run(time_edit(site, post, before, edge, edge.server))


def test_lines_of_an_edit_are_ratios() -> None:
    """Beside Hugo's build, and beside the start of the edge."""
    edits = [Edit(Took(2, 1), 0.5, Took(1, 0.5), 30.0)]
    reached = reach(10_000, edits, [Cost(12, 20, 0)], Took(4, 2))

    edit = reached[f"watcher edit, 10,000 posts/{HUGO}"]
    assert (edit.value, edit.by_cost) == (6, 20)
    assert reached[f"save to reader, 10,000 posts/{HUGO}"].value == 4
    swap = reached["swap, 10,000 posts"]
    assert (swap.value, swap.by_cost) == (0.25, 0.25)
    assert reached["longest, 10,000 posts"].value == 30
