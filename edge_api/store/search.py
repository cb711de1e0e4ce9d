"""Full-text search in the posts of one edition: an FTS5 index in a file of its own.

The index is built whole and only read afterwards; another edition gets another file. Whatever a
person types is looked for as words: no text is an error, and none reaches FTS5 as syntax.
"""

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from edge_api.schema.index import PostRecord
from edge_api.store.connection import Connection
from edge_api.store.faults import problem_of, unavailable

WORDS_LONGEST: Final = 1000
"""Characters of a question that count; nobody types more."""
TERMS_MOST: Final = 32
"""Terms of a question that count: each costs a look into the index."""

_MAKE: Final = """
    CREATE VIRTUAL TABLE post USING fts5(
        slug UNINDEXED, title, description, tags, body,
        tokenize = 'porter unicode61 remove_diacritics 2', prefix = '2'
    )
"""
"""Words by their stem in English, without accents. Beginnings of two letters are kept, since each
letter that a person types asks for one; those of three would cost more than they save."""
_FILL: Final = "INSERT INTO post VALUES (?, ?, ?, ?, ?)"
# A word counts for more in the title than in tags, description and body (bm25, lower is better);
# of equals, the newer post comes first, as it went in.
_FIND: Final = """
    SELECT slug FROM post WHERE post MATCH ?
    ORDER BY bm25(post, 0, 10, 4, 5, 1), rowid LIMIT ?
"""


class Search:
    """Finds posts by their words."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_closed = False

    async def find(self, words: str, limit: int) -> list[str]:
        """Return the slugs of at most `limit` posts that hold all the words, best first.

        The last word counts as the beginning of one; "words in quotes" stand side by side. Text
        without a word finds nothing. Raises Problem `unavailable` when the index cannot be read.
        """
        question = make_question(words)
        if not question:
            return []
        if self._is_closed:
            raise unavailable("This edition is closed")
        try:
            rows = await self._connection.execute_fetchall(_FIND, (question, limit))
        except sqlite3.Error as error:
            raise problem_of(error) from error
        return [slug for (slug,) in rows]

    async def close(self) -> None:
        """Let go of the index and its thread."""
        self._is_closed = True
        await self._connection.close()


async def open_search(posts: Iterable[PostRecord]) -> Search:
    """Return the search in `posts`, newest first, its index built off the event loop.

    The file has no name any more when it is open, so that nothing is left behind even by a crash.
    Raises Problem `unavailable`.
    """
    try:
        with TemporaryDirectory(prefix="search-") as folder:
            path = Path(folder) / "posts.db"
            await asyncio.to_thread(build_search, path, posts)
            return Search(await Connection.open(partial(_open, path)))
    except sqlite3.Error as error:
        raise problem_of(error) from error
    except OSError as error:
        raise unavailable("There is no room for the search index") from error


def build_search(path: Path, posts: Iterable[PostRecord]) -> None:
    """Write the index of `posts` into a new file. Raises sqlite3.Error."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # A build that is interrupted is thrown away: neither journal nor sync is of any use.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_MAKE)
        connection.execute("BEGIN")
        connection.executemany(_FILL, map(_entry, posts))
        connection.execute("COMMIT")


def _entry(post: PostRecord) -> tuple[str, ...]:
    return post.slug, post.title, post.description, ", ".join(post.tags), post.content


def _open(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.execute("SELECT count(*) FROM post LIMIT 1").fetchone()
    return connection


def make_question(words: str) -> str:
    """Return the FTS5 query for what a person typed; empty when there is no word in it."""
    terms = list(islice(filter(_has_word, _terms(words[:WORDS_LONGEST])), TERMS_MOST))
    # A quotation mark at the end closes a phrase, a sign closes a word: neither is being typed.
    is_open = words[-1:].isspace() or words[-1:].isalnum()
    return " AND ".join(f'"{term}"' for term in terms) + ("*" if terms and is_open else "")


def _terms(words: str) -> Iterator[str]:
    """Yield each phrase and each word between them.

    Every second piece between quotation marks is a phrase, if it is closed. Pieces hold no
    quotation mark, so that each is one FTS5 string when it stands between two.
    """
    clean = words.encode("utf-8", "replace").decode().replace("\x00", " ")
    pieces = clean.split('"')
    for number, piece in enumerate(pieces):
        is_phrase = number % 2 == 1 and number < len(pieces) - 1
        yield from [piece] if is_phrase else piece.split()


def _has_word(term: str) -> bool:
    return any(map(str.isalnum, term))
