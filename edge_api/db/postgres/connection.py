"""Connections to a PostgreSQL database, their errors, and the queries that they execute.

The SQL gives the same results in every locale of the server.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

import asyncpg

from edge_api.db.errors import constraint_violation, unavailable, unique_violation
from edge_api.db.problems import CANCELED, Problem
from edge_api.db.query import RUN_WILDCARDS, Query, QueryResult, fold, split_pattern
from edge_api.db.sql import COMPARISONS, Dialect, SchemaDialect
from edge_api.db.table import Table
from edge_api.db.transaction import Fetch, TransactionStep, plan_steps
from edge_api.db.types import ColumnType

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

SCHEMA: Final = "fore_edge"
"""The schema of all our tables."""

CONNECT_SECONDS: Final = 8.0
"""The time limit for opening a connection; it takes 5 ms, and seconds on an overloaded machine."""
OTHER_HOSTS_SECONDS: Final = 2.0
"""The wait for the other hosts once one takes writes: for its successor, if it was succeeded."""
MARGIN_SECONDS: Final = 1.0
"""The client's time limit beyond the server's, so that the server can report its timeout."""

SETTINGS: Mapping[str, str] = {
    "application_name": "fore-edge",
    "search_path": SCHEMA,
    # A commit is durable when it returns, whatever the database is set to.
    "synchronous_commit": "on",
    # A statement sees what was committed while it waited for the writers' lock.
    "default_transaction_isolation": "read committed",
    # JIT compilation takes longer than any of our statements should.
    "jit": "off",
    "client_min_messages": "warning",
    # The server notices within seconds that the machine of a connection is gone.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""The settings of each session."""

# In quotation marks, since asyncpg's classes are generic only for type checkers.
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
PostgresConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connection: TypeAlias = "PostgresConnection | PoolConnectionProxy[asyncpg.Record]"
"""A session, from a pool or opened by `connect`."""


async def _keep_session(_session: Connection) -> None:
    """Return a session to its pool without resetting it on the server: reads set nothing."""


def split_hosts(url: str) -> list[str]:
    """Return a URL for each host that a URL names. Raises ValueError."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if "," not in hosts:
        return [url]
    return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]


async def connect(
    url: str, settings: Mapping[str, str], seconds: float | None, **options: Any
) -> PostgresConnection:
    """Open a session; `seconds` limit each answer. Of several hosts it is on one that takes writes.

    If two do, one is a former primary: the one with the later timeline is taken. Raises
    EngineError, and ValueError for a URL.
    """
    urls = split_hosts(url)
    options |= {
        "timeout": CONNECT_SECONDS,
        "command_timeout": seconds,
        "server_settings": {**SETTINGS, **settings},
    }
    if len(urls) == 1:
        return await asyncpg.connect(url, **options)
    options["target_session_attrs"] = "read-write"
    # At once, since asyncpg's limit is for all of them, and a machine that is gone uses it up.
    opening = [asyncio.create_task(asyncpg.connect(each, **options)) for each in urls]
    chosen: PostgresConnection | None = None

    def let_go(task: "asyncio.Task[PostgresConnection]") -> None:
        if not task.cancelled() and not task.exception() and task.result() is not chosen:
            task.result().terminate()

    try:
        waiting = set(opening)
        # A standby refuses at once, and must not shorten the time of a primary that is busy.
        while waiting and all(task.exception() for task in opening if task not in waiting):
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait(opening, timeout=OTHER_HOSTS_SECONDS)
        timelines = {
            (await identify(task.result()))[1]: task.result()
            for task in done
            if not task.exception()
        }
        if not timelines:
            errors = filter(None, (task.exception() for task in done))
            raise min(errors, key=lambda error: not isinstance(error, _TELLING))
        chosen = timelines[max(timelines)]
        return chosen
    finally:
        for task in opening:
            task.cancel()
            task.add_done_callback(let_go)


async def identify(session: PostgresConnection) -> tuple[str, str]:
    """Return the server's system identifier, and its timeline in hexadecimal digits.

    Each promotion increases the timeline; a standby has none. Both are empty if access is denied.
    """
    try:
        ((system, timeline),) = await session.fetch(
            "SELECT system_identifier::text, CASE WHEN pg_is_in_recovery() THEN '' "
            "ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END FROM pg_control_system()"
        )
    except asyncpg.PostgresError:
        return "", ""
    return system, timeline


async def open_pool(
    url: str,
    max_size: int,
    settings: Mapping[str, str],
    seconds: float | None = None,
    prepare: "Callable[[Connection], Awaitable[None]] | None" = None,
) -> Pool:
    """Return a pool of `max_size` sessions, opened when needed; `seconds` limit each answer.

    Each session is handed to `prepare` first.
    """
    return await asyncpg.create_pool(
        url,
        min_size=0,  # else a task of the pool's own would try to connect, and log each failure
        max_size=max_size,
        init=cast("Any", prepare),
        reset=_keep_session,
        connect=cast("Any", partial(connect, settings=settings, seconds=seconds)),
    )


def milliseconds(seconds: float) -> str:
    """Return a time in the format of PostgreSQL's settings; never 0, which means no limit."""
    return str(max(1, round(seconds * 1000)))


_DisconnectionError = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""asyncpg's errors of a lost connection; InternalClientError if the server has closed it."""
EngineError = (asyncpg.PostgresError, *_DisconnectionError)
"""All errors that asyncpg raises: those of the server, the connection and the network."""
_TELLING = (asyncpg.PostgresError, asyncpg.TargetServerAttributeNotMatched)
"""Errors of a host that has answered; they say more than those of one that has not."""

IDLE_TIMEOUT_SQLSTATE: Final = "25P03"
READ_ONLY_SQLSTATE: Final = "25006"
UNREACHABLE: Final = "The store's server cannot be reached"

_MESSAGES: Mapping[str, str] = {
    "08": UNREACHABLE,
    IDLE_TIMEOUT_SQLSTATE: UNREACHABLE,
    "57": UNREACHABLE,
    CANCELED: "The store took too long",
    "40": "The store is locked by another process",
    "55P03": "The store is locked by another process",
    READ_ONLY_SQLSTATE: "The store cannot be written",
    "42501": "The store cannot be written",
    "28": "The store's server does not let the edge in",
    "3D": "The store's database is gone",
    "3F": "The store's tables are gone",
    "42P01": "The store's tables are gone",
    "53100": "The disk of the store is full",
    "53": "The store's server is short of connections or memory",
    "58030": "The disk of the store fails",
    "XX001": "The store is damaged",
    "XX002": "The store is damaged",
}
"""Messages by SQLSTATE, or by its class (two characters) where the whole class means the same."""


def sqlstate_of(error: BaseException | None) -> str:
    """Return the SQLSTATE of a server's error; an empty text for other errors."""
    return getattr(error, "sqlstate", None) or ""


def is_disconnection(error: BaseException) -> bool:
    """Return whether a session is of no more use: the connection is lost, or no writes are taken.

    In the first case the server's answer may be lost; the second is a former primary.
    """
    return _message_of(error) == UNREACHABLE or sqlstate_of(error) == READ_ONLY_SQLSTATE


def postgresql_problem(error: Exception) -> Exception:
    """Return the problem for an engine's error; the error itself if it is a defect."""
    message = _message_of(error)
    return error if message is None else unavailable(message)


def _message_of(error: BaseException) -> str | None:
    if isinstance(error, _DisconnectionError):
        return UNREACHABLE
    sqlstate = sqlstate_of(error)
    return _MESSAGES.get(sqlstate) or _MESSAGES.get(sqlstate[:2])


def violation_problem(
    error: asyncpg.IntegrityConstraintViolationError, table: Table, new_columns: Collection[str]
) -> Problem:
    """Return the problem of a violated constraint; `new_columns` have new values."""
    name = error.constraint_name or ""
    if not isinstance(error, asyncpg.UniqueViolationError):
        column = name.removeprefix(f"{table.name}_").removesuffix("_check")
        return constraint_violation(table, [error.column_name or column], error.sqlstate)
    columns = {index.name: index.columns for index in table.indexes}.get(name, (table.key,))
    # The server's message, in its language, has `(columns)=(values)`.
    found = re.search(r"\)=\((.*)\)", error.detail or "", re.DOTALL)
    values = found[1] if found and set(columns) <= set(new_columns) else None
    return unique_violation(table, columns, values)


_CAPITALS: Final = "\u0141\u00d8\u0110\u0126\u00c6\u0152\u1e9e" + "".join(
    map(chr, (*range(0x391, 0x3AA), *range(0x400, 0x430)))
)
"""Capitals, Greek and Cyrillic ones among them, that `lower` leaves as they are in the locale C."""
_FOLDED: Final = (
    "CASE WHEN octet_length(given) = length(given) THEN lower(given) ELSE "
    "normalize(translate(replace(replace(replace(lower(translate(regexp_replace(normalize(given, "
    rf"NFD), '[\u0300-\u036f]+', '', 'g'), '{_CAPITALS}', '{_CAPITALS.lower()}') "
    r"""COLLATE "default"), U&'\00df', 'ss'), U&'\00e6', 'ae'), U&'\0153', 'oe'), """
    r"U&'\0131\00f8\0142\0111\0127\03c2', U&'ioldh\03c3'), NFC) END"
)
"""SQL that folds the text `given` as `query.fold_accents` does."""
POSTGRESQL_SCHEMA: Final = SchemaDialect(
    types=MappingProxyType(
        {
            **dict.fromkeys(ColumnType, 'text COLLATE "C"'),
            ColumnType.INTEGER: "bigint",
            ColumnType.JSON: "json",
        }
    ),
    checks=MappingProxyType(
        {
            ColumnType.UUID: "{column} LIKE '________-____-____-____-____________'",
            ColumnType.TIMESTAMP: "{column} LIKE '____-__-__T__:__:__.______Z'",
        }
    ),
    options="",
    search=(
        # The high COST makes the planner use the index instead of computing the function. Without
        # DISTINCT, whose sorting takes longer, a trigram may be listed twice; the index stores it
        # once. OFFSET 0 keeps the planner from folding the text anew at each use of `letters`.
        (
            "CREATE FUNCTION search_trigrams(given text) RETURNS text[] "  # noqa: S608  constants
            "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$\n"
            "    SELECT coalesce(array_agg(a || b || c), '{{}}') "
            f"FROM (SELECT string_to_array({_FOLDED}, NULL) AS letters OFFSET 0) AS folded, "
            "ROWS FROM (unnest(letters), unnest(letters[2:]), unnest(letters[3:])) AS t (a, b, c) "
            "WHERE c IS NOT NULL\n$$"
        ),
        "CREATE INDEX {table}_search ON {table} USING gin (search_trigrams({joined}))",
    ),
)


@lru_cache(maxsize=1024)
def number_placeholders(text: str) -> str:
    """Replace the question marks of SQL by `$1`, `$2` and so on; no declared name has one."""
    first, *others = text.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))


def like_operands(pattern: str) -> tuple[str]:
    """Return the operand of `like`, with `%`, PostgreSQL's wildcard, in place of `*`."""
    return ("".join("%" if piece in RUN_WILDCARDS else piece for piece in split_pattern(pattern)),)


def ilike_operands(pattern: str) -> tuple[bool, str, str, str]:
    """Return the operands of the SQL of `ilike` for a pattern.

    They are: whether no letters need replacing, these letters, their replacements, and the folded
    pattern. ILIKE itself folds ASCII. Of other letters only those that the pattern could match are
    replaced: with all 1,400 a scan took a hundred times as long.
    """
    (folded,) = like_operands(fold(pattern))
    wanted = sorted({piece[-1] for piece in split_pattern(folded)})
    pairs = [(other, letter) for letter in wanted for other in _variants().get(letter, "")]
    letters = "".join(other for other, _ in pairs)
    return not letters, letters, "".join(letter for _, letter in pairs), folded


@cache
def _variants() -> dict[str, str]:
    """Return, for each folded letter, the letters beyond ASCII that fold to it (1,400 in all)."""
    variants: dict[str, str] = {}
    # All letters with a case are below 0x20000, a tenth of all code points.
    for letter in map(chr, range(0x80, 0x20000)):
        folded = fold(letter)
        if folded != letter:
            variants[folded] = variants.get(folded, "") + letter
    return variants


_TEXT: Final = "CAST({column} AS text)"  # a column may be JSON
_HAS: Final = f'{_TEXT} COLLATE "C" ILIKE ?'  # with this collation ILIKE folds ASCII letters alone
POSTGRESQL: Final = Dialect(
    operations=MappingProxyType(
        {
            **COMPARISONS,
            "like": "{column} LIKE ?",
            "ilike": (
                "(CASE WHEN ? OR octet_length({column}) = length({column}) THEN {column}"
                " ELSE translate({column}, ?, ?) END) ILIKE ?"
            ),
            "has": _HAS,
            "has_wide": f"{_HAS} AND octet_length({_TEXT}) > length({_TEXT})",
            "has_key": f"length({_TEXT}) > 36 AND {_HAS}",
            # One parameter however long the list.
            "in": "{column} = ANY (?)",
            **dict.fromkeys(
                ("search", "search_newest"),
                "search_trigrams({joined}) @> (SELECT array_agg(each) FROM"
                " unnest(CAST(? AS text[])) AS word, unnest(search_trigrams(word)) AS each)",
            ),
        }
    ),
    operands=MappingProxyType(
        {"like": like_operands, "ilike": ilike_operands, "is": lambda _null: ()}
    ),
    no_limit=None,
    case_placeholders=MappingProxyType(
        {ColumnType.INTEGER: "CAST(? AS bigint)", ColumnType.JSON: "CAST(? AS json)"}
    ),
    format_placeholders=number_placeholders,
)


async def execute(
    connection: Connection, lists: Sequence[Sequence[Query]], *, defer_inserts: bool = False
) -> list[list[QueryResult]]:
    """Run lists of queries in the steps of `plan_steps`, and return the results of each list.

    Raises Problem `invalid` or `conflict`, and EngineError.
    """
    steps = plan_steps(lists, POSTGRESQL, defer_inserts=defer_inserts)
    records: Sequence[Any] | None = None
    try:
        while True:
            records = await _execute_one(connection, steps.send(records))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def _execute_one(connection: Connection, step: TransactionStep) -> Sequence[Any]:
    """Run a step and return its records; any number of new rows takes one trip to the server."""
    try:
        if isinstance(step, Fetch):
            return await connection.fetch(step.statement.text, *step.statement.parameters)
        if len(step.records) == 1:
            return await connection.fetch(step.text, *step.records[0])
        await connection.executemany(step.text, step.records)
    except asyncpg.IntegrityConstraintViolationError as error:
        raise violation_problem(error, step.table, step.rows[0]) from None
    return ()
