import asyncio
from functools import partial
from typing import Any

import pytest

from edge_api.domain.kept import ANSWER_LEAST, Kept, KeptAnswers
from edge_api.schema.problems import Problem
from edge_api.schema.tables import SUPPRESSED_EMAILS
from edge_api.store.plan import Insert, Outcome, Read
from edge_api.store.sqlite import SQLiteStore

READ = Read(SUPPRESSED_EMAILS, ("email",))


async def suppress(store: SQLiteStore, email: str) -> None:
    """Change the store by one row."""
    given = {"email": email, "reason": "bounce"}
    number = abs(hash(email)) % 10**12
    row = SUPPRESSED_EMAILS.new_row(
        given,
        "2026-06-01T12:00:00.000000Z",
        partial(str, f"01981a2b-3c4d-7e5f-8a6b-{number:012}"),
    )
    await store.run(Insert(SUPPRESSED_EMAILS, [row]))


def kept(watched: Any) -> Kept[list[Outcome]]:
    """Return what is kept of a table."""
    return Kept(watched, partial(watched.run, READ))


async def test_a_crowd_shares_one_read(watched: Any) -> None:
    """However many ask while the store stays as it is, it is read once."""
    value = kept(watched)

    await asyncio.gather(*(value.get() for _ in range(20)))
    await value.get()

    assert watched.runs == 1


async def test_a_change_is_seen_by_whoever_asks_next(watched: Any, store: SQLiteStore) -> None:
    """What was kept is not believed any longer than the store is as it was."""
    value = kept(watched)
    assert (await value.get())[0].rows == []

    await suppress(store, "ada@example.org")

    assert (await value.get())[0].rows == [{"email": "ada@example.org"}]


async def test_a_failure_is_not_kept(watched: Any) -> None:
    """Once the store is back, the next who asks is answered."""
    value = kept(watched)
    watched.away = True
    with pytest.raises(Problem):
        await value.get()

    watched.away = False

    assert (await value.get())[0].rows == []


async def test_one_who_leaves_ends_no_read(watched: Any) -> None:
    """A caller that is cancelled leaves the others their answer."""
    value = kept(watched)
    leaving, staying = (asyncio.create_task(value.get()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()

    assert (await staying)[0].rows == []
    assert watched.runs == 1


def answers(watched: Any, most: int = 10 * ANSWER_LEAST) -> KeptAnswers[list[Outcome]]:
    """Return what is kept of several questions, each answer as heavy as the least."""
    return KeptAnswers(watched, lambda _: 1, most)


async def test_each_question_is_read_once(watched: Any) -> None:
    """Whoever asks what was asked before, at the same time or later, shares that read."""
    kept, read = answers(watched), partial(watched.run, READ)

    await asyncio.gather(*(kept.get(number % 3, read) for number in range(20)))
    await kept.get(2, read)

    assert watched.runs == 3


async def test_a_change_makes_every_answer_stale(watched: Any, store: SQLiteStore) -> None:
    """Also one that is being read while the change comes is not given to who asks later."""
    kept, read = answers(watched), partial(watched.run, READ)
    assert (await kept.get("early", read))[0].rows == []
    reading = asyncio.create_task(kept.get("late", read))
    await suppress(store, "ada@example.org")
    await reading

    for question in ("early", "late"):
        assert (await kept.get(question, read))[0].rows == [{"email": "ada@example.org"}]


async def test_the_oldest_answers_make_room(watched: Any) -> None:
    """Memory stays bounded however many questions are asked; what alone is too heavy stays out."""
    kept, read = answers(watched, most=2 * ANSWER_LEAST), partial(watched.run, READ)
    for number in range(3):
        await kept.get(number, read)
    await kept.get(2, read)
    await kept.get(1, read)
    assert watched.runs == 3

    await kept.get(0, read)
    assert watched.runs == 4
    await kept.get("a long question", read, 2 * ANSWER_LEAST + 1)
    await kept.get(0, read)
    assert watched.runs == 5

    narrow = answers(watched, most=ANSWER_LEAST - 1)
    for _ in range(2):
        await narrow.get(0, read)
    assert watched.runs == 7


async def test_a_failed_answer_is_not_kept(watched: Any) -> None:
    """All who wait are told; the next is answered."""
    kept, read = answers(watched), partial(watched.run, READ)
    asking = asyncio.gather(*(kept.get(1, read) for _ in range(3)), return_exceptions=True)
    await asyncio.sleep(0)
    watched.away = True
    assert [type(outcome) for outcome in await asking] == [Problem] * 3

    watched.away = False

    assert (await kept.get(1, read))[0].rows == []
