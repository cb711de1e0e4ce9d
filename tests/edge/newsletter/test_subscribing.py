"""Double opt-in: an address is asked by mail, and the answers tell nothing about it."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import Filter
from edge_api.db.tables import EMAIL_SEND_LOG, IDEMPOTENCY_KEYS
from edge_api.newsletter.subscribers import Subscribers
from tests.edge.newsletter.conftest import ANN, Newsletter

pytestmark = pytest.mark.each_engine
CONSENT = "New posts by mail"


async def test_an_address_is_subscribed_by_its_confirmation(newsletter: Newsletter) -> None:
    """What was agreed to is kept, with the page and its language; the newest post is shown."""
    asked = await newsletter.ask("Ann@Readers-Club.NET", language="de")
    assert (asked.status, asked.title) == (200, "Look into your mail")
    assert "look into the folder for spam" in asked.text
    assert [each.attributes["href"] for each in asked.html.css("main a")] == ["/subscribe"]
    row = await newsletter.subscriber()
    kept = {name: row[name] for name in ("status", "source", "language", "consent")}
    assert kept == {
        "status": "pending",
        "source": "/journal/first/",
        "language": "de",
        "consent": CONSENT,
    }

    paths = await newsletter.links()
    path = paths["/subscribe/confirm"]
    for _ in range(3):
        question = await newsletter.page("GET", path)
        assert (question.title, list(question.buttons)) == (
            "Confirm your subscription",
            ["Subscribe"],
        )
    assert await newsletter.subscriber() == row

    done = await newsletter.page("POST", question.buttons["Subscribe"])
    assert done.title == "You are subscribed"
    (newest,) = done.html.css("main a")
    assert newest.attributes["href"] == "https://journal.example/journal/zweiter/"
    row = await newsletter.subscriber()
    assert row["status"] == "active"
    assert row["confirmed_at"]
    again = await newsletter.page("POST", path)
    assert again.title == "You are subscribed"
    assert await newsletter.subscriber() == row


async def test_the_message_has_no_word_of_a_stranger(newsletter: Newsletter) -> None:
    """Whatever is typed into any field."""
    words = {"name": "Buy pills", "source": "/buy-pills", "language": "buy-pills", "consent": "Buy"}
    await newsletter.ask(**words)
    (message,) = await newsletter.deliver()

    assert message["From"] == "The Journal <post@journal-keepers.net>"
    assert message["To"] == ANN
    assert "pills" not in message.as_string().lower()
    assert message["Auto-Submitted"] == "auto-generated"


async def test_the_answer_is_the_same_for_every_address(newsletter: Newsletter) -> None:
    """In status, length and words: new, known, asked, ended, bounced, suppressed, a robot's."""
    for status in ("active", "ended", "bounced", "pending"):
        await newsletter.add(f"{status}@readers-club.net", status=status)
    await newsletter.suppress("suppressed@readers-club.net", "complaint")
    names = ("new", "new", "active", "ended", "bounced", "pending", "suppressed")
    pages = [await newsletter.ask(f"{name}@readers-club.net") for name in names]
    pages.append(await newsletter.ask("robot@readers-club.net", _gotcha="x"))
    pages.append(await newsletter.ask("nobody@example.org"))

    assert {page.status for page in pages} == {200}
    assert len({page.html.html for page in pages}) == 1
    asked = {message["To"] for message in await newsletter.deliver()}
    assert asked == {f"{name}@readers-club.net" for name in ("new", "ended", "bounced", "pending")}
    log = await newsletter.rows(EMAIL_SEND_LOG, Filter("status", "eq", "suppressed"))
    reasons = {row["recipient_email"]: row["error_message"] for row in log}
    assert reasons["suppressed@readers-club.net"] == "the address is suppressed"
    assert reasons["active@readers-club.net"] == "the address is subscribed already"
    assert reasons["new@readers-club.net"] == "the address had a confirmation within 24 hours"
    assert "robot@readers-club.net" not in reasons


async def test_many_at_once_are_one_confirmation(newsletter: Newsletter) -> None:
    """The same address, asked for in several windows."""
    await asyncio.gather(*(newsletter.ask() for _ in range(8)))
    assert len(await newsletter.deliver()) == 1
    assert len(await newsletter.rows(SUBSCRIBERS)) == 1


async def test_three_unanswered_confirmations_and_none_for_ninety_days(
    newsletter: Newsletter,
) -> None:
    """Also when the pending row is gone; each waits for a day."""
    sent = []
    for hours in (0, 23, 2, 25, 25, 24 * 40, 24 * 48):
        newsletter.clock.move(hours=hours)
        await newsletter.edge.service[Subscribers].forget_pending()
        await newsletter.ask()
        sent.append(len(await newsletter.deliver()))
    assert sent == [1, 0, 1, 1, 0, 0, 0]
    assert await newsletter.rows(SUBSCRIBERS) == []

    newsletter.clock.move(hours=24 * 3)
    await newsletter.ask()
    assert len(await newsletter.deliver()) == 1


async def test_an_answer_lets_the_address_ask_again(newsletter: Newsletter) -> None:
    """Who confirmed and left is asked again, but for the same day, and becomes active by that."""
    await newsletter.ask()
    paths = await newsletter.links()
    await newsletter.page("POST", paths["/subscribe/confirm"])
    await newsletter.page("POST", paths["/unsubscribe"])
    await newsletter.ask()
    assert await newsletter.deliver() == []

    for _ in range(4):
        newsletter.clock.move(hours=25)
        await newsletter.ask()
        paths = await newsletter.links()
        assert (await newsletter.subscriber())["status"] == "ended"
        await newsletter.page("POST", paths["/subscribe/confirm"])
        row = await newsletter.subscriber()
        assert (row["status"], row["ended_at"], row["ended_by"]) == ("active", None, None)
        await newsletter.page("POST", paths["/unsubscribe"])


async def test_above_sixty_an_hour_confirmations_wait(newsletter: Newsletter) -> None:
    """None is refused, and never are more than sixty due within an hour."""
    for number in range(130):
        await newsletter.ask(f"reader-{number}@readers-club.net")
    entries = await newsletter.rows(EMAIL_OUTBOX, order="due_at")
    due = [datetime.fromisoformat(entry["due_at"]) for entry in entries]

    assert len(due) == 130
    assert all(
        (late - early).total_seconds() >= 3600 for early, late in zip(due, due[60:], strict=False)
    )
    assert len(await newsletter.deliver()) == 60
    newsletter.clock.move(hours=1)
    assert len(await newsletter.deliver()) == 60
    newsletter.clock.move(hours=1)
    assert len(await newsletter.deliver()) == 10


async def test_the_same_link_refuses_further_messages(newsletter: Newsletter) -> None:
    """Somebody else typed the address: one button ends that, another one all mail."""
    await newsletter.ask()
    path = (await newsletter.links())["/unsubscribe"]
    left = await newsletter.page("POST", path)
    assert list(left.buttons) == ["No mail at all from this site"]
    await newsletter.page("POST", left.buttons["No mail at all from this site"])
    newsletter.clock.move(hours=25)
    await newsletter.ask()
    assert await newsletter.deliver() == []
    confirm = path.replace("/unsubscribe", "/subscribe/confirm")
    assert (await newsletter.page("POST", confirm)).title == "You get no mail from this site"
    assert (await newsletter.subscriber())["status"] == "ended"


async def test_pending_subscribers_go_after_seven_days(newsletter: Newsletter) -> None:
    """Their link then says how to get another; others stay."""
    await newsletter.add("ben@readers-club.net")
    await newsletter.ask()
    path = (await newsletter.links())["/subscribe/confirm"]
    newsletter.clock.move(days=6, hours=23)
    await newsletter.edge.service[Subscribers].forget_pending()
    assert (await newsletter.page("GET", path)).status == 200

    newsletter.clock.move(hours=2)
    await newsletter.edge.service[Subscribers].forget_pending()
    for method in ("GET", "POST"):
        page = await newsletter.page(method, path)
        assert (page.status, page.title) == (404, "This link is not known")
        assert page.html.css("main a")[0].attributes["href"] == "/subscribe"
    assert [row["email"] for row in await newsletter.rows(SUBSCRIBERS)] == ["ben@readers-club.net"]


async def test_what_is_sent_is_read_again(newsletter: Newsletter) -> None:
    """A confirmation that waits is not sent to who confirmed an earlier one, or was erased."""
    await newsletter.ask()
    await newsletter.change(SUBSCRIBERS, status="active")
    assert await newsletter.deliver() == []
    (last,) = await newsletter.rows(EMAIL_SEND_LOG, Filter("status", "eq", "suppressed"))
    assert last["error_message"] == "the subscription is confirmed already"


@pytest.mark.parametrize(
    ("typed", "fault"),
    [
        ("", "Must not be empty."),
        ("ann", "Not a valid e-mail address."),
        ("a" * 300 + "@x.net", "306 of 255 characters: shorten it by 51."),
        ("a@b\x00.net", "Must not contain NUL."),
    ],
    ids=["empty", "no sign", "long", "control"],
)
async def test_a_wrong_address_stays_in_the_form(
    newsletter: Newsletter, typed: str, fault: str
) -> None:
    """With what to fix."""
    page = await newsletter.ask(typed)
    assert (page.status, page.title) == (400, "New posts by mail")
    field = page.html.css('input[name="email"]')[0]
    assert field.attributes["value"] == typed.replace("\x00", "\ufffd") or not typed
    assert fault in page.html.css("#email-fault")[0].text()
    assert await newsletter.rows(SUBSCRIBERS) == []


async def test_hidden_fields_of_a_stranger_are_dropped(newsletter: Newsletter) -> None:
    """The address is asked all the same."""
    await newsletter.ask(source="javascript:x", language="<b>" * 100)
    row = await newsletter.subscriber()
    assert (row["source"], row["language"]) == ("/subscribe", "")


async def test_other_sites_cannot_send_the_form(newsletter: Newsletter) -> None:
    """A page elsewhere would ask in the name of its visitors."""
    page = await newsletter.page(
        "POST", "/subscribe", data={"email": ANN}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert page.status == 403
    assert await newsletter.rows(SUBSCRIBERS) == []


async def test_the_page_and_the_line_under_each_post(newsletter: Newsletter) -> None:
    """Both forms send what the edge takes, and say what is agreed to."""
    page = await newsletter.page("GET", "/subscribe")
    post = await newsletter.page("GET", "/journal/zweiter/")
    for shown, source, language in ((page, "/subscribe", None), (post, "/journal/zweiter/", "de")):
        (form,) = shown.html.css('form[action="/subscribe"]')
        assert form.attributes["method"] == "post"
        assert CONSENT in shown.text  # the heading of the page, the label of the line
        fields = {each.attributes["name"]: each.attributes for each in form.css("input")}
        assert fields["source"]["value"] == source
        assert fields.get("language", {}).get("value") == language


@pytest.mark.parametrize("path", ["/", "/archive/", "/journal/zweiter/", "/subscribe"])
async def test_every_page_leads_to_the_form(newsletter: Newsletter, path: str) -> None:
    """In its footer: not only those who read a post to its end find it."""
    page = await newsletter.page("GET", path)
    links = {each.text(): each.attributes["href"] for each in page.html.css("body > footer a")}
    assert links[CONSENT] == "/subscribe"
    assert (path == "/") <= bool(page.html.css('main .onward a[href="/subscribe"]'))


async def test_a_program_asks_with_its_scope(newsletter: Newsletter) -> None:
    """202 for every address, and no other credential may."""
    edge, path = newsletter.edge, "/api/public/v1/subscribers"
    key = await edge.key("subscribers:write")
    await newsletter.add("ben@readers-club.net")
    answers = set()
    for email in (ANN, ANN, "ben@readers-club.net"):
        body = {"email": email, "consent": "I want it.", "source": "Fair"}
        async with edge.ask("POST", path, key, json=body) as answer:
            answers.add((answer.status, await answer.text()))
    assert len(answers) == 1
    assert answers.pop()[0] == 202
    row = await newsletter.subscriber()
    assert (row["consent"], row["source"]) == ("I want it.", "Fair")
    assert [message["To"] for message in await newsletter.deliver()] == [ANN]

    wrong: tuple[dict[str, Any], ...] = ({}, {"email": ANN}, {"email": "x", "consent": "I do."})
    for body in wrong:
        async with edge.ask("POST", path, key, json=body) as answer:
            assert answer.status == 400
    for other, status in ((await edge.key("leads:write"), 403), (None, 401)):
        body = {"email": ANN, "consent": "x"}
        async with edge.ask("POST", path, other, json=body) as answer:
            assert answer.status == status


async def test_the_digest_of_an_address_goes_when_it_answers_no_more(
    newsletter: Newsletter,
) -> None:
    """It is kept for ninety days, without the address."""
    await newsletter.ask()
    (digest,) = await newsletter.rows(IDEMPOTENCY_KEYS)
    assert ANN not in str(digest)
    kept = datetime.fromisoformat(digest["expires_at"]) - newsletter.clock.now
    assert round(kept.total_seconds() / 86400) == 90
