"""The screens of the newsletter in a real browser: read by axe, and fitting a phone."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser

from edge_api.auth.actor import new_id, system_clock
from edge_api.db.newsletter_tables import MAILINGS, SUBSCRIBERS
from edge_api.db.query import Insert
from edge_api.db.types import format_instant
from edge_api.open_store import command_store
from edge_api.settings import read_settings
from tests.browser.conftest import Journal, serve, signed_in
from tests.browser.test_desk import AXE, look
from tests.edge.conftest import CONTENT

pytestmark = pytest.mark.size("test")
PATH = "/desk/newsletter/"
LONG = "A title that goes on, and on, and then on: Donaudampfschifffahrtsgesellschaftskapitän"


async def fill(settings: dict[str, str]) -> None:
    """Store a mailing in each state, and subscribers in each."""
    now = system_clock()
    yesterday, soon = (format_instant(now + timedelta(hours=hours)) for hours in (-24, 1))
    states: dict[str, dict[str, Any]] = {
        "waits": {"waits_for": "a credential published it", "subject": LONG},
        "due": {"due_at": soon},
        "held": {"due_at": yesterday, "held_at": yesterday, "held_for": "the owner held it"},
        "sent": {"due_at": yesterday, "queued_at": yesterday, "recipients": 412},
        "ended": {"ended_at": yesterday, "ended_for": "the post was withdrawn"},
    }
    mailings = []
    for number, (slug, more) in enumerate(states.items()):
        values = {"slug": slug, "subject": slug.title(), "url": "https://a.example/", **more}
        values |= {"text_digest": str(number) * 64, "host": "a.example"}
        mailings.append(MAILINGS.new_row(values, format_instant(now), partial(new_id, now)))
    subscribers = []
    for number, status in enumerate(("active", "active", "pending", "ended", "bounced")):
        values = {"email": f"{'long' * 12}{number}@readers-club.net", "token": str(number) * 64}
        values |= {"status": status, "source": "/journal/first/", "asked_at": yesterday}
        if status in ("ended", "bounced"):
            values |= {"ended_at": yesterday, "ended_by": "link"}
        subscribers.append(SUBSCRIBERS.new_row(values, yesterday, partial(new_id, now)))
    async with command_store(read_settings(settings, dotenv=None)) as store:
        await store.run(Insert(MAILINGS, mailings), Insert(SUBSCRIBERS, subscribers))


@pytest.fixture(scope="module")
def mailed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """Return a journal whose newsletter has mailings in every state."""
    folder = tmp_path_factory.mktemp("mailed")
    given = {
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "The Journal <post@journal-keepers.net>",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street, Binding",
        "OWNER_EMAIL": "owner@journal-keepers.net",
        "SMTP_URL": f"maildir:{folder}/mail",
        "MAIL_DISPATCHER": "off",
    }
    with serve(folder, CONTENT, **given) as served:
        asyncio.run(fill({"DATABASE_URL": f"sqlite:///{folder}/var/edge.db"}))
        yield served


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_screens_are_accessible_and_fit(
    mailed: Journal, browser: Browser, width: int, scheme: Any
) -> None:
    """No finding of axe, and nothing wider than the screen."""
    given: dict[str, Any] = {"color_scheme": scheme, "bypass_csp": True}
    given["viewport"] = {"width": width, "height": 844}
    found = []
    with signed_in(browser, mailed, PATH, **given) as page:
        for path in (PATH, f"{PATH}subscribers/", f"{PATH}subscribers/?email=nobody"):
            page.goto(f"{mailed.url}{path}")
            found += [f"{path} {each}" for each in look(page, AXE.read_text())]
    assert found == []


def test_a_mailing_is_held_and_resumed_without_scripts(mailed: Journal, browser: Browser) -> None:
    """By buttons that say what they do."""
    with signed_in(browser, mailed, PATH, java_script_enabled=False) as page:
        row = page.locator("li.apart", has_text="Due")
        row.get_by_role("button", name="Hold").click()
        page.get_by_text("A mailing was held").wait_for()
        row.get_by_role("button", name="Resume: mail it to 2 subscribers").click()
        page.get_by_text("A mailing was resumed").wait_for()
