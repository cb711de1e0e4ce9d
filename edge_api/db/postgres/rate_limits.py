"""Rate limits of all edges on a PostgreSQL database, which stores the instants of their hits.

A hit takes one statement, by the server's clock; keys are stored as hashes.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import asyncpg

from edge_api.db.postgres.connection import (
    MARGIN_SECONDS,
    SCHEMA,
    EngineError,
    Pool,
    connect,
    milliseconds,
    open_pool,
    postgresql_problem,
)
from edge_api.db.postgres.engine import store_refusal
from edge_api.db.postgres.store_connections import WRITE_LOCK
from edge_api.schema.credentials import LimitDecision, RateLimit, WindowHits

OnError = Callable[[Exception, object], None]

HIT_SECONDS: Final = 2.0
"""The time limit of a statement; an edge that gets no answer in time counts in memory."""

_AGES: Final = """
ARRAY(SELECT extract(epoch FROM clock_timestamp() - hit)::float8 FROM unnest(hits) AS hit)
"""
"""The age of each hit in seconds, oldest first."""

_HIT: Final = f"""
INSERT INTO rate_hits AS rate (key, hits, until)
VALUES (
    $1, ARRAY[clock_timestamp()], clock_timestamp() + make_interval(secs => $4)
)
ON CONFLICT (key) DO UPDATE SET (hits, until) = (
    SELECT
        ARRAY(
            SELECT hit FROM unnest(rate.hits) AS hit
            WHERE hit > clock.now - make_interval(secs => $4)
        ) || clock.now,
        clock.now + make_interval(secs => $4)
    FROM (SELECT clock_timestamp() AS now OFFSET 0) AS clock
)
WHERE NOT EXISTS (
    SELECT FROM unnest($2::bigint[], $3::float8[]) AS w (amount, seconds)
    WHERE w.amount <= (
        SELECT count(*) FROM unnest(rate.hits) AS hit
        WHERE hit > clock_timestamp() - make_interval(secs => w.seconds)
    )
)
RETURNING {_AGES}
"""  # noqa: S608  made of constants
"""Counts a hit and returns the ages; if a window has no room, it changes and returns nothing. A
concurrent hit waits for the lock of the row, and then sees the changed row."""

_EXCHANGE: Final = """
WITH own AS MATERIALIZED (
    SELECT key, array_agg(at ORDER BY at) FILTER (WHERE at IS NOT NULL) AS hits, max(until) AS until
    FROM (
        SELECT
            key,
            clock.now - make_interval(secs => age) AS at,
            clock.now + make_interval(secs => seconds) AS until
        FROM unnest($1::bytea[], $2::float8[], $3::float8[]) AS t (key, age, seconds),
            (SELECT clock_timestamp() AS now OFFSET 0) AS clock
    ) AS timed
    GROUP BY key
),
kept AS (
    INSERT INTO rate_shares (key, edge, hits, until)
    SELECT key, $4, coalesce(hits, '{}'), until FROM own
    ON CONFLICT (key, edge) DO UPDATE SET hits = EXCLUDED.hits, until = EXCLUDED.until
)
SELECT
    share.key,
    array_agg(
        extract(epoch FROM clock_timestamp() - hit)::float8 ORDER BY hit
    ) AS ages
FROM rate_shares AS share JOIN own USING (key), unnest(share.hits) AS hit
WHERE share.edge <> $4 AND share.until > clock_timestamp()
GROUP BY share.key
"""
"""Stores this edge's hits, and returns those of other edges in the same windows. A window without
hits is passed as one row whose age is null."""


async def open_limits(url: str, secret: bytes, on_error: OnError | None = None) -> "PostgresLimits":
    """Return the limits at `url`; edges counting together share `secret`. Raises StoreRefusal."""
    try:
        await _make_tables(url)
        settings = {
            "synchronous_commit": "off",  # hits need not survive a crash
            "statement_timeout": milliseconds(HIT_SECONDS),
            "idle_in_transaction_session_timeout": milliseconds(HIT_SECONDS),
        }
        # Two connections: a hit takes less than a millisecond of one.
        pool = await open_pool(url, 2, settings, HIT_SECONDS + MARGIN_SECONDS)
    except EngineError as error:
        raise store_refusal(error, url) from None
    return PostgresLimits(pool, secret, on_error)


async def _make_tables(url: str) -> None:
    session = await connect(url, {}, None)
    try:
        if await session.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.rate_shares") is None:
            async with session.transaction():  # edges that start at once take turns
                await session.execute(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")
                # All edges count in the rows of `rate_hits`; a row of `rate_shares` is written by
                # one edge alone. Unlogged, since hits need not survive a crash and must not wait
                # for a disk. Half of each page stays free for new versions of its rows, so that no
                # index has to be written.
                await session.execute("""
                    CREATE UNLOGGED TABLE IF NOT EXISTS rate_hits (
                        key bytea NOT NULL PRIMARY KEY,
                        hits timestamptz[] NOT NULL,
                        until timestamptz NOT NULL
                    ) WITH (fillfactor = 50);
                    CREATE UNLOGGED TABLE IF NOT EXISTS rate_shares (
                        key bytea NOT NULL,
                        edge uuid NOT NULL,
                        hits timestamptz[] NOT NULL,
                        until timestamptz NOT NULL,
                        PRIMARY KEY (key, edge)
                    ) WITH (fillfactor = 50)
                """)
    finally:
        session.terminate()


class PostgresLimits:
    """Counts hits in PostgreSQL. Without a connection methods raise Problem `unavailable`."""

    def __init__(self, pool: Pool, secret: bytes, on_error: OnError | None = None) -> None:
        self._pool = pool
        self._on_error = on_error
        self._secret = secret
        self._edge = uuid4()

    async def hit(self, limit: RateLimit, key: str) -> LimitDecision:
        """Count a hit if every window of the limit has room for it."""
        amounts = [item.amount for item in limit.items]
        seconds = [float(item.get_expiry()) for item in limit.items]
        ages = await self._fetch(_HIT, self._digest(limit, key), amounts, seconds, max(seconds))
        if ages is not None:
            return decide(limit, ages, allowed=True)
        return await self.peek(limit, key)

    async def peek(self, limit: RateLimit, key: str) -> LimitDecision:
        """Return the remaining hits, without counting one."""
        peek = f"SELECT {_AGES} FROM rate_hits WHERE key = $1"  # noqa: S608  made of constants
        ages = await self._fetch(peek, self._digest(limit, key))
        return decide(limit, ages or (), allowed=False)

    async def refund(self, limit: RateLimit, key: str) -> None:
        """Delete the newest hit of a key, if there is one."""
        await self._fetch(
            "UPDATE rate_hits SET hits = hits[:cardinality(hits) - 1] WHERE key = $1",
            self._digest(limit, key),
        )

    async def exchange(self, shares: Mapping[str, WindowHits]) -> Mapping[str, Sequence[float]]:
        """Store this edge's hits by window; return the ages of other edges' hits in them."""
        names = {self._hash(f"rate share {key}"): key for key in shares}
        parts = [
            (digest, age, float(share.seconds))
            for digest, share in zip(names, shares.values(), strict=True)
            for age in share.ages or (None,)
        ]
        digests, ages, seconds = map(list, zip(*parts, strict=True))
        rows = await self._query(_EXCHANGE, digests, ages, seconds, self._edge)
        return {names[row["key"]]: row["ages"] for row in rows}

    async def sweep(self) -> None:
        """Delete expired hits."""
        await self._fetch(
            "WITH hits AS (DELETE FROM rate_hits WHERE until <= clock_timestamp()) "
            "DELETE FROM rate_shares WHERE until <= clock_timestamp()"
        )

    async def reopen(self) -> None:
        """Replace each connection before it is used again: the server is another one."""
        await self._pool.expire_connections()

    async def close(self) -> None:
        """Close every connection."""
        self._pool.terminate()

    async def _fetch(self, statement: str, *values: object) -> Any:
        rows = await self._query(statement, *values)
        return rows[0][0] if rows else None

    async def _query(self, statement: str, *values: object) -> list[asyncpg.Record]:
        try:
            # Wait for a free connection: a queue is no reason to count in memory alone.
            async with self._pool.acquire(timeout=5.0) as connection:
                return await connection.fetch(statement, *values)
        except EngineError as error:
            problem = postgresql_problem(error)
            if self._on_error:
                self._on_error(problem, error)
            raise problem from error

    def _digest(self, limit: RateLimit, key: str) -> bytes:
        """Return the hash of a key, so that the database shows no addresses of clients."""
        return self._hash(f"rate limit {limit.name} {key}")

    def _hash(self, text: str) -> bytes:
        return hmac.digest(self._secret, text.encode(), "sha256")[:16]


def decide(limit: RateLimit, ages: Sequence[float], *, allowed: bool) -> LimitDecision:
    """Return the decision of a limit for hits of these ages, in seconds and oldest first.

    For each window it has the remaining hits, and the seconds until there is room for one more. If
    edges with a higher limit counted more hits than this limit allows, several must expire first.
    """
    windows = []
    for amount, seconds in ((item.amount, item.get_expiry()) for item in limit.items):
        counting = [age for age in ages if age < seconds]
        wait = seconds - counting[max(0, len(counting) - amount)] if counting else seconds
        windows.append((max(0, amount - len(counting)), wait))
    return LimitDecision(allowed, tuple(windows))
