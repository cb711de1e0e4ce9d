"""The form that asks for access as a person fills it in, from the form to the key that works."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Journal
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

_FOCUSED = "document.activeElement.id"


@pytest.fixture(params=["scripts", *in_ci("no scripts")])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """Return a page in a browser with its scripts switched off, and in one with them on."""
    context = browser.new_context(java_script_enabled=request.param == "scripts")
    yield context.new_page()
    context.close()


def fill(page: Page, journal: Journal, **fields: str) -> None:
    """Open the contact page, fill in the form and send it."""
    page.goto(f"{journal.url}/contact/#access")
    form = page.locator("#access-form")
    form.get_by_label("Your name").fill(fields["name"])
    form.get_by_label("E-mail address").fill(fields.get("email", ""))
    form.get_by_label("What it is for").fill(fields["purpose"])
    form.get_by_label("What you need").select_option(label=fields["need"])
    form.get_by_role("button", name="Ask for access").click()


def claim(journal: Journal, token: str) -> tuple[int, dict[str, Any]]:
    """Send the claim token as the page says; return status and answer."""
    request = Request(  # noqa: S310  an address of our own
        f"{journal.url}/api/public/access-requests/claim",
        json.dumps({"claim_token": token}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urlopen(request, timeout=patience(20)) as answer:  # noqa: S310  likewise
            return answer.status, json.load(answer)
    except HTTPError as refusal:
        return refusal.code, json.load(refusal)


def decide(journal: Journal, *words: str) -> str:
    """Run `requests` as the operator does, beside the served edge; return what it printed."""
    code, said, complained = journal.installation.run("requests", *words)
    assert code == 0, complained
    return said


def test_a_person_asks_and_gets_a_key_that_works(journal: Journal, page: Page) -> None:
    """Ask by the form, be approved at the terminal, fetch the key with the token, read posts."""
    fill(
        page,
        journal,
        name="Ann Lee",
        purpose="A wall of posts.",
        need="An API key, for the REST API",
    )
    page.wait_for_url(f"{journal.url}/contact/access/")
    assert page.locator("h1").inner_text() == "Your request is filed"
    token = page.locator(".secret").inner_text().strip()
    assert claim(journal, token)[0] == 202
    waiting = json.loads(decide(journal, "list", "--json"))
    (asked,) = [each for each in waiting if each["status"] == "pending"]
    assert (asked["name"], asked["purpose"]) == ("Ann Lee", "A wall of posts.")
    page.get_by_role("button", name="Fetch it").click()
    expect(page.get_by_role("alert")).to_contain_text("Nobody has decided yet")
    decide(journal, "approve", asked["id"])
    page.get_by_role("button", name="Fetch it").click()
    page.locator(".secret").wait_for()
    shown = page.locator(".secret").inner_text().strip()

    status, handed = claim(journal, token)
    assert (status, handed["credential"]) == (200, shown)
    headers = {"Authorization": f"Bearer {handed['credential']}"}
    assert journal.edge.get("/api/public/v1/posts", headers)[0] == 200
    assert claim(journal, token) == (200, handed)


def test_a_fault_is_marked_and_nothing_typed_is_lost(journal: Journal, page: Page) -> None:
    """The field at fault has the focus; fixed, the same form is taken; it can be denied."""
    fill(
        page,
        journal,
        name="Bob",
        email="bob@nowhere",
        purpose="Two\nlines",
        need="An access token, for MCP",
    )
    page.locator("#access-email-fault").wait_for()
    form = page.locator("#access-form")
    email = form.get_by_label("E-mail address")
    assert page.evaluate(_FOCUSED) == "access-email"
    assert email.get_attribute("aria-describedby") == "access-email-fault"
    assert page.locator("[aria-invalid=true]").count() == 1
    assert form.get_by_label("Your name").input_value() == "Bob"
    assert form.get_by_label("What it is for").input_value() == "Two\nlines"
    assert form.get_by_label("What you need").input_value() == "access_token"
    email.fill("")
    form.get_by_role("button", name="Ask for access").click()

    token = page.locator(".secret").inner_text().strip()
    waiting = json.loads(decide(journal, "list", "--json"))
    (asked,) = [each for each in waiting if each["status"] == "pending"]
    decide(journal, "deny", asked["id"])
    assert claim(journal, token)[0] == 403
