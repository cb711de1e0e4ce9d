"""Settings at the desk: what can be read there, suppressed addresses, and rows that are added."""

import asyncio
from typing import Any

import pytest

from edge_api.auth.actor import recent_entries
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS, SUPPRESSED_EMAILS
from edge_api.mail.suppressions import is_suppressed
from tests.edge.conftest import EdgeMaker
from tests.edge.desk.conftest import Browser

pytestmark = pytest.mark.each_engine

SUPPRESSED = "/desk/suppressed/"
HOSTILE = "<script>alert(1)</script>"
NEW_LEAD = {
    "name": "Ann",
    "email": "ann@example.org",
    "budget_tier": "b",
    "message": "Hello\r\nyou",
}


async def undo(owner: Browser, where: str) -> None:
    """Press the undo of what was just done."""
    form = (await owner.get(where)).one(".notice form")
    assert (await owner.post(str(form.attributes["action"]))).status == 303


async def test_settings_are_read_without_secrets(make_edge: EdgeMaker) -> None:
    """Each with its purpose; a sign-in for one table reads none, and is led to no closed screen."""
    secret = {"SMTP_URL": "smtp://user:passw0rd@mail.example", "OWNER_EMAIL": "o@example.org"}
    async with make_edge(**secret, RATE_LEADS="7/hour") as edge:
        shown = await (await Browser(edge).sign_in(await edge.key())).get("/desk/settings/")
        for link in ("access", "mail", "suppressed", "replies", "webhooks", "tables", "audit"):
            assert shown.tree.css_first(f'main a[href="/desk/{link}/"]'), link
        assert "RATE_LEADS 7/hour leads stored for one address without" in shown.said
        assert "SMTP_URL (hidden)" in shown.said
        assert "MAIL_TEMPLATES (not set)" in shown.said
        assert "passw0rd" not in shown.text
        assert shown.tree.css_first('main form[action="/desk/sign-out/"]')

        key = await edge.key("admin:read", tables=(EMAIL_SEND_LOG.name,))
        narrow = await Browser(edge).sign_in(key)
        shown = await narrow.get("/desk/settings/")
        links = {str(each.attributes["href"]) for each in shown.tree.css(".desk li > a[href]")}
        assert "RATE_LEADS" not in shown.text
        assert {"/desk/mail/", "/desk/tables/", "/desk/audit/"} <= links
        assert not links & {"/desk/access/", "/desk/webhooks/", SUPPRESSED}
        for path in (SUPPRESSED, "/desk/webhooks/", "/desk/tables/leads/new/"):
            assert (await narrow.get(path)).status == 403


async def test_an_address_is_suppressed_and_mailed_again(owner: Browser) -> None:
    """By hand, in any spelling of its domain; each change has its undo."""
    store = owner.edge.service.store
    assert "No suppressed address yet." in (await owner.get(SUPPRESSED)).said
    done = await owner.post(SUPPRESSED, email=" Ann@XN--BCHER-KVA.example ", reason="bounce")
    (row,) = await owner.rows(SUPPRESSED_EMAILS)
    assert (row["email"], row["reason"]) == ("ann@bücher.example", "bounce")
    assert "The address ann@bücher.example was suppressed" in (await owner.get(done.to)).said
    assert await is_suppressed(store, "ann@bücher.example")
    shown = await owner.get(f"{SUPPRESSED}?email=ann@xn--bcher-kva.example")
    assert "ann@bücher.example mail came back" in shown.said
    assert "This address is not" in (await owner.get(f"{SUPPRESSED}?email=bob@b.example")).said

    await undo(owner, done.to)
    assert await owner.rows(SUPPRESSED_EMAILS) == []
    await owner.post(SUPPRESSED, email="ann@example.org", reason="bounce")
    (row,) = await owner.rows(SUPPRESSED_EMAILS)
    lifted = [await owner.post(f"{SUPPRESSED}{row['id']}/lift/") for _ in range(2)]
    assert [each.status for each in lifted] == [303, 303], "a second press changes nothing"
    assert await owner.rows(SUPPRESSED_EMAILS) == []
    notice = "Mail may go to the address ann@example.org again"
    assert notice in (await owner.get(lifted[0].to)).said
    await undo(owner, lifted[0].to)
    assert await is_suppressed(store, "ann@example.org")
    entries = await recent_entries(store, 20)
    verbs = [each["verb"] for each in entries if each["table_name"] == "suppressed_emails"]
    assert verbs == ["undo", "delete", "insert", "undo", "insert"]


@pytest.mark.parametrize(
    ("email", "reason", "field", "said"),
    [
        ("ann at home", "bounce", "email", "email is not an e-mail address."),
        (f"{HOSTILE}@example.org", "bounce", "email", "email is not an e-mail address."),
        ("", "bounce", "email", "email is not an e-mail address."),
        ("ann@example.org", "because", "reason", "reason must be"),
        ("Taken@Example.org", "bounce", "email", "email gets no mail already."),
    ],
)
async def test_a_faulty_suppression_keeps_what_was_typed(
    owner: Browser, email: str, reason: str, field: str, said: str
) -> None:
    """The error is shown at its field; nothing is stored."""
    await owner.post(SUPPRESSED, email="taken@example.org", reason="complaint")
    shown = await owner.post(SUPPRESSED, email=email, reason=reason)
    assert shown.status in (400, 409)
    assert shown.one(f"#{field}-fault").text().startswith(said)
    assert shown.one("#email").attributes["value"] == email
    assert HOSTILE not in shown.text
    assert len(await owner.rows(SUPPRESSED_EMAILS)) == 1


@pytest.mark.parametrize("reason", ["unsubscribe", "complaint"])
async def test_lifting_an_unsubscription_needs_a_tick(owner: Browser, reason: str) -> None:
    """The page says what it means, asks once, and opens the box where the tick is missing."""
    await owner.post(SUPPRESSED, email="ann@example.org", reason=reason)
    (row,) = await owner.rows(SUPPRESSED_EMAILS)
    path = f"{SUPPRESSED}{row['id']}/lift/"
    asked = await owner.post(path, x="")
    assert (asked.status, "Tick this box to mail them again." in asked.said) == (400, True)
    assert "only if they have asked for it since" in asked.said
    assert asked.tree.css_first("li details[open] [aria-invalid]")
    assert len(await owner.rows(SUPPRESSED_EMAILS)) == 1
    assert (await owner.post(path, sure="yes")).status == 303
    assert await owner.rows(SUPPRESSED_EMAILS) == []


async def test_two_windows_suppress_once(owner: Browser) -> None:
    """The second gets a message; the audit log has one change."""
    form = {"email": "ann@example.org", "reason": "bounce"}
    await owner.token()
    answers = await asyncio.gather(*(owner.post(SUPPRESSED, **form) for _ in range(2)))
    assert sorted(each.status for each in answers) == [303, 409]
    entries = await recent_entries(owner.edge.service.store, 20)
    assert [each["verb"] for each in entries if each["table_name"] == "suppressed_emails"] == [
        "insert"
    ]


async def test_a_reader_sees_no_button(owner: Browser) -> None:
    """A sign-in without `admin:write` sees addresses, and changes none."""
    await owner.post(SUPPRESSED, email="ann@example.org", reason="bounce")
    (row,) = await owner.rows(SUPPRESSED_EMAILS)
    reader = await Browser(owner.edge).sign_in(await owner.edge.key("admin:read"))
    for path in (SUPPRESSED, "/desk/webhooks/", "/desk/tables/suppressed_emails/"):
        shown = await reader.get(path)
        assert shown.status == 200
        assert shown.tree.css("main .desk form[method=post]:not([action='/desk/sign-out/'])") == []
    refused: tuple[tuple[str, dict[str, str]], ...] = (
        (SUPPRESSED, {"email": "b@example.org", "reason": "bounce"}),
        (f"{SUPPRESSED}{row['id']}/lift/", {}),
        ("/desk/webhooks/", {"url": "https://hooks.example/x", "event": "lead.created"}),
        ("/desk/tables/leads/new/", NEW_LEAD),
    )
    for path, form in refused:
        assert (await reader.post(path, **form)).status == 403, path
    assert len(await owner.rows(SUPPRESSED_EMAILS)) == 1


async def test_a_row_is_added_once(owner: Browser) -> None:
    """With defaults for what is empty; a second press finds the first; the undo deletes it."""
    path = "/desk/tables/leads/new/"
    empty = await owner.get(path)
    row_id = str(empty.one("[name=id]").attributes["value"])
    added = [await owner.post(path, id=row_id, **NEW_LEAD, spam_score="2") for _ in range(2)]
    assert [each.status for each in added] == [303, 409]
    assert "This form was sent already, and its row is stored." in added[1].said
    assert added[1].one(f'.fault a[href="/desk/tables/leads/{row_id}/"]')
    assert added[1].one("#name").attributes["value"] == "Ann"
    assert added[0].to.startswith(f"/desk/tables/leads/{row_id}/")
    (row,) = await owner.rows(LEADS)
    assert (row["message"], row["spam_score"], row["status"]) == ("Hello\nyou", 2, "new")
    await undo(owner, added[0].to.replace(f"{row_id}/", ""))
    assert await owner.rows(LEADS) == []


@pytest.mark.parametrize(
    ("form", "field", "said"),
    [
        ({"spam_score": "much"}, "spam_score", "spam_score must be a whole number."),
        ({"spam_reasons": "{"}, "spam_reasons", "spam_reasons must be JSON."),
        ({"name": "n" * 101}, "name", "name must have 100 characters or fewer."),
        ({"message": ""}, "message", "message is required."),
        ({"created_at": "yesterday"}, "created_at", "created_at "),
    ],
)
async def test_a_faulty_row_keeps_what_was_typed(
    owner: Browser, form: dict[str, Any], field: str, said: str
) -> None:
    """Each error is shown at its field; other fields are as typed, and nothing is stored."""
    typed = {**NEW_LEAD, "notes": HOSTILE, **form}
    shown = await owner.post("/desk/tables/leads/new/", **typed)
    assert (shown.status, shown.one(f"#{field}-fault").text()[: len(said)]) == (400, said)
    assert shown.one("#notes").text().strip() == HOSTILE
    assert HOSTILE not in shown.text
    assert await owner.rows(LEADS) == []


async def test_a_table_shows_what_people_look_for_first(owner: Browser) -> None:
    """Who, state and time come before the rest; a long text is whole behind its cell."""
    long = "word " * 200
    await owner.lead(name="Ann", message=long.strip())
    shown = await owner.get("/desk/tables/leads/")
    heads = [each.text() for each in shown.tree.css("thead th")]
    assert heads[:5] == ["Row", "name", "email", "created_at", "status"]
    assert shown.one(f'td[title="{long.strip()}"]').text() == long[:60]
    nothing = await owner.get("/desk/tables/leads/?name=eq.Bob")
    assert "No row matches." in nothing.said
    assert "No suppressed address yet." in (await owner.get("/desk/tables/suppressed_emails/")).said
    assert (await owner.get("/desk/tables/nothing/new/")).status == 404
