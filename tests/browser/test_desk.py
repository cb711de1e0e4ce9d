"""The desk in a real browser without scripts: every action, by pointer and by keyboard."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Locator, Page

from edge_api.db.internal_tables import EMAIL_OUTBOX
from tests.browser.conftest import Journal, signed_in
from tests.browser.watching import OVERFLOW
from tests.edge.conftest import CONTENT, run_build
from tests.edge.edge_process import Installation, free_port
from tests.edge.store.samples import make_row
from tools.judges import MODULES

pytestmark = pytest.mark.size("test")
ADMIN = "/api/public/v1/admin"
NO_LEAD = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"
AXE = MODULES / "axe-core" / "axe.min.js"
RUN_AXE = """() => axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.target).join(", ")}`))"""
SCREENS = ("", "leads/", "tables/", "tables/leads/", "access/", "mail/", "audit/")
SETTINGS = ("settings/", "suppressed/", "webhooks/", "tables/leads/new/")


def send(journal: Journal, path: str, body: Any) -> Any:
    """Send JSON with the key of the journal; return the answer."""
    headers = {"X-API-Key": journal.key, "Content-Type": "application/json"}
    status, _, answer = journal.edge.post(path, json.dumps(body).encode(), headers)
    assert status == 201, answer
    return json.loads(answer)


def make_lead(journal: Journal, name: str, **more: Any) -> str:
    """Store a lead; return its id."""
    given = {"email": f"{name}@example.org", "budget_tier": "b", "message": f"{name} asks\nus"}
    (row,) = send(journal, f"{ADMIN}/leads", {"name": name, **given, **more})
    return str(row["id"])


def stored(journal: Journal, lead_id: str) -> dict[str, Any]:
    """Return a lead as it is stored."""
    return next((row for row in journal.leads() if row["id"] == lead_id), {})


@pytest.fixture
def page(journal: Journal, browser: Browser) -> Iterator[Page]:
    """Return a page without scripts, on a phone, that is signed in with the journal's key."""
    with signed_in(
        browser,
        journal,
        "/desk/",
        java_script_enabled=False,
        viewport={"width": 360, "height": 780},
    ) as page:
        yield page


def press(page: Page, name: str) -> None:
    """Press a button of the page's own part."""
    page.locator("main").get_by_role("button", name=name, exact=True).first.click()


def test_a_person_is_exported_and_erased(journal: Journal, page: Page) -> None:
    """Only after a tick."""
    lead = make_lead(journal, "erase")
    page.goto(f"{journal.url}/desk/leads/{lead}/")
    page.get_by_text("What is kept of this person").click()
    with page.expect_download() as got:
        page.get_by_role("link", name="Export it as JSON").click()
    assert json.loads(got.value.path().read_text())["leads"][0]["name"] == "erase"
    press(page, "Erase")
    assert "Tick this first" in page.locator("main").inner_text()
    page.get_by_label("Yes, erase everything").check()
    press(page, "Erase")
    assert stored(journal, lead) == {}


def test_tables_are_filtered_and_a_row_is_changed_and_deleted(journal: Journal, page: Page) -> None:
    """By forms alone; the audit page takes the deletion back."""
    lead = make_lead(journal, "tabled")
    page.goto(f"{journal.url}/desk/tables/")
    page.get_by_role("link", name="leads", exact=True).click()
    page.get_by_text("Filter and sort").click()
    page.get_by_label("Only where").select_option("name")
    page.get_by_label("Value").fill("tabled")
    press(page, "Show")
    page.get_by_role("link", name="Open row 1").click()
    page.get_by_label("budget_tier").fill("")
    press(page, "Save")
    assert "budget_tier must have 1 character or more." in page.locator("main").inner_text()
    page.get_by_label("budget_tier").fill("large")
    press(page, "Save")
    assert stored(journal, lead)["budget_tier"] == "large"
    press(page, "Delete this row")
    assert stored(journal, lead) == {}
    page.goto(f"{journal.url}/desk/audit/")
    press(page, "Undo")
    assert stored(journal, lead)["budget_tier"] == "large"


def test_access_is_granted_and_revoked(journal: Journal, page: Page) -> None:
    """A request, a key, and a session."""
    wish = {"type": "api_key", "name": "Bot", "purpose": "Read.", "scopes": ["posts:read"]}
    for _ in range(2):
        send(journal, "/api/public/access-requests", wish)
    page.goto(f"{journal.url}/desk/access/")
    press(page, "Approve")
    press(page, "Deny")
    assert "Nobody waits for a decision." in page.locator("main").inner_text()
    page.get_by_text("Issue a key").click()
    page.get_by_label("Name", exact=True).fill("Printer")
    press(page, "Issue")
    assert page.locator(".secret").inner_text().startswith("fe_sk_")
    page.get_by_role("link", name="Back to access").click()
    card = page.locator(".card", has_text="Printer").first
    card.get_by_role("button", name="Rotate").click()
    assert page.locator(".secret").inner_text().startswith("fe_sk_")
    page.get_by_role("link", name="Back to access").click()
    for _ in range(2):
        page.locator(".card", has_text="Printer").first.get_by_role("button", name="Revoke").click()
    revoked = page.locator(".card", has_text="Printer")
    assert revoked.count() == 2
    assert revoked.get_by_role("button").count() == 0
    assert "can take it back until" in revoked.first.inner_text()
    session = page.locator(".card", has_text="this one")
    session.get_by_role("button", name="End").click()
    page.goto(f"{journal.url}/desk/access/")
    assert "/desk/sign-in/" in page.url


def test_mail_that_was_given_up_is_retried_and_discarded(journal: Journal, page: Page) -> None:
    """One by one, then all that are left; the undo brings a discarded one back."""
    dead = {"queue": "transactional", "template_name": "lead_notification", "attempts": 3}
    dead |= {"subject_id": NO_LEAD, "dead_at": "2026-06-01T12:00:00.000000Z"}
    with closing(sqlite3.connect(journal.installation.store)) as store, store:
        for number in range(5):
            row = make_row(EMAIL_OUTBOX, {**dead, "recipient_email": f"o{number}@example.org"})
            names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
            store.execute(f"INSERT INTO email_outbox ({names}) VALUES ({marks})", row)  # noqa: S608

    def card(number: int) -> Locator:
        return page.locator(".card", has_text=f"o{number}@example.org")

    page.goto(f"{journal.url}/desk/mail/")
    card(0).get_by_role("button", name="Retry").click()
    assert card(0).get_by_role("button").count() == 0
    card(1).get_by_role("button", name="Discard").click()
    assert card(1).count() == 0
    press(page, "Undo")
    card(1).get_by_role("button", name="Discard").click()
    press(page, "Retry all 3")
    assert "No mail was given up." in page.locator("main").inner_text()
    assert page.locator(".card").get_by_role("button").count() == card(1).count() == 0


def test_a_printed_link_signs_in_once(journal: Journal, browser: Browser) -> None:
    """As the command prints it; then the browser signs out."""
    status, said, _ = journal.installation.run("desk", "link")
    assert status == 0
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(said.split()[-1])
        press(page, "Sign in")
        assert page.url == f"{journal.url}/desk/"
        press(page, "Sign out")
        page.goto(said.split()[-1])
        assert "This link has been used" in page.locator("main").inner_text()
        page.get_by_role("button", name="Mail me a link").click()
        assert "If mail works here" in page.locator("main").inner_text()


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"{selector} cannot be reached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_screens_are_accessible_and_fit(
    journal: Journal, browser: Browser, width: int, scheme: Any
) -> None:
    """No finding of axe, nothing wider than the screen, no violation of the page's policy."""
    lead = make_lead(journal, f"seen{width}{scheme}", status="spam", spam_reasons=["a"], notes="n")
    with browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    ) as context:
        page = context.new_page()
        found = []
        page.goto(f"{journal.url}/desk/sign-in/")
        found += look(page, AXE.read_text())
        page.get_by_label("Your API key").fill(journal.key)
        press(page, "Sign in")
        for path in (
            *SCREENS,
            *SETTINGS,
            "leads/?status=spam",
            f"leads/{lead}/",
            f"tables/leads/{lead}/",
        ):
            page.goto(f"{journal.url}/desk/{path}")
            found += [f"{path} {each}" for each in look(page, AXE.read_text())]
    assert found == []


def look(page: Page, axe: str) -> list[str]:
    """Return what axe finds on a page, and how much it is too wide."""
    page.evaluate(axe)
    wide = page.evaluate(OVERFLOW)
    return [*page.evaluate(RUN_AXE), *([f"too wide by {wide}"] if wide > 0 else [])]


TRAP = """---
title: A trap
slug: a-trap
date: 2026-03-01
description: One click of the owner.
---

Read this.

<form method="post" action="/desk/access/keys/">
<input type="hidden" name="name" value="Stranger"><input type="hidden" name="once" value="{once}">
<input type="hidden" name="scope" value="admin:read">
<input type="hidden" name="scope" value="admin:write">
<button>Read on</button></form>
"""


def test_a_form_in_a_post_cannot_submit_a_desk_action(browser: Browser, tmp_path: Path) -> None:
    """The post has the origin of the desk, and the owner who is signed in clicks in it."""
    content, port = tmp_path / "content", free_port()
    shutil.copytree(CONTENT, content)
    (content / "posts" / "a-trap.md").write_text(TRAP.format(once=uuid4()))
    url = f"http://127.0.0.1:{port}"
    run_build(content, tmp_path / "build", site_url=url)
    settings = {"PORT": str(port), "DATABASE_URL": f"sqlite:///{tmp_path}/var/edge.db"}
    settings |= {"BUILD_DIR": str(tmp_path / "build")}
    installation = Installation(tmp_path, settings)
    with installation.serving(), browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        _, said, _ = installation.run("desk", "link")
        page.goto(said.split()[-1])
        press(page, "Sign in")
        page.goto(f"{url}/desk/access/")
        before = page.locator("main").inner_text()
        page.goto(f"{url}/journal/a-trap/")
        with page.expect_navigation() as moved:
            page.get_by_role("button", name="Read on").click()
        assert moved.value.status == 403
        assert "Nothing was changed" in page.locator("main").inner_text()
        page.goto(f"{url}/desk/access/")
        assert page.locator("main").inner_text() == before
        page.get_by_text("Issue a key").click()
        page.get_by_label("Name", exact=True).fill("Mine")
        press(page, "Issue")
        assert page.locator(".secret").count() == 1


def test_a_mistaken_revocation_or_rotation_is_undone(journal: Journal, browser: Browser) -> None:
    """By the owner's own sign-in: the undo of a revocation, and that of a rotation."""
    status, said, _ = journal.installation.run("keys", "issue", "--name", "Slip", "--json")
    assert status == 0
    secret = json.loads(said)["key"]
    posts = "/api/public/v1/posts"
    _, link, _ = journal.installation.run("desk", "link")
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(link.split()[-1])
        press(page, "Sign in")
        page.goto(f"{journal.url}/desk/access/")
        card = page.locator(".card", has_text="Slip")
        rotate, revoke = (
            card.get_by_role("button", name=name).bounding_box() for name in ("Rotate", "Revoke")
        )
        assert rotate
        assert revoke
        assert revoke["x"] - rotate["x"] - rotate["width"] > 100
        card.get_by_role("button", name="Revoke").click()
        assert journal.edge.get(posts, {"X-API-Key": secret})[0] == 401
        page.locator(".notice").get_by_role("button", name="Undo").click()
        assert journal.edge.get(posts, {"X-API-Key": secret})[0] == 200
        page.locator(".card", has_text="Slip").get_by_role("button", name="Rotate").click()
        new = page.locator(".secret").inner_text()
        press(page, "Undo the rotation")
        assert journal.edge.get(posts, {"X-API-Key": new})[0] == 401
        assert "valid · ends never" in page.locator(".card", has_text="Slip").first.inner_text()
