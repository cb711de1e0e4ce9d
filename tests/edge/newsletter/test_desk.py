"""The screens Newsletter and Subscribers: what waits, goes and went, and who gets it."""

from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

import pytest

from edge_api.auth.actor import OPERATOR, new_id
from edge_api.auth.erasure import Privacy
from edge_api.db.internal_tables import EMAIL_OUTBOX, FORMER_ROWS
from edge_api.db.newsletter_tables import MAILINGS, SUBSCRIBERS
from edge_api.db.query import Filter, Insert
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.desk.sessions import HIDDEN_FIELD
from edge_api.mail.dispatcher import make_mail_service
from edge_api.newsletter.mailings import Mailings
from edge_api.newsletter.sending import Letters
from edge_api.newsletter.subscribers import Subscribers
from tests.edge.conftest import EdgeMaker
from tests.edge.desk.conftest import Browser, Response
from tests.edge.desk.test_doors import age, owner_by_link
from tests.edge.newsletter.conftest import ANN, SECRET_KEY, SITE, Newsletter

pytestmark = pytest.mark.each_engine
PATH, LIST = "/desk/newsletter/", "/desk/newsletter/subscribers/"
HOSTILE = "<script>alert(1)</script>"
WHY = "a credential published it"


@dataclass
class Office:
    """The owner's browser, and all that sends the letters of the edge behind it."""

    newsletter: Newsletter
    owner: Browser
    letters: Letters = field(init=False)

    def __post_init__(self) -> None:
        """Let the dispatcher compose letters, as in a running edge."""
        service, clock = self.newsletter.edge.service, self.newsletter.clock
        self.letters = Letters(service.settings, service.store, clock)
        self.newsletter.mailing = make_mail_service(
            service.settings,
            service.store,
            clock,
            SECRET_KEY.encode(),
            letters=self.letters.prepare,
        )

    async def make(self, slug: str = "first", **values: Any) -> Row:
        """Store a mailing that waits for the press."""
        now = self.newsletter.clock()
        given = {"slug": slug, "subject": slug.title(), "url": f"{SITE}/journal/{slug}/"}
        given |= {"text_digest": sha256(slug.encode()).hexdigest(), "host": "journal.example"}
        given |= {"waits_for": WHY, **values}
        row = MAILINGS.new_row(given, format_instant(now), partial(new_id, now))
        await self.newsletter.edge.service.store.run(Insert(MAILINGS, [row]))
        return row

    async def found(self) -> Row:
        """Return the one mailing as it is stored."""
        (row,) = await self.newsletter.rows(MAILINGS)
        return row

    async def press(self, words: str, page: Response | None = None) -> Response:
        """Press the button with these words, as a browser sends its form."""
        page = page or await self.owner.get(PATH)
        forms = page.tree.css("main form:has(button)")
        buttons = {each.css("button")[0].text(): each for each in forms}
        form = buttons[words]
        fields = {
            str(each.attributes["name"]): str(each.attributes["value"])
            for each in form.css("input[type=hidden]")
        }
        fields.pop(HIDDEN_FIELD)
        return await self.owner.post(str(form.attributes["action"]), **fields)

    async def send_test(self) -> list[str]:
        """Send a test by the button at the foot; return the recipients of what went."""
        await self.press("Mail the newest post to owner@journal-keepers.net alone")
        return [str(each["To"]) for each in await self.newsletter.deliver()]

    async def send(self, turns: int = 5) -> list[str]:
        """Let time pass and letters go; return who got them."""
        sent: list[str] = []
        for _ in range(turns):
            self.newsletter.clock.move(seconds=1)
            await self.letters.queue(self.newsletter.edge.service[Mailings])
            sent += [str(each["To"]) for each in await self.newsletter.deliver()]
        return sent


@pytest.fixture
async def office(newsletter: Newsletter) -> Office:
    """Return a desk with two subscribers, and a person who was asked."""
    await newsletter.add()
    await newsletter.add("ben@readers-club.net", source="/journal/first/")
    await newsletter.add("cy@readers-club.net", status="pending", confirmed_at=None)
    return Office(newsletter, await owner_by_link(newsletter.edge))


async def test_without_a_newsletter_there_is_no_screen(make_edge: EdgeMaker) -> None:
    """No entry, and the address says what switches it on."""
    async with make_edge() as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        assert "Newsletter" not in (await owner.get("/desk/")).one(".desk-line").text()
        shown = await owner.get(PATH)
        assert (shown.status, "NEWSLETTER=on" in shown.said) == (503, True)


async def test_the_first_mailing_goes_by_a_test_and_a_press(office: Office) -> None:
    """Each button says to how many; the page says what went."""
    shown = await office.owner.get(PATH)
    entries = [each.text() for each in shown.tree.css(".desk-line li")]
    assert entries.index("Newsletter") == entries.index("Inbox") + 1
    assert "2 subscribers · 1 asked and has not confirmed · 0 ended" in shown.said
    assert "Nothing waits." in shown.said
    await office.make(subject=f"First {HOSTILE}")
    shown = await office.owner.get(PATH)
    assert HOSTILE not in shown.text
    assert f"First {HOSTILE} Why: {WHY}." in shown.said
    today = await office.owner.get("/desk/")
    assert "1 post waits for your press to be mailed" in today.said

    refused = await office.press("Mail it to 2 subscribers")
    assert (refused.status, "no test letter was sent to you yet" in refused.said) == (409, True)
    assert await office.send_test() == ["owner@journal-keepers.net"]
    await office.press("Test")
    assert [each["Subject"] for each in await office.newsletter.deliver()] == ["First"]
    done = await office.owner.get((await office.press("Mail it to 2 subscribers")).to)
    assert "A mailing was released" in done.said
    assert "It is mailed to 2 subscribers at 12:10 UTC, and can be stopped until then." in done.said

    office.newsletter.clock.move(minutes=10)
    assert sorted(await office.send()) == [ANN, "ben@readers-club.net"]
    shown = await office.owner.get(PATH)
    assert "It was mailed to 2 subscribers at 12:10 UTC; 2 sent." in shown.said
    assert not shown.tree.css("main .row form")
    for verb in ("hold", "skip"):
        refused = await office.owner.post(f"{PATH}{(await office.found())['id']}/{verb}/")
        assert (refused.status, "its state is sent" in refused.said) == (409, True)


async def test_it_is_held_resumed_stopped_and_goes_to_the_rest(office: Office) -> None:
    """Who has got it gets it no second time."""
    await office.send_test()
    await office.make()
    await office.press("Mail it to 2 subscribers")
    done = await office.owner.get((await office.press("Hold")).to)
    assert "A mailing was held" in done.said
    assert "It is held since 12:00 UTC: the owner held it." in done.said
    assert "1 post waits for your press" in (await office.owner.get("/desk/")).said
    office.newsletter.clock.move(minutes=11)
    assert await office.send() == []
    await office.press("Resume: mail it to 2 subscribers")
    office.newsletter.clock.move(seconds=1)
    await office.letters.queue(office.newsletter.edge.service[Mailings])
    shown = await office.owner.get(PATH)
    assert "It is being mailed to 2 subscribers; 2 on their way." in shown.said
    assert (await office.press("Hold")).status == 303
    assert await office.newsletter.deliver() == []
    done = await office.owner.get((await office.press("Stop")).to)
    assert "A mailing was ended" in done.said
    assert "It was stopped at 12:11 UTC: the owner skipped it." in done.said
    assert await office.newsletter.rows(EMAIL_OUTBOX, Filter("queue", "eq", "newsletter")) == []

    at = format_instant(office.newsletter.clock())
    await office.newsletter.change(SUBSCRIBERS, status="active", confirmed_at=at)
    await office.press("Mail it to the rest of 3 subscribers")
    office.newsletter.clock.move(minutes=10)
    assert len(await office.send()) == 3


async def test_a_press_that_said_a_smaller_number_does_nothing(office: Office) -> None:
    """An import came in between, or the number is none; a smaller list is no matter."""
    await office.send_test()
    await office.make()
    page = await office.owner.get(PATH)
    await office.newsletter.change(SUBSCRIBERS, status="active")
    refused = await office.press("Mail it to 2 subscribers", page)
    assert (refused.status, "3 are subscribed now" in refused.said) == (409, True)
    assert "Mail it to 3 subscribers" in refused.said
    for said in ("", "-1", "\u0663", "9" * 5000, "x"):
        released = await office.owner.post(f"{PATH}posts/first/release/", to=said)
        known = said in ("\u0663", "9" * 5000)
        assert released.status == (303 if known else 409), said
        if known:
            await office.owner.post(f"{PATH}{(await office.found())['id']}/skip/")
    assert (await office.owner.post(f"{PATH}posts/nothing/release/", to="3")).status == 404


async def test_an_old_sign_in_mails_nothing_and_may_stop_all(office: Office) -> None:
    """A letter cannot be called back; holding and stopping can wait for nobody."""
    await office.send_test()
    row = await office.make()
    await office.press("Mail it to 2 subscribers")
    await age(office.owner, hours=25)
    held = await office.press("Hold")
    assert held.status == 303
    asked = await office.press("Resume: mail it to 2 subscribers")
    assert (asked.status, "You signed in more than a day ago" in asked.said) == (401, True)
    assert (await office.press("Stop")).status == 303
    asked = await office.press("Mail it to 2 subscribers")
    assert (asked.status, "You signed in more than a day ago" in asked.said) == (401, True)
    assert (await office.found())["ended_at"]
    for verb in ("hold", "skip"):
        assert (await office.owner.post(f"{PATH}{row['id']}/{verb}/")).status == 409
        assert (await office.owner.post(f"{PATH}none/{verb}/")).status == 404


async def test_a_key_that_may_only_read_has_no_buttons(office: Office) -> None:
    """And one for some tables sees nothing."""
    await office.make()
    edge = office.newsletter.edge
    reader = await Browser(edge).sign_in(await edge.key("admin:read"))
    assert not (await reader.get(PATH)).tree.css("main form")
    assert "ann@" in (await reader.get(LIST)).said
    assert not (await reader.get(LIST)).tree.css("main form[method=post]")
    assert (await reader.post(f"{PATH}posts/first/release/", to="2")).status == 403
    few = await Browser(edge).sign_in(await edge.key(tables=("leads",)))
    assert (await few.get(PATH)).status == 403
    assert (await few.get(LIST)).status == 403


async def test_subscribers_are_found_and_ended_and_that_is_undone(office: Office) -> None:
    """By a part of the address, whose signs mean themselves; nothing there begins one."""
    await office.newsletter.add(f"100%{'_'}x@readers-club.net", source=HOSTILE)
    shown = await office.owner.get(f"{LIST}?email=BEN")
    assert [each.text() for each in shown.tree.css(".sentences bdi")] == [
        "ben@readers-club.net",
        "/journal/first/",
    ]
    for part in ("0%_x", "%"):
        found = await office.owner.get(f"{LIST}?email={part.replace('%', '%25')}")
        assert len(found.tree.css(".sentences li.apart")) == 1, part
    assert HOSTILE not in found.text
    for part in ("*", "\\", "nobody"):
        found = await office.owner.get(f"{LIST}?email={part}")
        assert "No subscriber is like this." in found.said, part
    pending = await office.owner.get(f"{LIST}?status=pending")
    assert "cy@readers-club.net asked 1 Jun 2026" in pending.said
    assert [each.text() for each in pending.tree.css("main form button")] == ["Find", "End"]

    ended = await office.owner.get((await office.press("End", shown)).to)
    assert "The subscription of ben@readers-club.net was ended" in ended.said
    assert "ended 1 Jun 2026, 12:00 UTC, by you" in ended.said
    row = await office.newsletter.subscriber("ben@readers-club.net")
    assert (row["status"], row["ended_by"]) == ("ended", "owner")
    again = await office.owner.post(f"{LIST}{row['id']}/end/")
    assert (again.status, "This subscription has ended" in again.said) == (404, True)
    undo = ended.one(".notice form")
    undone = await office.owner.post(str(undo.attributes["action"]))
    assert undone.status == 303
    assert (await office.newsletter.subscriber("ben@readers-club.net"))["status"] == "active"
    assert row["token"] not in (await office.owner.get("/desk/audit/")).text


async def test_who_left_by_the_link_is_not_taken_back_by_an_undo(office: Office) -> None:
    """The owner ends a subscription, the person presses the link, and the undo is refused."""
    shown = await office.owner.get((await office.press("End", await office.owner.get(LIST))).to)
    ended = [row for row in await office.newsletter.rows(SUBSCRIBERS) if row["ended_at"]]
    (row,) = ended
    undo = str(shown.one(".notice form").attributes["action"])
    await office.newsletter.page("POST", f"/unsubscribe?token={row['token']}")
    refused = await office.owner.post(undo)
    assert (refused.status, "has changed since, in ended_at, ended_by" in refused.said) == (
        409,
        True,
    )
    (row,) = await office.newsletter.rows(SUBSCRIBERS, Filter("id", "eq", row["id"]))
    assert (row["status"], row["ended_by"]) == ("ended", "link")


async def test_an_erased_subscriber_does_not_come_back(office: Office) -> None:
    """Erased after the owner ended the subscription: nothing is left that an undo could take."""
    page = await office.owner.get(f"{LIST}?email=ben")
    shown = await office.owner.get((await office.press("End", page)).to)
    service = office.newsletter.edge.service
    privacy = Privacy(service.store, service.clock, SECRET_KEY.encode())
    await privacy.erase("ben@readers-club.net", OPERATOR)
    refused = await office.owner.post(str(shown.one(".notice form").attributes["action"]))
    assert refused.status == 404
    emails = [row["email"] for row in await office.newsletter.rows(SUBSCRIBERS)]
    assert "ben@readers-club.net" not in emails
    assert await office.newsletter.rows(FORMER_ROWS) == []


@pytest.mark.parametrize("query", ["email=%00", "email=%ff", f"email={'x' * 3000}", "status=%00"])
async def test_a_search_for_anything_is_answered(office: Office, query: str) -> None:
    """With a list, or that there is nobody."""
    shown = await office.owner.get(f"{LIST}?{query}")
    assert shown.status == 200
    assert office.owner.cookie
    listed = shown.tree.css("li.apart")
    assert bool(listed) == query.startswith("status")


async def test_confirmations_that_wait_for_their_turn_are_told(office: Office) -> None:
    """Strangers who ask for many addresses make others wait."""
    for number in range(61):
        wish = {"email": f"r{number}@club.net", "language": "", "source": "/", "consent": "Yes"}
        await office.newsletter.edge.service[Subscribers].ask(wish)
    assert "1 confirmation waits: 60 go in an hour" in (await office.owner.get(PATH)).said
