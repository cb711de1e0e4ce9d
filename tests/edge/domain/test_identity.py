import multiprocessing
from datetime import UTC, datetime, timedelta
from uuid import UUID

from edge_api.auth.actor import new_id

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_identifiers_of_one_instant_all_differ() -> None:
    """More of them than are drawn at once, each a UUID of version 7 (RFC 9562)."""
    made = {new_id(NOON) for _ in range(5000)}

    assert len(made) == 5000
    assert {(UUID(each).version, UUID(each).variant) for each in made} == {
        (7, "specified in RFC 4122")
    }


def test_a_later_one_sorts_behind() -> None:
    """By the microsecond."""
    assert new_id(NOON) < new_id(NOON + timedelta(microseconds=1))


def test_a_forked_process_makes_others() -> None:
    """Randomness that was drawn before the fork is used by one of the two."""
    new_id(NOON)
    forking = multiprocessing.get_context("fork")
    with forking.Pool(1) as pool:
        theirs = set(pool.apply(_make, (100,)))

    assert theirs.isdisjoint(_make(100))


def _make(count: int) -> list[str]:
    return [new_id(NOON) for _ in range(count)]
