"""The comfort of the desk in a real browser with its script: keys, copying, saving by itself."""

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Journal, signed_in
from tests.browser.test_desk import make_lead, stored

pytestmark = pytest.mark.size("test")
HOOKS = """<ul>
<li><a data-row href="/desk/#one">One</a> <button data-key="e" id="done-1">Done</button></li>
<li><a data-row href="/desk/#two">Two</a> <button data-key="e" id="done-2">Done</button></li>
</ul>
<p><input type="search" id="q"> <code data-copy="">fe_sk_secret</code></p>
<form method="post" id="saved" action="{action}" data-autosave>
<input type="hidden" name="was.notes" value=""><textarea name="notes"></textarea>
<select data-insert><option value="">Reply</option><option>Thank you.</option></select>
<button>Save</button></form>
<p><textarea form="saved" name="aside" id="aside"></textarea>
<textarea id="answer" data-key="r"></textarea></p>"""


@pytest.fixture
def page(journal: Journal, browser: Browser) -> Iterator[Page]:
    """Return a page with scripts, on a laptop, that is signed in with the journal's key."""
    with signed_in(
        browser,
        journal,
        "/desk/",
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    ) as page:
        yield page


def with_hooks(page: Page, journal: Journal, action: str = "") -> None:
    """Open Today with elements that have the hooks of the script, as other screens have them."""

    def add(route: object) -> None:
        response = route.fetch()  # type: ignore[attr-defined]
        token = re.search(r'name="form.token" value="([^"]+)"', response.text())
        assert token
        field = f'<input type="hidden" name="form.token" value="{token[1]}">'
        hooks = HOOKS.format(action=action).replace("data-autosave>", f"data-autosave>{field}")
        body = response.text().replace("</main>", f"{hooks}</main>")
        route.fulfill(response=response, body=body)  # type: ignore[attr-defined]

    page.route(f"{journal.url}/desk/", add)
    page.goto(f"{journal.url}/desk/")
    page.unroute(f"{journal.url}/desk/")
    page.locator("code[data-copy] + button").wait_for()


def focused(page: Page) -> str:
    """Return what has the focus: its id, or its text."""
    return str(page.evaluate("document.activeElement.id || document.activeElement.textContent"))


def test_keys_walk_through_rows_and_press(journal: Journal, page: Page) -> None:
    """Down and up, then the button of the row; the ends of the list are ends."""
    with_hooks(page, journal)
    walked = []
    for key in "jjjkk":
        page.keyboard.press(key)
        walked.append(focused(page))
    assert walked == ["One", "Two", "Two", "One", "One"]
    page.evaluate("document.addEventListener('click', ({ target }) => { window.hit = target.id; })")
    page.keyboard.press("j")
    page.keyboard.press("e")
    assert page.evaluate("window.hit") == "done-2"
    page.keyboard.press("o")
    page.wait_for_url("**#two")
    page.keyboard.press("/")
    assert focused(page) == "q"


def test_keys_do_nothing_while_one_types_or_holds_another(journal: Journal, page: Page) -> None:
    """Letters are letters in a field; the browser's own keys stay its own."""
    with_hooks(page, journal)
    page.keyboard.press("r")
    assert focused(page) == "answer"
    page.keyboard.type("jke?/ro")
    assert page.locator("#answer").input_value() == "jke?/ro"
    assert page.locator("dialog").count() == 0
    page.locator("#answer").blur()
    for key in ("Control+j", "Alt+j", "Meta+j"):
        page.keyboard.press(key)
        assert focused(page) not in ("One", "Two")


def test_a_question_mark_lists_the_keys(journal: Journal, page: Page) -> None:
    """On any page; Escape closes the list, and keys do nothing below it."""
    page.goto(f"{journal.url}/desk/audit/")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    assert "answer" in dialog.inner_text()
    page.keyboard.press("?")
    assert page.locator("dialog").count() == 1
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_a_form_saves_itself(journal: Journal, page: Page) -> None:
    """The last text is saved, also of a field elsewhere; the button appears when that fails."""
    lead = make_lead(journal, "autosaved")
    path = f"/desk/tables/leads/{lead}/"
    with_hooks(page, journal, path)
    form = page.locator("#saved")
    assert form.get_by_role("button", name="Save").is_hidden()
    with page.expect_response(lambda each: path in each.url) as answered:
        form.locator("[name=notes]").type("Called.")
    assert answered.value.status == 303
    expect(form).to_contain_text(re.compile(r"saved \d\d:\d\d"))
    assert stored(journal, lead)["notes"] == "Called."
    with page.expect_response(lambda each: path in each.url):
        form.locator("[name=notes]").type(" Again.")
    expect(form).to_contain_text("saved")
    assert stored(journal, lead)["notes"] == "Called. Again."
    with page.expect_response(lambda each: path in each.url):
        page.locator("#aside").type("x")
    page.context.set_offline(True)
    form.locator("[name=notes]").type(" Lost?")
    expect(form).to_contain_text("not saved: press the button")
    assert form.get_by_role("button", name="Save").is_visible()
    page.context.set_offline(False)
    form.get_by_role("button", name="Save").click()
    page.wait_for_url("**done=**")
    assert stored(journal, lead)["notes"] == "Called. Again. Lost?"


def test_a_note_is_saved_when_the_page_is_left(journal: Journal, page: Page) -> None:
    """Before the two seconds are over."""
    lead = make_lead(journal, "left")
    path = f"/desk/tables/leads/{lead}/"
    with_hooks(page, journal, path)
    page.locator("#saved [name=notes]").type("In a hurry")
    page.get_by_role("link", name=re.compile("Inbox")).click()
    page.wait_for_url("**/desk/leads/")
    for _ in range(50):
        if stored(journal, lead)["notes"]:
            break
        page.wait_for_timeout(100)
    assert stored(journal, lead)["notes"] == "In a hurry"


def test_two_windows_do_not_save_over_each_other(journal: Journal, page: Page) -> None:
    """The second says that it is not saved, and its button shows what was changed meanwhile."""
    lead = make_lead(journal, "twice")
    path = f"/desk/tables/leads/{lead}/"
    with_hooks(page, journal, path)
    other = page.context.new_page()
    with_hooks(other, journal, path)
    page.locator("#saved [name=notes]").type("first")
    expect(page.locator("#saved")).to_contain_text("saved")
    other.locator("#saved [name=notes]").type("second")
    why = "not saved, since it was changed meanwhile: press the button"
    expect(other.locator("#saved")).to_contain_text(why)
    other.locator("#saved").get_by_role("button", name="Save").click()
    assert "Meanwhile this was changed to: first." in other.locator("main").inner_text()
    assert other.locator("[name=notes]").input_value() == "second"
    assert stored(journal, lead)["notes"] == "first"


def test_texts_are_copied_and_inserted(journal: Journal, page: Page) -> None:
    """A key into the clipboard; a saved reply at the cursor."""
    with_hooks(page, journal)
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "fe_sk_secret"
    field = page.locator("#saved [name=notes]")
    field.fill("Dear Ann, bye")
    field.evaluate("field => field.setSelectionRange(10, 10)")
    page.locator("select[data-insert]").select_option("Thank you.")
    assert field.input_value() == "Dear Ann, Thank you.bye"


@pytest.mark.parametrize("scripts", [True, False])
def test_the_current_entry_is_in_view_on_a_phone(
    journal: Journal,
    page: Page,
    browser: Browser,
    scripts: bool,  # noqa: FBT001
) -> None:
    """The line is 56 px high at all widths, scrolls to where one is, and shows if it goes on."""
    state = page.context.storage_state()
    with browser.new_context(
        viewport={"width": 240, "height": 600}, storage_state=state, java_script_enabled=scripts
    ) as context:
        phone = context.new_page()
        for path, name in (("", "Today"), ("leads/", "Inbox"), ("settings/", "Settings")):
            phone.goto(f"{journal.url}/desk/{path}")
            entry = phone.locator(".desk-line [aria-current]")
            assert name in entry.inner_text()
            box, line = entry.bounding_box(), phone.locator(".desk-line").bounding_box()
            assert box
            assert line
            assert line["height"] == 56
            assert box["x"] > -1  # browsers round where a line is scrolled to
            assert box["x"] + box["width"] < 241
            # The last pixels of the line have an arrow; at its end they are empty paper.
            end = phone.screenshot(clip={"x": 226, "y": 0, "width": 14, "height": 54})
            colours = Image.open(BytesIO(end)).getcolors()
            assert (len(colours or ()) == 1) == (name == "Settings")


def test_the_script_is_small() -> None:
    """A page of the desk has to open at once."""
    file = Path(__file__).parents[2] / "edge_api" / "desk" / "templates" / "desk.js"
    assert file.stat().st_size < 6500
