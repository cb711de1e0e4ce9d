"""Writing at the desk in a real browser: on a phone without scripts, and with them."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, FilePayload, Page

from edge_api.schema.writing import Spool
from tests.browser.conftest import Journal, serve
from tests.browser.test_desk import AXE, look
from tests.browser.watching import OVERFLOW
from tests.edge.conftest import CONTENT
from tests.patience import patience

pytestmark = pytest.mark.size("test")
PHONE = {"width": 390, "height": 844}
NEW = "/desk/posts/new/"
WORDS = " ".join(f"word{number}" for number in range(100))


def until(is_so: Callable[[], Any]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + patience()
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def writable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """Return a journal that can be written, with its watcher."""
    folder = tmp_path_factory.mktemp("write")
    copytree(CONTENT, folder / "content")
    with serve(folder, folder / "content", WRITING="on", CONTENT_DIR=f"{folder}/content") as served:
        installation = served.installation.changed(SITE_URL=served.url)
        with installation.start("watch", module="site_build", stderr=subprocess.DEVNULL) as watcher:
            until(Spool(folder / "var").is_watched)
            yield served
            watcher.terminate()


@contextmanager
def as_owner(browser: Browser, journal: Journal, path: str, **context: Any) -> Iterator[Page]:
    """Open a page of the desk, signed in as the owner by a link; `context` is the browser."""
    _, said, _ = journal.installation.run("desk", "link")
    with browser.new_context(**context) as opened:
        page = opened.new_page()
        page.goto(said.split()[-1])
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{journal.url}{path}")
        yield page


def photo() -> FilePayload:
    """Return a picture as an upload."""
    file = BytesIO()
    Image.new("RGB", (60, 40), "green").save(file, "JPEG")
    return {"name": "My store.JPG", "mimeType": "image/jpeg", "buffer": file.getvalue()}


def state(page: Page) -> str:
    """Return what the bar says."""
    return page.locator("[data-state]").inner_text()


def path_of(page: Page) -> str:
    """Return the path of a page's address, which its script may have replaced."""
    return str(page.evaluate("location.pathname"))


def test_from_a_phone_to_the_published_page_without_scripts(
    writable: Journal, browser: Browser
) -> None:
    """Sign-in, 100 words, a picture, Publish; the page is served with both."""
    phone: dict[str, Any] = {"java_script_enabled": False, "viewport": PHONE}
    with as_owner(browser, writable, "/desk/posts/", **phone) as page:
        page.get_by_role("link", name="Write", exact=True).click()
        page.get_by_label("Title").fill("From a phone")
        page.get_by_label("Text").fill(WORDS)
        page.get_by_label("Picture").set_input_files(photo())
        page.get_by_role("button", name="Add", exact=True).click()
        text = page.get_by_label("Text").input_value()
        assert text == f"{WORDS}\n\n![](/images/my-store.jpg)"
        assert "line 3" in (page.locator(".findings").text_content() or "")
        page.get_by_label("Text").fill(text.replace("![]", "![The store]"))
        assert page.evaluate(OVERFLOW) <= 0
        page.get_by_role("button", name="Publish…").click()
        assert page.evaluate(OVERFLOW) <= 0
        page.get_by_role("button", name="Publish", exact=True).click()
        page.get_by_role("button", name="Take it back").wait_for()
        address = page.locator(".notice a").get_attribute("href") or ""
        assert address == f"{writable.url}/journal/from-a-phone/"
        until(lambda: writable.edge.get("/journal/from-a-phone/")[0] == 200)
        shown = writable.edge.get("/journal/from-a-phone/")[2].decode()
    assert "word99" in shown
    assert 'alt="The store"' in shown


def test_what_is_typed_is_saved_by_itself(writable: Journal, browser: Browser) -> None:
    """The address follows, findings come, a picture lands at the cursor."""
    with as_owner(browser, writable, NEW) as page:
        page.get_by_label("Title").fill("By itself")
        page.keyboard.press("Enter")
        page.keyboard.type("Above. Below.")
        until(lambda: path_of(page).endswith("/by-itself/"))
        page.evaluate("document.querySelector('#text').setSelectionRange(6, 6)")
        page.locator("#picture").set_input_files(photo())
        field = page.get_by_label("Text")
        until(lambda: "![](/images/" in field.input_value())
        assert field.input_value().startswith("Above.\n\n![](/images/my-store")
        page.keyboard.type("The store")
        assert "![The store](/images/" in field.input_value()
        until(lambda: "line 3" in page.locator(".findings").inner_text())
        assert "words" in page.locator("[data-count]").inner_text()


def test_a_lost_session_and_a_lost_connection_lose_nothing(
    writable: Journal, browser: Browser
) -> None:
    """What was typed stays in the browser, and is saved after another sign-in."""
    with as_owner(browser, writable, NEW) as page:
        page.get_by_label("Title").fill("Kept")
        page.get_by_label("Text").fill("First.")
        until(lambda: path_of(page).endswith("/kept/"))
        page.context.set_offline(True)
        page.get_by_label("Text").fill("Second.")
        until(lambda: "no connection" in state(page))
        page.context.set_offline(False)
        page.reload()
        assert page.get_by_label("Text").input_value() == "Second."
        until(lambda: "saved " in state(page) and "not" not in state(page))
        page.context.clear_cookies()
        page.get_by_label("Text").fill("Third.")
        until(lambda: "Sign in again" in state(page))
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Sign in again").click()
        other = opened.value
        other.get_by_label("Your API key").fill(writable.key)
        other.get_by_role("button", name="Sign in").click()
        other.wait_for_url("**/desk/posts/")
        other.close()
        page.get_by_role("button", name="Save").click()
        until(lambda: "saved " in state(page))
        page.reload()
        assert page.get_by_label("Text").input_value().strip() == "Third."


def test_a_second_window_overwrites_nothing_by_itself(writable: Journal, browser: Browser) -> None:
    """It is told, shows the other text, and replaces it only at a press."""
    with as_owner(browser, writable, NEW) as page:
        page.get_by_label("Title").fill("Two windows")
        page.get_by_label("Text").fill("Begun.")
        until(lambda: path_of(page).endswith("/two-windows/"))
        other = page.context.new_page()
        other.goto(f"{writable.url}{path_of(page)}")
        page.get_by_label("Text").fill("From the first.")
        until(lambda: state(page) and "From the first." in stored(writable))
        other.get_by_label("Text").fill("From the second.")
        until(lambda: other.locator(".theirs").count())
        assert "From the first." in other.locator(".theirs").inner_text()
        other.get_by_label("Text").fill("From the second, more.")
        other.wait_for_timeout(3000)
        assert "From the first." in stored(writable)
        other.reload()
        until(lambda: other.locator(".theirs").count())
        assert "From the first." in stored(writable)
        told: dict[str, Any] = dict(other.locator("[data-state]").bounding_box() or {})
        assert told["width"] > 600
        other.get_by_role("button", name="Save").click()
        until(lambda: state(other) and "From the second, more." in stored(writable))


def test_a_former_version_is_saved_by_a_press_alone(writable: Journal, browser: Browser) -> None:
    """Typing in it changes nothing that is stored, and its button is there."""
    with as_owner(browser, writable, NEW) as page:
        page.get_by_label("Title").fill("Versions")
        page.get_by_label("Text").fill("The former.")
        until(lambda: path_of(page).endswith("/versions/"))
        page.get_by_label("Text").fill("The present.")
        until(lambda: "The present." in stored(writable, "versions.md"))
        page.goto(f"{writable.url}/desk/posts/versions/history/")
        page.locator(".sentences a").last.click()
        page.get_by_label("Text").fill("The former again.")
        page.wait_for_timeout(3000)
        assert "The present." in stored(writable, "versions.md")
        page.get_by_role("button", name="Save").click()
        until(lambda: path_of(page).endswith("/versions/") and "version=" not in page.url)
        assert "The former again." in stored(writable, "versions.md")


def test_a_day_that_is_chosen_is_not_lost(writable: Journal, browser: Browser) -> None:
    """To fill in a day chooses it; without a script, a day and "now" are asked about."""
    for able in (True, False):
        name = f"on-a-day-{able}".lower()
        with as_owner(browser, writable, NEW, java_script_enabled=able) as page:
            page.get_by_label("Title").fill(name)
            page.get_by_label("Text").fill("Later.")
            page.get_by_role("button", name="Publish…").click()
            page.get_by_label("Day and time").fill("2099-01-01T08:00")
            page.get_by_role("button", name="Publish", exact=True).click()
            said = "on 1 Jan 2099" if able else "Choose “at”"
            page.get_by_text(said).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_each_screen_can_be_read_and_used(
    writable: Journal, browser: Browser, width: int, scheme: Any
) -> None:
    """No finding of axe and nothing wider than the screen, the sheet of details open too."""
    given: dict[str, Any] = {"color_scheme": scheme, "bypass_csp": True}
    with as_owner(
        browser, writable, NEW, viewport={"width": width, "height": 844}, **given
    ) as page:
        found, name = look(page, AXE.read_text()), f"seen-{width}-{scheme}"
        page.get_by_label("Title").fill(name)
        page.get_by_label("Text").fill("[x](/nowhere/)")
        until(lambda: path_of(page).endswith(f"/{name}/"))
        for path in ("", f"{name}/#details", f"{name}/publish/", f"{name}/history/"):
            page.goto(f"{writable.url}/desk/posts/{path}")
            found += [f"{path} {each}" for each in look(page, AXE.read_text())]
    assert found == []


def stored(journal: Journal, name: str = "two-windows.md") -> str:
    """Return a draft as it is stored."""
    return next(Path(journal.installation.folder).rglob(name)).read_text()
