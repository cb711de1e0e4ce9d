"""Erasing a person while others write: nothing is left anywhere, and no undo brings it back."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_api.admin.rows import Rows
from edge_api.auth.actor import OPERATOR, new_id, recent_entries, system_clock, undo
from edge_api.auth.erasure import PersonalRows, Privacy, find_rows, fold_address, is_within
from edge_api.auth.tokens import SecretBox
from edge_api.background import delete_expired
from edge_api.backup.copies import list_unerased_copies
from edge_api.db.internal_tables import (
    ACCESS_REQUESTS,
    EMAIL_OUTBOX,
    ERASED_ROWS,
    WEBHOOK_ENDPOINTS,
)
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Query, QueryResult, Read, Store
from edge_api.db.table import Table
from edge_api.db.tables import (
    EMAIL_SEND_LOG,
    EMAIL_UNSUBSCRIBE_TOKENS,
    IDEMPOTENCY_KEYS,
    LEADS,
    TABLES,
)
from edge_api.db.types import format_instant
from edge_api.desk.sessions import OWNER as SIGNED_IN
from edge_api.leads.input import LeadInput
from edge_api.leads.service import Leads, Sender
from edge_api.mail.answers import Answers
from edge_api.mail.dispatcher import MailService, make_mail_service
from edge_api.operation.sheets import format_value
from edge_api.settings import read_settings
from edge_api.webhooks.dispatcher import WebhookDispatcher, WebhookSender
from tests.edge.domain.conftest import MovableClock
from tests.edge.engines import Opener
from tests.edge.store.samples import make_entry, make_lead, make_row
from tests.patience import patience
from tests.sizes import scaled

pytestmark = pytest.mark.each_engine
ROUNDS = scaled(test=4, ci=12, judge=100)
LEADS_OF_PERSON = 12
SECRET = b"a secret of this test alone, 32 bytes"
USUAL_ID = re.compile(r"[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A UUID, or a digest in hexadecimal digits."""
OTHER = "other@readers-club.net"
OWNER = "owner@journal-keepers.net"
LATER = "2099-01-01T00:00:00.000000Z"


class Program:
    """One process of the service: its own connections, mail and webhooks."""

    def __init__(self, store: Store, folder: Path) -> None:
        given = {
            "SITE_URL": "https://journal.example",
            "OWNER_EMAIL": OWNER,
            "MAIL_FROM": "journal@journal-keepers.net",
            "SMTP_URL": f"maildir:{folder}/mail",
            "ACKNOWLEDGE_LEADS": "true",
            "ACKNOWLEDGEMENTS_PER_HOUR": "999999",
        }
        self.store = store
        self.rows = Rows(store, system_clock)
        settings = read_settings(given, dotenv=None)
        self.mailing: MailService = make_mail_service(settings, store, system_clock, SECRET)
        self.answers = Answers(settings, store, system_clock)
        # Nobody listens there, so each delivery is changed by an attempt that failed.
        sender = WebhookSender(lambda _address: True, lambda _address: True)
        self.webhooks = WebhookDispatcher(store, system_clock, SecretBox(SECRET, "t"), sender)

    def leads(self) -> Leads:
        """Return the leads, announced by mail and webhooks."""
        listeners = (self.mailing.outbox, self.webhooks)
        return Leads(self.store, system_clock, None, SECRET, listeners)  # type: ignore[arg-type]

    async def take(self, email: str, message: str, key: str | None = None) -> str:
        """Store a lead of somebody with a credential, and return its id."""
        given = {"name": "Erin", "email": email, "budget_tier": "b", "message": message}
        lead = LeadInput.model_validate(given)
        sender = Sender(OPERATOR, "192.0.2.1")
        return str((await self.leads().create(lead, sender, key)).row["id"])


@pytest.fixture
async def programs(open_another: Opener, tmp_path: Path) -> tuple[Program, Program]:
    """Return two processes of the service on one database, with an endpoint for events."""
    first, second = Program(await open_another(), tmp_path), Program(await open_another(), tmp_path)
    sealed = SecretBox(SECRET, "t").encrypt(b"whsec_" + b"c2VjcmV0" * 4)
    given = {"url": "http://127.0.0.1:9/", "secret": sealed}
    now = system_clock()
    row = WEBHOOK_ENDPOINTS.new_row(given, format_instant(now), partial(new_id, now))
    await first.store.run(Insert(WEBHOOK_ENDPOINTS, [row]))
    return first, second


@asynccontextmanager
async def repeating(*works: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Do works again and again, each by itself, until the block ends; refusals are no matter."""
    is_over = asyncio.Event()

    async def repeat(work: Callable[[], Awaitable[object]]) -> None:
        while not is_over.is_set():
            with suppress(Problem):
                await work()
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(repeat(work)) for work in works]
    try:
        yield
    finally:
        is_over.set()
        await asyncio.gather(*tasks)


async def everything(store: Store) -> list[tuple[str, str]]:
    """Return each row of each table as text, with the name of its table.

    That a notice went to the owner stays in the log of mail, under the id that it had.
    """
    results = await store.run(*map(Read, TABLES.values()))
    return [
        (table.name, json.dumps({**row, **notice}, ensure_ascii=False))
        for table, result in zip(TABLES.values(), results, strict=True)
        for row in result.rows
        for notice in [{"message_id": ""} if row.get("recipient_email") == OWNER else {}]
    ]


async def remembered(store: Store) -> set[str]:
    """Return the ids of erased rows."""
    (result,) = await store.run(Read(ERASED_ROWS))
    return {row["id"] for row in result.rows}


async def undo_all(store: Store, since: str) -> None:
    """Press every Undo of what was done since an instant."""
    for entry in await recent_entries(store, 10_000):
        if entry["at"] >= since:
            with suppress(Problem):
                await undo(store, system_clock, OPERATOR, entry["id"])


@pytest.mark.size("test", grows=True)
async def test_nothing_is_left_of_a_person_whoever_writes_meanwhile(
    programs: tuple[Program, Program],
) -> None:
    """Others change, delete, undo and send all the while, in two processes; see `everything`."""
    here, there = programs
    for _ in range(40):
        await here.take(OTHER, "Hello.")
    for number in range(ROUNDS):
        began = format_instant(system_clock())
        address = f"Erin{number}.K@b\u00fccher-leser.net"
        ids = [await here.take(address, f"Question {each}.") for each in range(LEADS_OF_PERSON)]
        await erase_among_writers(here, there, address, ids)

        local = f"erin{number}.k@"
        left = [each for each in await everything(here.store) if local in each[1].casefold()]
        assert left == [], number
        known = {*ids, *(await remembered(here.store))}
        assert await naming(here.store, known) == [], number
        await undo_all(there.store, began)  # no older entry is about this person
        assert await naming(here.store, known) == [], number
    (others,) = await here.store.run(Read(LEADS))
    assert len(others.rows) >= 40


async def erase_among_writers(here: Program, there: Program, address: str, ids: list[str]) -> None:
    """Erase the person while both processes write."""
    turn, doomed = count(), iter(ids[: LEADS_OF_PERSON // 2])

    async def change() -> None:
        match = {"id": ids[-1 - next(turn) % (LEADS_OF_PERSON // 2)]}
        await there.rows.update(LEADS, match, {"notes": f"{next(turn)} {address}"}, OPERATOR)

    async def delete() -> None:
        if (one := next(doomed, None)) is not None:
            await there.rows.delete(LEADS, {"id": one}, OPERATOR)

    async def undo_newest() -> None:
        for entry in (await recent_entries(here.store, 3))[next(turn) % 3 :][:1]:
            await undo(here.store, system_clock, OPERATOR, entry["id"])

    async def answer() -> None:
        (found,) = await there.store.run(Read(LEADS, where=(Filter("id", "in", tuple(ids)),)))
        for lead in found.rows[:1]:
            sent = await there.answers.send(lead, f"{next(turn)}", "", SIGNED_IN)
            await here.answers.take_back(sent["id"], SIGNED_IN)
            await there.answers.save_draft(lead, f"{next(turn)} {address}", "")

    writers = (
        change,
        answer,
        delete,
        undo_newest,
        partial(there.take, OTHER, "Hello again."),
        here.mailing.dispatcher.send_batch,
        there.mailing.dispatcher.send_batch,
        there.webhooks.run_once,
    )
    async with repeating(*writers):
        await asyncio.sleep(0.05)
        erase = partial(Privacy(here.store, system_clock).erase, address.upper(), OPERATOR)
        ends_at = time.monotonic() + patience(60)
        while not await erased(erase):
            assert time.monotonic() < ends_at


async def erased(erase: Callable[[], Awaitable[object]]) -> bool:
    """Return whether the person is erased, and not the store locked by the other process.

    A machine under load may hold it for longer than an erasure waits, which is then refused as a
    whole.
    """
    try:
        await erase()
    except Problem as problem:
        if problem.code != "unavailable":
            raise
        return False
    return True


async def naming(store: Store, ids: set[str]) -> list[tuple[str, str]]:
    """Return the rows that have one of the ids in them, but for those that remember them."""
    # Ids of the usual forms are found by one reading of a row, however many there are.
    others = {each for each in ids if not USUAL_ID.fullmatch(each)}
    return [
        (name, text)
        for name, text in await everything(store)
        if name != ERASED_ROWS.name
        and (not ids.isdisjoint(USUAL_ID.findall(text)) or any(each in text for each in others))
    ]


async def test_the_person_may_write_again_at_once(programs: tuple[Program, Program]) -> None:
    """The same words under the same key are a new lead, also while the erasure runs."""
    here, there = programs
    old = await here.take("erin@readers-club.net", "Hello.", "key-1")
    erase = Privacy(here.store, system_clock).erase("erin@readers-club.net", OPERATOR)
    again = partial(there.take, "erin@readers-club.net", "Hello.", "key-1")
    _, first = await asyncio.gather(erase, again())
    second = await again()

    assert second != old
    assert first in (old, second)
    (found,) = await here.store.run(Read(LEADS))
    assert [row["id"] for row in found.rows] == [second]
    assert await remembered(here.store) & {old, second} == {old}


async def test_an_undo_of_what_was_erased_is_refused(programs: tuple[Program, Program]) -> None:
    """With a sentence; what else the change was about is restored."""
    here, _ = programs
    mine = await here.take("erin@readers-club.net", "Hello.")
    await here.rows.update(LEADS, {"id": mine}, {"notes": "called"}, OPERATOR)
    theirs = await here.take(OTHER, "Hello.")
    await here.rows.delete(LEADS, {"id": [mine, theirs]}, OPERATOR)
    removal, change = [row["id"] for row in await recent_entries(here.store, 2)]
    await Privacy(here.store, system_clock).erase("erin@readers-club.net", OPERATOR)

    with pytest.raises(Problem, match="was erased") as refused:
        await undo(here.store, system_clock, OPERATOR, change)
    assert refused.value.code == "not_found"
    await undo(here.store, system_clock, OPERATOR, removal)
    (found,) = await here.store.run(Read(LEADS, where=(Filter("id", "in", (mine, theirs)),)))
    assert [row["id"] for row in found.rows] == [theirs]


class ErasingStore:
    """A real store in which somebody is erased just before a row comes into one of the tables."""

    def __init__(self, store: Store, table: Table, address: str) -> None:
        self._store, self._table, self._address = store, table, address
        self.version_is_exact = store.version_is_exact
        self.version, self.probe = store.version, store.probe
        self.scrub, self.close = store.scrub, store.close

    async def run(self, *queries: Query) -> list[QueryResult]:
        """Pass the queries on, after the erasure if its moment has come."""
        if any(isinstance(each, Insert) and each.table is self._table for each in queries):
            await Privacy(self._store, system_clock).erase(self._address, OPERATOR)
        return await self._store.run(*queries)


@pytest.mark.parametrize(
    "table", [EMAIL_UNSUBSCRIBE_TOKENS, IDEMPOTENCY_KEYS, EMAIL_SEND_LOG], ids=lambda t: t.name
)
async def test_mail_under_way_stores_nothing_again(
    store: Store, tmp_path: Path, table: Table
) -> None:
    """Its link, its turn of the day and its outcome come after the erasure."""
    address = "erin@readers-club.net"
    await Program(store, tmp_path).take(address, "Hello.")
    erasing = Program(ErasingStore(store, table, address), tmp_path)
    with suppress(Problem):
        await erasing.mailing.dispatcher.send_batch()

    assert [each for each in await everything(store) if address in each[1]] == []
    (found,) = await store.run(Read(IDEMPOTENCY_KEYS))
    assert found.rows == []


async def test_the_turn_of_the_day_is_erased_too(store: Store, tmp_path: Path) -> None:
    """A keyed digest of the address says for a day that it was thanked."""
    program = Program(store, tmp_path)
    await program.take("erin@readers-club.net", "Hello.")
    await program.mailing.dispatcher.send_batch()
    (before,) = await store.run(Read(IDEMPOTENCY_KEYS))
    await Privacy(store, system_clock).erase("erin@readers-club.net", OPERATOR)
    (after,) = await store.run(Read(IDEMPOTENCY_KEYS))

    assert (len(before.rows), after.rows) == (1, [])


async def test_the_notice_of_an_access_request_is_erased(store: Store) -> None:
    """The notice to the owner that somebody asks for access."""
    given = {"type": "api_key", "name": "Erin", "email": "erin@readers-club.net", "purpose": "p"}
    more = {"scopes": "posts:read", "claim_digest": "d" * 64, "expires_at": LATER}
    request = make_row(ACCESS_REQUESTS, {**given, **more})
    notice = {"template_name": "access_request", "recipient_email": OWNER, "queue": "auth"}
    entry = make_row(EMAIL_OUTBOX, {**notice, "subject_id": request["id"]})
    await store.run(Insert(ACCESS_REQUESTS, [request]), Insert(EMAIL_OUTBOX, [entry]))
    await Privacy(store, system_clock).erase("erin@readers-club.net", OPERATOR)

    assert await naming(store, {request["id"], entry["id"]}) == []


async def test_the_record_of_an_erasure_is_deleted_after_400_days(
    store: Store, clock: MovableClock
) -> None:
    """Its keys are the only thing that is remembered, and no longer than that."""
    lead = make_lead(email="erin@readers-club.net")
    await store.run(Insert(LEADS, [lead]))
    await Privacy(store, clock).erase("erin@readers-club.net", OPERATOR)
    clock.move(days=399)
    await delete_expired(store, clock)
    assert await remembered(store) == {lead["id"]}
    await store.run(Insert(LEADS, [lead]))  # by somebody who has kept it
    await Privacy(store, clock).erase("erin@readers-club.net", OPERATOR)
    clock.move(days=401)
    await delete_expired(store, clock)

    assert await remembered(store) == set()


async def test_a_lead_that_was_given_another_address_is_somebody_elses(store: Store) -> None:
    """Its former address is erased with the former row; the lead stays, and is not remembered."""
    lead = make_lead(email="erin@readers-club.net")
    await store.run(Insert(LEADS, [lead]))
    await Rows(store, system_clock).update(LEADS, {"id": lead["id"]}, {"email": OTHER}, OPERATOR)
    await Privacy(store, system_clock).erase("erin@readers-club.net", OPERATOR)

    (found,) = await store.run(Read(LEADS))
    assert [row["email"] for row in found.rows] == [OTHER]
    assert [each for each in await everything(store) if "erin" in each[1]] == []
    assert lead["id"] not in await remembered(store)


async def test_many_leads_of_one_person_are_erased(store: Store) -> None:
    """Also what names one by its key alone, of more than there are patterns for; and no more."""
    leads = [make_lead(email="erin@readers-club.net") for _ in range(40)]
    other = make_lead(email=OTHER)
    logs = [make_entry(recipient_email=OWNER, metadata={"to": row["id"]}) for row in leads]
    kept = make_entry(recipient_email=OWNER, metadata={"to": other["id"]})
    await store.run(Insert(LEADS, [*leads, other]), Insert(EMAIL_SEND_LOG, [*logs, kept]))
    await Privacy(store, system_clock).erase("erin@readers-club.net", OPERATOR)

    assert await naming(store, {row["id"] for row in leads}) == []
    (found,) = await store.run(Read(EMAIL_SEND_LOG))
    assert [row["id"] for row in found.rows] == [kept["id"]]


async def test_places_that_an_erasure_does_not_reach_are_listed(
    programs: tuple[Program, Program], tmp_path: Path
) -> None:
    """With an end where the settings give one, and without the secret of a webhook's address."""
    replica = {"DATABASE_URL": f"sqlite:///{tmp_path}/edge.db", "LITESTREAM_REPLICA": "file:///r"}
    moment = datetime(2026, 11, 28, 5, 30, tzinfo=UTC)
    mail = {"SMTP_URL": f"maildir:{tmp_path}", "MAIL_FROM": OWNER}
    with_replica = read_settings({**replica, **mail}, dotenv=None)
    text = "\n".join(await list_unerased_copies(programs[0].store, with_replica, moment))

    assert "backups made before 28 Nov 2026, 05:30 UTC" in text
    assert "the replica, which holds every state of the last 7 days: until 6 Dec 2026" in text
    assert "the webhook at 127.0.0.1, which got new leads" in text
    assert "mails that were sent" in text
    database = {"DATABASE_URL": "postgresql://u@h/d", "SECRET_KEY": "s" * 32}
    remote = await list_unerased_copies(
        programs[0].store, read_settings(database, dotenv=None), moment
    )
    assert remote[0].startswith("the server's backups, standbys and log")
    assert "edge.db.replaced-… beside the store" in text
    assert "replaced" not in "".join(remote)


LETTERS = ["k", "K", "\u212a", "i", "I", "\u0130", "i\u0307", "\u0131", "e\u0301", "\u00e9"]
LETTERS += ["s", "\u017f", "\u00df", "a", "7", ".", "_", "%", "'", "`", "-", "\u0338", "\\", '"']
DOMAINS = ["a.net", "A.NET", "b\u00fccher.net", "BU\u0308CHER.net", "xn--bcher-kva.net", "a,b"]
DOMAINS += ["stra\u00dfe.net", "xn--strae-oqa.net", "\u212a.net", "k.net", "K.net", "\uff41.net"]
FRAMES = ["{}", " {} ", "Erin <{}>", '["{}"]', "to:{};x", "'{}'.", "x@y {}"]
LOCAL = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=5).map("".join)
WAYS = [str, str.upper, str.lower, partial(normalize, "NFD"), partial(normalize, "NFC")]
WAYS.append(lambda text: text.replace("k", "\u212a"))


@pytest.mark.size("test", grows=True)
@settings(
    max_examples=scaled(test=40, ci=200, judge=2000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.tuples(LOCAL, st.sampled_from(DOMAINS)), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(WAYS), st.sampled_from(DOMAINS), st.sampled_from(FRAMES)),
        min_size=1,
        max_size=8,
    ),
)
async def test_the_database_leaves_out_no_spelling(
    store: Store, people: list[tuple[str, str]], spellings: list[tuple[Any, str, str]]
) -> None:
    """Its selection of rows has all that `is_within` finds in all rows."""
    texts = [
        way(frame.format(f"{local}@{domain}"))
        for local, own in people
        for way, other, frame in spellings
        for domain in (own, other)
    ]
    leads = [make_lead(email=text, status="new") for text in texts]
    entries = [make_entry(recipient_email=OWNER, metadata=[text]) for text in texts]
    every = (Filter("id", "is", None, negated=True),)
    await store.run(Delete(LEADS, every), Delete(EMAIL_SEND_LOG, every))
    await store.run(Insert(LEADS, leads), Insert(EMAIL_SEND_LOG, entries))
    for local, domain in people:
        address = f"{local}@{domain}"
        found: PersonalRows = {}
        results: list[QueryResult] = []
        for query in find_rows(results, found, fold_address(address), set()):
            results += await store.run(query)
        for table, rows, name in ((LEADS, leads, "email"), (EMAIL_SEND_LOG, entries, "metadata")):
            wanted = [
                row["id"]
                for row in rows
                if is_within(fold_address(address), format_value(row[name]))
            ]
            assert sorted(row["id"] for row in found[table]) == sorted(wanted), address
