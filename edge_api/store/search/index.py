"""Full-text search in the posts of one edition: an FTS5 index in a file of its own.

The index is built whole and only read afterwards; another edition gets another file. Whatever a
person types is looked for as words: no text is an error, and none reaches FTS5 as syntax. What the
posts' own markup was is not known here: plain text goes in.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from edge_api.schema.search import Finding, Findings, SearchText
from edge_api.store.faults import unavailable
from edge_api.store.search.marks import (
    CLOSING,
    OPENING,
    free_of_marks,
    has_match,
    make_snippet,
    read_marks,
)
from edge_api.store.search.pool import Pool
from edge_api.store.search.question import make_question
from edge_api.store.sqlite.faults import problem_of

SNIPPET_LONGEST: Final = 280
"""Characters: three or four lines of a page."""

_MAKE: Final = """
    CREATE VIRTUAL TABLE post USING fts5(
        slug UNINDEXED, title, description, tags, prose, code,
        tokenize = 'porter unicode61 remove_diacritics 2', prefix = '2'
    )
"""
"""Words by their stem in English, without accents. Beginnings of two letters are kept, since each
letter that a person types asks for one; those of three would cost more than they save."""
_FILL: Final = "INSERT INTO post VALUES (?, ?, ?, ?, ?, ?)"

# Lower is better, and of equals the newer post comes first, as it went in. Ahead of all are the
# posts whose title has all the words: the worth of a word that most posts have is next to nothing,
# wherever it stands.
_RANKED: Final = """
    SELECT rowid, slug FROM post WHERE post MATCH ?1 ORDER BY
        rowid NOT IN (SELECT rowid FROM post WHERE post MATCH 'title : (' || ?1 || ')'),
        bm25(post, 0, 100, 10, 20, 1, 1), rowid
    LIMIT ?2 OFFSET ?3
"""
_COUNT: Final = "SELECT count(*) FROM post WHERE post MATCH ?"
# The sign keeps the engine from going through its lists once for each post that is shown.
_SHOW: Final = """
    SELECT rowid, highlight(post, 1, ?3, ?4), highlight(post, 4, ?3, ?4),
        highlight(post, 2, ?3, ?4), highlight(post, 5, ?3, ?4)
    FROM post WHERE post MATCH ?1 AND +rowid IN (SELECT value FROM json_each(?2))
"""

T = TypeVar("T")


class Search:
    """Finds posts by their words."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._is_closed = False

    async def find(self, words: str, limit: int) -> list[str]:
        """Return the slugs of at most `limit` posts that hold all the words, best first.

        The last word counts as the beginning of one; "words in quotes" stand side by side. Text
        without a word finds nothing. Raises Problem `unavailable` when the index cannot be read,
        when too many ask at once, and when it took too long.
        """
        question = make_question(words)
        return await self._ask(partial(_find, question, limit)) if question else []

    async def look_up(self, words: str, limit: int, offset: int = 0) -> Findings:
        """Return how many posts hold all the words, and what to show of those behind `offset`.

        Words count as in `find`. Raises Problem `unavailable` when the index cannot be read,
        when too many ask at once, and when it took too long.
        """
        question = make_question(words)
        if not question:
            return Findings(0, ())
        return await self._ask(partial(_look_up, question, limit, offset))

    async def close(self) -> None:
        """Let go of the index and its threads."""
        self._is_closed = True
        await self._pool.close()

    async def _ask(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._is_closed:
            raise unavailable("This edition is closed")
        try:
            return await self._pool.call(work)
        except sqlite3.Error as error:
            raise problem_of(error) from error


def _find(question: str, limit: int, connection: sqlite3.Connection) -> list[str]:
    return list(_rank(connection, question, limit, 0).values())


def _look_up(question: str, limit: int, offset: int, connection: sqlite3.Connection) -> Findings:
    (total,) = connection.execute(_COUNT, (question,)).fetchone()
    ranked = _rank(connection, question, limit, offset)
    chosen = json.dumps(list(ranked))
    rows = connection.execute(_SHOW, (question, chosen, OPENING, CLOSING))
    texts = {number: marked for number, *marked in rows}
    return Findings(total, tuple(_show(slug, *texts[number]) for number, slug in ranked.items()))


def _rank(
    connection: sqlite3.Connection, question: str, limit: int, offset: int
) -> Mapping[int, str]:
    """Return the slugs of the posts that were found by their numbers, best first."""
    return dict(connection.execute(_RANKED, (question, limit, offset)))


def _show(slug: str, title: str, prose: str, description: str, code: str) -> Finding:
    """Return a finding; where the prose has no match, another text may show one, or tell more."""
    texts = [read_marks(text) for text in (prose, description, code)]
    shown = next(filter(has_match, texts), texts[1] or texts[0])
    return Finding(slug, read_marks(title), make_snippet(shown, SNIPPET_LONGEST))


async def open_search(texts: Iterable[SearchText]) -> Search:
    """Return the search in `texts`, newest first, its index built off the event loop.

    The file has no name any more when it is open, so that nothing is left behind even by a crash.
    Raises Problem `unavailable`.
    """
    try:
        with TemporaryDirectory(prefix="search-") as folder:
            path = Path(folder) / "posts.db"
            await asyncio.to_thread(build_search, path, texts)
            return Search(await Pool.open(partial(_open, path)))
    except sqlite3.Error as error:
        raise problem_of(error) from error
    except OSError as error:
        raise unavailable("There is no room for the search index") from error


def build_search(path: Path, texts: Iterable[SearchText]) -> None:
    """Write the index of `texts` into a new file. Raises sqlite3.Error."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # A build that is interrupted is thrown away: neither journal nor sync is of any use.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_MAKE)
        connection.execute("BEGIN")
        connection.executemany(_FILL, (tuple(map(free_of_marks, text)) for text in texts))
        connection.execute("COMMIT")


def _open(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.execute("SELECT count(*) FROM post LIMIT 1").fetchone()
    return connection
