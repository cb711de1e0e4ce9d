"""Undo: each change of a row can be taken back, unless the row has changed since."""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from edge_api.admin.rows import Rows
from edge_api.auth.actor import Actor, find_undoable, recent_entries, undo
from edge_api.auth.erasure import Privacy
from edge_api.db.internal_tables import FORMER_ROWS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Query, QueryResult, Read, Store, Update
from edge_api.db.table import Row
from edge_api.db.tables import AUDIT_LOG, EMAIL_SEND_STATE, LEADS, SUPPRESSED_EMAILS
from tests.edge.rows.samples import ACTOR, ID, LEAD, Ticking, everything, problem_of
from tests.sizes import scaled

pytestmark = pytest.mark.each_engine
CHANGES = scaled(test=60, ci=240, judge=1000)


async def newest(store: Store) -> str:
    """Return the id of the newest audit entry."""
    return str((await recent_entries(store, 1))[0]["id"])


async def test_an_insert_an_update_and_a_delete_are_undone_and_done_again(
    rows: Rows, store: Store, clock: Ticking
) -> None:
    """After each undo the rows are as before the change; an undo can be undone too."""
    states: list[list[Row]] = [[]]
    entries: list[str] = []

    async def note() -> None:
        states.append(await everything(rows, LEADS))
        entries.append(await newest(store))
        clock.now += timedelta(seconds=1)

    await rows.insert(LEADS, [{**LEAD, "id": ID}, LEAD], ACTOR)
    await note()
    await rows.update(LEADS, {"name": "Ada"}, {"status": "won", "spam_reasons": ["a"]}, ACTOR)
    await note()
    await rows.delete(LEADS, {"id": ID}, ACTOR)
    await note()

    for before, entry in zip(reversed(states[:-1]), reversed(entries), strict=True):
        await undo(store, clock, ACTOR, entry)
        clock.now += timedelta(seconds=1)
        assert await everything(rows, LEADS) == before
    await undo(store, clock, ACTOR, await newest(store))
    assert await everything(rows, LEADS) == states[1]
    assert (await recent_entries(store, 1))[0]["verb"] == "undo"


async def test_a_row_that_has_changed_since_is_left_as_it_is(
    rows: Rows, store: Store, clock: Ticking
) -> None:
    """The problem names the row, the column, and who changed it when; nothing is undone."""
    (row,) = await rows.insert(LEADS, [LEAD], ACTOR)
    clock.now += timedelta(hours=1)
    await rows.update(LEADS, {"id": row["id"]}, {"status": "won"}, ACTOR)
    first = await newest(store)
    clock.now += timedelta(hours=1)
    other = Actor("k-2", "other", "api_key", frozenset())
    await rows.update(LEADS, {"id": row["id"]}, {"notes": "called"}, other)

    problem = await problem_of(undo(store, clock, ACTOR, first))

    assert problem.code == "conflict"
    assert (
        f"The row {row['id']} of leads has changed since, in updated_at, notes" in problem.message
    )
    assert "(update by credential:k-2, 2026-06-01T14:00)" in problem.message
    assert (await everything(rows, LEADS))[0]["status"] == "won"

    where = (Filter("audit_id", "eq", first),)
    (kept,) = await store.run(Read(FORMER_ROWS, where=where))
    older = {key: value for key, value in kept.rows[0]["changed"].items() if key != "spam_score"}
    await store.run(Update(FORMER_ROWS, {"changed": older}, where))
    problem = await problem_of(undo(store, clock, ACTOR, first))
    assert "in updated_at, notes (" in problem.message, "nor a column that came later"

    clock.now += timedelta(hours=1)
    await rows.delete(LEADS, {"id": row["id"]}, other)
    deleted = await problem_of(undo(store, clock, ACTOR, first))
    assert "was deleted since (delete by credential:k-2" in deleted.message


async def test_a_deleted_row_that_is_there_again_is_not_doubled(
    rows: Rows, store: Store, clock: Ticking
) -> None:
    """Neither the same row nor one with the same unique value is stored twice."""
    await rows.insert(SUPPRESSED_EMAILS, [{"email": "a@b.test", "reason": "bounce"}], ACTOR)
    clock.now += timedelta(hours=1)
    await rows.delete(SUPPRESSED_EMAILS, {"email": "a@b.test"}, ACTOR)
    entry = await newest(store)
    await rows.insert(SUPPRESSED_EMAILS, [{"email": "a@b.test", "reason": "bounce"}], ACTOR)

    assert (await problem_of(undo(store, clock, ACTOR, entry))).code == "conflict"
    assert len(await everything(rows, SUPPRESSED_EMAILS)) == 1


async def test_only_what_is_kept_and_reached_is_undone(
    rows: Rows, store: Store, clock: Ticking
) -> None:
    """An unknown entry, one that was undone, and a table beyond the actor's list are refused."""
    await rows.insert(LEADS, [LEAD], ACTOR)
    entry = await newest(store)
    (row,) = await everything(rows, LEADS)
    narrow = Actor("k-3", "narrow", "api_key", frozenset(), frozenset({"email_send_log"}))

    assert (await problem_of(undo(store, clock, narrow, entry))).code == "forbidden"
    kept = await find_undoable(store, [entry, ID])
    assert {key: rows[0]["row_id"] for key, rows in kept.items()} == {entry: row["id"]}
    await undo(store, clock, ACTOR, entry)
    assert await find_undoable(store, [entry, ID]) == {}
    for gone in (entry, ID, "no-uuid"):
        assert (await problem_of(undo(store, clock, ACTOR, gone))).code == "not_found"


async def test_two_undos_at_once_undo_once(rows: Rows, store: Store, clock: Ticking) -> None:
    """The other one learns that it came too late."""
    await rows.update(EMAIL_SEND_STATE, {"id": 1}, {"batch_size": 7}, ACTOR)
    entry = await newest(store)

    both = (undo(store, clock, ACTOR, entry) for _ in range(2))
    results = await asyncio.gather(*both, return_exceptions=True)

    problems = [each for each in results if isinstance(each, Problem)]
    assert [each.code for each in problems] in (["conflict"], ["not_found"])
    assert (await everything(rows, EMAIL_SEND_STATE))[0]["batch_size"] == 10


class ErasingStore:
    """A real store in which somebody erases a person just before the first change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.version_is_exact = store.version_is_exact
        self.version, self.probe = store.version, store.probe
        self.scrub, self.close = store.scrub, store.close

    async def run(self, *queries: Query) -> list[QueryResult]:
        """Pass the queries on; before those that change something, erase."""
        if not all(isinstance(each, Read) for each in queries):
            await Privacy(self._store, Ticking()).erase(LEAD["email"], ACTOR)
        return await self._store.run(*queries)


async def test_an_erasure_is_not_undone(rows: Rows, store: Store, clock: Ticking) -> None:
    """A person who is erased while a deletion is being undone does not come back by it."""
    await rows.insert(LEADS, [{**LEAD, "id": ID}], ACTOR)
    clock.now += timedelta(seconds=1)
    await rows.delete(LEADS, {"id": ID}, ACTOR)

    problem = await problem_of(undo(ErasingStore(store), clock, ACTOR, await newest(store)))

    assert problem.code == "conflict"
    assert await everything(rows, LEADS) == []
    (kept,) = await store.run(Read(FORMER_ROWS))
    assert kept.rows == []


class Writer:
    """One of several writers: it changes rows of its own and knows what they must be."""

    def __init__(self, name: str, store: Store, clock: Ticking, seed: int) -> None:
        self.email = f"{name}@example.org"
        self._actor = Actor(f"k-{name}", name, "api_key", frozenset())
        self._store, self._clock = store, clock
        self._rows = Rows(store, clock)
        self._random = random.Random(seed)  # noqa: S311  no secret
        self.model: dict[str, Row] = {}
        self._done: list[tuple[str, dict[str, tuple[Row | None, Row | None]]]] = []

    async def step(self) -> None:
        """Make a random change, or undo one of those before."""
        self._clock.now += timedelta(milliseconds=1)
        if self._done and self._random.random() < 0.4:
            await self._undo()
            return
        before = dict(self.model)
        if not self.model or self._random.random() < 0.3:
            number = self._random.randint(1, 4)
            await self._rows.insert(LEADS, [{**LEAD, "email": self.email}] * number, self._actor)
        else:
            chosen = self._random.sample(
                sorted(self.model), k=self._random.randint(1, min(4, len(before)))
            )
            if self._random.random() < 0.25:
                await self._rows.delete(LEADS, {"id": chosen}, self._actor)
            else:
                values: dict[str, Any] = {
                    "notes": self._random.choice([None, "a", "b"]),
                    "spam_reasons": self._random.choice([None, ["x"], {"y": 1}]),
                }
                await self._rows.update(LEADS, {"id": chosen}, values, self._actor)
        await self._learn()
        changed = {
            key: (before.get(key), self.model.get(key))
            for key in before.keys() | self.model.keys()
            if before.get(key) != self.model.get(key)
        }
        self._done.append((await self._newest(), changed))

    async def _undo(self) -> None:
        entry, changed = self._random.choice(self._done)
        fits = all(self.model.get(key) == after for key, (_, after) in changed.items())
        if not fits:
            problem = await problem_of(undo(self._store, self._clock, self._actor, entry))
            assert problem.code == "conflict"
            return
        await undo(self._store, self._clock, self._actor, entry)
        for key, (former, _) in changed.items():
            self.model.pop(key, None)
            if former is not None:
                self.model[key] = former
        self._done.remove((entry, changed))
        self._done.append((await self._newest(), {key: (b, a) for key, (a, b) in changed.items()}))

    async def _newest(self) -> str:
        own = (Filter("actor", "eq", self._actor.label),)
        (found,) = await self._store.run(Read(AUDIT_LOG, where=own))
        return str(max(row["id"] for row in found.rows))

    async def _learn(self) -> None:
        """Take the rows that were just written, which no undo has touched, into the model."""
        self.model = await self.stored()

    async def stored(self) -> dict[str, Row]:
        """Return this writer's rows by key."""
        own = (Filter("email", "eq", self.email),)
        (found,) = await self._store.run(Read(LEADS, where=own))
        return {row["id"]: row for row in found.rows}


@pytest.mark.size("test", grows=True)
async def test_random_changes_and_undos_end_in_what_a_model_says(
    store: Store, clock: Ticking
) -> None:
    """Three writers at once: each undo does what the model does, or says that it cannot."""
    writers = [Writer(name, store, clock, seed) for seed, name in enumerate(("ann", "bo", "cy"))]

    async def work(writer: Writer) -> None:
        for _ in range(CHANGES // len(writers)):
            await writer.step()

    await asyncio.gather(*map(work, writers))

    for writer in writers:
        assert await writer.stored() == writer.model
    (kept,) = await store.run(Read(FORMER_ROWS, ("id",), limit=1, with_total=True))
    assert kept.total


async def test_a_change_of_a_former_version_is_undone(
    rows: Rows, store: Store, clock: Ticking
) -> None:
    """It lacks columns that came later: they have their default again, or stay as they are."""
    entries = []
    for change in (
        rows.insert(LEADS, [{**LEAD, "id": ID}, LEAD], ACTOR),
        rows.update(LEADS, {"id": ID}, {"status": "won"}, ACTOR),
        rows.delete(LEADS, {"id": ID}, ACTOR),
    ):
        await change
        entries.append(await newest(store))
        clock.now += timedelta(seconds=1)
    (kept,) = await store.run(Read(FORMER_ROWS))
    for row in kept.rows:
        texts = ("former", "changed")
        shapes = {each: row[each] and dict(row[each]) for each in texts}
        for shape in filter(None, shapes.values()):
            del shape["other_part"]
        await store.run(Update(FORMER_ROWS, shapes, (Filter("id", "eq", row["id"]),)))

    seen = []
    await undo(store, clock, ACTOR, entries[2], lambda _, row: seen.append(row["other_part"]))
    assert seen == [None], "what judges a row has all of its columns"
    (back,) = await store.run(Read(LEADS, where=(Filter("id", "eq", ID),)))
    assert (back.rows[0]["status"], back.rows[0]["other_part"]) == ("won", None)
    clock.now += timedelta(seconds=1)
    part = Update(LEADS, {"other_part": ID}, (Filter("id", "eq", ID),))
    await store.run(part)
    await undo(store, clock, ACTOR, entries[1])
    (back,) = await store.run(Read(LEADS, where=(Filter("id", "eq", ID),)))
    assert (back.rows[0]["status"], back.rows[0]["other_part"]) == ("new", ID)
    clock.now += timedelta(seconds=1)
    await store.run(Update(LEADS, {"notes": "later"}, (Filter("id", "eq", ID),)))
    with pytest.raises(Problem, match=r"has changed since, in notes \("):
        await undo(store, clock, ACTOR, entries[0])
    await store.run(Update(LEADS, {"notes": None}, (Filter("id", "eq", ID),)))
    await undo(store, clock, ACTOR, entries[0])
    assert await everything(rows, LEADS) == []
    await undo(store, clock, ACTOR, await newest(store))
    (back,) = await store.run(Read(LEADS, where=(Filter("id", "eq", ID),)))
    assert back.rows[0]["other_part"] == ID
