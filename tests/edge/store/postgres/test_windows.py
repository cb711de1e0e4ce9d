"""Rate limits that edges count together: exactly, on the server's clock, and what if it is away."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

import pytest

from edge_api.auth.rate_limits import Limiter
from edge_api.db.postgres.connection import PostgresConnection
from edge_api.db.postgres.rate_limits import PostgresLimits, decide, open_limits
from edge_api.db.problems import Problem
from edge_api.schema.credentials import LimitDecision, RateLimit, read_limit
from edge_api.settings import read_settings
from tests.edge.store.postgres.proxy import Proxy

pytestmark = pytest.mark.size("test")

SECRET = b"s" * 32

Opener = Callable[[str], Awaitable[PostgresLimits]]


def limit_of(rate: str, name: str = "leads") -> RateLimit:
    """Return a limit that is not switched off."""
    limit = read_limit(name, rate)
    assert limit is not None
    return limit


def limiter_on(windows: PostgresLimits, **rates: str) -> Limiter:
    """Return a limiter that counts in the database."""
    return Limiter(read_settings(rates, dotenv=None), shared=windows)


@pytest.fixture
async def open_at() -> AsyncIterator[Opener]:
    """Return what opens windows in the database at a URL, as an edge that starts does."""
    async with AsyncExitStack() as stack:

        async def open_one(url: str) -> PostgresLimits:
            windows = await open_limits(url, SECRET)
            stack.push_async_callback(windows.close)
            return windows

        yield open_one


@pytest.fixture
async def edges(open_at: Opener, url: str) -> list[PostgresLimits]:
    """Return the windows of three edges that start at once."""
    return list(await asyncio.gather(*(open_at(url) for _ in range(3))))


async def attempt(limiter: Limiter, name: str, key: str) -> str:
    """Return what became of a hit."""
    try:
        await limiter.hit(name, key)
    except Problem as problem:
        return problem.code
    return "taken"


async def test_edges_count_together(edges: list[PostgresLimits]) -> None:
    """Exactly as many of 200 concurrent hits on three edges are taken as the limit says."""
    limiters = [limiter_on(windows, RATE_LEADS="50/10minutes;70/day") for windows in edges]

    hits = [attempt(limiters[turn % 3], "leads", "192.0.2.7") for turn in range(200)]
    assert Counter(await asyncio.gather(*hits)) == {"taken": 50, "too_many_requests": 150}
    looks = [await limiter.peek("leads", "192.0.2.7") for limiter in limiters]
    assert [[left for left, _ in look.windows] for look in looks if look] == [[0, 20]] * 3


async def test_a_hit_that_is_taken_back_leaves_room_for_one(edges: list[PostgresLimits]) -> None:
    """On whichever edge; where nothing was counted nothing happens."""
    limit = limit_of("1/minute;1/day")
    await edges[0].refund(limit, "x")
    first = await edges[0].hit(limit, "x")
    await edges[1].refund(limit, "x")
    await edges[2].refund(limit, "x")

    later = [await windows.hit(limit, "x") for windows in edges]
    assert [first.allowed, *(tally.allowed for tally in later)] == [True, True, False, False]


async def test_keys_and_limits_are_counted_apart(edges: list[PostgresLimits]) -> None:
    """One sender's hits take nothing from another's, nor from another limit."""
    limits = [limit_of("1/minute"), limit_of("1/minute", "search")]

    allowed = [
        (await edges[0].hit(limit, key)).allowed for limit in limits for key in ("x", "y", "\u00e9")
    ]
    assert allowed == [True] * 6


async def test_a_hit_is_forgotten_when_its_window_has_passed(edges: list[PostgresLimits]) -> None:
    """By the server's clock; what counts no longer is swept away, what counts is not."""
    short, long = limit_of("1/second"), limit_of("1/minute", "search")
    await edges[0].hit(long, "x")
    assert (await edges[0].hit(short, "x")).allowed
    assert not (await edges[1].hit(short, "x")).allowed
    await asyncio.sleep(1.1)
    await edges[2].sweep()

    assert (await edges[1].hit(short, "x")).allowed
    assert not (await edges[1].hit(long, "x")).allowed


async def test_expired_windows_are_deleted(
    edges: list[PostgresLimits], rival: PostgresConnection
) -> None:
    """A sender who never comes back leaves no row."""
    await edges[0].hit(limit_of("1/second"), "x")
    await edges[0].hit(limit_of("1/minute"), "y")
    await rival.execute("UPDATE rate_hits SET until = clock_timestamp() WHERE until < now() + '9s'")
    await edges[1].sweep()

    assert await rival.fetchval("SELECT count(*) FROM rate_hits") == 1


async def test_headers_say_what_is_left(edges: list[PostgresLimits]) -> None:
    """The same fields as of limits in memory, and a Retry-After, of what all edges have taken."""
    limiters = [limiter_on(windows, RATE_LEADS="2/minute;3/day") for windows in edges]
    first, second = [await limiter.hit("leads", "x") for limiter in limiters[:2]]
    with pytest.raises(Problem) as refused:
        await limiters[2].hit("leads", "x")

    assert first is not None
    assert second is not None
    assert first.headers == {
        "RateLimit-Policy": '"leads";q=2;w=60, "leads-day";q=3;w=86400',
        "RateLimit": '"leads";r=1;t=60, "leads-day";r=2;t=86400',
    }
    assert '"leads-day";r=1;' in second.headers["RateLimit"]
    assert '"leads";r=0;' in refused.value.headers["RateLimit"]
    assert 1 <= int(refused.value.headers["Retry-After"]) <= 60


async def test_addresses_are_not_kept(
    edges: list[PostgresLimits], rival: PostgresConnection
) -> None:
    """The database has no client's address."""
    await edges[0].hit(limit_of("2/minute"), "192.0.2.7")

    rows = await rival.fetch("SELECT key FROM rate_hits")
    assert len(rows) == 1
    assert len(rows[0]["key"]) == 16
    assert b"192.0.2.7" not in rows[0]["key"]


async def test_requests_with_a_credential_are_counted_in_memory_and_shared(
    edges: list[PostgresLimits], rival: PostgresConnection
) -> None:
    """In memory, because each would be a trip to the database; then each knows of the others'."""
    limiters = [limiter_on(windows, RATE_AUTHENTICATED="4/minute;9/day") for windows in edges]

    before = [await attempt(limiter, "authenticated", "x") for limiter in limiters]
    assert await rival.fetchval("SELECT count(*) FROM rate_shares") == 0
    await exchange(limiters)
    looks = [await limiter.peek("authenticated", "x") for limiter in limiters]
    after = [await attempt(limiters[turn], "authenticated", "x") for turn in (0, 0, 1)]
    await exchange(limiters)

    assert before == ["taken"] * 3
    assert [[left for left, _ in look.windows] for look in looks if look] == [[1, 6]] * 3
    assert after == ["taken", "too_many_requests", "taken"]
    for limiter in limiters[:2]:
        assert await attempt(limiter, "authenticated", "x") == "too_many_requests"
    assert await attempt(limiters[2], "authenticated", "y") == "taken"
    assert await rival.fetchval("SELECT count(*) FROM rate_hits") == 0


async def exchange(limiters: Sequence[Limiter]) -> None:
    """Let each share its counts with all others, and read what they shared after it."""
    for limiter in (*limiters, *limiters):
        await limiter.exchange()


@pytest.mark.size("ci")
async def test_shared_counts_expire_with_their_window(
    edges: list[PostgresLimits], rival: PostgresConnection
) -> None:
    """A hit that was taken back counts nowhere; what counts no longer is heard by nobody."""
    limiters = [limiter_on(windows, RATE_AUTHENTICATED="1/4seconds") for windows in edges[:2]]
    await limiters[0].hit("authenticated", "x")
    await exchange(limiters)
    await limiters[0].refund("authenticated", "x")
    await exchange(limiters)
    allowed = [await attempt(limiter, "authenticated", "x") for limiter in reversed(limiters)]
    await exchange(limiters)
    refused = await attempt(limiters[0], "authenticated", "x")
    await asyncio.sleep(4.1)
    await edges[2].sweep()

    assert [*allowed, refused] == ["taken", "taken", "too_many_requests"]
    assert await rival.fetchval("SELECT count(*) FROM rate_shares") == 0
    assert await attempt(limiters[0], "authenticated", "x") == "taken"


@pytest.mark.size("ci")
async def test_counts_that_could_not_be_shared_are_shared_later(
    proxy: Proxy, open_at: Opener, url: str
) -> None:
    """An edge that is cut off goes on with what it knows, and is heard when it is back."""
    windows, other = await open_at(proxy.url), await open_at(url)
    limiters = [limiter_on(each, RATE_AUTHENTICATED="2/minute") for each in (windows, other)]
    proxy.cut()
    codes = [await attempt(limiters[0], "authenticated", "x") for _ in range(3)]
    with pytest.raises(Problem, match="cannot be reached"):
        await limiters[0].exchange()
    proxy.fix()
    await asyncio.wait_for(tell_at_last(limiters[0]), 10)
    first = await attempt(limiters[1], "authenticated", "x")
    await exchange(limiters)

    assert codes == ["taken", "taken", "too_many_requests"]
    assert [first, await attempt(limiters[1], "authenticated", "x")] == [
        "taken",
        "too_many_requests",
    ]


async def tell_at_last(limiter: Limiter) -> None:
    """Return when the edge has shared its counts."""
    while True:
        try:
            return await limiter.exchange()
        except Problem:
            await asyncio.sleep(0.1)


@pytest.mark.size("ci")
async def test_an_edge_that_is_cut_off_counts_by_itself(
    proxy: Proxy, open_at: Opener, url: str
) -> None:
    """No limit is lifted, nothing fails; afterwards all count together again."""
    windows, other = await open_at(proxy.url), await open_at(url)
    cut_off = limiter_on(windows, RATE_FAILED_AUTH="2/minute")
    limit = limit_of("2/minute", "failed_auth")
    proxy.cut()
    codes = [await attempt(cut_off, "failed_auth", "x") for _ in range(3)]
    seen_by_others = await other.peek(limit, "x")
    proxy.fix()

    assert codes == ["taken", "taken", "too_many_requests"]
    assert [left for left, _ in seen_by_others.windows] == [2]
    for _ in range(100):  # until it tries again
        await attempt(cut_off, "failed_auth", "x")
        if not (await other.hit(limit, "x")).allowed:
            break
        await other.refund(limit, "x")
        await asyncio.sleep(0.1)
    else:
        pytest.fail("the edge has not come back")


@pytest.mark.size("ci")
async def test_windows_on_a_server_that_is_away_say_so(proxy: Proxy, open_at: Opener) -> None:
    """Within seconds, as a problem: it is for the limiter to go on without them."""
    windows = await open_at(proxy.url)
    proxy.cut()

    with pytest.raises(Problem, match="cannot be reached"):
        await windows.hit(limit_of("1/minute"), "x")


def test_where_a_limit_was_lowered_more_than_one_hit_has_to_go() -> None:
    """The wait is until there is room, however many hits count beyond the limit."""
    limit = limit_of("2/minute;9/day")

    found = decide(limit, [100.0, 50.0, 40.0, 30.0, 20.0], allowed=False)
    assert found == LimitDecision(allowed=False, windows=((0, 30.0), (4, 86300.0)))
