"""The contact form as a reader fills it in, whose browser runs no scripts or does."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page

from tests.browser.conftest import Journal
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

FORM = "#contact-form"
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)></textarea>{{ 7*7 }}"


@pytest.fixture(params=["no scripts", *in_ci("scripts")])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """Return a page in a browser with its scripts switched off, and in one with them on."""
    context = browser.new_context(java_script_enabled=request.param == "scripts")
    yield context.new_page()
    context.close()


def fill(page: Page, journal: Journal, **fields: str) -> None:
    """Open the contact page, fill in the fields and send the form."""
    page.goto(f"{journal.url}/contact/")
    form = page.locator(FORM)
    form.get_by_label("Name").fill(fields["name"])
    form.get_by_label("E-mail address").fill(fields["email"])
    form.get_by_label("Message").fill(fields["message"])
    form.get_by_role("button", name="Send").click()


def test_a_form_filled_in_well_is_taken(journal: Journal, page: Page) -> None:
    """It leads to the thanks; the lead is stored as typed, with a budget that nobody was asked."""
    message = "Hello,\nI like \u7d19 & edges."
    fill(
        page,
        journal,
        name="Ann Lee",
        email="ann@example.org",
        message=message,
    )
    page.wait_for_url(f"{journal.url}/contact/thanks/")
    assert page.locator("h1").inner_text() == "Thank you"

    lead = journal.leads()[0]
    assert (lead["name"], lead["email"], lead["source"]) == ("Ann Lee", "ann@example.org", "form")
    assert (lead["budget_tier"], lead["message"]) == ("No budget: a question", message)
    assert lead["status"] == "new"


def test_a_fault_is_marked_and_nothing_typed_is_lost(journal: Journal, page: Page) -> None:
    """The field at fault says what is wrong; fixed, the same form is taken."""
    before = len(journal.leads())
    fill(
        page,
        journal,
        name="Bob",
        email="bob@nowhere",
        message="Two\nlines",
    )
    fault = page.locator("#email-fault")
    fault.wait_for()
    form = page.locator(FORM)
    email = form.get_by_label("E-mail address")
    assert fault.inner_text() == "Not a valid e-mail address."
    assert email.get_attribute("aria-invalid") == "true"
    assert email.get_attribute("aria-describedby") == "email-fault"
    assert page.get_by_role("alert").is_visible()
    assert page.locator("[aria-invalid=true]").count() == 1
    assert email.input_value() == "bob@nowhere"
    assert form.get_by_label("Name").input_value() == "Bob"
    assert form.get_by_label("Message").input_value() == "Two\nlines"
    assert len(journal.leads()) == before

    email.fill("bob@example.org")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url(f"{journal.url}/contact/thanks/")
    assert journal.leads()[0]["email"] == "bob@example.org"


def test_an_oversized_form_is_reported_and_kept(journal: Journal, page: Page) -> None:
    """Beyond 1 MiB there are words for a person, and what was typed is still in the form."""
    text = "x" * 1_500_000
    fill(page, journal, name="Long", email="long@example.org", message=text)
    page.get_by_text("Nothing was sent, as this is far too long").wait_for()
    if page.locator(FORM).count() == 0:
        page.go_back()
    assert page.locator("#message").input_value() == text


def test_hostile_text_stays_text(journal: Journal, page: Page) -> None:
    """It comes back in the fields as typed, and no script of it runs."""
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    fill(
        page,
        journal,
        name=HOSTILE,
        email="eve@nowhere",
        message=HOSTILE,
    )
    page.locator("#email-fault").wait_for()

    form = page.locator(FORM)
    assert form.get_by_label("Name").input_value() == HOSTILE
    assert form.get_by_label("Message").input_value() == HOSTILE
    assert page.locator("main script, main img[src=x]").count() == 0
    assert page.locator("form").count() == 2
    assert dialogs == []


@pytest.mark.parametrize("form", [FORM, "#access-form"])
def test_the_trap_is_not_in_a_readers_way(journal: Journal, page: Page, form: str) -> None:
    """Neither seen nor reached with the keyboard, nor read aloud, in either form of the page."""
    page.goto(f"{journal.url}/contact/")
    trap = page.locator(f"{form} [name=_gotcha]")
    # what of the field overflows its paragraph is cut off
    frame = page.locator(f"{form} p", has=page.locator("[name=_gotcha]"))
    box = frame.bounding_box()

    assert box is not None
    assert box["width"] * box["height"] <= 1
    assert frame.get_attribute("aria-hidden") == "true"
    assert trap.get_attribute("tabindex") == "-1"
    assert page.get_by_role("textbox", name="Leave this empty").count() == 0
