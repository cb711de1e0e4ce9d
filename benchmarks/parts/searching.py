"""The search of the site, against Datasette's full-text search of the same posts."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice, product
from pathlib import Path
from typing import Final
from urllib.parse import quote

from benchmarks import peers
from benchmarks.ground import Ground
from benchmarks.load import Load
from benchmarks.peers import DATASETTE
from benchmarks.race import EDGE, Runner, race
from benchmarks.section import Section, compare
from edge_api.schema.paths import SEARCH_DATA

_PAIRS: Final = 4_000
_LIMITS: Final = range(6, 15)
"""Numbers of posts that are asked for: with each the question is another one, so that few answers
come from memory."""
_ABOUT: Final = (
    "One connection; words of titles, in random order, so that many posts have some of them and "
    "few have others. The edge answers as its API does: posts with the sentences in which the "
    "words stand, by stems, in the order of their rank. Datasette has an FTS5 table over title, "
    "description and text, and returns rows without a count."
)


def measure(ground: Ground) -> Section:
    """Measure one word and two, on the largest site."""
    posts = max(ground.sizes)
    index = ground.site(posts) / "current" / "posts.json"
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("searching", posts=posts, leads=0))
        database = ground.folder / f"searching-{posts}.db"
        if not database.exists():
            write_texts(index, database)
        leads = ground.database("searching-peer", 0)
        peer = stack.enter_context(peers.datasette(database, leads))
        words = sorted({word for slug in edge.slugs() for word in slug.split("-")})
        lists = {"one word": words, "two words": [f"{one} {two}" for one, two in _pairs(words)]}
        races = {}
        for name, asked in lists.items():
            ours, theirs = list_paths(database, asked)
            races[name] = race(
                f"{name.capitalize()} among {posts:,} posts",
                [
                    Runner(EDGE, edge.server, Load(edge.server.origin, ours, connections=1)),
                    Runner(DATASETTE, peer, Load(peer.origin, theirs, connections=1)),
                ],
            )
    reached = {f"{name}/{DATASETTE}": compare(held, DATASETTE) for name, held in races.items()}
    return Section("Search of the site", _ABOUT, tuple(races.values()), reached=reached)


def list_paths(database: Path, asked: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what the edge and Datasette are asked for the same words, each with every limit."""
    table = f"/{database.stem}/posts.json?_nocount=1&_nofacet=1&_shape=objects&_search="
    questions = [(quote(words), limit) for words in asked for limit in _LIMITS]
    return (
        [f"{SEARCH_DATA}?q={words}&limit={limit}" for words, limit in questions],
        [f"{table}{words}&_size={limit}" for words, limit in questions],
    )


def write_texts(index: Path, database: Path) -> None:
    """Put the posts of an index into a database that Datasette finds a search in."""
    partial = database.with_suffix(".part")
    partial.unlink(missing_ok=True)
    peers.write_posts(index, partial)
    with sqlite3.connect(partial) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE posts_fts USING fts5(title, description, content, "
            "content='posts', tokenize='porter')"
        )
        connection.execute("INSERT INTO posts_fts(posts_fts) VALUES ('rebuild')")
    connection.close()
    partial.rename(database)


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of two words, spread over all of them."""
    step = max(1, len(words) ** 2 // _PAIRS)
    return islice(product(words, words), 0, None, step)
