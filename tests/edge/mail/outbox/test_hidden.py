"""The day's list of hidden leads: one message, with each of them once, and nothing else."""

import pytest

from edge_api.db.query import Delete, Filter, Update
from edge_api.db.tables import LEADS
from tests.edge.mail.outbox.post_office import OWNER, PostOffice
from tests.edge.mail.outbox.scripted_relay import Relay

pytestmark = pytest.mark.each_engine
HIDDEN = {"status": "spam", "spam_score": 9}


def said(relay: Relay) -> list[str]:
    """Return the text of each message that was taken."""
    parts = [taken.message.get_body(("plain",)) for taken in relay.taken]
    return [part.get_content() for part in parts if part is not None]


async def test_hidden_leads_are_one_message_a_day(office: PostOffice, relay: Relay) -> None:
    """With name and 100 characters each, and a link to the desk; those of the next day are next."""
    await office.take_lead(**HIDDEN, name="First", message="x" * 150)
    await office.take_lead(**HIDDEN, name="Second", message="Buy\nnow")
    await office.tick()
    assert relay.recipients == []

    await office.tick_at(hours=24)
    assert relay.recipients == [OWNER]
    (text,) = said(relay)
    assert relay.taken[0].message["Subject"] == "2 enquiries look like spam"
    assert f"> {'x' * 100}..." in text
    assert "x" * 101 not in text
    assert "> Buy now" in text
    assert "/desk/leads/?status=spam" in text

    await office.take_lead(**HIDDEN, name="Third")
    await office.tick_at(hours=24)
    _, next_day = said(relay)
    assert ("Third" in next_day, "First" in next_day, "Second" in next_day) == (True, False, False)
    assert await office.statuses("hidden_leads") == ["pending", "sent"] * 2


async def test_one_that_comes_while_the_list_is_sent_is_on_the_next(
    office: PostOffice, relay: Relay
) -> None:
    """No lead is on none, whether it came before the list was read or after it."""
    await office.take_lead(**HIDDEN, name="First")

    async def come_late(_recipient: str) -> None:
        relay.before_recipient = None
        await office.take_lead(**HIDDEN, name="Late")

    relay.before_recipient = come_late  # while the relay takes the list
    await office.tick_at(hours=24)
    await office.tick_at(hours=24)

    assert ["Late" in text for text in said(relay)] == [False, True]


async def test_only_hidden_leads_are_listed(office: PostOffice, relay: Relay) -> None:
    """Not one that was taken back, was erased, or that the owner called spam; of none, nothing."""
    for name in ("Back", "Erased"):
        await office.take_lead(**HIDDEN, name=name)
    await office.take_lead(name="Marked by hand")
    where = {name: (Filter("name", "eq", name),) for name in ("Back", "Erased", "Marked by hand")}
    await office.store.run(
        Update(LEADS, {"status": "new", "spam_score": 0}, where["Back"]),
        Delete(LEADS, where["Erased"]),
        Update(LEADS, {"status": "spam"}, where["Marked by hand"]),
    )
    await office.tick_at(hours=24)

    assert "hidden_leads" not in [taken.message["Subject"] for taken in relay.taken]
    assert await office.statuses("hidden_leads") == ["pending", "suppressed"]


async def test_a_thousand_hidden_leads_are_one_entry(office: PostOffice, relay: Relay) -> None:
    """The message lists a hundred and says how many more there are."""
    for number in range(120):
        await office.take_lead(**HIDDEN, name=f"Bot {number}")
    assert await office.statuses("hidden_leads") == ["pending"]
    await office.tick_at(hours=24)

    (text,) = said(relay)
    assert text.count("Bot ") == 100
    assert "And 20 more." in text
