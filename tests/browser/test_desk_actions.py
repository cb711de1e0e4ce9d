"""Answers, saved replies, failing webhooks and old keys at the desk, without scripts."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from edge_api.db.internal_tables import WEBHOOK_DELIVERIES, WEBHOOK_ENDPOINTS
from edge_api.db.table import Table
from tests.browser.conftest import Journal, serve, signed_in
from tests.browser.test_desk import NO_LEAD, make_lead, press, send, stored
from tests.edge.conftest import CONTENT
from tests.edge.store.samples import make_row

pytestmark = pytest.mark.size("test")


@pytest.fixture(scope="module")
def mailing_journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """Return a journal whose mail goes into a folder, so that answers can be sent."""
    folder = tmp_path_factory.mktemp("mailing")
    settings = {
        "SMTP_URL": f"maildir:{folder}/mail",
        "OWNER_EMAIL": "owner@journal.test",
        "ACCESS_REQUESTS": "on",
        "RATE_LEADS": "0",
    }
    with serve(folder, CONTENT, **settings) as served:
        yield served


@pytest.fixture
def page(mailing_journal: Journal, browser: Browser) -> Iterator[Page]:
    """Return a page without scripts, on a phone, that is signed in with the journal's key."""
    with signed_in(
        browser,
        mailing_journal,
        "/desk/",
        java_script_enabled=False,
        viewport={"width": 390, "height": 844},
    ) as page:
        yield page


def said(page: Page) -> str:
    """Return the text of the page."""
    return page.locator("main").inner_text()


def insert(journal: Journal, table: Table, **given: Any) -> str:
    """Put a row into the store of a journal that runs; return its id."""
    row = make_row(table, given)
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    with closing(sqlite3.connect(journal.installation.store)) as store, store:
        store.execute(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", row)  # noqa: S608
    return str(row["id"])


def test_an_answer_with_a_saved_reply_is_sent_and_taken_back(
    mailing_journal: Journal, page: Page
) -> None:
    """The reply is saved, changed, inserted and deleted; the answer is a draft again after Undo."""
    journal = mailing_journal
    lead = make_lead(journal, "answered", email="answered@readers.net")
    page.goto(f"{journal.url}/desk/replies/")
    page.get_by_label("Name", exact=True).fill("Thanks")
    page.locator("#text-0").fill("Thank you.")
    press(page, "Save")
    page.locator("summary", has_text="Thanks").click()
    page.locator("#text-1").fill("Thank you, soon more.")
    press(page, "Save")
    page.goto(f"{journal.url}/desk/leads/{lead}/")
    answer = page.get_by_label("Answer", exact=True)
    answer.fill("Dear answered,")
    page.get_by_label("Saved reply").select_option("Thanks")
    press(page, "Insert")
    written = "Dear answered,\n\nThank you, soon more."
    assert answer.input_value() == written
    press(page, "Send and next")
    assert stored(journal, lead)["status"] == "contacted"
    page.locator(".notice").get_by_role("button", name="Undo").click()
    assert f"/desk/leads/{lead}/" in page.url
    assert answer.input_value() == written
    assert stored(journal, lead)["status"] == "new"
    press(page, "Send and next")
    page.goto(f"{journal.url}/desk/leads/{lead}/")
    assert "Thank you, soon more." in page.locator(".said.is-ours").inner_text()
    page.goto(f"{journal.url}/desk/replies/")
    page.locator("summary", has_text="Thanks").click()
    press(page, "Delete")
    assert "No reply is saved yet." in said(page)


def test_a_status_is_set_and_a_person_gets_no_mail(mailing_journal: Journal, page: Page) -> None:
    """Won, by the list of states; then the address is suppressed, and mailed again."""
    journal = mailing_journal
    lead = make_lead(journal, "quiet")
    page.goto(f"{journal.url}/desk/leads/{lead}/")
    page.get_by_label("Status").select_option("won")
    press(page, "Set")
    assert stored(journal, lead)["status"] == "won"
    press(page, "Do not mail this address")
    assert "No mail has gone to this address" in said(page)
    page.get_by_role("link", name="Mail again…").click()
    page.get_by_text("Mail again…").click()
    page.get_by_label("This person wanted no more mail").check()
    press(page, "Mail again")
    page.goto(f"{journal.url}/desk/leads/{lead}/")
    assert "No mail has gone to this address" not in said(page)


def test_events_that_failed_are_retried_and_discarded(mailing_journal: Journal, page: Page) -> None:
    """One by one, then all of an address, then all; which events an address hears is changed."""
    journal = mailing_journal
    page.goto(f"{journal.url}/desk/webhooks/")
    for name in ("a", "b"):
        if page.get_by_label("Address: https, and public").is_hidden():
            page.get_by_text("Add an address").click()
        page.get_by_label("Address: https, and public").fill(f"http://127.0.0.1:9/{name}")
        press(page, "Add")
        page.get_by_role("link", name="Back to webhooks").click()
    with closing(sqlite3.connect(journal.installation.store)) as store:
        found = dict(store.execute(f"SELECT url, id FROM {WEBHOOK_ENDPOINTS.name}"))  # noqa: S608
    failed = {"event": "lead.created", "subject_id": NO_LEAD, "body": "{}", "attempts": 9}
    failed |= {"last_answer": "answered 500", "dead_at": "2026-06-01T12:00:00.000000Z"}
    for name, number in {"a": 4, "b": 2}.items():
        endpoint = found[f"http://127.0.0.1:9/{name}"]
        for _ in range(number):
            insert(journal, WEBHOOK_DELIVERIES, endpoint_id=endpoint, **failed)

    def given_up(name: str) -> str:
        return page.locator(".card", has_text=f"127.0.0.1:9/{name}").inner_text()

    page.reload()
    lines = page.locator("li", has_text="127.0.0.1:9/a")
    assert "answered 500" in lines.first.inner_text()
    lines.first.get_by_role("button", name="Retry").click()
    assert "3 were given up" in given_up("a")
    lines.get_by_role("button", name="Discard").first.click()
    assert "2 were given up" in given_up("a")
    press(page, "Retry 2")
    assert "given up" not in given_up("a")
    press(page, "Discard 2")
    assert "given up" not in given_up("b")
    for name in ("a", "b"):
        endpoint = found[f"http://127.0.0.1:9/{name}"]
        insert(journal, WEBHOOK_DELIVERIES, endpoint_id=endpoint, **failed)
    page.reload()
    press(page, "Retry all")
    assert "given up" not in given_up("a") + given_up("b")
    card = page.locator(".card", has_text="127.0.0.1:9/b")
    card.get_by_text("Choose events").click()
    card.get_by_label("a post was removed").check()
    card.get_by_role("button", name="Save").click()
    assert "or when a post was removed" in given_up("b")


def test_old_keys_get_an_end_and_an_approval_is_taken_back(
    mailing_journal: Journal, page: Page
) -> None:
    """A key of a request before 1.0.1, one that was revoked by a slip, and an approved request."""
    journal = mailing_journal
    _, printed, _ = journal.installation.run(
        "keys", "issue", "--name", "Forever", "--scopes", "leads:read", "--json"
    )
    with closing(sqlite3.connect(journal.installation.store)) as store, store:
        store.execute("UPDATE credentials SET needs_review = 1 WHERE name = 'Forever'")
    _, link, _ = journal.installation.run("desk", "link")
    press(page, "Sign out")
    page.goto(link.split()[-1])
    press(page, "Sign in")
    page.goto(f"{journal.url}/desk/access/")
    assert "Keys that are out" in said(page)
    press(page, "Set the end")
    assert "Keys that are out" not in said(page)
    card = page.locator(".card", has_text="Forever")
    card.get_by_role("button", name="Revoke").click()
    press(page, "Take it back")
    secret = {"X-API-Key": json.loads(printed)["key"]}
    assert journal.edge.get("/api/public/v1/leads", secret)[0] == 200
    wish = {"type": "api_key", "name": "Bot", "purpose": "Read.", "scopes": ["posts:read"]}
    send(journal, "/api/public/access-requests", wish)
    page.reload()
    press(page, "Approve")
    press(page, "Deny after all")
    assert "Bot: denied" in " ".join(said(page).split())
