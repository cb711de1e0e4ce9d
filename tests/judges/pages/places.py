"""Places that are judged: a page of each kind, and each that the edge makes for one request."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote

from playwright.async_api import Page

from edge_api.schema import paths
from edge_api.schema.page_templates import PageName
from tests.judges.pages.crawl import crawl, largest_of_each_kind, mapped
from tests.judges.pages.sample import STRAINS
from tests.judges.pages.served import Served

Steps = Callable[[Page], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Place:
    """A page, and how one gets there."""

    name: str
    path: Callable[[Served], str]
    """The path that is opened, made anew for each visit."""
    status: int = 200
    steps: Steps | None = None
    """Steps on the opened page that lead to the one that is judged."""
    refused: int = 0
    """The status of what the page asks for in these steps and is not given."""
    template: PageName | None = None
    """The name of the page of the edge, where it is one."""


def at(path: str) -> Callable[[Served], str]:
    """Return the way to a fixed path."""
    return lambda _: path


async def ask_for_access(page: Page) -> None:
    """File a request for access."""
    await page.locator("#access-name").fill("Ann")
    await page.locator("#access-purpose").fill("Posts")
    await page.locator("#access-form button").click()
    await page.locator(".secret").wait_for()


async def send_an_address_that_is_none(page: Page) -> None:
    """Fill in the contact form with a fault."""
    await page.locator("#name").fill("Ann")
    await page.locator("#email").fill("ann@nowhere")
    await page.locator("#message").fill("Words")
    await page.locator("#contact-form button:not([name])").click()
    await page.locator("#email-fault").wait_for()


async def ask_for_the_newsletter_wrongly(page: Page) -> None:
    """Fill in the form of the newsletter with a fault."""
    await page.locator("#email").fill("ann@nowhere")
    await page.locator("main form button").click()
    await page.locator("#email-fault").wait_for()


async def allow_with_a_wrong_key(page: Page) -> None:
    """Answer the question with a key that nobody has."""
    await page.locator("#api_key").fill("fe_sk_wrong")
    await page.locator("button[value=allow]").click()
    await page.locator("[role=alert]").wait_for()


async def press_the_button(page: Page) -> None:
    """Press the one button of the page."""
    await page.locator("main form button").click()
    await page.wait_for_load_state()


async def try_operations(page: Page) -> None:
    """Open operations without and with a body, and execute one."""
    for operation in ("posts-get_post", "analyze-analyze", "utility-ping"):
        await page.locator(f"#operations-{operation} .opblock-summary-control").click()
    await page.locator("#operations-utility-ping .execute").click()
    await page.locator(".live-responses-table").wait_for()


async def open_the_dialog(page: Page) -> None:
    """Open the dialog that takes a key."""
    await page.locator(".btn.authorize").click()
    await page.locator(".modal-ux").wait_for()


def unsubscribe_link(served: Served) -> str:
    """Return a link as it is in mail."""
    token = secrets.token_hex(32)
    return served.unsubscribe_path(token, f"ann.{token[:8]}@example.org")


def confirmation_link(served: Served) -> str:
    """Return a link that confirms a subscription, as it is in mail."""
    return served.confirmation_path(f"ann.{secrets.token_hex(4)}@readers-club.net")


OCCASIONS = (
    Place("thanks", at("/contact/thanks/")),
    Place("missing", at("/no-such-page/"), 404),
    Place("refusal", at(paths.AUTHORIZE), 400, template="notice"),
    Place("consent", Served.consent_path, template="consent"),
    Place(
        "consent with a fault",
        lambda served: served.consent_path("A client with a name " + "o" * 60),
        400,
        allow_with_a_wrong_key,
        template="consent",
    ),
    Place("unsubscribe", unsubscribe_link, template="unsubscribe"),
    Place("unsubscribed", unsubscribe_link, steps=press_the_button, template="notice"),
    Place(
        "access requested",
        at("/contact/"),
        steps=ask_for_access,
        template="access_requested",
    ),
    Place("subscribe", at(paths.SUBSCRIBE), template="subscribe"),
    Place(
        "subscribe with a fault",
        at(paths.SUBSCRIBE),
        400,
        ask_for_the_newsletter_wrongly,
        template="subscribe",
    ),
    Place("subscription", confirmation_link, template="subscription"),
    Place("subscribed", confirmation_link, steps=press_the_button, template="notice"),
    Place("claim", at("/contact/access/claim/"), template="access_claim"),
    Place(
        "form with a fault",
        at("/contact/"),
        steps=send_an_address_that_is_none,
        refused=400,
    ),
)
"""Each page of the edge, and each of its states that looks different."""

SEARCHES = {
    "results": "edge",
    "no results": "zzzzzz",
    "a search that cannot be read": "\"unbalanced OR ( NEAR/ * ' ; --",
}


def places(served: Served) -> list[Place]:
    """Return all that is looked at in the product's own journal."""
    pages = crawl(served)
    found = [Place(path, at(path)) for path in largest_of_each_kind(pages)]
    if paths.TRY_OUT_PATH in pages and paths.TRY_OUT_PATH not in {place.name for place in found}:
        found.append(Place(paths.TRY_OUT_PATH, at(paths.TRY_OUT_PATH)))
    found += [
        Place("operations tried", at(paths.TRY_OUT_PATH), steps=try_operations),
        Place("the dialog for a key", at(paths.TRY_OUT_PATH), steps=open_the_dialog),
    ]
    if paths.SEARCH in pages:
        found += [
            Place(name, at(f"{paths.SEARCH}?q={quote(words)}")) for name, words in SEARCHES.items()
        ]
    return [*found, *OCCASIONS]


def strains(served: Served) -> list[Place]:
    """Return what is looked at in the sample: its lists, and each post that strains a page."""
    of_the_edge = (paths.DOCS, paths.SEARCH)
    pages = {path: html for path, html in crawl(served).items() if not path.startswith(of_the_edge)}
    posts = [path for path in mapped(served) if path.removesuffix("/").endswith(STRAINS)]
    return [Place(path, at(path)) for path in sorted({*largest_of_each_kind(pages), *posts})]
