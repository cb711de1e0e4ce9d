"""The search index of leads equals one made anew, however leads were written, changed, removed."""

import asyncio
from pathlib import Path

import pytest

from edge_api.admin.privacy import Retention
from edge_api.admin.rows import Rows
from edge_api.auth.actor import OPERATOR, recent_entries, undo
from edge_api.auth.erasure import Privacy
from edge_api.auth.rate_limits import Limiter
from edge_api.backup.restoration import carry_over
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.postgres import engine as postgres
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Read, Store, Update, read_all
from edge_api.db.sqlite.engine import open_store
from edge_api.db.table import Row
from edge_api.db.tables import LEADS
from edge_api.db.transfer import copy_tables
from edge_api.leads.input import LeadInput, LongLead
from edge_api.leads.service import Leads, Sender
from edge_api.settings import read_settings
from tests.edge.domain.conftest import MovableClock
from tests.edge.engines import SQLITE_PREFIX
from tests.edge.leads_index import read_index
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.samples import make_lead

pytestmark = [pytest.mark.each_engine, pytest.mark.size("test")]

NAMES = (
    "Zo\u00eb",
    "M\u00fcller",
    "\u0141ukasz",
    "\u5c71\u7530\u592a\u90ce",
    "Ann",
    "\U0001f600 Bo",
)
PERSON = "ann@readers-club.net"


class Ways:
    """The ways to write leads, each of which leaves some."""

    def __init__(self, store: Store, clock: MovableClock, leads: Leads) -> None:
        self.store, self.clock, self.leads = store, clock, leads
        self.rows = Rows(store, clock)
        self.privacy = Privacy(store, clock, b"secret")

    async def send(self, count: int, email: str = "") -> None:
        """Send so many leads at once: the store takes them in groups."""
        await asyncio.gather(*(self._send(number, email) for number in range(count)))

    async def _send(self, number: int, email: str) -> None:
        given = {
            "name": f"{NAMES[number % len(NAMES)]} {number}",
            "email": email or f"reader{number}@example.com",
            "budget_tier": "small",
            # Some are repeats, some are long and become two rows, some have a statement of their
            # own since their sender is known.
            "message": "We need a s\u00eete. " * (200 if number % 9 == 8 else 1 + number % 4),
        }
        model = LongLead if number % 9 == 8 else LeadInput
        actor = OPERATOR if number % 5 == 4 else None
        self.clock.move(microseconds=10)
        await self.leads.create(
            model.model_validate(given), Sender(actor, f"10.0.0.{number}"), None
        )

    async def all(self) -> list[Row]:
        """Return all leads."""
        return await read_all(self.store, Read(LEADS))

    async def insert(self) -> None:
        """Insert by the administrative interface."""
        given = [
            {"name": name, "email": PERSON, "budget_tier": "b", "message": "m"} for name in NAMES
        ]
        await self.rows.insert(LEADS, given, OPERATOR)

    async def update(self) -> None:
        """Change texts by the administrative interface."""
        await self.rows.update(
            LEADS, {"email": PERSON}, {"name": "\u00c9mile", "message": "\u00df"}, OPERATOR
        )

    async def delete(self) -> None:
        """Delete some of them there."""
        first, second, *_ = await self.all()
        for row in (first, second):
            await self.rows.delete(LEADS, {"id": row["id"]}, OPERATOR)

    async def undo(self) -> None:
        """Undo a deletion, a change and an insertion."""
        for verb in ("delete", "update", "insert"):
            entries = await recent_entries(self.store, 20)
            audit_id = next(each["id"] for each in entries if each["verb"] == verb)
            await undo(self.store, self.clock, OPERATOR, audit_id)

    async def mark(self) -> None:
        """Mark some as spam."""
        ids = [row["id"] for row in await self.all()]
        await self.leads.mark(ids[:3], "spam", OPERATOR)

    async def refuse(self) -> None:
        """Send leads in a group in which another write fails."""
        twice = (await self.all())[0]
        taken, refused = await asyncio.gather(
            self.store.run(Insert(LEADS, [make_lead(name="Taken")])),
            self.store.run(Insert(LEADS, [make_lead(name="Refused"), twice])),
            return_exceptions=True,
        )
        assert isinstance(refused, Problem)
        assert not isinstance(taken, BaseException)

    async def change_in_one_group(self) -> None:
        """Store, change and delete the same lead in one transaction."""
        new, gone = make_lead(name="New"), make_lead(name="Gone")
        one, other = (Filter("id", "eq", row["id"]) for row in (new, gone))
        await self.store.run(
            Insert(LEADS, [new, gone]),
            Update(LEADS, {"name": "\u00d8re"}, (one,)),
            Delete(LEADS, (other,)),
        )

    async def erase(self) -> None:
        """Erase a person while that person and others write."""
        await self.send(5, PERSON)
        await asyncio.gather(
            self.send(20, PERSON), self.privacy.erase(PERSON, OPERATOR), self.send(20)
        )
        await self.privacy.erase(PERSON, OPERATOR)
        assert PERSON not in {row["email"] for row in await self.all()}

    async def retain(self) -> None:
        """Delete those that are too old."""
        self.clock.move(days=40)
        await self.send(12)
        settings = read_settings({"RETAIN_LEADS_DAYS": "30"}, dotenv=None)
        before = len(await self.all())
        await Retention(self.store, self.clock, settings).apply()
        assert 0 < len(await self.all()) < before


async def check(store: Store, url: str, way: str) -> None:
    """Compare the index with one made anew; it has every lead of the store."""
    kept, anew = await read_index(url)
    assert kept == anew, way
    assert {lead for lead, _ in kept} == {row["id"] for row in await read_all(store, Read(LEADS))}


async def test_the_index_equals_one_made_anew(
    store: Store, store_url: str, clock: MovableClock, leads: Leads
) -> None:
    """After each way: sent in groups, inserted, changed, undone, refused, erased, retained."""
    ways = Ways(store, clock, leads)

    async def send() -> None:
        await ways.send(40)

    steps = (
        send,
        ways.insert,
        ways.update,
        ways.delete,
        ways.undo,
        ways.mark,
        ways.refuse,
        ways.change_in_one_group,
        ways.erase,
        ways.retain,
    )
    for step in steps:
        await step()
        await check(store, store_url, step.__name__)


async def test_a_copy_and_a_restored_store_have_their_index(
    store: Store, store_url: str, clock: MovableClock, leads: Leads, tmp_path: Path
) -> None:
    """Rows are copied to the other engine, and people who were erased since are erased again."""
    ways = Ways(store, clock, leads)
    await ways.send(20)
    await ways.send(5, PERSON)
    path = tmp_path / "other.db"
    other = await open_store(path, clock)
    try:
        await copy_tables(store, other, [LEADS], lambda _table, _count: None)
        await check(other, f"{SQLITE_PREFIX}{path}", "copied from the store")

        await ways.privacy.erase(PERSON, OPERATOR)
        await carry_over(store, other, clock)
        assert await read_all(other, Read(LEADS)) == await read_all(store, Read(LEADS))
        await check(other, f"{SQLITE_PREFIX}{path}", "restored")

        await store.run(Delete(LEADS, (Filter("budget_tier", "eq", "small"),)))
        await copy_tables(other, store, [LEADS], lambda _table, _count: None)
        await check(store, store_url, "copied to the store")
    finally:
        await other.close()


@pytest.mark.one_engine
async def test_an_index_of_before_is_right_after_the_upgrade(
    postgresql: PostgreSQL, clock: MovableClock, limiter: Limiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step replaces the function by which PostgreSQL indexes, and leaves the index."""
    url = postgresql.url(postgresql.make_empty())
    with monkeypatch.context() as former:
        former.setattr(postgres, "MIGRATIONS", MIGRATIONS[:12])
        store = await postgres.open_store(url, clock)
        await Ways(store, clock, Leads(store, clock, limiter, b"s")).send(20)
        await store.close()
    before, _ = await read_index(url)
    store = await postgres.open_store(url, clock)
    try:
        ways = Ways(store, clock, Leads(store, clock, limiter, b"s"))
        await check(store, url, "upgraded")
        assert (await read_index(url))[0] == before
        await ways.delete()
        await ways.send(10)
        await check(store, url, "written by both")
    finally:
        await store.close()
        postgresql.drop(url)
