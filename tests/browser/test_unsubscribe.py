"""The page behind the link in mail, in a real browser: one button, and it is done."""

import json
import secrets

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Journal

pytestmark = pytest.mark.size("test")

ADMIN = "/api/public/v1/admin"


def new_link(journal: Journal, address: str) -> str:
    """Return a link of an address, whose token an administrator has made."""
    token = secrets.token_hex(32)
    headers = {"X-API-Key": journal.key, "Content-Type": "application/json"}
    body = json.dumps({"email": address, "token": token}).encode()
    path = f"{ADMIN}/email_unsubscribe_tokens"
    assert journal.edge.post(path, body, headers)[0] == 201
    return f"{journal.url}/unsubscribe?token={token}"


def is_suppressed(journal: Journal, address: str) -> bool:
    """Return whether an address is, as an administrator sees it."""
    path = f"{ADMIN}/suppressed_emails?email=eq.{address}"
    _, _, body = journal.edge.get(path, {"X-API-Key": journal.key})
    return bool(json.loads(body))


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_person_unsubscribes(journal: Journal, browser: Browser, *, scripts: bool) -> None:
    """Looking changes nothing; the button does, and the page that follows may be loaded again."""
    address = f"ann.{scripts}@example.org".lower()
    with browser.new_context(java_script_enabled=scripts) as context:
        page = context.new_page()
        link = new_link(journal, address)
        page.goto(link)
        assert "a\u2026@example.org" in page.locator("main").inner_text()
        assert not is_suppressed(journal, address)
        page.get_by_role("button", name="Unsubscribe").click()

        assert page.locator("h1").inner_text() == "You are unsubscribed"
        assert is_suppressed(journal, address)
        page.goto(link)
        assert page.locator("h1").inner_text() == "Already unsubscribed"
        assert context.cookies() == []


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("domain", ["example.org", f"{'z' * 60}.example"])
def test_the_page_fits_and_is_whole(
    journal: Journal, browser: Browser, width: int, domain: str
) -> None:
    """Nothing is wider than the screen, nothing is refused by the page's own policy."""
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(new_link(journal, f"ann.{width}@{domain}"))
        wide = page.evaluate("document.documentElement.scrollWidth")

    assert complaints == []
    assert wide <= width
