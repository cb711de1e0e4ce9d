"""Full-text search in the posts of one build, by an FTS5 index in a file of its own.

Posts rank in three groups: with every word as typed, with every word in some form, and with some of
the words, of which a rare one is replaced by its likely spelling. Any text is a valid query, since
none reaches FTS5 as syntax. The index takes plain text, without the markup of posts.
"""

import asyncio
import json
import os
import re
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from difflib import SequenceMatcher, get_close_matches
from functools import cache, partial
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar
from unicodedata import normalize

from edge_api.db.errors import unavailable
from edge_api.db.fts.fts_query import (
    MATCH_END,
    MATCH_START,
    STOP_WORDS,
    FtsQuery,
    has_word,
    make_fts_query,
    make_snippet,
    parse_highlights,
    to_index_text,
)
from edge_api.db.sqlite.connection import Readers
from edge_api.db.sqlite.errors import primary_code, sqlite_problem
from edge_api.schema.index import SearchHit, SearchHits, SearchText

READERS: Final = 2  # connections that search
MAX_READS: Final = 64  # reads in progress and waiting, in all; beyond that a read fails at once
WAIT_SECONDS: Final = 2.0  # the time limit of a read, with its wait
RUN_SECONDS: Final = 0.5
"""The time limit of a read without its wait; it is meant to take milliseconds."""
MAX_SNIPPET_LENGTH: Final = 280  # characters: three or four lines of a page
MIN_RESULTS: Final = 10
"""If fewer posts have all the words, the most similar ones are added up to this number."""
MAX_SCORED: Final = 100  # posts with some of the words that are ranked by their score
RARE_BELOW: Final = 3  # posts: a word in fewer of them is rare, and may be misspelt
MIN_FREQUENCY_RATIO: Final = 50
"""A suggested spelling must be in this many times more posts than the typed word."""
MIN_SIMILARITY, MIN_SIMILARITY_RARE = 0.8, 0.85
"""The least similarity (difflib's ratio) of a suggested spelling to a word that no post has, and to
one that few posts have, which may be a name."""
MAX_FORMS: Final = 8  # the most words of one stem in a query, the most frequent first
MIN_WORD_LENGTH, MAX_WORD_LENGTH = 4, 24
"""The least and the greatest number of letters of a word whose spelling may be corrected."""
LONG_WORD: Final = 8  # letters of a word above which more than one typo is likely

_CREATE_TABLES: Final = """
    DROP TABLE IF EXISTS form;
    DROP TABLE IF EXISTS word;
    DROP TABLE IF EXISTS vocabulary;
    DROP TABLE IF EXISTS post;
    CREATE VIRTUAL TABLE post USING fts5(
        slug UNINDEXED, title, description, tags, prose, code,
        tokenize = 'unicode61 remove_diacritics 2', prefix = '2'
    );
    CREATE VIRTUAL TABLE vocabulary USING fts5vocab(post, row);
    CREATE TABLE word (term TEXT, posts INT);
    CREATE INDEX by_term ON word (term, posts);
    CREATE VIRTUAL TABLE form USING fts5(
        term, content = 'word', tokenize = 'porter unicode61', detail = none
    );
    INSERT INTO post (post, rank) VALUES ('rank', 'bm25(0, 100, 10, 20, 1, 1)');
    INSERT INTO post (post, rank) VALUES ('hashsize', 16777216);
"""
"""`post` indexes words without accents; `form` finds words with the same English stem.
`prefix` speeds up searches for two letters, which occur while a person types; for three it would
cost more than it saves. Up to 16 MiB of words wait in memory, so that fewer parts are merged."""
_ROWID_GAP: Final = 64
"""The gap between the rowids of two posts, for posts that are published between them later; FTS5
still stores the difference of two rowids in one byte."""

# Posts whose title has all the words come first: BM25 gives almost no weight to a word that most
# posts have, in any column. Of equal ranks the lower rowid comes first, which is the newer post.
_RANKED: Final = """
    SELECT rowid, slug FROM post WHERE post MATCH ?1 ORDER BY
        rowid NOT IN (SELECT rowid FROM post WHERE post MATCH 'title : (' || ?2 || ')'),
        rank, rowid
    LIMIT ?3
"""
# Rank posts by how many of the words they have. Scoring a post costs ten times as much as finding
# it, so only the likeliest are scored: those with the most words, and of these with the rarest.
_SIMILAR_POSTS: Final = """
    WITH found (number, rarity) AS MATERIALIZED (
        SELECT post.rowid, 1.0 / count(*) OVER (PARTITION BY query.key)
        FROM json_each(?1) AS query JOIN post ON post MATCH query.value
    ), likely (number, words) AS MATERIALIZED (
        SELECT number, count(*) FROM found
        GROUP BY number ORDER BY count(*) DESC, sum(rarity) DESC, number LIMIT ?3
    ), scored (number, score) AS MATERIALIZED (
        SELECT post.rowid, post.rank FROM json_each(?2) AS query JOIN post ON post MATCH query.value
        WHERE +post.rowid IN (SELECT number FROM likely)
    )
    SELECT number, slug FROM likely JOIN scored USING (number) JOIN post ON post.rowid = number
    GROUP BY number ORDER BY words DESC, sum(score), number LIMIT ?4
"""
_COUNT: Final = "SELECT count(*) FROM post WHERE post MATCH ?"
# Words with the same first letter and about the same length, in more than ?3 posts.
_SIMILAR_WORDS: Final = """
    SELECT term, posts FROM word WHERE term BETWEEN ?1 AND ?1 || char(1114111)
        AND length(term) BETWEEN ?2 - 2 AND ?2 + 2 AND posts > ?3
"""

_BUSY: Final = "Too many searches are under way"

T = TypeVar("T")


class Search:
    """Finds posts by their words."""

    def __init__(self, readers: Readers, descriptor: int) -> None:
        """Take the readers of a file, and a descriptor of it, which is closed after them.

        The descriptor keeps the deleted file until then, so that SQLite is not the last to close
        it.
        """
        self._readers, self._descriptor = readers, descriptor
        self._is_closed = False

    async def find(self, words: str, limit: int) -> list[str]:
        """Return the slugs of at most `limit` posts that hold all the words, best first.

        The last word may be the beginning of one; "words in quotes" must follow each other as
        typed. Common English words count only if there are no others. Text without a word finds
        nothing. Raises Problem `unavailable` when the index cannot be read, when too many searches
        run at once, and when this one takes too long.
        """
        if not has_word(words):
            return []
        return await self.call(partial(_find, words, limit))

    async def search(self, words: str, limit: int, offset: int = 0) -> SearchHits:
        """Return the number of posts with all the words, and the hits after `offset`.

        Words count as in `find`. Where fewer than MIN_RESULTS posts have them all, similar posts
        are added; where fewer than RARE_BELOW do, another spelling may be suggested. Raises Problem
        `unavailable` as `find` does.
        """
        if not has_word(words):
            return SearchHits(0, ())
        return await self.call(partial(_search, words, limit, offset))

    async def close(self) -> None:
        """Close the index and its threads."""
        is_first = not self._is_closed
        self._is_closed = True
        try:
            await self._readers.close()
        finally:
            # To close a deleted file takes 30 ms for each 150 MB. SQLite holds a mutex then, for
            # which each read of the store waits, so it must not be the last one.
            if is_first:
                await asyncio.to_thread(os.close, self._descriptor)

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a connection and return its result. Raises Problem as `find` does."""
        if self._is_closed:
            raise unavailable("This build is closed")
        if self._readers.load >= MAX_READS:
            raise unavailable(_BUSY)
        try:
            return await self._readers.run(work, WAIT_SECONDS, RUN_SECONDS)
        except TimeoutError:
            raise unavailable(_BUSY) from None
        except sqlite3.Error as error:
            if primary_code(error) == sqlite3.SQLITE_INTERRUPT:
                raise unavailable("The search took too long: use fewer words") from None
            raise sqlite_problem(error) from error


def _find(words: str, limit: int, connection: sqlite3.Connection) -> list[str]:
    return list(_rank(connection, _make_query(connection, words), limit).values())


def _search(words: str, limit: int, offset: int, connection: sqlite3.Connection) -> SearchHits:
    query = _make_query(connection, words)
    (total,) = connection.execute(_COUNT, (query.all_words,)).fetchone()
    ranked = _rank(connection, query, max(offset + limit, MIN_RESULTS))
    shown = dict(islice(ranked.items(), offset, offset + limit))
    hits = _make_hits(connection, query.highlight, shown)
    suggestion = None
    if total < MIN_RESULTS:
        near: dict[int, str] = {}
        if total < RARE_BELOW and (suggestion := _suggest_spelling(connection, words, query)):
            query = _make_query(connection, suggestion)
            near = _rank(connection, query, MIN_RESULTS)
        if query.per_word not in ((), (query.highlight,)):
            queries = query.per_word, query.per_word + query.adjacent_words
            near |= connection.execute(
                _SIMILAR_POSTS, (*map(json.dumps, queries), MAX_SCORED, MIN_RESULTS)
            )
        others = [item for item in near.items() if item[0] not in ranked][: MIN_RESULTS - total]
        start = max(0, offset - total)
        if shown := dict(others[start : start + limit - len(hits)]):
            hits += _make_hits(connection, " OR ".join(query.per_word), shown)
    return SearchHits(total, hits, suggestion)


def _make_query(connection: sqlite3.Connection, words: str) -> FtsQuery:
    """Return the FTS5 query for the words, with the indexed words of the same stems."""

    def forms(word: str) -> list[str]:
        if not word.isascii():
            return []
        given = (f'"{word}"', MAX_FORMS)
        found = connection.execute("SELECT term FROM form WHERE form MATCH ? LIMIT ?", given)
        return [form for (form,) in found if form != word.lower()]

    return make_fts_query(words, cache(forms))


def _rank(connection: sqlite3.Connection, query: FtsQuery, limit: int) -> dict[int, str]:
    """Return slugs by rowid, best first: posts with the words as typed before other forms."""
    ranked = dict(connection.execute(_RANKED, (query.all_as_typed, query.all_as_typed, limit)))
    if (rest := limit - len(ranked)) and query.all_words != query.all_as_typed:
        others = f"({query.all_words}) NOT ({query.all_as_typed})"
        ranked |= connection.execute(_RANKED, (others, query.all_words, rest))
    return ranked


def _suggest_spelling(connection: sqlite3.Connection, words: str, query: FtsQuery) -> str | None:
    """Return `words` with rare ones replaced by much more frequent spellings, or None."""
    corrected = words
    for word, word_query in zip(query.words, query.per_word, strict=True):
        folded = normalize("NFKD", word.casefold())
        (posts,) = connection.execute(_COUNT, (word_query,)).fetchone()
        if (
            posts < RARE_BELOW
            and word.isalpha()
            and MIN_WORD_LENGTH <= len(word) <= MAX_WORD_LENGTH
        ):
            cutoff = MIN_SIMILARITY_RARE if posts else MIN_SIMILARITY
            given = (folded[0], len(folded), posts * MIN_FREQUENCY_RATIO)
            known = dict(connection.execute(_SIMILAR_WORDS, given).fetchall())
            near = get_close_matches(folded, known, cutoff=cutoff)
            if near := [term for term in near if _is_typo(folded, term)]:
                similarity = {term: SequenceMatcher(None, term, folded).ratio() for term in near}
                best = max(near, key=lambda term: (round(similarity[term], 2), known[term]))
                corrected = re.sub(rf"(?<![^\W_]){word}(?![^\W_])", best, corrected)
    return corrected if corrected != words else None


def _is_typo(typed: str, meant: str) -> bool:
    """Return whether `typed` may be a typo of `meant`, which must not be a common word.

    A typo omits, adds or changes one letter, or swaps two. A word longer than LONG_WORD may have
    several: for it the similarity that the caller has checked is enough.
    """
    if meant in STOP_WORDS or len(typed) > LONG_WORD:
        return meant not in STOP_WORDS
    while typed[:1] == meant[:1] and typed:
        typed, meant = typed[1:], meant[1:]
    while typed[-1:] == meant[-1:] and typed:
        typed, meant = typed[:-1], meant[:-1]
    return max(len(typed), len(meant)) <= 1 or typed == meant[::-1]


def _make_hits(
    connection: sqlite3.Connection, query: str, posts: Mapping[int, str]
) -> tuple[SearchHit, ...]:
    """Return a hit for each of `posts`, slugs by rowid; the words of `query` are highlighted."""
    # The unary plus keeps SQLite from reading the match list once for each post that is shown.
    rows = connection.execute(
        "SELECT rowid, highlight(post, 1, ?3, ?4), highlight(post, 4, ?3, ?4), "
        "highlight(post, 2, ?3, ?4), highlight(post, 5, ?3, ?4) "
        "FROM post WHERE post MATCH ?1 AND +rowid IN (SELECT value FROM json_each(?2))",
        (query, json.dumps(list(posts)), MATCH_START, MATCH_END),
    )
    texts = {number: texts for number, *texts in rows}
    return tuple(_make_hit(slug, *texts[number]) for number, slug in posts.items())


def _make_hit(slug: str, title: str, prose: str, description: str, code: str) -> SearchHit:
    """Return a hit with a snippet of the first text that has a match: prose, description, code.

    Without a match the snippet is of the description, or of the prose if that is empty.
    """
    texts = [parse_highlights(text) for text in (prose, description, code)]
    found = (text for text in texts if any(segment.is_match for segment in text))
    shown = next(found, texts[1] or texts[0])
    return SearchHit(slug, parse_highlights(title), make_snippet(shown, MAX_SNIPPET_LENGTH))


async def open_search(texts: Iterable[SearchText]) -> Search:
    """Build an index of `texts`, newest first, in another thread, and open it.

    The index's file is deleted as soon as it is open, so that even a crash leaves nothing behind.
    Raises Problem `unavailable`.
    """
    try:
        with TemporaryDirectory(prefix="search-") as folder:
            path = Path(folder) / "posts.db"
            await asyncio.to_thread(build_index, path, texts)
            return await open_index(path)
    except sqlite3.Error as error:
        raise sqlite_problem(error) from error
    except OSError as error:
        raise unavailable("There is no room for the search index") from error


async def open_index(path: Path) -> Search:
    """Open an index that `build_index` or `update_index` has made.

    Raises OSError and Problem `unavailable`.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Check deadlines after few steps, since one instruction may rank a whole document.
        return Search(await Readers.open(partial(_open, path), READERS, steps=500), descriptor)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, sqlite3.Error):
            raise sqlite_problem(error) from error
        raise


def build_index(path: Path, texts: Iterable[SearchText]) -> None:
    """Write the index of `texts` into a new file. Raises sqlite3.Error."""
    with _open_for_writing(path) as connection:
        connection.executescript(_CREATE_TABLES)
        connection.execute("BEGIN")
        _fill(connection, enumerate(texts, start=1))


ReadTexts = Callable[[Container[bytes]], Iterable[SearchText]]
"""Returns the texts of the posts with these digests, newest first."""


def update_index(path: Path, digests: Sequence[bytes], read: ReadTexts) -> None:
    """Update the index at `path` to the posts with these digests, newest first.

    The file is empty, or has the index of a former build: entries of unchanged posts are kept.
    Raises sqlite3.Error.
    """
    with _open_for_writing(path) as connection:
        # The rowid of each post, by its digest.
        connection.execute(
            "CREATE TABLE IF NOT EXISTS source "
            "(digest BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID"
        )
        before = dict(connection.execute("SELECT digest, number FROM source").fetchall())
        reused = {digest: before[digest] for digest in digests if digest in before}
        numbers = _assign_rowids(digests, reused)
        has_room = all(number < following for number, following in pairwise(numbers))
        if not has_room or 2 * len(reused) <= max(len(before), len(digests)):
            reused, numbers = {}, _assign_rowids(digests, {})
            connection.executescript(_CREATE_TABLES)
        fresh = {each: at for each, at in zip(digests, numbers, strict=True) if each not in reused}
        gone = [(at,) for digest, at in before.items() if digest not in reused]
        connection.execute("BEGIN")
        connection.executemany("DELETE FROM post WHERE rowid = ?", gone if reused else ())
        connection.executemany("DELETE FROM source WHERE number = ?", gone)
        connection.executemany("INSERT INTO source VALUES (?, ?)", fresh.items())
        connection.execute("DELETE FROM word")
        _fill(connection, zip(fresh.values(), read(fresh), strict=True))


def _assign_rowids(digests: Sequence[bytes], known: Mapping[bytes, int]) -> list[int]:
    """Return a rowid for each post, ascending from the newest; known posts keep theirs.

    The rowids do not ascend if more posts are new between two known ones than the gap has room for.
    """
    first = min(known.values(), default=0)
    number = max(known.values(), default=_ROWID_GAP * len(digests)) + _ROWID_GAP
    numbers = []
    for digest in reversed(digests):
        number = known.get(digest, number - (1 if known and number > first else _ROWID_GAP))
        numbers.append(number)
    return numbers[::-1]


@contextmanager
def _open_for_writing(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # An interrupted index is discarded, so that it needs neither a journal nor syncs.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


def _fill(connection: sqlite3.Connection, texts: Iterable[tuple[int, SearchText]]) -> None:
    """Add posts with their rowids, then the words of all posts, and commit."""
    connection.executemany(
        "INSERT INTO post (rowid, slug, title, description, tags, prose, code) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((number, *map(to_index_text, text)) for number, text in texts),
    )
    connection.execute(
        "INSERT INTO word SELECT term, doc FROM vocabulary "
        "WHERE length(term) BETWEEN 3 AND ? AND term NOT GLOB '*[0-9]*' ORDER BY doc DESC",
        (MAX_WORD_LENGTH,),
    )
    connection.execute("INSERT INTO form (form) VALUES ('rebuild')")
    connection.execute("COMMIT")


def _open(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.execute("SELECT count(*) FROM post LIMIT 1").fetchone()
    return connection
