"""The page of one message: its thread, the answer, and the way to the next message."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from edge_api.auth.actor import system_clock
from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.query import Insert
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, LEAD_MESSAGES, LEADS, SUPPRESSED_EMAILS
from edge_api.desk.message import reminders
from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.desk.conftest import LEAD, Browser, Response
from tests.edge.desk.test_inbox import ago, names_of, reply
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.each_engine
MAIL = {"OWNER_EMAIL": "o@mine.net", "MAIL_FROM": "desk@mine.net", "SMTP_URL": "smtp://127.0.0.1:9"}


def path_of(lead: Row) -> str:
    """Return the address of a message."""
    return f"/desk/leads/{lead['id']}/"


def form_of(shown: Response) -> dict[str, str]:
    """Return the answer's form as the page has it."""
    fields = shown.tree.css("form#answer :is(input, textarea), [form=answer][name]")
    return {
        str(each.attributes["name"]): each.attributes.get("value") or each.text().removeprefix("\n")
        for each in fields
        if each.attributes["name"] != "desk"
    }


async def press(owner: Browser, path: str, do: str, **typed: Any) -> Response:
    """Open a message, type, and press a button of its form."""
    form = form_of(await owner.get(path))
    return await owner.post(path.partition("?")[0], **{**form, "do": do, **typed})


async def test_one_press_leads_to_the_next_message(owner: Browser) -> None:
    """In the order and with the filters of the list, until all are answered."""
    for number in range(3):
        await owner.lead(
            name=f"n{number}", email=f"{number}@x.org", created_at=ago(hours=number + 1)
        )
    shown = await owner.get("/desk/leads/")
    first, second, third = (str(each.attributes["href"]) for each in shown.tree.css(".who"))
    page = await owner.get(second)
    assert "2 of 3" in page.one(".message-line").text()
    assert page.one("a[rel=prev]").attributes["href"] == first
    assert page.one("a[rel=next]").attributes["href"] == third

    done = await press(owner, second, "contacted")
    assert done.to.startswith(third)
    spam = await press(owner, third, "spam")
    assert spam.to.startswith("/desk/leads/?done=")
    assert names_of(await owner.get(spam.to)) == ["n0"]
    last = await owner.get((await press(owner, first, "contacted")).to)
    assert "All answered." in last.said
    back = await press(owner, third, "new")
    assert back.status == 303
    assert [row["status"] for row in await owner.rows(LEADS)].count("new") == 1


@pytest.mark.parametrize("query", ["?status=all&order=oldest", "?q=n&status=all", "?status=all"])
async def test_next_walks_the_list_across_pages(owner: Browser, query: str) -> None:
    """Each person once, leads of one instant too; the place is known on the first page."""
    rows = [
        make_row(
            LEADS,
            {**LEAD, "name": f"n{n}", "email": f"{n % 60}@x.org", "created_at": ago(hours=n // 7)},
        )
        for n in range(90)
    ]
    await owner.edge.service.store.run(Insert(LEADS, rows))
    path, listed, seen = f"/desk/leads/{query}", [], []
    while path:
        shown = await owner.get(path)
        listed += [str(each.attributes["href"]) for each in shown.tree.css(".who")]
        link = shown.tree.css_first("a[rel=next]")
        path = str(link.attributes["href"]) if link else ""
    path = listed[0]
    while path:
        shown = await owner.get(path)
        seen.append(path[12:48])
        assert f" {len(seen)} of 60 " in shown.one(".message-line").text()
        link = shown.tree.css_first("a[rel=next]")
        path = str(link.attributes["href"]) if link else ""
    assert seen[:60] == [each[12:48] for each in listed][:60]


async def test_a_thread_has_all_of_a_person(owner: Browser) -> None:
    """Oldest first, equal texts once, older ones folded; what came by mail says what it is."""
    leads = [await owner.lead(message=f"m{n}", created_at=ago(days=20 - n)) for n in range(8)]
    await owner.lead(email="ann@example.org.evil.net", message="another person")
    answer = {
        "lead_id": leads[0]["id"],
        "kind": "sent",
        "email": LEAD["email"],
        "body": "My answer",
    }
    answer = make_row(LEAD_MESSAGES, {**answer, "created_at": ago(days=1)})
    await owner.edge.service.store.run(Insert(LEAD_MESSAGES, [answer]))
    given = {
        "lead_id": leads[1]["id"],
        "kind": "received",
        "email": "ann@example.org",
        "body": "<i>",
    }
    given |= {"is_automatic": 1, "attachments": ["<b>.pdf", "x.exe"], "created_at": ago(hours=1)}
    await owner.edge.service.store.run(Insert(LEAD_MESSAGES, [make_row(LEAD_MESSAGES, given)]))
    shown = await owner.get(path_of(leads[3]))
    texts = [each.text() for each in shown.tree.css(".said .text")]
    assert texts == [*(f"m{n}" for n in range(8)), "My answer", "<i>"]
    assert len(shown.tree.css(".folded .said")) == 5
    assert "not verified \u00b7 automatic reply" in shown.said
    assert "Left in the mailbox: <b>.pdf, x.exe" in shown.said
    assert "10 messages since" in shown.said


async def test_a_reminder_hides_a_message_until_it_is_due(owner: Browser) -> None:
    """It goes to Waiting, in one change that can be undone; a wrong one is refused."""
    lead = await owner.lead(status="contacted")
    wrong = await press(owner, path_of(lead), "remind", remind="never", notes="kept")
    assert (wrong.status, "Choose when" in wrong.said) == (400, True)
    done = await press(owner, path_of(lead), "remind", remind="week")
    assert "The reminder of the message of Ann Lee was set" in (await owner.get(done.to)).said
    (row,) = await owner.rows(LEADS)
    left = datetime.fromisoformat(row["remind_at"]) - system_clock()
    assert timedelta(days=6) < left < timedelta(days=8)
    assert row["status"] == "new"
    assert names_of(await owner.get("/desk/leads/")) == []
    assert names_of(await owner.get("/desk/leads/?status=waiting")) == ["Ann Lee"]
    await owner.post(f"/desk/audit/{done.to.rpartition('=')[2]}/undo/")
    (row,) = await owner.rows(LEADS)
    assert (row["status"], row["remind_at"]) == ("contacted", None)
    await press(owner, path_of(lead), "remind", remind="tomorrow")
    await press(owner, path_of(lead), "contacted")
    assert (await owner.rows(LEADS))[0]["remind_at"] is None


async def test_a_reminder_is_changed_and_removed(owner: Browser) -> None:
    """The message waits already and keeps its status: its day alone is another, or none."""
    path = path_of(await owner.lead())
    await press(owner, path, "remind", remind="week")
    (first,) = await owner.rows(LEADS)
    moved = await press(owner, path, "remind", remind="tomorrow")
    (row,) = await owner.rows(LEADS)
    assert (row["status"], row["remind_at"] < first["remind_at"]) == ("new", True)
    await owner.post(f"/desk/audit/{moved.to.rpartition('=')[2]}/undo/")
    assert (await owner.rows(LEADS))[0]["remind_at"] == first["remind_at"]

    await press(owner, path, "new")
    assert (await owner.rows(LEADS))[0]["remind_at"] is None
    assert names_of(await owner.get("/desk/leads/")) == ["Ann Lee"]


@pytest.mark.parametrize(
    ("at", "wanted"),
    [
        ("2026-03-27T10:00", ("27 18:00+0100", "28 08:00+0100", "03 08:00+0200", "03 08:00+0200")),
        ("2026-03-28T19:00", ("29 18:00+0200", "29 08:00+0200", "03 08:00+0200", "04 08:00+0200")),
        ("2026-12-31T17:59", ("31 18:00+0100", "01 08:00+0100", "01 08:00+0100", "07 08:00+0100")),
    ],
)
def test_reminders_are_in_local_time(at: str, wanted: tuple[str, ...]) -> None:
    """Also across a change of the clocks, and late in the evening."""
    now = datetime.fromisoformat(at).replace(tzinfo=ZoneInfo("Europe/Berlin"))
    found = [f"{instant:%d %H:%M%z}" for _, instant in reminders(now).values()]
    assert tuple(found) == wanted


async def test_an_answer_is_sent_and_kept(make_edge: EdgeMaker) -> None:
    """It answers all that waits of the person; the next page says so, with its undo."""
    async with make_edge(**MAIL) as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        lead = await owner.lead(email="ann@mine.net", created_at=ago(days=2))
        await owner.lead(email="Ann@Mine.net", message="more", created_at=ago(days=1))
        other = await owner.lead(name="Bo", email="bo@mine.net", created_at=ago(days=3))
        empty = await press(owner, path_of(lead), "send", notes="A note")
        assert (empty.status, "the text is empty" in empty.said) == (400, True)
        assert (await owner.rows(LEADS))[0]["notes"] in ("A note", None)
        sent = await press(owner, path_of(lead), "send", text="Yes.\r\nGladly")
        assert sent.to.startswith(path_of(other))
        shown = await owner.get(sent.to)
        assert "Sent to Ann Lee in" in shown.one(".notice").text()
        statuses = {row["email"]: row["status"] for row in await owner.rows(LEADS)}
        assert statuses == {
            "ann@mine.net": "contacted",
            "Ann@Mine.net": "contacted",
            "bo@mine.net": "new",
        }
        assert [row["body"] for row in await owner.rows(LEAD_MESSAGES)] == ["Yes.\nGladly"]
        undo = str(shown.one(".notice form").attributes["action"])
        await owner.post(undo, back=path_of(lead))
        assert await owner.rows(EMAIL_OUTBOX) == []
        assert form_of(await owner.get(path_of(lead)))["text"] == "Yes.\nGladly"
        assert [row["status"] for row in await owner.rows(LEADS)] == ["new"] * 3


async def test_an_answer_to_what_was_not_read_is_kept_back(make_edge: EdgeMaker) -> None:
    """The person wrote again while the owner typed: the text stays, the reply is shown."""
    async with make_edge(**MAIL) as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        lead = await owner.lead(email="ann@mine.net")
        form = form_of(await owner.get(path_of(lead)))
        await reply(owner, lead, "Never mind", seconds=-5)
        late = await owner.post(path_of(lead), **{**form, "do": "send", "text": "Yes"})
        assert (late.status, "wrote again meanwhile" in late.said) == (409, True)
        assert late.one("#text").text().strip() == "Yes"
        assert "Never mind" in late.said
        assert await owner.rows(EMAIL_OUTBOX) == []


async def test_no_press_loses_what_was_typed(owner: Browser) -> None:
    """Notes and a draft are stored by every button; a saved reply is put behind the text."""
    lead = await owner.lead()
    path = path_of(lead)
    assert "No answer can be sent" in (await owner.get(path)).said
    done = await press(owner, path, "insert", text="Dear Ann,", reply="We are full.", notes="n")
    assert done.to.startswith(path)
    form = form_of(await owner.get(path))
    assert (form["text"], form["notes"]) == ("Dear Ann,\n\nWe are full.", "n")
    sent = await press(owner, path, "send", text="Better")
    assert (sent.status, "No answer can be sent" in sent.said) == (409, True)
    assert sent.one("#text").text().strip() == "Better"
    await press(owner, path, "contacted", text="Best", notes="m")
    form = form_of(await owner.get(path))
    assert (form["text"], form["notes"]) == ("Best", "m")
    await press(owner, path, "", text=" ")
    assert await owner.rows(LEAD_MESSAGES) == []


async def test_a_second_window_is_not_overwritten(owner: Browser) -> None:
    """The other's value is shown, the typed text stays; a second press replaces the value."""
    lead = await owner.lead()
    path = path_of(lead)
    form = form_of(await owner.get(path))
    await owner.post(path, **{**form, "text": "theirs", "notes": "theirs"})
    for field in ("text", "notes"):
        changed = {**form, "text": "theirs", "notes": "theirs", field: "mine"}
        late = await owner.post(path, **changed)
        assert (late.status, "Meanwhile this was changed to: theirs." in late.said) == (409, True)
        assert late.one(f"#{field}").text().strip() == "mine"
    own = {"text": "theirs \n and more", "was.text": "theirs \n", "notes": "theirs"}
    assert (await owner.post(path, **{**form, **own})).status == 303
    again = {**form_of(await owner.get(path)), "text": "mine", "notes": "mine"}
    assert (await owner.post(path, **again)).status == 303
    assert form_of(await owner.get(path))["notes"] == "mine"


async def test_a_second_window_sends_no_second_answer_unseen(make_edge: EdgeMaker) -> None:
    """It shows the first one, keeps what was typed, and sends at the next press."""
    async with make_edge(**MAIL) as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        path = path_of(await owner.lead(email="ann@mine.net"))
        other = form_of(await owner.get(path))
        first = {**other, "do": "send", "text": "Yes, <gladly>"}
        sent = [(await owner.post(path, **first)).to.rpartition("sent=")[2] for _ in range(2)]
        assert sent[0] == sent[1]  # a button that was pressed twice
        late = await owner.post(path, **{**other, "do": "send", "text": "No"})
        said = "The message of Ann Lee was answered meanwhile, by you: “Yes, <gladly>”."
        assert (late.status, said in late.one("[role=alert]").text()) == (409, True)
        assert late.one("#text").text().strip() == "No"
        assert "Yes, <gladly>" in late.one(".said.is-ours .text").text()
        assert len(await owner.rows(EMAIL_OUTBOX)) == 1
        again = await owner.post(path, **{**form_of(late), "do": "send"})
        assert again.status == 303
        assert {row["id"] for row in await owner.rows(EMAIL_OUTBOX)} > {sent[0]}


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("contacted", "spam", "The message of Ann Lee marked as answered meanwhile, by the key"),
        ("spam", "remind", "The message of Ann Lee marked as spam meanwhile, by the key"),
        ("remind", "contacted", "The reminder of the message of Ann Lee was set meanwhile, by"),
        ("contacted", "contacted", ""),
        ("remind", "remind", ""),
        ("", "spam", ""),  # saves notes alone
    ],
)
async def test_a_second_window_marks_nothing_unseen(
    edge: RunningEdge, owner: Browser, first: str, second: str, said: str
) -> None:
    """The page names the mark and who set it; the same button again is meant."""
    helper = await Browser(edge).sign_in(await edge.key())
    path = path_of(await owner.lead())
    form = {**form_of(await owner.get(path)), "remind": "week"}
    theirs = {**form_of(await helper.get(path)), "remind": "week", "notes": "theirs"}
    assert (await helper.post(path, **{**theirs, "do": first})).status == 303
    (marked,) = await owner.rows(LEADS)
    late = await owner.post(path, **{**form, "do": second, "text": "My words"})
    if said:
        assert (late.status, said in late.one("[role=alert]").text()) == (409, True)
        assert late.one("#text").text().strip() == "My words"
        assert await owner.rows(LEADS) == [marked]
        late = await owner.post(path, **{**form_of(late), "do": second, "remind": "week"})
    assert late.status == 303
    (row,) = await owner.rows(LEADS)
    assert (row["status"], row["remind_at"] is None) == (
        "new" if second == "remind" else second,
        second != "remind",
    )


async def test_text_typed_for_an_erased_person_is_shown_again(owner: Browser) -> None:
    """Another window erased them: nothing is stored, and the owner can copy the text."""
    path = path_of(await owner.lead())
    form = form_of(await owner.get(path))
    assert (await owner.post(f"{path}erase/", sure="yes")).status == 200
    late = await owner.post(path, **{**form, "text": "typed for an hour", "notes": "a note"})
    assert late.status == 404
    assert ("typed for an hour" in late.said, "a note" in late.said) == (True, True)
    assert await owner.rows(LEAD_MESSAGES) == await owner.rows(LEADS) == []


async def test_a_status_is_chosen(owner: Browser) -> None:
    """One that changed meanwhile is said, an unknown one refused; what is won waits no more."""
    lead = await owner.lead()
    path = path_of(lead)
    await press(owner, path, "remind", remind="week")
    assert (await owner.post(path, status="won", **{"was.status": "new"})).to.startswith(path)
    (row,) = await owner.rows(LEADS)
    assert row["status"] == "won"
    assert names_of(await owner.get("/desk/leads/?status=waiting")) == []
    late = await owner.post(path, status="lost", **{"was.status": "new"})
    assert (late.status, "Meanwhile this was changed to: won" in late.said) == (409, True)
    assert (await owner.post(path, status="x", **{"was.status": "won"})).status == 400


async def test_an_address_is_mailed_no_more_and_again(make_edge: EdgeMaker) -> None:
    """With the reason beside it; who wanted no mail is mailed again after a tick alone."""
    async with make_edge(**MAIL) as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        lead = await owner.lead(email="ann@mine.net")
        button = (await owner.get(path_of(lead))).one("form[action='/desk/suppressed/']")
        given = {
            str(e.attributes["name"]): e.attributes["value"] for e in button.css("[type=hidden]")
        }
        done = await owner.post("/desk/suppressed/", **given)
        assert done.to.startswith(path_of(lead))
        shown = await owner.get(done.to)
        assert "No mail has gone to this address since today: the person wants none." in shown.said
        assert "The address is suppressed" in shown.one("form#answer").text()
        assert "disabled" in shown.one("[value=send]").attributes
        assert shown.one("form#answer a[href^=mailto]")
        undo = str(shown.one(".notice form").attributes["action"])
        await owner.post(undo)
        assert await owner.rows(SUPPRESSED_EMAILS) == []
        helper = await Browser(edge).sign_in(
            await edge.key("admin:read", "admin:write", tables=("leads",))
        )
        assert "Do not mail" not in (await helper.get(path_of(lead))).said


async def test_a_message_is_text_for_who_may_only_read(edge: RunningEdge) -> None:
    """No form that does nothing; and mail that a key may not see is not called unsent."""
    browser = await Browser(edge).sign_in(await edge.key("admin:read", tables=("leads",)))
    lead = await browser.lead(notes="Called.")
    sent = make_row(LEAD_MESSAGES, {"lead_id": lead["id"], "kind": "sent", "email": lead["email"]})
    about = {"message_id": sent["id"], "template_name": "lead_answer", "status": "bounced"}
    log = {**about, "recipient_email": lead["email"], "error_message": "550 at mx.secret.test"}
    inserts = Insert(LEAD_MESSAGES, [sent]), Insert(EMAIL_SEND_LOG, [make_row(EMAIL_SEND_LOG, log)])
    await edge.service.store.run(*inserts)
    shown = await browser.get(path_of(lead))
    assert "mx.secret.test" not in shown.text
    assert "NotesCalled.Statusnew" in shown.said
    assert shown.tree.css("main form:not([action='/desk/sign-out/'])") == []
    assert "None was sent" not in shown.said
    assert "Your key may not see it: it is not for the table email_send_log." in shown.said
