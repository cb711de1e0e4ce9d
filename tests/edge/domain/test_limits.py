import gc
import threading
import tracemalloc
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api.auth.rate_limits import COUNTED_BY, Limiter, MemoryLimits
from edge_api.db.problems import Problem
from edge_api.schema.credentials import LimitDecision, WindowHits, read_limit
from edge_api.settings import SETTINGS, read_settings


class Seconds:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the instant."""
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    """Return a clock."""
    return Seconds()


def make(seconds: Seconds, **rates: str) -> Limiter:
    """Return a limiter whose settings differ from the defaults by `rates`."""
    return Limiter(read_settings(rates, dotenv=None), seconds)


async def refusal(limiter: Limiter, name: str = "leads", key: str = "192.0.2.7") -> Problem:
    """Return the problem that a hit meets."""
    with pytest.raises(Problem) as caught:
        await limiter.hit(name, key)
    assert caught.value.code == "too_many_requests"
    return caught.value


async def limit_fields(limiter: Limiter, name: str, key: str = "x") -> Mapping[str, str]:
    """Return the header fields that a hit gets."""
    quota = await limiter.hit(name, key)
    assert quota is not None
    return quota.headers


def test_every_limit_has_a_setting() -> None:
    """And every setting of a rate is a limit."""
    rates = {name for name in SETTINGS if name.startswith("RATE_")}

    assert {f"RATE_{name.upper()}" for name in COUNTED_BY} == rates


async def test_the_defaults_are_the_published_ones(seconds: Seconds) -> None:
    """Five leads in ten minutes and twenty a day, ten documents a minute, and the others."""
    limiter = make(seconds)

    policies = [(await limit_fields(limiter, name))["RateLimit-Policy"] for name in COUNTED_BY]
    assert policies == [
        '"leads";q=5;w=600, "leads-day";q=20;w=86400',
        '"access_requests";q=5;w=600, "access_requests-day";q=20;w=86400',
        '"leads_attempts";q=60;w=60',
        '"analyze";q=10;w=60, "analyze-day";q=100;w=86400',
        '"authenticated";q=600;w=60',
        '"failed_auth";q=300;w=60',
        '"subscribe";q=5;w=600, "subscribe-day";q=20;w=86400',
        '"token";q=30;w=60',
        '"search";q=300;w=60',
        '"desk_links";q=3;w=3600, "desk_links-day";q=10;w=86400',
    ]


async def test_each_hit_reports_what_is_left(seconds: Seconds) -> None:
    """`r` counts down, `t` says when the oldest hit is forgotten."""
    limiter = make(seconds, RATE_LEADS="2/minute")

    first = await limiter.hit("leads", "192.0.2.7")
    seconds.now += 17
    second = await limiter.hit("leads", "192.0.2.7")
    assert first is not None
    assert second is not None
    assert first.headers["RateLimit"] == '"leads";r=1;t=60'
    assert second.headers["RateLimit"] == '"leads";r=0;t=43'


async def test_a_limit_that_is_used_up_says_when_to_come_again(seconds: Seconds) -> None:
    """429 with the same fields as a success, and a true Retry-After."""
    limiter = make(seconds, RATE_LEADS="2/minute")
    await limiter.hit("leads", "192.0.2.7")
    seconds.now += 17.5
    await limiter.hit("leads", "192.0.2.7")

    problem = await refusal(limiter)
    assert problem.message == "Too many requests: try again in 43 seconds"
    assert dict(problem.headers) == {
        "Retry-After": "43",
        "RateLimit-Policy": '"leads";q=2;w=60',
        "RateLimit": '"leads";r=0;t=43',
    }


@given(
    hits=st.lists(st.integers(0, 160).map(lambda quarters: quarters / 4), max_size=12),
    rate=st.sampled_from(["1/10seconds", "3/minute", "2/10seconds;4/minute"]),
)
async def test_retry_after_is_true_to_the_second(hits: list[float], rate: str) -> None:
    """After the seconds named a hit is taken; one and a half seconds before, it is not."""
    seconds = Seconds()
    limiter = make(seconds, RATE_LEADS=rate)
    for pause in hits:
        seconds.now += pause
        try:
            await limiter.hit("leads", "x")
        except Problem as problem:
            wait = int(problem.headers["Retry-After"])
            earlier, seconds.now = seconds.now, seconds.now + max(0, wait - 1.5)
            if wait > 1.5:
                await refusal(limiter, key="x")
            seconds.now = earlier + wait
            await limiter.hit("leads", "x")


async def test_retry_after_is_never_zero(seconds: Seconds) -> None:
    """A fraction of a second is rounded up to a whole one."""
    limiter = make(seconds, RATE_LEADS="1/10seconds")
    await limiter.hit("leads", "x")
    seconds.now += 9.99

    problem = await refusal(limiter, key="x")
    assert problem.headers["Retry-After"] == "1"
    assert problem.message == "Too many requests: try again in 1 second"


async def test_a_hit_that_one_window_refuses_counts_in_none(seconds: Seconds) -> None:
    """All windows are asked before any is counted."""
    limiter = make(seconds, RATE_LEADS="1/minute;3/day")
    await limiter.hit("leads", "x")
    for _ in range(10):
        await refusal(limiter, key="x")
    seconds.now += 60

    quota = await limiter.hit("leads", "x")
    assert quota is not None
    assert quota.headers["RateLimit"] == '"leads";r=0;t=60, "leads-day";r=1;t=86340'


async def test_the_longer_window_refuses_when_the_shorter_has_room(seconds: Seconds) -> None:
    """Retry-After is then the longer one's."""
    limiter = make(seconds, RATE_LEADS="1/minute;2/day")
    await limiter.hit("leads", "x")
    seconds.now += 60
    await limiter.hit("leads", "x")
    seconds.now += 60

    assert (await refusal(limiter, key="x")).headers["Retry-After"] == str(86400 - 120)


async def test_keys_and_limits_are_counted_apart(seconds: Seconds) -> None:
    """One sender's hits take nothing from another's, nor from another limit."""
    limiter = make(seconds, RATE_LEADS="1/minute", RATE_LEADS_ATTEMPTS="1/minute")
    await limiter.hit("leads", "x")

    await limiter.hit("leads", "y")
    await limiter.hit("leads_attempts", "x")
    await refusal(limiter, key="x")


async def test_peeking_counts_nothing(seconds: Seconds) -> None:
    """The rest stays the same, for a key never seen as well."""
    limiter = make(seconds, RATE_LEADS="2/minute")
    await limiter.hit("leads", "x")

    looks = [await limiter.peek("leads", key) for key in ("x", "x", "never")]
    assert [look and look.headers["RateLimit"] for look in looks] == [
        '"leads";r=1;t=60',
        '"leads";r=1;t=60',
        '"leads";r=2;t=60',
    ]
    assert looks[0] is not None
    assert looks[0].retry_after == 0


async def test_a_hit_can_be_taken_back(seconds: Seconds) -> None:
    """Every window forgets it; where nothing counts, nothing happens."""
    limiter = make(seconds, RATE_LEADS="1/minute;1/day")
    await limiter.refund("leads", "x")
    await limiter.hit("leads", "x")
    await limiter.refund("leads", "x")

    await limiter.hit("leads", "x")
    await refusal(limiter, key="x")


async def test_zero_switches_a_limit_off(seconds: Seconds) -> None:
    """It is neither counted nor reported."""
    limiter = make(seconds, RATE_LEADS="0")

    assert [await limiter.hit("leads", "x") for _ in range(100)] == [None] * 100
    assert await limiter.peek("leads", "x") is None
    await limiter.refund("leads", "x")


async def test_windows_with_nothing_in_them_are_let_go(seconds: Seconds) -> None:
    """Thousands of senders over hours leave no more behind than those of the last minute."""
    limiter = make(seconds, RATE_LEADS_ATTEMPTS="2/minute")
    await limiter.hit("leads_attempts", "warm")
    gc.collect()
    tracemalloc.start()
    try:
        for sender in range(12_000):
            seconds.now += 0.5
            await limiter.hit("leads_attempts", f"sender {sender}")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * 1024 * 1024


async def test_counting_starts_no_threads(seconds: Seconds) -> None:
    """It is done where it is asked for, however often."""
    limiter = make(seconds)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()
    before = threading.active_count()
    for _ in range(50):
        await limiter.hit("authenticated", "x")

    assert threading.active_count() == before


class Board:
    """A place where edges share what each has counted; it can be away."""

    def __init__(self, others: Mapping[str, Sequence[float]]) -> None:
        self.others = others
        self.shared: list[Mapping[str, WindowHits]] = []
        self.is_away = False

    async def exchange(self, shared: Mapping[str, WindowHits]) -> Mapping[str, Sequence[float]]:
        """Record the hits that are shared."""
        if self.is_away:
            raise Problem("unavailable")
        self.shared.append(shared)
        return self.others


async def test_concurrent_hits_of_two_edges_leave_nothing(seconds: Seconds) -> None:
    """Two edges that each took nearly all have taken more than there was, and none is left."""
    limit = read_limit("authenticated", "3/minute")
    assert limit is not None
    windows = MemoryLimits(seconds, is_exchanged=True)
    for _ in range(2):
        await windows.hit(limit, "x")
    (key,) = (item.key_for(limit.name, "x") for item in limit.items)
    await windows.exchange(Board({key: [5.0, 4.0]}).exchange)

    assert await windows.hit(limit, "x") == LimitDecision(allowed=False, windows=((0, 55.0),))


async def test_hits_that_could_not_be_shared_are_shared_later(seconds: Seconds) -> None:
    """With what was counted since."""
    limit = read_limit("authenticated", "3/minute")
    assert limit is not None
    windows, board = MemoryLimits(seconds, is_exchanged=True), Board({})
    await windows.hit(limit, "x")
    board.is_away = True
    with pytest.raises(Problem):
        await windows.exchange(board.exchange)
    seconds.now += 1
    await windows.hit(limit, "x")
    board.is_away = False
    await windows.exchange(board.exchange)

    assert [share.ages for share in board.shared[0].values()] == [(1.0, 0.0)]
