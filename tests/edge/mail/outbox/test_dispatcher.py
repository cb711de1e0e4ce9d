"""The dispatcher and each answer of a real relay, as the rows of the log show it."""

import asyncio
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter, Insert, Query, QueryResult, Read, Store
from edge_api.db.tables import EMAIL_SEND_LOG, EMAIL_SEND_STATE, SUPPRESSED_EMAILS
from tests.edge.edge_process import free_port
from tests.edge.mail.outbox.post_office import (
    LEAD,
    OWNER,
    SENDER,
    PostOffice,
    TickingClock,
    open_office,
)
from tests.edge.mail.outbox.scripted_relay import DROP, Relay, refuse_login, relaying

pytestmark = pytest.mark.size("test")

READER = LEAD["email"]
LATER = "451 4.3.0 not now"
NOTIFICATION, ACKNOWLEDGEMENT = "notification", "acknowledgement"


def due_in(office: PostOffice, row: dict[str, str]) -> timedelta:
    """Return how long it takes until an entry is due."""
    return datetime.fromisoformat(row["due_at"]) - office.clock()


def polite(store: Store, clock: TickingClock, relay: Relay, **changes: str) -> PostOffice:
    """Return a post office that acknowledges leads as well."""
    return open_office(store, clock, relay, ACKNOWLEDGE_LEADS="true", **changes)


async def fail_until(office: PostOffice, hours: int) -> int:
    """Have what waits tried whenever it is due, for so long; return how often it was."""
    ends, turns = office.clock() + timedelta(hours=hours), 0
    while office.clock() < ends:
        (row,) = await office.outbox()
        if row["dead_at"]:
            break
        office.clock.now = datetime.fromisoformat(row["due_at"])
        await office.tick()
        turns += 1
    return turns


async def test_a_notification_arrives(office: PostOffice, relay: Relay) -> None:
    """A lead reaches its owner: the log says so, and the outbox is empty."""
    await office.take_lead()
    (entry,) = await office.outbox()
    await office.tick_at(seconds=1)

    (taken,) = relay.taken
    assert (taken.sender, taken.recipient) == (SENDER, OWNER)
    assert READER in taken.message["Reply-To"]
    assert taken.message["Message-ID"] == f"<{entry['id']}@journal.example>"
    assert [(row["message_id"], row["status"]) for row in await office.log()] == [
        (entry["id"], "pending"),
        (entry["id"], "sent"),
    ]
    assert await office.outbox() == []


async def test_a_batch_shares_a_connection(office: PostOffice, relay: Relay) -> None:
    """As many as `batch_size` says go in one turn, over one connection; the rest in the next."""
    for number in range(12):
        await office.take_lead(email=f"reader-{number}@readers-club.net")

    assert await office.tick() is True
    assert len(relay.taken) == 10
    assert await office.tick() is False
    assert [taken.connection for taken in relay.taken] == [1] * 10 + [2] * 2


async def test_changed_sending_settings_count_from_the_next_turn(
    office: PostOffice, relay: Relay
) -> None:
    """`batch_size` and `retry_after_until` are read at each turn; no row is the defaults."""
    for _ in range(4):
        await office.take_lead()
    await office.change_state(batch_size=3)
    await office.tick()
    assert len(relay.taken) == 3
    await office.change_state(retry_after_until="2026-06-01T13:00:00.000000Z")
    await office.tick()
    assert len(relay.taken) == 3
    await office.store.run(Delete(EMAIL_SEND_STATE, (Filter("id", "eq", 1),)))
    await office.tick()
    assert len(relay.taken) == 4


async def test_messages_are_sent_at_intervals(office: PostOffice, relay: Relay) -> None:
    """Between two messages passes the time that `send_delay_ms` says."""
    await office.change_state(send_delay_ms=300)
    await office.take_lead()
    await office.take_lead()
    await office.tick()

    first, second = relay.taken
    assert second.at - first.at >= 0.3


async def test_a_message_is_tried_five_times(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """After refusals for now it waits half a minute, 2, 8 and 25 minutes, and is given up."""
    office = polite(store, clock, relay)
    relay.by_recipient[READER] = "452 4.3.1 full"
    await office.take_lead()
    await office.tick()
    pauses = []
    for _ in range(4):
        (row,) = await office.outbox()
        pauses.append(due_in(office, row).total_seconds())
        await office.tick_at(seconds=pauses[-1] - 1)  # a second too early
        await office.tick_at(seconds=1.1)

    for pause, stated in zip(pauses, (30, 120, 480, 1500), strict=True):
        assert 0.8 * stated <= pause <= 1.2 * stated
    (row,) = await office.outbox()
    assert (row["attempts"], row["lease"], bool(row["dead_at"])) == (5, None, True)
    assert await office.statuses(ACKNOWLEDGEMENT) == ["pending", *["failed"] * 5, "dlq"]
    assert (await office.log())[-1]["error_message"].startswith("given up at attempt 5: ")
    assert relay.tried.count(READER) == 5
    await office.tick_at(hours=100)
    assert relay.tried.count(READER) == 5


async def test_a_notification_is_tried_for_three_days(office: PostOffice, relay: Relay) -> None:
    """The owner's mail outlives the time to live: it is tried each hour until 72 have passed."""
    relay.by_recipient[OWNER] = "452 4.3.1 full"
    await office.take_lead()
    turns = await fail_until(office, 80)

    statuses = await office.statuses()
    assert 60 <= len(relay.tried) <= 96
    assert statuses == ["pending", *["failed"] * len(relay.tried), "dlq"]
    assert turns == len(relay.tried) + 1
    assert (await office.log())[-1]["error_message"] == "not sent within 72 hours"


async def test_a_notification_arrives_after_hours(office: PostOffice, relay: Relay) -> None:
    """A relay that comes back in the second day gets it, once, with the date of the lead."""
    relay.by_recipient[OWNER] = "452 4.3.1 full"
    began = office.clock()
    await office.take_lead()
    await fail_until(office, 30)
    relay.by_recipient.clear()
    await fail_until_sent(office)

    (taken,) = relay.taken
    assert taken.message["Date"].datetime == began.replace(microsecond=0)
    assert (await office.statuses())[-2:] == ["failed", "sent"]


async def fail_until_sent(office: PostOffice) -> None:
    """Have the one entry tried at its time."""
    (row,) = await office.outbox()
    office.clock.now = datetime.fromisoformat(row["due_at"])
    await office.tick()
    assert await office.outbox() == []


@pytest.mark.parametrize(("minutes", "ending"), [(59, "sent"), (61, "dlq")])
async def test_an_acknowledgement_has_its_time(
    store: Store, clock: TickingClock, relay: Relay, minutes: int, ending: str
) -> None:
    """One that could not be sent within its time to live is given up, though it was never tried."""
    office = polite(store, clock, relay)
    await office.take_lead()
    await office.tick_at(minutes=minutes)

    assert await office.statuses(ACKNOWLEDGEMENT) == ["pending", ending]
    assert await office.statuses(NOTIFICATION) == ["pending", "sent"]


async def test_greylisting_is_waited_out(office: PostOffice, relay: Relay) -> None:
    """A recipient that is refused for now is not tried before five minutes are over."""
    relay.recipient_answers.append("450 4.2.0 greylisted, come again")
    await office.take_lead()
    await office.tick()
    (row,) = await office.outbox()
    assert due_in(office, row) > timedelta(seconds=299)
    await office.tick_at(seconds=298)
    assert len(relay.tried) == 1
    await office.tick_at(minutes=2)

    assert await office.statuses() == ["pending", "soft_bounced", "sent"]


@pytest.mark.parametrize("answer", ["454 4.7.0 too many", "421 4.7.650 slow down"])
async def test_a_rate_limit_holds_all_mail(office: PostOffice, relay: Relay, answer: str) -> None:
    """The relay is left alone for a minute, by everybody; then the others go first.

    No attempt is used up.
    """
    relay.data_answers.extend(["250 2.0.0 ok", answer])
    for _ in range(3):
        await office.take_lead()
    assert await office.tick() is False

    assert await office.statuses() == ["pending"] * 3 + ["sent", "rate_limited"]
    (state,) = await office.rows(EMAIL_SEND_STATE)
    assert state["retry_after_until"].startswith("2026-06-01T12:01:00")
    assert [(row["attempts"], row["lease"]) for row in await office.outbox()] == [(0, None)] * 2
    await office.tick_at(seconds=59)
    assert len(relay.tried) == 2
    await office.tick_at(seconds=1)
    assert (await office.statuses())[-2:] == ["rate_limited", "sent"]
    await office.tick_at(seconds=30)
    assert (await office.statuses())[-2:] == ["sent", "sent"]


async def test_a_rate_limit_holds_mail_where_no_state_was_laid(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """The row of the state is made where an administrator has deleted it."""
    office = open_office(store, clock, relay)
    await store.run(Delete(EMAIL_SEND_STATE, (Filter("id", "eq", 1),)))
    relay.data_answers.append("454 4.7.0 too many")
    await office.take_lead()
    await office.tick()

    (state,) = await office.rows(EMAIL_SEND_STATE)
    assert state["retry_after_until"].startswith("2026-06-01T12:01:00")
    assert state["batch_size"] == 10


async def test_an_unknown_mailbox_is_suppressed(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """A permanent 5.1.x for the recipient ends mail to the address, and no other."""
    office = polite(store, clock, relay)
    relay.by_recipient[READER] = "550 5.1.1 no such mailbox"
    await office.take_lead()
    await office.tick()

    assert await office.statuses(ACKNOWLEDGEMENT) == ["pending", "bounced"]
    assert await office.statuses(NOTIFICATION) == ["pending", "sent"]
    assert await office.suppressed() == {READER: "bounce"}
    assert await office.outbox() == []
    clock.move(hours=25)
    await office.take_lead(email=READER.upper())
    await office.tick()
    assert (await office.statuses(ACKNOWLEDGEMENT))[-2:] == ["pending", "suppressed"]
    assert relay.tried.count(READER) == 1


async def test_a_bounce_of_a_suppressed_address_is_logged_once_more(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """The address was suppressed in the meantime: the bounce ends the message likewise."""
    office = polite(store, clock, relay)
    relay.by_recipient[READER] = "550 5.1.1 no such mailbox"
    await office.take_lead()

    async def suppress(address: str) -> None:
        if address == READER:
            await office.suppress(READER)

    relay.before_recipient = suppress
    await office.tick()

    assert await office.statuses(ACKNOWLEDGEMENT) == ["pending", "bounced"]
    assert await office.suppressed() == {READER: "unsubscribe"}


@pytest.mark.parametrize("answer", ["554 5.7.1 policy", "552 5.3.4 too large", "550 5.7.26 spf"])
async def test_a_policy_refusal_gives_up_and_suppresses_nobody(
    office: PostOffice, relay: Relay, answer: str
) -> None:
    """A message that the relay will never take is kept, and says nothing of the address."""
    relay.recipient_answers.append(answer)
    await office.take_lead()
    await office.tick()

    assert await office.statuses() == ["pending", "failed", "dlq"]
    assert await office.suppressed() == {}
    (row,) = await office.outbox()
    assert row["dead_at"]
    assert answer[:3] in (await office.log())[-1]["error_message"]


async def test_one_refused_recipient_holds_up_nobody(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """One of ten messages in a connection is refused, and nine arrive."""
    office = polite(store, clock, relay)
    await office.change_state(send_delay_ms=0, batch_size=20)
    relay.by_recipient["reader-3@readers-club.net"] = "550 5.1.1 no such mailbox"
    for number in range(5):
        await office.take_lead(email=f"reader-{number}@readers-club.net")
    await office.tick()

    assert len(relay.taken) == 9
    assert {taken.connection for taken in relay.taken} == {1}
    statuses = await office.statuses()
    assert (statuses.count("sent"), statuses.count("bounced")) == (9, 1)


async def test_a_dropped_connection_costs_one_attempt(office: PostOffice, relay: Relay) -> None:
    """The message that was under way is tried again; those after it were not tried."""
    relay.data_answers.extend(["250 2.0.0 ok", DROP])
    for _ in range(4):
        await office.take_lead()
    assert await office.tick() is False

    assert await office.statuses() == [*["pending"] * 4, "sent", "failed"]
    assert sorted(row["attempts"] for row in await office.outbox()) == [0, 0, 1]
    await office.tick_at(minutes=1)
    assert len(relay.taken) == 4
    assert len({str(taken.message["Message-ID"]) for taken in relay.taken}) == 4


async def test_a_relay_that_is_away_costs_one_attempt_a_turn(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """Nobody listens: of the batch only the first was tried; the others are free for all."""
    office = open_office(store, clock, relay, SMTP_URL=f"smtp://127.0.0.1:{free_port()}")
    for _ in range(3):
        await office.take_lead()
    assert await office.tick() is False

    rows = await office.outbox()
    assert [(row["attempts"], row["lease"], row["claims"]) for row in rows] == [
        (1, None, 0),
        (0, None, 0),
        (0, None, 0),
    ]
    assert await office.statuses() == ["pending"] * 3 + ["failed"]


async def test_a_relay_that_says_nothing_is_given_up_in_time(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """A message that is not answered in time counts as tried."""
    relay.patience = 0.3
    office = open_office(store, clock, relay)
    relay.silent = asyncio.Event()
    await office.take_lead()
    assert await office.tick() is False
    relay.silent.set()

    assert await office.statuses() == ["pending", "failed"]
    (row,) = await office.outbox()
    assert row["attempts"] == 1


async def test_a_wrong_password_pauses_mail(store: Store, clock: TickingClock) -> None:
    """Nothing is tried for five minutes, and no message loses an attempt by it."""
    async with relaying(auth_require_tls=False, authenticator=refuse_login) as strict:
        office = open_office(
            store, clock, strict, SMTP_URL=f"smtp://me:wrong@127.0.0.1:{strict.port}"
        )
        await office.take_lead()
        await office.take_lead()
        assert await office.tick() is False
        await office.tick_at(minutes=4)

    assert await office.statuses() == ["pending", "pending", "failed"]
    rows = await office.outbox()
    assert [(row["attempts"], row["lease"], row["claims"]) for row in rows] == [(0, None, 0)] * 2
    (state,) = await office.rows(EMAIL_SEND_STATE)
    assert state["retry_after_until"].startswith("2026-06-01T12:05:00")
    assert strict.connections == 1


async def test_without_a_relay_queued_mail_waits_for_one(
    office: PostOffice, store: Store, clock: TickingClock, relay: Relay
) -> None:
    """A start without SMTP_URL loses nothing that was queued before; the next with it sends."""
    await office.take_lead()
    bare = open_office(store, clock, None, OWNER_EMAIL="", MAIL_FROM="")
    await bare.tick()
    assert await office.statuses() == ["pending", "failed"]
    assert "SMTP_URL is not set" in (await office.log())[-1]["error_message"]
    await office.tick_at(minutes=1)

    assert len(relay.taken) == 1


@pytest.mark.parametrize("address", [READER, READER.upper()])
async def test_a_suppressed_address_is_not_mailed(
    store: Store, clock: TickingClock, relay: Relay, address: str
) -> None:
    """It is looked at once more at the last moment, in whatever case the address is spelled."""
    office = polite(store, clock, relay)
    await office.take_lead(email=address)
    await office.suppress(READER)
    await office.tick()

    assert await office.statuses(ACKNOWLEDGEMENT) == ["pending", "suppressed"]
    assert relay.recipients == [OWNER]


async def test_a_suppression_that_is_deleted_counts_no_more(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """Mail flows again, though the link to unsubscribe was used."""
    office = polite(store, clock, relay)
    await office.suppress(READER)
    await office.take_lead()
    await office.tick()
    await store.run(Delete(SUPPRESSED_EMAILS, (Filter("email", "eq", READER),)))
    await office.take_lead()
    await office.tick()

    assert await office.statuses(ACKNOWLEDGEMENT) == ["pending", "suppressed", "pending", "sent"]


class BlindStore:
    """A real store that cannot say who is suppressed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.version_is_exact = store.version_is_exact

    async def run(self, *outbox_entries: Query) -> list[QueryResult]:
        """Pass the plans on."""
        if any(
            isinstance(plan, Read) and plan.table is SUPPRESSED_EMAILS for plan in outbox_entries
        ):
            raise Problem("unavailable")
        return await self._store.run(*outbox_entries)

    def version(self) -> int:
        """Pass the question on."""
        return self._store.version()

    async def probe(self) -> None:
        """Pass the question on."""
        await self._store.probe()

    async def scrub(self, *, full: bool = False) -> bool:
        """Pass the wish on."""
        return await self._store.scrub(full=full)

    async def close(self) -> None:
        """Leave closing to the fixture."""


async def test_mail_is_not_sent_when_the_store_is_unreadable(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """If the suppressions cannot be read, nobody is mailed, and the message waits."""
    office = open_office(BlindStore(store), clock, relay)
    await office.take_lead()
    with pytest.raises(Problem):
        await office.tick()

    assert relay.tried == []
    (row,) = await office.outbox()
    assert row["dead_at"] is None
    sighted = open_office(store, clock, relay)
    await sighted.tick_at(seconds=121)
    assert len(relay.taken) == 1


async def test_an_erased_lead_is_not_notified(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """A lead that is gone when its mail's turn comes takes the mail with it."""
    office = polite(store, clock, relay)
    lead = await office.take_lead()
    await office.erase(lead)
    await office.tick()

    assert (await office.statuses())[2:] == ["suppressed", "suppressed"]
    assert {row["error_message"] for row in (await office.log())[2:]} == {"the lead is gone"}
    assert (await office.outbox(), relay.tried) == ([], [])


async def test_a_message_that_cannot_be_composed_is_tried_again(office: PostOffice) -> None:
    """One of a template that this version does not know holds up nobody, and waits for a later."""
    await office.take_lead()
    await office.change_entries(template_name="from_the_future")
    await office.take_lead()
    await office.tick()

    assert sorted(await office.statuses()) == ["failed", "pending", "pending", "sent"]
    (row,) = await office.outbox()
    assert (row["dead_at"], row["attempts"]) == (None, 1)
    await office.change_entries(template_name="lead_notification")  # the next version knows it
    await office.tick_at(seconds=40)
    assert (await office.statuses())[-1] == "sent"
    assert await office.outbox() == []


async def test_a_message_that_nobody_can_compose_is_given_up(office: PostOffice) -> None:
    """After as many attempts as any other, and the log says why."""
    await office.take_lead()
    await office.change_entries(template_name="from_the_future")
    for minutes in (0, 1, 3, 10, 31):
        await office.tick_at(minutes=minutes)

    *_, last = await office.log()
    (row,) = await office.outbox()
    assert (last["status"], row["attempts"]) == ("dlq", 5)
    assert last["error_message"] == "given up at attempt 5: cannot be composed: KeyError"


async def test_no_log_line_names_anybody(
    store: Store,
    clock: TickingClock,
    relay: Relay,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """For any outcome the service's log has ids of mail alone: no address, name or message."""
    caplog.set_level("DEBUG", logger="edge_api")
    office = polite(store, clock, relay)
    answers = [LATER, "454 4.7.0 too many", "550 5.7.1 no", DROP, "250 ok"]
    relay.data_answers.extend(answers)
    for number in range(6):
        await office.take_lead(email=f"reader-{number}@readers-club.net", message="Sesame")
        await office.tick_at(minutes=3)

    assert "mail" in caplog.text
    for word in ("readers-club", "Ann Lee", "Sesame", "journal-keepers", "owner@"):
        assert word not in caplog.text


async def test_a_message_that_was_logged_by_another_is_dropped(office: PostOffice) -> None:
    """Two rows `sent` of one message cannot be; whoever comes second only clears away."""
    await office.take_lead()
    (pending,) = await office.log()
    sent = {**pending, "id": str(uuid4()), "status": "sent"}
    await office.store.run(Insert(EMAIL_SEND_LOG, [sent]))
    await office.tick()

    assert (await office.statuses()).count("sent") == 1
    assert await office.outbox() == []
