"""The inbox and a message in a real browser without scripts: presses, pointer and keyboard."""

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Journal
from tests.browser.test_desk import make_lead, page, press, stored, tab_to

__all__ = ["page"]
pytestmark = pytest.mark.size("test")


def test_from_the_mail_to_a_stored_note(journal: Journal, page: Page) -> None:
    """The link in the mail, the typing, and Save: two presses; then the undo."""
    lead = make_lead(journal, "note")
    page.goto(f"{journal.url}/desk/leads/{lead}/")
    page.get_by_label("Notes").fill("Called back.")
    press(page, "Save")
    assert stored(journal, lead)["notes"] == "Called back."
    press(page, "Undo")
    assert stored(journal, lead)["notes"] is None
    mail = page.get_by_role("link", name="Answer with your own mail program")
    answer = mail.get_attribute("href") or ""
    assert answer.startswith("mailto:note%40example.org?subject=Re%3A")
    assert "%3E%20note%20asks" in answer


def test_each_message_takes_one_press(journal: Journal, page: Page) -> None:
    """Done, Spam and Remind me go on to the next one and keep what was typed; then the undo."""
    leads = [make_lead(journal, f"press{number}") for number in range(4)]
    page.goto(f"{journal.url}/desk/leads/{leads[3]}/?status=new&q=press")
    assert "1 of 4" in page.locator(".message-line").inner_text()
    page.get_by_label("Notes").fill("Written to.")
    page.get_by_label("Answer", exact=True).fill("Dear press3,")
    press(page, "Done")
    assert f"/desk/leads/{leads[2]}/" in page.url
    assert "answered" in page.locator(".notice").inner_text()
    press(page, "Spam")
    page.get_by_label("When to remind me").select_option("tomorrow")
    press(page, "Remind me")
    assert f"/desk/leads/{leads[0]}/" in page.url
    press(page, "Undo")
    press(page, "Done")
    found = [stored(journal, lead)["status"] for lead in leads]
    assert found == ["contacted", "new", "spam", "contacted"]
    page.goto(f"{journal.url}/desk/leads/{leads[3]}/")
    assert stored(journal, leads[3])["notes"] == "Written to."
    assert page.get_by_label("Answer", exact=True).input_value() == "Dear press3,"
    page.goto(f"{journal.url}/desk/leads/{leads[2]}/")
    press(page, "Not spam")
    assert stored(journal, leads[2])["status"] == "new"


def test_the_inbox_by_search_ticks_and_one_press(journal: Journal, page: Page) -> None:
    """On a phone: search, tick all or some, press; of the spam say that one is none."""
    leads = [make_lead(journal, f"tick{number}") for number in range(3)]
    spam = make_lead(journal, "spammer", status="spam", spam_reasons=["many links"])
    page.goto(f"{journal.url}/desk/leads/")
    page.get_by_role("searchbox").fill("TICK")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=TICK")
    rows = page.locator(".thread")
    assert rows.count() == 3
    assert {box["height"] for row in rows.all() if (box := row.bounding_box())} == {72}
    bar = page.locator(".inbox-bulk")
    assert not bar.is_visible()
    assert not page.locator(f"#pick-{leads[0]}").is_visible()
    page.get_by_role("link", name="Select").click()
    for lead in leads[:2]:
        page.locator(f"#pick-{lead}").check()
    assert bar.is_visible()
    bar.get_by_role("button", name="Done").click()
    assert [stored(journal, lead)["status"] for lead in leads] == ["contacted"] * 2 + ["new"]
    page.get_by_role("link", name="Tick all").click()
    bar.get_by_role("button", name="Spam").click()
    assert {stored(journal, lead)["status"] for lead in leads} == {"spam"}
    page.goto(f"{journal.url}/desk/leads/?q=spammer&status=spam")
    assert "many links" in page.locator("main").inner_text()
    with page.expect_download() as got:
        page.get_by_role("link", name="These as CSV").click()
    assert got.value.suggested_filename == "leads.csv"
    page.get_by_role("link", name="Tick all").click()
    bar.get_by_role("button", name="Not spam").click()
    assert stored(journal, spam)["status"] == "new"


def test_a_row_has_its_buttons_under_the_pointer(journal: Journal, browser: Browser) -> None:
    """On a laptop, without scripts: 44 px a row, the whole row a link, the box above it."""
    leads = [make_lead(journal, f"hover{number}") for number in range(3)]
    with browser.new_context(
        java_script_enabled=False, viewport={"width": 1280, "height": 800}
    ) as context:
        page = context.new_page()
        page.goto(f"{journal.url}/desk/")
        page.get_by_label("Your API key").fill(journal.key)
        press(page, "Sign in")
        page.goto(f"{journal.url}/desk/leads/?status=new&q=hover")
        row = page.locator(".thread", has_text="hover1")
        box = row.bounding_box()
        assert box
        assert box["height"] == 44
        presses = row.locator(".presses")
        page.mouse.move(5, 5)
        assert presses.evaluate("each => getComputedStyle(each).opacity") == "0"
        row.hover()
        assert presses.evaluate("each => getComputedStyle(each).opacity") == "1"
        row.locator("input").click()
        assert page.url.endswith("q=hover")
        assert page.locator(".inbox-bulk").is_visible()
        row.get_by_role("button", name="Done").click()
        assert [stored(journal, lead)["status"] for lead in leads] == ["new", "contacted", "new"]
        page.locator(".thread", has_text="hover0").click(position={"x": 600, "y": 20})
        page.wait_for_url(f"**/desk/leads/{leads[0]}/**")


def test_the_keyboard_alone_walks_from_the_inbox_to_a_note(journal: Journal, page: Page) -> None:
    """Tab, Enter and letters; what has the focus is outlined."""
    lead = make_lead(journal, "keyboard")
    page.goto(f"{journal.url}/desk/leads/?q=keyboard")
    tab_to(page, f'.who[href^="/desk/leads/{lead}/"]')
    page.keyboard.press("Enter")
    tab_to(page, "#notes")
    page.keyboard.type("By keys.")
    tab_to(page, ".message-side button:has-text('Save')")
    page.keyboard.press("Enter")
    page.wait_for_url("**done=**")
    assert stored(journal, lead)["notes"] == "By keys."


def test_notes_and_answers_are_saved_while_typing(journal: Journal, browser: Browser) -> None:
    """With script, note and answer, again and again; a window that is closed loses nothing."""
    lead = make_lead(journal, "itself")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{journal.url}/desk/")
        page.get_by_label("Your API key").fill(journal.key)
        press(page, "Sign in")
        page.goto(f"{journal.url}/desk/leads/{lead}/")
        said, answer = (
            page.locator("#answer [role=status]"),
            page.get_by_label("Answer", exact=True),
        )
        for text in ("Dear ", "itself, \n", "thank you "):
            answer.press_sequentially(text)
            said.get_by_text("saved").wait_for()
        page.get_by_label("Notes").press_sequentially("A note")
        said.get_by_text("saved").wait_for()
        assert stored(journal, lead)["notes"] == "A note"
        page.goto(f"{journal.url}/desk/leads/{lead}/")
        assert answer.input_value() == "Dear itself,\nthank you"
