"""Reports of mail that came back (RFC 3464): what the log says of a message, and of its address."""

from typing import Any

import pytest

from edge_api.db.query import Insert, Order, Read, Store, read_all
from edge_api.db.tables import EMAIL_SEND_LOG, SUPPRESSED_EMAILS
from tests.edge.mail.incoming.conftest import Folder, Reader
from tests.edge.mail.incoming.correspondence import (
    HOST,
    answer_lead,
    new_row,
    received,
    report,
    status_of,
    until_read,
)

pytestmark = pytest.mark.size("test")


async def outcome(store: Store) -> tuple[list[Any], list[Any]]:
    """Return what the log has of addresses, oldest first, and which are suppressed."""
    log = await read_all(store, Read(EMAIL_SEND_LOG, order=(Order("created_at"),)))
    suppressed = await read_all(store, Read(SUPPRESSED_EMAILS))
    return (
        [(row["recipient_email"], row["status"]) for row in log],
        [(row["email"], row["reason"]) for row in suppressed],
    )


ID = "0199a5b2-7c3e-7d10-8a44-5f0c2b9e6d71"
SENT = ("ann@readers-club.net", "sent")


@pytest.mark.parametrize("status", ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"])
async def test_an_address_that_is_gone_is_suppressed(
    status: str, reading: Reader, folder: Folder
) -> None:
    """Ours, whichever the report names; once, however often it is reported."""
    async with reading() as edge:
        store = edge.service.store
        lead, answer = await answer_lead(store)
        bounce = report(answer, status, recipient="owner@journal.test")
        folder.put(bounce, bounce)
        await until_read(store, 2)

        assert await outcome(store) == (
            [SENT, ("ann@readers-club.net", "bounced")],
            [("ann@readers-club.net", "bounce")],
        )
        assert await received(store) == []
        assert await status_of(store, lead) == "contacted"
    assert folder.flags() == ["\\Seen", "\\Seen"]


@pytest.mark.parametrize("status", ["5.1.0", "5.1.8", "5.7.1", "5.2.2", "5.1.11"])
async def test_another_failure_is_logged_alone(
    status: str, reading: Reader, folder: Folder
) -> None:
    """It may be about us, or about one message."""
    async with reading() as edge:
        _, answer = await answer_lead(edge.service.store)
        folder.put(report(answer, status))
        await until_read(edge.service.store, 1)

        assert await outcome(edge.service.store) == (
            [SENT, ("ann@readers-club.net", "soft_bounced")],
            [],
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"action": "delayed", "status": "4.4.1"},
        {"action": "delayed"},
        {"action": "delivered", "status": "2.0.0"},
        {"status": "nonsense"},
        {"message_id": f"<{ID}@{HOST}>"},
        {"message_id": "<1@elsewhere.net>"},
        {"message_id": ""},
    ],
)
async def test_a_report_without_a_failure_stores_nothing(
    changes: dict[str, str], reading: Reader, folder: Folder
) -> None:
    """It stays in the mailbox, unread."""
    async with reading() as edge:
        _, answer = await answer_lead(edge.service.store)
        folder.put(report(**{"message_id": answer, **changes}))
        await until_read(edge.service.store, 1)

        assert await outcome(edge.service.store) == ([SENT], [])
    assert folder.flags() == [""]


async def test_nobody_ends_the_mail_of_the_owner(reading: Reader, folder: Folder) -> None:
    """Anybody who gets an answer to a notice from a mail program knows its Message-ID."""
    async with reading() as edge:
        store, about = edge.service.store, {"template_name": "lead_notification", "status": "sent"}
        notice = new_row(EMAIL_SEND_LOG, **about, message_id=ID, recipient_email="o@journal.test")
        await store.run(Insert(EMAIL_SEND_LOG, [notice]))
        folder.put(report(f"<{ID}@{HOST}>"))
        await until_read(store, 1)

        assert await outcome(store) == ([("o@journal.test", "sent")], [])
    assert folder.flags() == [""]


async def test_the_whole_message_may_be_returned(reading: Reader, folder: Folder) -> None:
    """As many servers do, instead of its headers."""
    async with reading() as edge:
        _, answer = await answer_lead(edge.service.store)
        folder.put(report(answer, returned="message/rfc822"))
        await until_read(edge.service.store, 1)

        assert (await outcome(edge.service.store))[1] == [("ann@readers-club.net", "bounce")]
