"""Reports of letters that came back by mail (RFC 3464): they end subscriptions as a relay does."""

from dataclasses import replace

import pytest

from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.table import Row
from edge_api.mail.incoming import IncomingMail
from edge_api.mail.suppressions import Feedback
from tests.edge.mail.incoming.correspondence import report
from tests.edge.mail.outbox.post_office import SECRET
from tests.edge.newsletter.mailing.conftest import Newsroom

ANN = "ann@readers-club.net"


async def read_report(newsroom: Newsroom, status: str, site_url: str) -> tuple[bool, Row]:
    """Mail a letter, take a report of it; return whether it was ours, and its subscriber."""
    await newsroom.subscribe(ANN)
    await newsroom.start("one")
    await newsroom.send_all()
    (letter,) = (each.message for each in newsroom.relay.taken if each.recipient == ANN)
    store, clock = newsroom.office.store, newsroom.office.clock
    settings = replace(newsroom.settings, site_url=site_url)
    incoming = IncomingMail(settings, store, clock, Feedback(store, clock, SECRET))
    is_ours = await incoming.receive(report(letter["Message-ID"], status))
    (row,) = await newsroom.office.rows(SUBSCRIBERS)
    return is_ours, row


@pytest.mark.parametrize("site_url", ["https://journal.example", "https://new.example"])
@pytest.mark.parametrize(("status", "outcome"), [("5.1.1", "bounced"), ("5.7.1", "active")])
async def test_a_letter_that_came_back(
    newsroom: Newsroom, status: str, outcome: str, site_url: str
) -> None:
    """Also where the journal has another address since."""
    is_ours, row = await read_report(newsroom, status, site_url)
    assert (is_ours, row["status"]) == (True, outcome)
