"""Letters of a mailing: who gets them, in which order, and what stops them."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from edge_api.auth.actor import OPERATOR
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.problems import Problem
from edge_api.db.query import Delete, Filter
from edge_api.db.tables import EMAIL_SEND_LOG
from edge_api.db.types import format_instant
from edge_api.mail.outbox_admin import OutboxAdmin
from edge_api.newsletter.sending import Letters
from edge_api.newsletter.subscribers import Subscribers
from tests.edge.engines import Opener
from tests.edge.mail.outbox.post_office import OWNER, SECRET, TickingClock
from tests.edge.mail.outbox.scripted_relay import Relay
from tests.edge.newsletter.mailing.conftest import Newsroom, open_newsroom


def readers(number: int) -> list[str]:
    """Return addresses of readers."""
    return [f"reader-{each:04}@readers-club.net" for each in range(number)]


async def test_each_active_subscriber_gets_one_letter_after_the_delay(newsroom: Newsroom) -> None:
    """With the unsubscribe link of the subscriber, and a Message-ID of mailing and host."""
    people = readers(250)
    rows = await newsroom.subscribe(*people)
    for status in ("pending", "ended", "bounced"):
        await newsroom.subscribe(f"{status}@readers-club.net", status=status)
    await newsroom.subscribe("suppressed@readers-club.net")
    await newsroom.office.suppress("suppressed@readers-club.net")
    (mailing,) = await newsroom.start("one")
    newsroom.office.clock.move(seconds=-30)
    await newsroom.letters.queue(newsroom.mailings)
    assert await newsroom.office.rows(EMAIL_OUTBOX) == []

    await newsroom.send_all(120)

    assert newsroom.readers == people
    taken = {each.recipient: each for each in newsroom.relay.taken}
    for row in rows:
        letter = taken[row["email"]]
        assert letter.sender == "post@letters-of-it.net"
        assert row["token"] in letter.message["List-Unsubscribe"]
        name, _, host = letter.message["Message-ID"].strip("<>").partition("@")
        assert (name[:13], host) == (mailing["id"][:13], "journal.example")
    (done,) = await newsroom.found()
    assert (done["recipients"], bool(done["queued_at"])) == (251, True)
    assert await newsroom.mailings.count(mailing["id"]) == {
        "sent": 250,
        "suppressed": 1,
        "bounced": 0,
        "dlq": 0,
        "waiting": 0,
    }


async def test_letters_are_due_one_after_another(newsroom: Newsroom) -> None:
    """Five a second, also those of a second mailing; no more are queued than for 20 seconds."""
    await newsroom.subscribe(*readers(130))
    await newsroom.start("one", "two")
    await newsroom.letters.queue(newsroom.mailings)
    await newsroom.letters.queue(newsroom.mailings)
    assert len(await newsroom.office.rows(EMAIL_OUTBOX)) == 100
    for _ in range(60):
        newsroom.office.clock.move(seconds=1)
        await newsroom.letters.queue(newsroom.mailings)
        while await newsroom.office.tick():
            pass
    due = [datetime.fromisoformat(each["due_at"]) for each in await newsroom.office.outbox()]
    due.sort()
    assert 190 <= len(newsroom.readers) <= 5 * 61
    assert all(b - a >= timedelta(seconds=0.19) for a, b in pairwise(due))


async def test_nobody_who_has_left_meanwhile_gets_a_letter(newsroom: Newsroom) -> None:
    """Ended, bounced, suppressed, erased, and erased and come back: all after they were queued."""
    names = ["ended", "bounced", "suppressed", "erased", "back", "stays"]
    people = {name: f"{name}@readers-club.net" for name in names}
    await newsroom.subscribe(*people.values())
    (mailing,) = await newsroom.start("one")
    await newsroom.letters.queue(newsroom.mailings)
    assert len(await newsroom.office.outbox()) == len(names)
    await newsroom.change(people["ended"], status="ended")
    await newsroom.change(people["bounced"], status="bounced")
    await newsroom.office.suppress(people["suppressed"])
    gone = Filter("email", "in", (people["erased"], people["back"]))
    await newsroom.office.store.run(Delete(SUBSCRIBERS, (gone,)))
    await newsroom.subscribe(people["back"])

    await newsroom.send_all()

    assert newsroom.readers == [people["stays"]]
    assert (await newsroom.mailings.count(mailing["id"]))["suppressed"] == 5


async def test_whoever_comes_within_a_mailing_gets_no_letter_of_it(newsroom: Newsroom) -> None:
    """By an import, or by confirming at last; they do once the owner has pressed again."""
    people = readers(150)
    await newsroom.subscribe("late@readers-club.net", status="pending")
    await newsroom.subscribe(*people)
    await newsroom.start("one")
    now = format_instant(newsroom.office.clock())
    await newsroom.change("late@readers-club.net", status="active", confirmed_at=now)
    await newsroom.send_all(4)
    newcomers = ["new-0@readers-club.net", "new-1@readers-club.net"]
    await newsroom.subscribe(*newcomers)
    year_ago = format_instant(newsroom.office.clock() - timedelta(days=365))
    await newsroom.change(newcomers[0], confirmed_at=year_ago)
    await newsroom.send_all(60)
    assert sorted(newsroom.readers) == people

    await newsroom.place("one", "two")
    mailing = (await newsroom.found())[1]
    await newsroom.mailings.hold(mailing["id"], OPERATOR)
    await newsroom.subscribe("new-2@readers-club.net")
    newsroom.office.clock.move(seconds=1)
    await newsroom.mailings.resume(mailing["id"], OPERATOR)
    newsroom.office.clock.move(minutes=10)
    newsroom.relay.taken.clear()
    await newsroom.send_all(60)
    expected = ["late@readers-club.net", *people, *newcomers, "new-2@readers-club.net"]
    assert sorted(newsroom.readers) == sorted(expected)


async def test_a_withdrawn_post_ends_its_mailing(newsroom: Newsroom) -> None:
    """What is queued is not sent; a renamed one goes on."""
    await newsroom.subscribe(*readers(300))
    await newsroom.start("one", "two")
    await newsroom.send_all(3)
    sent = len(newsroom.readers)
    await newsroom.place("renamed", renamed={"two": "renamed"})
    await newsroom.send_all(120)

    ends = {row["slug"]: row["ended_for"] for row in await newsroom.found()}
    assert ends == {"one": "the post was withdrawn", "two": None}
    assert len(newsroom.readers) == sent + 300
    assert await newsroom.office.outbox() == []


async def test_a_post_that_is_withdrawn_when_all_is_queued_ends_its_mailing(
    newsroom: Newsroom,
) -> None:
    """It is said why, and how many have got it."""
    await newsroom.subscribe(*readers(30))
    await newsroom.start("one")
    await newsroom.send_all(3)
    (row,) = await newsroom.found()
    assert row["queued_at"]
    await newsroom.place("other")
    await newsroom.send_all(5)
    told = (await newsroom.mailings.recent(Filter("slug", "eq", "one")))[0]
    assert (told["state"], told["ended_for"]) == ("ended", "the post was withdrawn")
    assert 0 < told["sent"] == len(newsroom.readers) < 30


async def test_a_held_mailing_rests_until_it_is_resumed(newsroom: Newsroom) -> None:
    """Also the letters that are queued; none is lost, none goes twice, and none gets too old."""
    people = readers(150)
    await newsroom.subscribe(*people)
    (mailing,) = await newsroom.start("one")
    await newsroom.send_all(4)
    await newsroom.mailings.hold(mailing["id"], OPERATOR)
    sent = len(newsroom.readers)
    assert 0 < sent < 100
    await OutboxAdmin(newsroom.office.store, newsroom.office.clock).make_all_due()
    newsroom.office.clock.move(days=10)
    await newsroom.send_all(5)
    assert len(newsroom.readers) == sent

    await newsroom.mailings.resume(mailing["id"], OPERATOR)
    await newsroom.send_all(60)
    assert sorted(newsroom.readers) == people


async def test_a_letter_that_was_claimed_as_the_mailing_was_held_is_put_off(
    newsroom: Newsroom,
) -> None:
    """It is read again before it is sent."""
    await newsroom.subscribe(*readers(8))
    (mailing,) = await newsroom.start("one")
    await newsroom.letters.queue(newsroom.mailings)
    newsroom.office.clock.move(seconds=5)

    async def hold(_address: str) -> None:
        newsroom.relay.before_recipient = None
        await newsroom.mailings.hold(mailing["id"], OPERATOR)

    newsroom.relay.before_recipient = hold
    await newsroom.send_all(5)
    assert len(newsroom.readers) == 1
    await newsroom.mailings.resume(mailing["id"], OPERATOR)
    await newsroom.send_all(5)
    assert sorted(newsroom.readers) == readers(8)


async def test_a_mailing_of_which_much_is_refused_is_held(newsroom: Newsroom) -> None:
    """More than one in twenty, of twenty at least; once resumed it goes on."""
    people = readers(100)
    await newsroom.subscribe(*people)
    newsroom.relay.by_recipient = dict.fromkeys(people[:3], "550 5.7.1 not from you")
    await newsroom.start("one")
    await newsroom.send_all(30)
    (held,) = await newsroom.found()
    assert " letters were refused; the last was given up at attempt 1: " in held["held_for"]
    assert "550 5.7.1" in held["held_for"]
    assert len(newsroom.readers) < 60
    (notice,) = (each for each in newsroom.relay.taken if "Held: " in each.message["Subject"])
    assert (notice.recipient, "550 5.7.1" in str(notice.message)) == (OWNER, True)
    check = await newsroom.mailings.check()
    assert check
    assert "a mailing is held: python -m edge_api newsletter status says why" in check.message

    await newsroom.mailings.release("one", OPERATOR)
    assert await newsroom.mailings.check() is None
    await newsroom.send_all(60)
    assert sorted(newsroom.readers) == people[3:]
    await OutboxAdmin(newsroom.office.store, newsroom.office.clock).retry()
    await newsroom.send_all(2)
    (told,) = await newsroom.mailings.recent()
    assert [told[each] for each in ("state", "sent", "dlq", "waiting")] == ["sent", 97, 3, 0]


async def test_refusals_before_a_release_count_no_more(newsroom: Newsroom) -> None:
    """The owner who ends a held mailing and releases it again has seen them."""
    people = readers(100)
    await newsroom.subscribe(*people)
    newsroom.relay.by_recipient = dict.fromkeys(people[:3], "550 5.7.1 not from you")
    (mailing,) = await newsroom.start("one")
    await newsroom.send_all(30)
    await newsroom.mailings.skip(mailing["id"], OPERATOR)
    await newsroom.mailings.release("one", OPERATOR)
    newsroom.office.clock.move(minutes=10)
    await newsroom.send_all(60)

    (released,) = await newsroom.found()
    assert released["held_for"] is None
    assert sorted(newsroom.readers) == people[3:]


async def test_two_edges_queue_nobody_twice_and_skip_nobody(
    newsroom: Newsroom, open_another: Opener
) -> None:
    """They work at the same time, each on its own store."""
    people = readers(240)
    await newsroom.subscribe(*people)
    await newsroom.start("one")
    other = Letters(newsroom.settings, await open_another(), newsroom.office.clock)
    for _ in range(60):
        newsroom.office.clock.move(seconds=2)
        await asyncio.gather(
            newsroom.letters.queue(newsroom.mailings), other.queue(newsroom.mailings)
        )
        while await newsroom.office.tick():
            pass
    assert sorted(newsroom.readers) == people


async def test_another_message_waits_for_one_letter_at_most(newsroom: Newsroom) -> None:
    """A lead's notification goes between two letters of a batch that is claimed already."""
    await newsroom.subscribe(*readers(10))
    await newsroom.start("one")
    await newsroom.letters.queue(newsroom.mailings)
    newsroom.office.clock.move(seconds=5)

    async def write_in(_address: str) -> None:
        newsroom.relay.before_recipient = None
        await newsroom.office.take_lead()

    newsroom.relay.before_recipient = write_in
    before = len(newsroom.relay.taken)
    await newsroom.send_all(5)

    kinds = [each.recipient == OWNER for each in newsroom.relay.taken[before:]]
    assert kinds == [False, True, *[False] * 9]


async def test_a_relay_that_is_away_for_a_day_delays_and_loses_nothing(
    newsroom: Newsroom, relay: Relay
) -> None:
    """421 in the middle too; nobody gets two letters."""
    people = readers(60)
    await newsroom.subscribe(*people)
    await newsroom.start("one")
    relay.recipient_answers.extend(["250 2.1.5 ok", "421 4.3.2 closing", "421 4.7.0 slow down"])
    await newsroom.send_all(3)
    relay.by_recipient = dict.fromkeys(people, "451 4.3.0 away")
    for _ in range(24):
        newsroom.office.clock.move(hours=1)
        await newsroom.send_all(2)
    relay.by_recipient = {}
    for _ in range(3):
        newsroom.office.clock.move(hours=1)
        await newsroom.send_all(10)
    assert sorted(newsroom.readers) == people


async def test_the_newsletter_switched_off_sends_nothing(
    newsroom: Newsroom, clock: TickingClock, relay: Relay
) -> None:
    """What went is held, also what was queued: switched on again, nothing goes without a press."""
    await newsroom.subscribe(*readers(3))
    await newsroom.start("one")
    await newsroom.letters.queue(newsroom.mailings)
    off = await open_newsroom(
        newsroom.folder, newsroom.office.store, clock, relay, NEWSLETTER="off"
    )
    await off.send_all(5)
    letters = [each for each in await off.office.outbox() if each["queue"] == "newsletter"]
    assert (off.readers, len(letters)) == ([], 3)
    (held,) = await off.found()
    assert held["held_for"] == "NEWSLETTER was switched off"
    for press in (off.mailings.resume(held["id"], OPERATOR), off.mailings.release("one", OPERATOR)):
        with pytest.raises(Problem, match="NEWSLETTER is off"):
            await press
    clock.move(minutes=5)
    await newsroom.send_all(5)
    assert newsroom.readers == []
    await newsroom.mailings.resume(held["id"], OPERATOR)
    await newsroom.send_all(5)
    assert sorted(newsroom.readers) == readers(3)


async def test_a_released_mailing_that_had_ended_reaches_only_those_without_it(
    newsroom: Newsroom,
) -> None:
    """The log says who has it."""
    people = readers(120)
    await newsroom.subscribe(*people)
    (mailing,) = await newsroom.start("one")
    await newsroom.send_all(5)
    await newsroom.mailings.skip(mailing["id"], OPERATOR)
    assert 0 < len(newsroom.readers) < 120
    await newsroom.mailings.release("one", OPERATOR)
    newsroom.office.clock.move(minutes=10)
    await newsroom.send_all(60)
    assert sorted(newsroom.readers) == people


async def test_a_mailing_goes_on_where_it_ended_once_the_log_has_forgotten_it(
    newsroom: Newsroom,
) -> None:
    """Nobody gets it twice, after months either."""
    people = readers(120)
    await newsroom.subscribe(*people)
    (mailing,) = await newsroom.start("one")
    await newsroom.send_all(5)
    await newsroom.mailings.skip(mailing["id"], OPERATOR)
    newsroom.office.clock.move(days=91)
    await newsroom.office.store.run(Delete(EMAIL_SEND_LOG, (Filter("status", "eq", "sent"),)))
    newsroom.relay.taken.clear()
    await newsroom.test_letter()
    await newsroom.mailings.release("one", OPERATOR)
    newsroom.office.clock.move(minutes=10)
    await newsroom.send_all(60)
    assert newsroom.readers == people[100:]


async def test_an_address_of_the_site_that_changed_in_the_middle(
    newsroom: Newsroom, clock: TickingClock, relay: Relay
) -> None:
    """Links lead to the new one; Message-IDs keep the old host, so that none comes twice."""
    people = readers(120)
    await newsroom.subscribe(*people)
    await newsroom.start("one")
    await newsroom.send_all(5)
    moved = await open_newsroom(
        newsroom.folder, newsroom.office.store, clock, relay, SITE_URL="https://new.example"
    )
    before = len(newsroom.readers)
    await moved.send_all(60)
    assert sorted(moved.readers) == people
    letters = [each.message for each in relay.taken if each.recipient != OWNER]
    assert {each["Message-ID"].strip("<>").rpartition("@")[2] for each in letters} == {
        "journal.example"
    }
    assert all("<https://new.example/" in each["List-Unsubscribe"] for each in letters[before:])


async def test_a_confirmation_comes_from_the_newsletter(newsroom: Newsroom) -> None:
    """Its envelope has the domain of its sender, for which SPF speaks."""
    office, wish = newsroom.office, {"language": "", "source": "/", "consent": "New posts by mail"}
    subscribers = Subscribers(office.store, office.clock, SECRET, office.mailing.outbox)
    await subscribers.ask({**wish, "email": "ann@readers-club.net"})
    await office.tick()
    (letter,) = newsroom.relay.taken
    assert "post@letters-of-it.net" in letter.message["From"]
    assert letter.sender == "post@letters-of-it.net"


async def test_no_confirmation_is_sent_once_the_newsletter_is_switched_off(
    newsroom: Newsroom, clock: TickingClock, relay: Relay
) -> None:
    """Its link would lead nowhere, and an owner may switch it off since strangers ask for many."""
    office = newsroom.office
    subscribers = Subscribers(office.store, office.clock, SECRET, office.mailing.outbox)
    wish = {"email": "ann@readers-club.net", "language": "", "source": "/", "consent": "Posts"}
    await subscribers.ask(wish)
    off = await open_newsroom(newsroom.folder, office.store, clock, relay, NEWSLETTER="off")
    await off.office.tick()
    assert (relay.recipients, await office.outbox()) == ([], [])
