"""Answers that the owner sends from the desk: they wait, can be taken back, and are sent once."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edge_api.auth.actor import Actor, new_id, undo
from edge_api.auth.erasure import Privacy
from edge_api.backup.restoration import carry_over
from edge_api.db.internal_tables import EMAIL_OUTBOX, FORMER_ROWS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Update, where_id
from edge_api.db.table import Row
from edge_api.db.tables import AUDIT_LOG, EMAIL_SEND_LOG, LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.sessions import OWNER as SIGNED_IN
from edge_api.mail.answers import MAX_PER_HOUR, MAX_TEXT_LENGTH, UNDO_TIME, Answers
from edge_api.mail.outbox_admin import OutboxAdmin
from edge_api.mail.suppressions import EmailEvent, Feedback
from tests.edge.edge_process import until
from tests.edge.engines import SQLITE_PREFIX, Opener, open_store
from tests.edge.mail.outbox.post_office import LEAD, OWNER, SECRET, PostOffice, open_office
from tests.edge.mail.outbox.scripted_relay import Relay
from tests.sizes import scaled

pytestmark = pytest.mark.each_engine
ANN = LEAD["email"]
TEXT = "Dear Ann,\n\nThursday at ten suits me.\n\nGrace"
RACES = scaled(test=12, ci=60, judge=400)


def answers_of(office: PostOffice) -> Answers:
    """Return the answers of a post office."""
    return Answers(office.settings, office.store, office.clock)


@pytest.fixture
def answers(office: PostOffice) -> Answers:
    """Return the answers of the post office."""
    return answers_of(office)


async def store_lead(office: PostOffice, **changes: Any) -> Row:
    """Store a lead without a notification of its owner."""
    at = office.clock()
    row = LEADS.new_row({**LEAD, **changes}, format_instant(at), partial(new_id, at))
    await office.store.run(Insert(LEADS, [row]))
    return row


async def receive(office: PostOffice, lead: Row, **changes: Any) -> Row:
    """Store a message that came back, as the mailbox does."""
    at = office.clock()
    given = {"lead_id": lead["id"], "kind": "received", "email": lead["email"], **changes}
    row = LEAD_MESSAGES.new_row(given, format_instant(at), partial(new_id, at))
    await office.store.run(Insert(LEAD_MESSAGES, [row]))
    return row


async def states(office: PostOffice) -> list[tuple[str, str | None]]:
    """Return status and reminder of each lead."""
    return [(row["status"], row["remind_at"]) for row in await office.rows(LEADS)]


async def refused(code: str, work: Any) -> str:
    """Return the sentence of the problem that a call raises."""
    with pytest.raises(Problem) as caught:
        await work
    assert caught.value.code == code
    return caught.value.message


def text_of(relay: Relay, number: int = -1) -> str:
    """Return the plain text of a message that the relay took."""
    part = relay.taken[number].message.get_body(("plain",))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


async def test_an_answer_waits_and_is_sent_as_a_person_writes(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """For 20 seconds nothing is sent; then one mail from the owner, with what it answers below."""
    later = format_instant(office.clock())
    lead = await store_lead(office, remind_at=later, message="Hello,\n\n> quoted\nare you free?")
    sent = await answers.send(lead, f"\r\n{TEXT}\r\n".replace("\n", "\r\n"), "", SIGNED_IN)
    assert (sent["kind"], sent["body"]) == ("sent", TEXT)
    assert await states(office) == [("contacted", None)]
    await office.tick_at(seconds=UNDO_TIME.seconds - 1)
    assert relay.taken == []

    await office.tick_at(seconds=2)
    (taken,) = relay.taken
    assert (taken.sender, taken.recipient) == ("journal@journal-keepers.net", ANN)
    headers = {name: str(value) for name, value in taken.message.items()}
    assert headers["From"] == headers["Reply-To"] == f"The owner <{OWNER}>"
    assert headers["Subject"] == sent["subject"] == "Re: your message to journal.example"
    assert headers["Message-ID"] == f"<{sent['id']}@journal.example>"
    assert not headers.keys() & {"Auto-Submitted", "In-Reply-To", "References", "List-Unsubscribe"}
    quoted = "On 1 June 2026, 12:00 UTC, Ann Lee wrote:\n> Hello,\n>\n>> quoted\n> are you free?\n"
    assert text_of(relay) == f"{TEXT}\n\n{quoted}"
    assert await office.statuses("lead_answer") == ["pending", "sent"]
    assert await office.outbox() == []
    await office.tick_at(hours=2)
    assert len(relay.taken) == 1


@pytest.mark.parametrize(
    ("received", "answered"),
    [
        ("Re: Thursday", "Re: Thursday"),
        ("AW:Thursday", "Re: Thursday"),
        ("Fire: alarm", "Re: Fire: alarm"),
    ],
)
async def test_the_subject_of_an_answer_has_one_mark_of_a_reply(
    office: PostOffice, answers: Answers, received: str, answered: str
) -> None:
    """At its beginning, whichever mark the mail before has; a word that ends so stays whole."""
    lead = await store_lead(office)
    await receive(office, lead, subject=received, body="When?")

    assert await answers.default_subject(lead) == answered


async def test_the_sender_is_the_journal_where_domains_differ(
    office: PostOffice, relay: Relay
) -> None:
    """Else DMARC of the owner's domain would refuse it; the name is the owner's all the same."""
    other = open_office(office.store, office.clock, relay, OWNER_EMAIL="Grace <grace@elsewhere.eu>")
    await answers_of(other).send(await store_lead(other), TEXT, "", SIGNED_IN)
    await other.tick_at(seconds=21)

    message = relay.taken[0].message
    assert str(message["From"]) == "Grace <journal@journal-keepers.net>"
    assert str(message["Reply-To"]) == "Grace <grace@elsewhere.eu>"


async def test_an_answer_to_a_reply_names_it(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """With In-Reply-To and References, its subject, and its text below; a draft is nothing sent."""
    lead = await store_lead(office)
    first = await answers.send(lead, TEXT, "Thursday", SIGNED_IN)
    await office.tick_at(seconds=21)
    theirs = "<a.reply@readers-club.net>"
    await receive(office, lead, subject="AW: Thursday", body="Rather\nnot.", message_id=theirs)
    await answers.save_draft(lead, "Hm", "Another subject")
    second = await answers.send(lead, "Friday?", "", SIGNED_IN)
    await receive(office, lead, body="Too late for this one.", message_id="<late@x>")
    await office.tick_at(seconds=21)

    message = relay.taken[-1].message
    assert str(message["Subject"]) == second["subject"] == "Re: Thursday"
    assert str(message["In-Reply-To"]) == theirs
    assert str(message["References"]) == f"<{first['id']}@journal.example> {theirs}"
    assert text_of(relay).startswith("Friday?\n\nOn 1 June 2026")
    assert text_of(relay).endswith(":\n> Rather\n> not.\n")


@pytest.mark.parametrize(
    "evil",
    [
        None,
        "<a@b>\r\nBcc: x@evil.net",
        "<=?utf-8?q?a=0D=0ABcc:=20x?=@b>",
        "<a b@c>",
        "none",
        "<é@b>",
    ],
)
async def test_no_message_id_of_a_stranger_makes_a_header(
    office: PostOffice, answers: Answers, relay: Relay, evil: str | None
) -> None:
    """One that is not of the plain form is left out; a long one stays on its line."""
    lead = await store_lead(office)
    await receive(office, lead, body="Hi", message_id=f"<{'x' * 245}@b>")
    await receive(office, lead, body="Hi", message_id=evil)
    await answers.send(lead, TEXT, "", SIGNED_IN)
    await office.tick_at(seconds=21)

    message = relay.taken[0].message
    assert message["Bcc"] is None
    assert message["References"] in (None, f"<{'x' * 245}@b>")
    assert max(map(len, message.as_bytes().splitlines())) <= 998


async def test_nothing_that_is_typed_makes_a_header(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """Line ends and encoded words in subject, name and text stay text."""
    hostile = "Hi\r\nBcc: x@evil.net\u2028Bcc: y@evil.net =?utf-8?q?a=0D=0ABcc:_z?="
    lead = await store_lead(office, name=hostile[:100])
    await answers.send(lead, f"{hostile}\x00\x1b[31m\u202e", hostile, SIGNED_IN)
    await office.tick_at(seconds=21)

    message = relay.taken[0].message
    expected = ["From", "To", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version"]
    assert message.keys() == [*expected, "Content-Type"]
    assert str(message["To"]) == ANN
    assert not set("\x00\x1b\u202e") & set(text_of(relay))


async def test_a_refused_answer_is_tried_for_three_days(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """As one and the same message; then it is given up, and the owner may send it again."""
    lead = await store_lead(office)
    relay.by_recipient[ANN] = "451 4.3.0 later"
    sent = await answers.send(lead, TEXT, "", SIGNED_IN)
    await office.tick_at(seconds=21)
    for _ in range(65):
        await office.tick_at(minutes=61)
    assert [row["dead_at"] for row in await office.outbox()] == [None]
    assert await refused("conflict", answers.take_back(sent["id"], SIGNED_IN))
    await office.tick_at(hours=8)
    assert (await office.statuses())[-1] == "dlq"

    relay.by_recipient.clear()
    await OutboxAdmin(office.store, office.clock).retry(sent["id"])
    await office.tick()
    assert [str(taken.message["Message-ID"]) for taken in relay.taken] == [
        f"<{sent['id']}@journal.example>"
    ]


async def test_an_answer_that_comes_back_is_seen_at_the_message(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """Its address is suppressed and no second one can be sent; readiness says nothing of it."""
    lead = await store_lead(office)
    relay.by_recipient[ANN] = "550 5.1.1 no such mailbox"
    sent = await answers.send(lead, TEXT, "", SIGNED_IN)
    await office.tick_at(seconds=21)

    log = [row for row in await office.log() if row["message_id"] == sent["id"]]
    assert [row["status"] for row in log] == ["pending", "bounced"]
    assert (await office.suppressed(), await office.outbox()) == ({ANN: "bounce"}, [])
    assert (await office.mailing.check()).state == "pass"
    assert "suppressed" in await answers.unmailable_reason(ANN.upper())
    assert "suppressed" in await refused("conflict", answers.send(lead, "Hm", "", SIGNED_IN))


async def test_a_provider_s_report_is_seen_at_the_message(
    office: PostOffice, answers: Answers
) -> None:
    """The hook names the Message-ID, as the mail has it."""
    sent = await answers.send(await store_lead(office), TEXT, "", SIGNED_IN)
    await office.tick_at(seconds=21)
    data = {"email": ANN, "message_id": f"<{sent['id']}@journal.example>"}
    event = EmailEvent.model_validate({"type": "email.bounced", "data": data})
    await Feedback(office.store, office.clock, SECRET).record(event, "report-1")

    last = (await office.log())[-1]
    assert (last["message_id"], last["status"]) == (sent["id"], "bounced")
    assert last["template_name"] == "lead_answer"


async def test_an_address_that_is_suppressed_meanwhile_gets_nothing(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """The log says so, and the entry does not wait for a person."""
    await answers.send(await store_lead(office), TEXT, "", SIGNED_IN)
    await office.suppress(ANN)
    await office.tick_at(seconds=21)

    assert (relay.taken, await office.outbox()) == ([], [])
    assert await office.statuses() == ["pending", "suppressed"]


async def test_an_answer_is_taken_back(office: PostOffice, answers: Answers, relay: Relay) -> None:
    """It is a draft again, its leads are as they were, and nothing is ever sent."""
    later = "2026-07-01T00:00:00.000000Z"
    lead = await store_lead(office, remind_at=later)
    other = await store_lead(office, status="spam", spam_score=5)
    won = await store_lead(office, status="won")
    before = await states(office)
    sent = await answers.send(lead, TEXT, "Thursday", SIGNED_IN, [other["id"], won["id"]])
    assert await states(office) == [("contacted", None), ("contacted", None), ("won", None)]

    draft = await answers.take_back(sent["id"], SIGNED_IN)
    assert (draft["kind"], draft["body"], draft["subject"]) == ("draft", TEXT, "Thursday")
    assert await answers.list_messages([lead["id"]]) == [draft]
    assert await states(office) == before
    assert (await office.outbox(), await office.log()) == ([], [])
    assert await office.rows(FORMER_ROWS) == []
    verbs = [(row["verb"], row["rows"]) for row in await office.rows(AUDIT_LOG)]
    assert verbs == [("answer", 2), ("take back", 2)]
    await office.tick_at(hours=1)
    assert relay.taken == []
    assert await answers.find(sent["id"]) is None
    await refused("not_found", answers.take_back(sent["id"], SIGNED_IN))
    await refused("not_found", answers.take_back("../nonsense", SIGNED_IN))

    again = await answers.send(lead, TEXT, "Thursday", SIGNED_IN)
    assert again["id"] != sent["id"]
    assert [row["kind"] for row in await answers.list_messages([lead["id"]])] == ["sent"]


async def test_later_changes_by_others_are_not_undone(office: PostOffice, answers: Answers) -> None:
    """A lead that was won since stays so; a draft that was begun since is kept below."""
    lead, other = await store_lead(office), await store_lead(office)
    sent = await answers.send(lead, TEXT, "", SIGNED_IN, [other["id"]])
    await office.store.run(Update(LEADS, {"status": "won"}, where_id(lead["id"])))
    await answers.save_draft(lead, "One more thing", "")

    draft = await answers.take_back(sent["id"], SIGNED_IN)
    assert await states(office) == [("won", None), ("new", None)]
    assert draft["body"] == f"{TEXT}\n\nOne more thing"
    assert len(await office.rows(LEAD_MESSAGES)) == 1


async def test_marks_that_were_undone_do_not_keep_an_answer(
    office: PostOffice, answers: Answers
) -> None:
    """The audit log undoes the marks alone; the answer can still be taken back."""
    lead = await store_lead(office)
    sent = await answers.send(lead, TEXT, "", SIGNED_IN)
    stored = await answers.find(sent["id"])
    assert stored is not None
    await undo(office.store, office.clock, SIGNED_IN, stored["audit_id"])
    assert await states(office) == [("new", None)]

    await answers.take_back(sent["id"], SIGNED_IN)
    assert (await states(office), await office.outbox()) == ([("new", None)], [])


async def test_an_answer_that_is_being_sent_is_not_taken_back(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """Once it is claimed, whatever comes of the attempt; and once it was sent."""
    lead = await store_lead(office)
    sent = await answers.send(lead, TEXT, "", SIGNED_IN)
    relay.silent = asyncio.Event()
    office.clock.move(seconds=21)
    sending = asyncio.create_task(office.tick())
    await until(lambda: len(relay.tried) == 1)
    assert "sent already" in await refused("conflict", answers.take_back(sent["id"], SIGNED_IN))
    relay.silent.set()
    await sending

    assert "sent already" in await refused("conflict", answers.take_back(sent["id"], SIGNED_IN))
    assert (len(relay.taken), await states(office)) == (1, [("contacted", None)])
    assert await answers.find(sent["id"]) is not None


async def press(message_id: str, answers: Answers, half_milliseconds: int) -> bool:
    """Press "Undo" a moment later; return whether that did it."""
    await asyncio.sleep(half_milliseconds / 2000)
    try:
        await answers.take_back(message_id, SIGNED_IN)
    except Problem as problem:
        if problem.code != "conflict":
            raise
        return False
    return True


@pytest.mark.size("test", grows=True)
async def test_either_the_undo_or_the_dispatcher_wins(
    office: PostOffice, relay: Relay, open_another: Opener
) -> None:
    """On two edges at once: what was taken back is never sent, what was sent is not taken back."""
    other = open_office(await open_another(), office.clock, relay)
    both = answers_of(office), answers_of(other)
    taken_back = set()
    for number in range(RACES):
        lead = await store_lead(office, email=f"ann-{number}@readers-club.net")
        sent = await both[number % 2].send(lead, TEXT, "", SIGNED_IN)
        office.clock.move(minutes=2)
        *_, done = await asyncio.gather(
            office.tick(), other.tick(), press(sent["id"], both[(number + 1) % 2], number % 7)
        )
        taken_back |= {sent["id"]} if done else set()
        await office.tick()
        assert await office.outbox() == []
        message = (await office.rows(LEAD_MESSAGES, Filter("id", "eq", sent["id"])))[0]
        assert message["kind"] == ("draft" if done else "sent")

    ids = [str(taken.message["Message-ID"]).strip("<>").partition("@")[0] for taken in relay.taken]
    assert len(ids) == len(set(ids)) == RACES - len(taken_back)
    assert not taken_back & set(ids)


async def test_two_presses_send_one_answer(
    office: PostOffice, answers: Answers, open_another: Opener, relay: Relay
) -> None:
    """One after the other and both at once, on two edges; another text is another answer."""
    lead = await store_lead(office)
    other = Answers(office.settings, await open_another(), office.clock)
    first = await answers.send(lead, TEXT, "", SIGNED_IN)
    await answers.save_draft(lead, TEXT, "")  # as the desk does at each press
    again = await asyncio.gather(
        other.send(lead, f"{TEXT}\n", first["subject"], SIGNED_IN),
        answers.send(lead, TEXT, first["subject"], SIGNED_IN),
    )
    assert {row["id"] for row in again} == {first["id"]}
    assert [row["kind"] for row in await answers.list_messages([lead["id"]])] == ["sent"]
    second = await answers.send(lead, "And Friday?", "", SIGNED_IN)
    assert second["id"] != first["id"]
    office.clock.move(seconds=21)
    await answers.send(lead, TEXT, first["subject"], SIGNED_IN)
    await office.tick_at(seconds=21)
    assert len(relay.taken) == 3


async def test_of_two_answers_at_once_one_is_sent_unseen(
    office: PostOffice, answers: Answers, open_another: Opener
) -> None:
    """On two edges; the other is refused until its writer has seen the first, and marks nothing."""
    lead = await store_lead(office)
    seen = format_instant(office.clock())
    office.clock.move(seconds=1)
    other = Answers(office.settings, await open_another(), office.clock)
    results = await asyncio.gather(
        answers.send(lead, "Yes", "", SIGNED_IN, seen=seen),
        other.send(lead, "No", "", SIGNED_IN, seen=seen),
        return_exceptions=True,
    )
    (problem,) = (each for each in results if isinstance(each, Problem))
    assert (problem.code, "Somebody else answered" in problem.message) == ("conflict", True)
    assert len(await office.outbox()) == 1
    assert len(await office.rows(AUDIT_LOG)) == 1
    now = format_instant(office.clock())
    await answers.send(lead, "Both", "", SIGNED_IN, seen=now)
    assert len(await office.outbox()) == 2


async def test_at_most_sixty_are_sent_within_an_hour(
    office: PostOffice, answers: Answers, open_another: Opener
) -> None:
    """By all sign-ins together, also by two edges at once; what was taken back does not count."""
    lead = await store_lead(office)
    key = Actor("k", "k", "api_key", frozenset({"mail:send"}))
    for number in range(MAX_PER_HOUR - 1):
        await answers.send(lead, f"{number}", "", (SIGNED_IN, key)[number % 2])
    other = Answers(office.settings, await open_another(), office.clock)
    results = await asyncio.gather(
        *(each.send(lead, "last", f"{each is other}", SIGNED_IN) for each in (answers, other)),
        return_exceptions=True,
    )
    problems = [each for each in results if isinstance(each, Problem)]
    assert [each.code for each in problems] == ["too_many_requests"]
    assert "60 answers" in problems[0].message
    assert len(await office.outbox()) == MAX_PER_HOUR

    (last,) = (each for each in results if isinstance(each, dict))
    await answers.take_back(last["id"], SIGNED_IN)
    await answers.send(lead, "in its place", "", SIGNED_IN)
    await refused("too_many_requests", answers.send(lead, "more", "", SIGNED_IN))
    office.clock.move(hours=1)
    await answers.send(lead, "more", "", SIGNED_IN)


@pytest.mark.parametrize(
    ("text", "subject", "said"),
    [
        ("", "", "text is empty"),
        (" \n\t\u200b\n", "", "text is empty"),
        (
            "x" * (MAX_TEXT_LENGTH + 3),
            "",
            "100,003 characters, and the most is 100,000: shorten it by 3",
        ),
        ("x" * 2_000_000, "", "2,000,000 characters"),
        ("Hi", "s" * 201, "subject has 201 characters"),
    ],
)
async def test_a_text_that_cannot_be_sent_is_refused(
    office: PostOffice, answers: Answers, text: str, subject: str, said: str
) -> None:
    """With what to fix, and nothing has changed."""
    lead = await store_lead(office)
    assert said in await refused("invalid", answers.send(lead, text, subject, SIGNED_IN))
    assert (await states(office), await office.rows(LEAD_MESSAGES)) == ([("new", None)], [])


async def test_the_longest_text_arrives_whole(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """100,000 characters, none of them in ASCII."""
    text = "\n".join(["京" * 99] * 1000)
    lead = await store_lead(office)
    await answers.send(lead, text, "京" * 200, SIGNED_IN)
    await office.tick_at(seconds=21)
    assert text_of(relay).startswith(f"{text}\n\nOn ")


async def test_nobody_else_sends_answers(office: PostOffice, answers: Answers) -> None:
    """A key needs the scope; without a relay, and to a reserved domain, it is said beforehand."""
    lead = await store_lead(office)
    key = Actor("k", "k", "api_key", frozenset({"admin:read", "admin:write"}))
    assert "mail:send" in await refused("forbidden", answers.send(lead, TEXT, "", key))
    silent = answers_of(open_office(office.store, office.clock, None))
    assert "SMTP_URL" in await silent.unmailable_reason(ANN)
    assert "SMTP_URL" in await refused("conflict", silent.send(lead, TEXT, "", SIGNED_IN))
    reserved = await store_lead(office, email="ann@example.com")
    assert "reserved" in await refused("conflict", answers.send(reserved, TEXT, "", SIGNED_IN))
    assert (await answers.unmailable_reason(ANN), await office.outbox()) == ("", [])


async def test_a_draft_is_kept_and_replaced(office: PostOffice, answers: Answers) -> None:
    """One for each lead; an empty one is none, and none is kept of a lead that is gone."""
    lead, other = await store_lead(office), await store_lead(office)
    await answers.save_draft(other, "Another", "")
    await answers.save_draft(lead, "Dear", "S")
    await answers.save_draft(lead, "Dear Ann", "")
    drafts = await answers.list_messages([lead["id"], other["id"]])
    assert [(row["body"], row["subject"]) for row in drafts] == [("Another", ""), ("Dear Ann", "")]
    await answers.save_draft(lead, " ", "")
    assert [row["body"] for row in await answers.list_messages([lead["id"]])] == []
    assert "shorten it by 1" in await refused(
        "invalid", answers.save_draft(lead, "x" * (MAX_TEXT_LENGTH + 1), "")
    )
    await Privacy(office.store, office.clock).erase(ANN, SIGNED_IN)
    await refused("conflict", answers.save_draft(lead, "Dear", ""))
    assert await office.rows(LEAD_MESSAGES) == []


@pytest.mark.parametrize("is_claimed", [False, True])
async def test_an_erased_person_gets_no_answer_and_leaves_none(
    office: PostOffice, answers: Answers, relay: Relay, *, is_claimed: bool
) -> None:
    """While it waits; while it is being sent the mail goes out, and no trace of it stays."""
    lead = await store_lead(office)
    sent = await answers.send(lead, TEXT, "", SIGNED_IN)
    await answers.save_draft(lead, "One more", "")
    await receive(office, lead, body="Hi", email="Ann Lee <ANN@Readers-Club.net>"[9:-1])
    relay.silent = asyncio.Event()
    office.clock.move(seconds=21)
    sending = asyncio.create_task(office.tick()) if is_claimed else None
    if sending:
        await until(lambda: len(relay.tried) == 1)
    erased = await Privacy(office.store, office.clock).erase(ANN, SIGNED_IN)
    assert (len(erased[LEAD_MESSAGES]), len(erased[EMAIL_OUTBOX])) == (3, 1)
    relay.silent.set()
    if sending:
        await sending
    await office.tick_at(hours=1)

    assert len(relay.taken) == is_claimed
    for table in (LEADS, LEAD_MESSAGES, EMAIL_OUTBOX, EMAIL_SEND_LOG, FORMER_ROWS):
        assert await office.rows(table) == []
    await refused("not_found", answers.take_back(sent["id"], SIGNED_IN))
    await refused("conflict", answers.send(lead, "To nobody", "", SIGNED_IN))
    assert await office.rows(LEAD_MESSAGES) == []


async def test_a_lead_that_is_deleted_takes_its_answers_along(
    office: PostOffice, answers: Answers, relay: Relay
) -> None:
    """Nothing is sent of a lead that somebody deleted."""
    lead = await store_lead(office)
    await answers.send(lead, TEXT, "", SIGNED_IN)
    await office.erase(lead)
    await office.tick_at(seconds=21)
    assert (relay.taken, await office.outbox()) == ([], [])
    assert (await office.statuses())[-1] == "suppressed"


@pytest.mark.parametrize("how", ["sent", "taken back", "erased"])
async def test_a_restored_backup_sends_no_answer_again(
    office: PostOffice, answers: Answers, relay: Relay, tmp_path: Path, how: str
) -> None:
    """The backup is from while it waited; since then it was sent, taken back or erased."""
    lead = await store_lead(office)
    sent = await answers.send(lead, TEXT, "", SIGNED_IN)
    restored = await open_store(f"{SQLITE_PREFIX}{tmp_path}/restored.db", office.clock)
    for table in (LEADS, LEAD_MESSAGES, EMAIL_OUTBOX, EMAIL_SEND_LOG, FORMER_ROWS):
        await restored.run(Insert(table, await office.rows(table)))
    if how == "sent":
        await office.tick_at(seconds=21)
    elif how == "erased":
        await Privacy(office.store, office.clock).erase(ANN, SIGNED_IN)
    else:
        await answers.take_back(sent["id"], SIGNED_IN)
    await carry_over(office.store, restored, office.clock)

    later = open_office(restored, office.clock, relay)
    await later.tick_at(hours=1)
    assert len(relay.taken) == (how == "sent")
    if how == "erased":
        assert await later.rows(LEAD_MESSAGES) == await later.rows(LEADS) == []
    await restored.close()
