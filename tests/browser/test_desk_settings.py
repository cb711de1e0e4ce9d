"""The screens below Settings, in a real browser without scripts, on a phone."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Journal, signed_in

pytestmark = pytest.mark.size("test")


@pytest.fixture
def page(journal: Journal, browser: Browser) -> Iterator[Page]:
    """Return a page that is signed in, and shows Settings."""
    with signed_in(
        browser,
        journal,
        "/desk/settings/",
        java_script_enabled=False,
        viewport={"width": 390, "height": 800},
    ) as page:
        yield page


def press(page: Page, name: str) -> None:
    """Press the first button of that name that is seen."""
    buttons = page.locator("main").get_by_role("button", name=name, exact=True)
    buttons.locator("visible=true").first.click()


def said(page: Page) -> str:
    """Return the text of the page."""
    return page.locator("main").inner_text()


def test_an_address_is_suppressed_and_mailed_again(page: Page) -> None:
    """By hand; what somebody wished is taken back after a tick, and that by the undo."""
    page.get_by_role("link", name="Suppressed addresses").click()
    page.get_by_label("Address", exact=True).fill("wish@example.org")
    page.get_by_label("Why").select_option("wanted no more mail")
    press(page, "Suppress")
    page.get_by_text("Mail again…").click()
    press(page, "Mail again")
    assert "Tick this box to mail them again." in said(page)
    page.get_by_label("This person wanted no more mail").check()
    press(page, "Mail again")
    assert "wish@example.org wanted no more mail" not in " ".join(said(page).split())
    press(page, "Undo")
    page.goto(page.url.partition("/desk/")[0] + "/desk/suppressed/")
    page.get_by_label("Find an address").fill("wish@example.org")
    press(page, "Find")
    assert "wish@example.org wanted no more mail" in " ".join(said(page).split())


def test_a_webhook_is_added_tested_and_removed(page: Page) -> None:
    """Nobody listens at its address, and the page says so."""
    page.get_by_role("link", name="Webhooks").click()
    page.get_by_label("Address: https, and public").fill("http://127.0.0.1:9/crm")
    page.get_by_label("a post is public").check()
    press(page, "Add")
    assert page.locator(".secret").inner_text().startswith("whsec_")
    page.get_by_role("link", name="Back to webhooks").click()
    assert "when somebody wrote, or when a post is public." in said(page)
    press(page, "Send a test")
    assert "did not arrive: its server cannot be reached." in said(page)
    press(page, "Pause")
    assert "It has got nothing since" in said(page)
    press(page, "Resume")
    assert "It has got nothing since" not in said(page)
    press(page, "New secret")
    assert page.locator(".secret").inner_text().startswith("whsec_")
    page.get_by_role("link", name="Back to webhooks").click()
    page.get_by_text("Remove", exact=True).locator("visible=true").click()
    page.get_by_label("Yes, remove it").check()
    press(page, "Remove")
    assert "No program hears of anything yet." in said(page)


def test_a_row_is_added(journal: Journal, page: Page) -> None:
    """Each error is shown at its field and what was typed stays; then the row is shown."""
    page.get_by_role("link", name="Tables").click()
    page.get_by_role("link", name="leads", exact=True).click()
    page.get_by_role("link", name="Add a row").click()
    for name in ("name", "email", "budget_tier", "message"):
        page.get_by_label(name, exact=True).fill(f"{name}@example.org")
    page.get_by_label("spam_score").fill("much")
    press(page, "Add")
    assert "spam_score must be a whole number." in said(page)
    assert page.get_by_label("name", exact=True).input_value() == "name@example.org"
    page.get_by_label("spam_score").fill("2")
    press(page, "Add")
    assert journal.leads()[0]["message"] == "message@example.org"
    assert page.get_by_label("spam_score").input_value() == "2"
