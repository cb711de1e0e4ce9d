"""Many notices to the owner at once: the first are sent, the others become one message."""

import pytest

from edge_api.db.internal_tables import ACCESS_REQUESTS, DESK_LINKS, EMAIL_OUTBOX
from edge_api.db.query import Insert
from edge_api.mail.messages import SIGN_IN_LINK
from edge_api.mail.queue import BURST
from tests.edge.mail.outbox.post_office import PostOffice
from tests.edge.mail.outbox.scripted_relay import Relay
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.each_engine


async def drain(office: PostOffice) -> None:
    """Let the dispatcher send all that is due."""
    while await office.tick():
        pass


async def test_a_burst_becomes_one_message(office: PostOffice, relay: Relay) -> None:
    """The first 20 of 50 leads are notified one by one, and 30 in one message; the log has all."""
    for _ in range(50):
        await office.take_lead()
        office.clock.move(seconds=2)
    await drain(office)
    assert len(relay.taken) == BURST
    office.clock.move(minutes=11)
    await drain(office)

    assert len(relay.taken) == BURST + 1
    assert str(relay.taken[-1].message["Subject"]) == "30 more enquiries"
    assert "/desk/leads/" in relay.taken[-1].message.as_string()
    assert await office.outbox() == []
    statuses = await office.statuses("owner_summary")
    assert sorted(statuses) == ["pending"] * 30 + ["sent"] + ["suppressed"] * 29


async def test_the_next_burst_is_counted_anew(office: PostOffice, relay: Relay) -> None:
    """No lead is notified twice, and after a quiet time notices are single again."""
    for _ in range(25):
        await office.take_lead()
    await drain(office)
    office.clock.move(minutes=11)
    await drain(office)
    for _ in range(23):
        await office.take_lead()
    await drain(office)
    office.clock.move(minutes=11)
    await drain(office)

    subjects = [str(each.message["Subject"]) for each in relay.taken]
    assert subjects.count("5 more enquiries") == 1
    assert subjects.count("3 more enquiries") == 1
    assert len(subjects) == 2 * BURST + 2


async def test_a_request_for_access_is_notified_and_a_honeypot_is_not(
    office: PostOffice, relay: Relay
) -> None:
    """The owner learns who waits for a decision, and where to decide."""
    for status in ("pending", "denied"):
        given = {"type": "api_key", "name": "Ann Lee", "purpose": "Read.", "scopes": "posts:read"}
        expiry = "2099-01-01T00:00:00.000000Z"
        row = make_row(
            ACCESS_REQUESTS,
            {
                **given,
                "claim_digest": status.rjust(64, "0"),
                "expires_at": expiry,
                "status": status,
            },
        )
        await office.store.run(
            Insert(ACCESS_REQUESTS, [row]), *office.mailing.outbox.request_entries(row)
        )
    await drain(office)

    (sent,) = relay.taken
    assert str(sent.message["Subject"]) == "Ann Lee asks for access"
    assert "/desk/access/" in sent.message.as_string()


async def test_a_link_to_the_desk_is_made_when_it_is_sent(office: PostOffice, relay: Relay) -> None:
    """No table has its token; a link that was used meanwhile is not sent."""
    links = office.mailing.desk_links
    for _ in range(2):
        row = links.new_row()
        await office.store.run(
            *links.store_queries(row, office.mailing.outbox.owner_entries(SIGN_IN_LINK, row))
        )
    assert await links.consume(links.address(row["id"]).rstrip("/").rpartition("/")[2])
    assert not await links.consume(links.address(row["id"]).rstrip("/").rpartition("/")[2])
    everything = str([await office.rows(EMAIL_OUTBOX), await office.rows(DESK_LINKS)])
    await drain(office)

    (sent,) = relay.taken
    body = sent.message.get_body(("plain",))
    assert body is not None
    text = body.get_content()
    token = text.partition("/desk/link/")[2].partition("/")[0]
    assert token.partition(".")[2] not in everything
    assert await links.is_token_usable(token)
    assert not await links.is_token_usable(f"{token[:-1]}x")
    assert [row["status"] for row in await office.log()][-2:] != ["sent", "sent"]
    office.clock.move(minutes=16)
    assert not await links.consume(token)
