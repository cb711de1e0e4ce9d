"""Entries that are stored with a lead: one for each message, or why there is none."""

from datetime import timedelta

import pytest

from edge_api.access.service import AccessDecisions
from edge_api.auth.actor import new_id
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.problems import Problem
from edge_api.db.query import Insert, Read, Store
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from edge_api.db.types import format_instant
from tests.edge.conftest import EdgeMaker
from tests.edge.mail.outbox.post_office import LEAD, OWNER, PostOffice, TickingClock, open_office
from tests.edge.mail.outbox.scripted_relay import Relay

pytestmark = pytest.mark.each_engine

LEADS_PATH = "/api/public/v1/leads"


async def test_a_lead_has_an_entry_and_a_row(office: PostOffice) -> None:
    """A notification of the owner is queued: the log's `message_id` is the entry's id."""
    lead = await office.take_lead()

    (entry,), (row,) = await office.outbox(), await office.log()
    assert (entry["subject_id"], entry["recipient_email"]) == (lead["id"], OWNER)
    assert (row["message_id"], row["status"]) == (entry["id"], "pending")
    assert (row["template_name"], row["recipient_email"]) == ("lead_notification", OWNER)


async def test_spam_sends_neither_notice_nor_thanks(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """A lead that fell into the trap is in the day's list for the owner, and in no other mail."""
    office = open_office(store, clock, relay, ACKNOWLEDGE_LEADS="true")
    await office.take_lead(status="spam")

    assert [row["template_name"] for row in await office.outbox()] == ["hidden_leads"]
    assert [row["template_name"] for row in await office.log()] == ["hidden_leads"]


@pytest.mark.parametrize(
    ("settings", "recipient", "reason"),
    [
        ({}, OWNER, "mail is not configured: SMTP_URL is not set"),
        ({"OWNER_EMAIL": ""}, "owner", "mail is not configured: SMTP_URL is not set"),
    ],
)
async def test_without_a_relay_the_log_says_why(
    store: Store, clock: TickingClock, settings: dict[str, str], recipient: str, reason: str
) -> None:
    """Nothing queues for ever: there is a row of the log and no entry."""
    office = open_office(store, clock, None, **settings)
    await office.take_lead()

    (row,) = await office.log()
    assert (row["status"], row["recipient_email"]) == ("suppressed", recipient)
    assert row["error_message"] == reason
    assert await office.outbox() == []


async def test_without_an_owner_the_log_says_why(
    store: Store, clock: TickingClock, relay: Relay
) -> None:
    """A relay and nobody to tell: the row says what is missing."""
    office = open_office(store, clock, relay, OWNER_EMAIL="")
    await office.take_lead()

    (row,) = await office.log()
    assert (row["status"], row["recipient_email"]) == ("suppressed", "owner")
    assert row["error_message"] == "OWNER_EMAIL is not set"


@pytest.mark.parametrize("address", ["a@lab.test", "a@host.invalid", "a@example.org"])
async def test_mail_to_reserved_domains_is_not_sent(
    store: Store, clock: TickingClock, relay: Relay, address: str
) -> None:
    """A reserved domain receives no mail: the owner is notified, the sender is not thanked."""
    office = open_office(store, clock, relay, ACKNOWLEDGE_LEADS="true")
    await office.take_lead(email=address)

    assert await office.statuses("acknowledgement") == ["suppressed"]
    assert await office.statuses("notification") == ["pending"]
    assert len(await office.outbox()) == 1


async def test_a_lead_that_is_not_stored_is_not_notified(office: PostOffice, store: Store) -> None:
    """Lead, entry and row are one transaction."""
    lead = await office.take_lead()
    outbox_entries = office.mailing.outbox.outbox_entries(lead)
    with pytest.raises(Problem):
        await store.run(*outbox_entries, Insert(LEADS, [lead]))

    assert (len(await office.outbox()), len(await office.log())) == (1, 1)


async def test_a_replayed_lead_is_notified_once(make_edge: EdgeMaker, relay: Relay) -> None:
    """The same Idempotency-Key again is the same lead, and no second message."""
    settings = {"SMTP_URL": f"smtp://127.0.0.1:{relay.port}", "OWNER_EMAIL": OWNER}
    headers = {"Idempotency-Key": "once"}
    async with make_edge(**settings, MAIL_DISPATCHER="off") as edge:
        for _ in range(2):
            async with edge.ask("POST", LEADS_PATH, json=LEAD, headers=headers) as answer:
                assert answer.status == 201
        (result,) = await edge.service.store.run(Read(EMAIL_SEND_LOG))

    assert [row["status"] for row in result.rows] == ["pending"]


async def test_rows_that_administrators_write_send_no_mail(
    make_edge: EdgeMaker, relay: Relay
) -> None:
    """A lead that comes in through the administrative interface is known already."""
    settings = {"SMTP_URL": f"smtp://127.0.0.1:{relay.port}", "OWNER_EMAIL": OWNER}
    async with make_edge(**settings, MAIL_DISPATCHER="off") as edge:
        key = await edge.key()
        path = "/api/public/v1/admin/leads"
        async with edge.ask("POST", path, key, json=LEAD) as answer:
            assert answer.status == 201
        (result,) = await edge.service.store.run(Read(EMAIL_SEND_LOG))

    assert result.rows == []


async def ask_for_access(office: PostOffice, email: str | None) -> str:
    """Store a request for access and return its id."""
    now = office.clock()
    given = {
        "type": "api_key",
        "name": "Ann",
        "email": email,
        "purpose": "to read",
        "scopes": "posts:read",
        "claim_digest": new_id(now).ljust(64, "0"),
        "expires_at": format_instant(now + timedelta(days=14)),
    }
    row = ACCESS_REQUESTS.new_row(given, format_instant(now), lambda: new_id(now))
    await office.store.run(Insert(ACCESS_REQUESTS, [row]))
    return str(row["id"])


@pytest.mark.parametrize(("verb", "said"), [("approve", "approved"), ("deny", "declined")])
async def test_a_decision_is_mailed_to_the_requester(
    office: PostOffice, relay: Relay, verb: str, said: str
) -> None:
    """A decision goes by mail, from the urgent queue, in one transaction with the decision."""
    decisions = AccessDecisions(office.store, office.clock, office.mailing.outbox)
    request = await ask_for_access(office, LEAD["email"])
    await getattr(decisions, verb)(request)
    (entry,) = await office.outbox()
    assert (entry["queue"], entry["subject_id"]) == ("auth", request)
    await office.tick()

    (taken,) = relay.taken
    assert taken.recipient == LEAD["email"]
    assert said in taken.message["Subject"]
    assert "List-Unsubscribe" not in taken.message


async def test_a_decision_that_cannot_be_mailed_is_stored(
    office: PostOffice, store: Store, clock: TickingClock
) -> None:
    """Without an address, and without a relay, there is nothing to send."""
    decisions = AccessDecisions(store, clock, office.mailing.outbox)
    await decisions.deny(await ask_for_access(office, None))
    bare = AccessDecisions(store, clock, open_office(store, clock, None).mailing.outbox)
    await bare.deny(await ask_for_access(office, LEAD["email"]))

    assert (await office.outbox(), await office.log()) == ([], [])


async def test_mail_about_a_decision_expires_after_fifteen_minutes(
    office: PostOffice, relay: Relay
) -> None:
    """Mail about access has fifteen minutes."""
    decisions = AccessDecisions(office.store, office.clock, office.mailing.outbox)
    await decisions.deny(await ask_for_access(office, LEAD["email"]))
    await office.tick_at(minutes=16)

    assert (await office.statuses(), relay.tried) == (["pending", "dlq"], [])
    assert (await office.log())[-1]["error_message"] == "not sent within 15 minutes"
