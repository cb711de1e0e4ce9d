"""Actions of the owner at the desk: each with its undo and its safeguards."""

import csv
import io
import json
import re
import time
from pathlib import Path
from uuid import UUID

import pytest

from edge_api.access.service import AccessRequestInput, AccessRequests
from edge_api.auth.actor import recent_entries, system_clock
from edge_api.auth.keys import Keys
from edge_api.db.internal_tables import ACCESS_REQUESTS, DESK_SESSIONS, EMAIL_OUTBOX, FORMER_ROWS
from edge_api.db.query import Insert
from edge_api.db.tables import (
    CREDENTIALS,
    EMAIL_SEND_LOG,
    EMAIL_SEND_STATE,
    LEADS,
    SUPPRESSED_EMAILS,
)
from edge_api.health import PublishingMonitor
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, SCOPES
from edge_api.schema.index import CURRENT_LINK, HELD_FILE
from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.desk.conftest import LEAD, Browser, Response
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.each_engine
SCREENS = (
    "/desk/",
    "/desk/leads/",
    "/desk/tables/",
    "/desk/tables/leads/",
    "/desk/tables/email_send_state/1/",
    "/desk/tables/leads/new/",
    "/desk/settings/",
    "/desk/suppressed/",
    "/desk/webhooks/",
    "/desk/access/",
    "/desk/mail/",
    "/desk/audit/",
)


@pytest.mark.parametrize("path", SCREENS)
async def test_each_screen_is_for_who_signed_in(edge: RunningEdge, path: str) -> None:
    """Others are sent to sign in; nobody may keep, index or frame a screen."""
    stranger = Browser(edge)
    sent = await stranger.get(path)
    assert (sent.status, sent.to.startswith("/desk/sign-in/?to=%2Fdesk%2F")) == (303, True)

    await stranger.sign_in(await edge.key())
    shown = await stranger.get(path)

    assert shown.status == 200
    assert shown.headers["Cache-Control"] == "no-store"
    assert shown.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert shown.headers["Referrer-Policy"] == "same-origin"
    assert "frame-ancestors 'none'" in shown.headers["Content-Security-Policy"]
    head = await stranger.ask("HEAD", path)
    assert (head.status, head.text) == (200, "")


async def test_a_note_is_stored_and_undone(owner: Browser) -> None:
    """Two presses and the typing; the notice has the undo."""
    lead = await owner.lead()
    path = f"/desk/leads/{lead['id']}/"
    assert "Hello you" in (await owner.get(path)).said

    saved = await owner.post(path, notes="Called.\r\nAgain", **{"was.notes": "", "status": "new"})
    done = await owner.get(saved.to)
    assert (await owner.rows(LEADS))[0]["notes"] == "Called.\nAgain"
    assert "The notes on the message of Ann Lee were saved" in done.said

    again = await owner.post(path, back=saved.to, notes="Called.\nAgain", **{"was.notes": ""})
    assert again.to == path, "nothing was changed, so nothing is reported"

    form = done.tree.css_first(".notice form")
    assert form is not None
    back = await owner.post(str(form.attributes["action"]), back=path)
    assert back.to.startswith(path)
    second = await owner.post(str(form.attributes["action"]), back=path)
    assert (second.status, "was undone already" in second.said) == (404, True)
    assert (await owner.rows(LEADS))[0]["notes"] is None


async def test_a_stale_form_says_what_changed(owner: Browser) -> None:
    """The typed text is kept, the other's value is shown, and a second try may overwrite it."""
    lead = await owner.lead(notes="old")
    path = f"/desk/leads/{lead['id']}/"
    await owner.post(path, notes="theirs", **{"was.notes": "old"})

    stale = await owner.post(path, notes="mine", **{"was.notes": "old"})
    assert stale.status == 409
    assert "Meanwhile this was changed to: theirs." in stale.said
    assert stale.one("#notes").text().strip() == "mine"
    again = await owner.post(path, notes="mine", **{"was.notes": "theirs"})
    assert again.status == 303
    assert (await owner.rows(LEADS))[0]["notes"] == "mine"


async def test_a_second_press_does_nothing_twice(owner: Browser) -> None:
    """Saved, marked and deleted once each, however often it is pressed."""
    lead = await owner.lead()
    for _ in range(2):
        await owner.post(f"/desk/leads/{lead['id']}/", notes="x", **{"was.notes": ""})
    for _ in range(2):
        assert (await owner.post("/desk/leads/mark/", id=lead["id"], status="won")).status == 303
    for _ in range(2):
        deleted = await owner.post(f"/desk/tables/leads/{lead['id']}/delete/")
        assert deleted.status == 303

    entries = await recent_entries(owner.edge.service.store, 20)
    verbs = [each["verb"] for each in entries if each["table_name"] == "leads"]
    assert verbs == ["delete", "update", "update"]


async def test_leads_are_marked_together_and_one_is_no_spam(owner: Browser) -> None:
    """A form that lacks ticks or a status comes back and says so."""
    leads = [await owner.lead(status="spam", name=f"n{number}") for number in range(3)]
    ids = [each["id"] for each in leads]
    await owner.post("/desk/leads/mark/", id=ids[:2], status="contacted", back="/desk/leads/")
    await owner.post("/desk/leads/mark/", one=f"{ids[2]} new", back="/desk/leads/?status=spam")
    assert sorted(row["status"] for row in await owner.rows(LEADS)) == ["contacted"] * 2 + ["new"]

    none = await owner.post("/desk/leads/mark/", status="won", back="/desk/leads/?q=n1")
    assert (none.status, "Tick at least one message" in none.said) == (400, True)
    assert none.one("[name=q]").attributes["value"] == "n1"
    assert (await owner.post("/desk/leads/mark/", id=ids, status="x")).status == 400
    for one in (" ", "x", "new", f"{ids[0]} x y"):
        assert (await owner.post("/desk/leads/mark/", one=one)).status == 400


async def test_the_inbox_finds_sorts_and_hands_out(owner: Browser) -> None:
    """Spam is shown only when it is asked for; the filters hold for the CSV too."""
    await owner.lead(name="Zoë Straße", message="Über uns")
    await owner.lead(name="=1+1", status="spam", message="buy")
    found = (await owner.get("/desk/leads/?q=straße+ÜBER")).said
    assert ("Zoë" in found, "at most" in found) == (True, False)
    assert "No message has" in (await owner.get("/desk/leads/?q=nothing")).said
    assert "=1+1" not in (await owner.get("/desk/leads/")).said
    assert "=1+1" in (await owner.get("/desk/leads/?status=spam&order=oldest&page=zz")).said
    assert (await owner.get("/desk/leads/?status=none")).status == 400
    sheet = await owner.get("/desk/leads.csv?status=spam")
    assert sheet.headers["Content-Type"].startswith("text/csv")
    assert "'=1+1" in sheet.text
    assert (await owner.get("/desk/leads.csv?status=spam&page=2")).text == sheet.text


async def test_a_row_is_edited_and_deleted(owner: Browser) -> None:
    """Errors are shown at their fields; NULL is an empty field; JSON is read as JSON."""
    lead = await owner.lead(notes="n", spam_score=3)
    path = f"/desk/tables/leads/{lead['id']}/"
    wrong = await owner.post(
        path, name="", spam_score="x", spam_reasons="[", **{"was.name": "Ann Lee"}
    )
    assert wrong.status == 400
    assert "spam_score must be a whole number." in wrong.said
    assert "spam_reasons must be JSON." in wrong.said
    assert (await owner.post(path, name="", **{"was.name": "Ann Lee"})).status == 400
    await owner.post(path, notes="", spam_reasons='["a"]', spam_score="4")
    (row,) = await owner.rows(LEADS)
    assert (row["notes"], row["spam_reasons"], row["spam_score"]) == (None, ["a"], 4)

    await owner.post(f"{path}delete/")
    assert await owner.rows(LEADS) == []
    gone = await owner.get(path)
    assert (gone.status, "it may be deleted" in gone.said) == (404, True)
    await owner.post("/desk/tables/email_send_state/1/", batch_size="7")
    assert (await owner.rows(EMAIL_SEND_STATE))[0]["batch_size"] == 7


async def test_a_column_of_json_is_shown_whatever_is_in_it(owner: Browser) -> None:
    """The column has any JSON; the inbox and the lead show it."""
    lead = await owner.lead(spam_reasons=["many links", "repeated"])
    paths = ("/desk/leads/", f"/desk/leads/{lead['id']}/")
    for path in paths:
        assert "many links, repeated" in (await owner.get(path)).said
    row = f"/desk/tables/leads/{lead['id']}/"
    for text in ("5", "true", '"one"', '{"a":1}', "[1,[2]]", "0", "[]"):
        assert (await owner.post(row, spam_reasons=text)).status == 303
        shown = [await owner.get(path) for path in paths]
        assert [each.status for each in shown] == [200, 200], text
        assert text not in ("5", '"one"') or all(text.strip('"') in each.said for each in shown)


@pytest.mark.parametrize("key", ["9" * 30, "9" * 18, "-1", "x", "\u00b2", "%00"])
async def test_a_key_that_no_row_can_have_is_not_found(owner: Browser, key: str) -> None:
    """Not even the engine is asked for a number that it cannot store."""
    assert (await owner.get(f"/desk/tables/email_send_state/{key}/")).status == 404
    assert (await owner.post(f"/desk/tables/email_send_state/{key}/", x="")).status == 404


async def test_rows_are_filtered_by_the_address(owner: Browser) -> None:
    """The form adds to the dialect of the administrative interface; a fault is a sentence."""
    for number in range(3):
        await owner.lead(name=f"n{number}")
    shown = await owner.get(
        "/desk/tables/leads/?name=neq.n0&column=name&operator=neq&value=n1&order=name.asc"
    )
    assert ("n2" in shown.said, "n1" in shown.said.partition("Row")[2]) == (True, False)
    added = "/desk/tables/leads/?limit=1&order=name.asc&column=name&operator=neq&value=n1"
    following = (await owner.get(added)).one("a[rel=next]").attributes["href"]
    assert "Rows 2 to 2" in (await owner.get(str(following))).said
    assert "id: is not a UUID" in (await owner.get("/desk/tables/leads/?id=eq.x")).said
    assert (await owner.get("/desk/tables/nothing/")).status == 404


async def ask_for_access(
    edge: RunningEdge, scopes: str = "posts:read admin:read", kind: str = "api_key"
) -> str:
    """File a request; return its id."""
    given = {"type": kind, "name": "Bot", "purpose": "Read.", "scopes": scopes.split()}
    wish = AccessRequestInput.model_validate(given)
    return str((await edge.service[AccessRequests].submit(wish, "192.0.2.1")).row["id"])


async def test_requests_are_decided_and_a_denial_is_undone(owner: Browser) -> None:
    """Nothing is granted without a tick; what is decided is not decided twice."""
    first, second = await ask_for_access(owner.edge), await ask_for_access(owner.edge)
    path = f"/desk/access/requests/{first}"
    assert (await owner.post(f"{path}/approve/")).status == 400
    await owner.post(f"{path}/approve/", scope=["posts:read"])
    assert (await owner.post(f"{path}/approve/", scope=["posts:read"])).status == 409
    done = await owner.post(f"/desk/access/requests/{second}/deny/")
    rows = {row["id"]: row for row in await owner.rows(ACCESS_REQUESTS)}
    assert (rows[first]["status"], rows[first]["scopes"]) == ("approved", "posts:read")
    assert rows[second]["status"] == "denied"
    await owner.post(f"/desk/audit/{done.to.rpartition('=')[2]}/undo/")
    rows = {row["id"]: row for row in await owner.rows(ACCESS_REQUESTS)}
    assert rows[second]["status"] == "pending"


def ticked(shown: Response, name: str, form: str) -> list[str]:
    """Return the values of the ticked boxes of a member in one form."""
    boxes = shown.tree.css(f'form[action="{form}"] [name={name}][checked]')
    return [str(each.attributes["value"]) for each in boxes]


async def test_one_press_approves_no_more_than_the_command_line_does(owner: Browser) -> None:
    """Every scope is there to tick; a form that comes back is as it was sent."""
    asked = await ask_for_access(owner.edge, "posts:read admin:read admin:write")
    other = await ask_for_access(owner.edge, "posts:read mcp", "access_token")
    path = f"/desk/access/requests/{asked}/approve/"
    shown = await owner.get("/desk/access/")
    assert ticked(shown, "scope", path) == ["posts:read"]
    boxes = shown.tree.css(f'form[action="{path}"] [name=scope]')
    assert [each.attributes["value"] for each in boxes] == [*SCOPES, PUBLISH_WITH_ENQUIRIES]
    second = path.replace(asked, other)
    assert ticked(shown, "scope", second) == ["posts:read", "mcp"]

    none = await owner.post(path)
    assert (none.status, ticked(none, "scope", path)) == (400, [])
    assert ticked(none, "scope", second) == ["posts:read", "mcp"]
    assert "posts:read" in ticked(none, "scope", "/desk/access/keys/")


async def test_a_faulty_form_of_a_key_keeps_its_ticks(owner: Browser) -> None:
    """Without a ticked table a key is for all of them, so that a lost tick grants more."""
    path = "/desk/access/keys/"
    form = {"name": "n", "type": "access_token", "scope": ["posts:read", "leads:read"]}
    wrong = await owner.post(path, table=["leads"], once=SUBJECT, **form)
    assert (wrong.status, "needs the scope mcp" in wrong.said) == (400, True)
    assert ticked(wrong, "scope", path) == ["posts:read", "leads:read"]
    assert ticked(wrong, "table", path) == ["leads"]


async def test_keys_are_issued_once_rotated_and_revoked(owner: Browser) -> None:
    """The secret is shown once; pressing again issues no second key."""
    once = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"
    form = {"name": "Bot", "scope": ["posts:read"], "table": ["leads"], "once": once}
    issued = await owner.post("/desk/access/keys/", expires="2999-01-01", **form)
    secret = issued.one(".secret").text()
    assert secret.startswith("fe_sk_")
    assert await Keys(owner.edge.service.store, system_clock).allows(
        secret, frozenset({"posts:read"})
    )
    again = await owner.post("/desk/access/keys/", **form)
    assert (again.status, secret in again.text) == (409, False)
    assert (await owner.post("/desk/access/keys/", expires="soon", **form)).status == 400
    assert (await owner.post("/desk/access/keys/", name="Bot")).status == 400
    assert (await owner.post("/desk/access/keys/", **{**form, "name": ""})).status == 400

    rotated = await owner.post(f"/desk/access/keys/{once}/rotate/")
    assert rotated.one(".secret").text() != secret
    assert (await owner.post(f"/desk/access/keys/{once}/rotate/")).status == 409
    await owner.post(f"/desk/access/keys/{once}/revoke/")
    (row,) = [row for row in await owner.rows(CREDENTIALS) if row["id"] == once]
    assert row["revoked_at"]
    before = await recent_entries(owner.edge.service.store, 20)
    second = await owner.post(f"/desk/access/keys/{once}/revoke/")
    assert (second.status, "was revoked already" in second.said) == (409, True)
    assert await recent_entries(owner.edge.service.store, 20) == before
    assert (await owner.post("/desk/access/keys/none/revoke/")).status == 404


async def test_sessions_are_listed_and_ended(owner: Browser) -> None:
    """An ended session is signed out at its next request."""
    other = await Browser(owner.edge).sign_in(await owner.edge.key())
    rows = sorted(await owner.rows(DESK_SESSIONS), key=lambda row: row["created_at"])
    await owner.post(f"/desk/access/sessions/{rows[1]['id']}/end/")
    assert (await other.get("/desk/")).status == 303
    assert (await owner.get("/desk/access/")).said.count("this one") == 1


async def test_mail_that_was_given_up_is_retried_or_discarded(owner: Browser) -> None:
    """One of them or all; a discarded one comes back by undo."""
    store = owner.edge.service.store
    dead = {"queue": "transactional", "template_name": "lead_notification", "attempts": 3}
    dead |= {"recipient_email": "o@example.org", "dead_at": "2026-06-01T12:00:00.000000Z"}
    rows = [make_row(EMAIL_OUTBOX, {**dead, "subject_id": SUBJECT}) for _ in range(3)]
    await store.run(Insert(EMAIL_OUTBOX, rows))
    assert (await owner.get("/desk/mail/")).said.count("o@example.org") == 3
    done = await owner.post("/desk/mail/discard/", id=rows[0]["id"])
    assert len(await owner.rows(EMAIL_OUTBOX)) == 2
    await owner.post(f"/desk/audit/{done.to.rpartition('=')[2]}/undo/")
    assert len(await owner.rows(EMAIL_OUTBOX)) == 3
    await owner.post("/desk/mail/retry/", id=rows[1]["id"])
    assert sum(row["dead_at"] is None for row in await owner.rows(EMAIL_OUTBOX)) == 1
    await owner.post("/desk/mail/discard/")
    assert len(await owner.rows(EMAIL_OUTBOX)) == 1
    assert (await owner.post("/desk/mail/retry/", id=rows[0]["id"])).status == 404


SUBJECT = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"


async def test_a_person_is_exported_and_erased(owner: Browser) -> None:
    """Everything about them goes, former rows included, and nothing else."""
    lead, kept = await owner.lead(), await owner.lead(email="bo@example.org")
    path = f"/desk/leads/{lead['id']}"
    await owner.post(f"{path}/", notes="secret", **{"was.notes": ""})
    person = json.loads((await owner.get(f"{path}/person.json")).text)
    assert person["leads"][0]["notes"] == "secret"
    assert len(person["former_rows"]) == 1

    unsure = await owner.post(f"{path}/erase/")
    assert (unsure.status, "Tick this first" in unsure.said) == (400, True)
    erased = await owner.post(f"{path}/erase/", sure="yes")
    assert (erased.status, "leads: 1 row" in erased.said) == (200, True)
    assert "What this does not reach" in erased.said
    assert "Logs of a proxy before the edge: as long as it keeps them." in erased.said
    assert [row["id"] for row in await owner.rows(LEADS)] == [kept["id"]]
    assert await owner.rows(FORMER_ROWS) == []
    assert (await owner.get(f"{path}/")).status == 404


async def test_an_export_keeps_nobody_waiting(owner: Browser) -> None:
    """The former rows of others' long notes cost the processor next to nothing."""
    lead, other = await owner.lead(notes="x" * 20_000), await owner.lead(email="b@example.org")
    for status in ("contacted", "won", "lost"):
        await owner.post("/desk/leads/mark/", id=lead["id"], status=status)
    start = time.process_time()
    person = json.loads((await owner.get(f"/desk/leads/{other['id']}/person.json")).text)
    assert (len(person["leads"]), person["former_rows"]) == (1, [])
    assert time.process_time() - start < 3


async def test_an_undo_that_comes_too_late_says_why(owner: Browser) -> None:
    """The audit page says which row changed since, and by whom."""
    row = make_row(SUPPRESSED_EMAILS, {"email": "a@b.test", "reason": "bounce"})
    await owner.edge.service.store.run(Insert(SUPPRESSED_EMAILS, [row]))
    path = f"/desk/tables/suppressed_emails/{row['id']}/"
    first = await owner.post(path, reason="complaint", **{"was.reason": "bounce"})
    await owner.post(path, reason="unsubscribe", **{"was.reason": "complaint"})
    late = await owner.post(f"/desk/audit/{first.to.rpartition('=')[2]}/undo/")
    assert (late.status, "has changed since, in reason" in late.said) == (409, True)
    links = (await owner.get("/desk/audit/")).tree.css(".sentences a")
    assert [each.attributes["href"] for each in links] == [path, path]
    assert (await owner.post(f"/desk/audit/{SUBJECT}/undo/")).status == 404


async def test_a_lead_says_at_its_top_that_mail_came_back(owner: Browser) -> None:
    """Mail of the owner to that address is likely to come back too."""
    lead = await owner.lead()
    log = {"template_name": "x", "recipient_email": lead["email"], "status": "bounced"}
    await owner.edge.service.store.run(Insert(EMAIL_SEND_LOG, [make_row(EMAIL_SEND_LOG, log)]))
    shown = await owner.get(f"/desk/leads/{lead['id']}/")
    assert shown.one(".message-side .fault").text().startswith("Mail to this address: bounced")


async def test_spellings_of_an_address_are_one_person(owner: Browser) -> None:
    """Their messages are one thread, and mail that came back is shown with each of them."""
    spellings = ("p9@example.net", "P9@Example.NET")
    leads = [await owner.lead(email=each, message=f"from {each}") for each in spellings]
    await owner.lead(email="op9@example.net", message=f"I know {spellings[0]}")
    log = {"template_name": "x", "recipient_email": spellings[0], "status": "bounced"}
    await owner.edge.service.store.run(Insert(EMAIL_SEND_LOG, [make_row(EMAIL_SEND_LOG, log)]))
    for lead in leads:
        shown = await owner.get(f"/desk/leads/{lead['id']}/")
        texts = [each.text() for each in shown.tree.css(".said .text")]
        assert texts == [f"from {each}" for each in spellings]
        assert "Mail to this address: bounced" in shown.said


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 2501), ("?order=oldest", 2501), ("?q=ann", 2501), ("?q=n77&order=oldest", 11)],
)
async def test_a_sheet_has_all_leads_that_are_found(owner: Browser, query: str, count: int) -> None:
    """However many there are, in the order of the inbox; a search too, beyond what a page shows."""
    at = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")  # many of one instant
    rows = [
        make_row(LEADS, {**LEAD, "name": f"n{number}", "created_at": at[number // 1250 % 2]})
        for number in range(2501)
    ]
    await owner.edge.service.store.run(Insert(LEADS, rows))
    await owner.lead(name="n77 n770 Eve", status="spam")
    sheet = list(csv.DictReader(io.StringIO((await owner.get(f"/desk/leads.csv{query}")).text)))
    assert (len(sheet), len({row["id"] for row in sheet})) == (count, count)
    order = [(row["created_at"], row["id"]) for row in sheet]
    assert order == sorted(order, reverse="oldest" not in query)


async def test_signs_of_spam_are_words(owner: Browser) -> None:
    """Words that an owner reads, what somebody else wrote there as it is."""
    signs = ["call_to_buy", "sales_pitch", "odd_one", {"a": 1}]
    lead = await owner.lead(spam_reasons=signs, spam_score=6)
    await owner.lead(email="bo@example.org", spam_reasons="by hand", spam_score=6)
    for path in ("/desk/leads/", f"/desk/leads/{lead['id']}/"):
        said = (await owner.get(path)).said
        assert "call to buy, sales pitch, odd_one, {'a': 1}" in said
    assert "by hand" in (await owner.get("/desk/leads/")).said


async def test_the_inbox_shows_mail_that_came_back(owner: Browser) -> None:
    """In any case of the letters; a key that may not see the mail is not shown it."""
    for email in ("p9@example.net", "P9@Example.NET", "q@example.net"):
        await owner.lead(email=email)
    for address, status in (("p9@example.net", "bounced"), ("q@example.net", "sent")):
        log = {"template_name": "x", "recipient_email": address, "status": status}
        await owner.edge.service.store.run(Insert(EMAIL_SEND_LOG, [make_row(EMAIL_SEND_LOG, log)]))
    for tables, times in ((), 2), (("leads",), 0):
        browser = await Browser(owner.edge).sign_in(await owner.edge.key(tables=tables))
        shown = (await browser.get("/desk/leads/")).said
        assert shown.count("mail came back") == (1 if times else 0)


async def test_rows_are_sorted_as_the_form_says(owner: Browser) -> None:
    """Without an order of the address the newest are first."""
    for day in (2, 3, 1):
        await owner.lead(name=f"n{day}", created_at=f"2026-06-0{day}T12:00:00.000000Z")
    plain = await owner.get("/desk/tables/leads/")
    said = plain.one("#order option[selected]").attributes["value"]
    chosen = await owner.get(f"/desk/tables/leads/?order={said}")
    rows, same = ([each.html for each in page.tree.css("tbody tr")] for page in (plain, chosen))
    assert (len(rows), rows) == (3, same)
    assert re.findall(r"n[123]", plain.one("tbody").text()) == ["n3", "n2", "n1"]


async def test_held_notices_are_said_to_become_one_mail(owner: Browser) -> None:
    """Else many cards look like many mails."""
    held = {"queue": "transactional", "template_name": "owner_summary", "subject_id": SUBJECT}
    held["recipient_email"] = "o@example.org"
    rows = [make_row(EMAIL_OUTBOX, held) for _ in range(3)]
    await owner.edge.service.store.run(Insert(EMAIL_OUTBOX, rows))
    answer = {**held, "template_name": "lead_answer"}
    others = [make_row(EMAIL_OUTBOX, answer) for _ in range(2)]
    await owner.edge.service.store.run(Insert(EMAIL_OUTBOX, others))
    shown = (await owner.get("/desk/mail/")).said
    assert "3 notices become one mail, at" in shown
    assert "2 answers wait, the next at" in shown


async def test_the_two_leads_of_a_long_message_show_each_other(owner: Browser) -> None:
    """Each links to the other, until that one is deleted."""
    ids = [str(UUID(int=number)) for number in (1, 2)]
    first = await owner.lead(id=ids[0], other_part=ids[1], created_at="2026-06-01T12:00:00Z")
    await owner.lead(id=ids[1], other_part=ids[0], created_at="2026-06-01T12:00:00.000001Z")
    path = f"/desk/leads/{first['id']}/"

    assert "This message goes on in the next one" in (await owner.get(path)).said
    assert "This is the rest of the one before" in (await owner.get(f"/desk/leads/{ids[1]}/")).said
    await owner.post(f"/desk/tables/leads/{ids[1]}/delete/")
    assert "which is no longer here" in (await owner.get(path)).said


async def test_one_press_is_one_change_and_one_undo(owner: Browser) -> None:
    """Spam and others, marked together, are what they were again."""
    hidden = await owner.lead(status="spam", spam_score=8)
    fresh = await owner.lead(message="another", spam_score=2)
    before = {row["id"]: row for row in await owner.rows(LEADS)}
    ticked = [hidden["id"], fresh["id"]]
    done = await owner.post("/desk/leads/mark/", id=ticked, status="contacted")
    assert {row["status"] for row in await owner.rows(LEADS)} == {"contacted"}
    assert "2 messages marked as answered" in (await owner.get(done.to)).said
    await owner.post(f"/desk/audit/{done.to.rpartition('=')[2]}/undo/")
    after = {row["id"]: row for row in await owner.rows(LEADS)}
    names = ("status", "spam_score")
    assert all(after[key][name] == before[key][name] for key in before for name in names)


async def test_a_lead_that_changed_meanwhile_is_not_freed(owner: Browser) -> None:
    """The page said spam, and another window has won it."""
    lead = await owner.lead(status="spam", spam_score=8)
    path = f"/desk/leads/{lead['id']}/"
    await owner.post("/desk/leads/mark/", one=f"{lead['id']} won")
    answer = await owner.post(path, status="new", notes="x", **{"was.status": "spam"})
    assert (answer.status, "Meanwhile this was changed to: won" in answer.said) == (409, True)
    assert [row["status"] for row in await owner.rows(LEADS)] == ["won"]


@pytest.mark.parametrize("way", ["inbox", "button"])
async def test_a_hidden_lead_is_taken_back_with_its_notice(make_edge: EdgeMaker, way: str) -> None:
    """Once, however often it is pressed; looking changes nothing; what was in the inbox had one."""
    async with make_edge(OWNER_EMAIL="o@x.org", SMTP_URL="smtp://127.0.0.1:9") as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        hidden = await owner.lead(status="spam", spam_score=8, spam_reasons=["link", "wares"])
        by_hand = await owner.lead(email="bo@example.org", status="spam", spam_score=4)
        assert "2 in spam" in (await owner.get("/desk/")).said  # both are of one person
        shown = (await owner.get("/desk/leads/?status=spam")).said
        assert "link, wares" in shown
        assert await owner.rows(EMAIL_OUTBOX) == []

        for lead in (hidden, hidden, by_hand):
            path = f"/desk/leads/{lead['id']}/"
            if way == "inbox":
                await owner.post("/desk/leads/mark/", one=f"{lead['id']} new")
            else:
                await owner.post(path, do="new")
        assert {row["status"] for row in await owner.rows(LEADS)} == {"new"}
        assert {row["spam_score"] for row in await owner.rows(LEADS)} == {0}
        entries = await owner.rows(EMAIL_OUTBOX)
        assert [(row["template_name"], row["subject_id"]) for row in entries] == [
            ("lead_notification", hidden["id"])
        ]


async def test_files_that_are_held_back_are_named_to_the_owner_alone(
    owner: Browser, tmp_path: Path
) -> None:
    """With what is wrong, as text; a key for leads alone sees none of it."""
    monitor = owner.edge.service[PublishingMonitor]
    monitor.build_dir = tmp_path
    (tmp_path / CURRENT_LINK).mkdir()
    held = "posts/<b>.md:3: `slug` is 'a b'; use letters"
    (tmp_path / CURRENT_LINK / HELD_FILE).write_text(json.dumps([held]))
    await monitor.refresh()

    shown = await owner.get("/desk/")
    assert f"Not shown as it is: {held}." in shown.said
    helper = await Browser(owner.edge).sign_in(
        await owner.edge.key("admin:read", tables=("leads",))
    )
    shown = await helper.get("/desk/")
    assert (shown.status, "posts/" in shown.said) == (200, False)
