"""A look at a page in a browser, and everything that was noticed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    Response,
    async_playwright,
)

from tests.browser.conftest import ARGUMENTS
from tests.browser.watching import OVERFLOW, REPORT_VIOLATIONS
from tests.judges.pages.places import Place
from tests.judges.pages.served import Served
from tests.sizes import scaled
from tools.judges import MODULES

AT_ONCE = 3
"""Pages that are looked at side by side."""
HEIGHT = 800
MOST_MILLISECONDS = 120_000
"""For a step. An operation of "Try the API" takes over 30 s to open beside other workers."""
_AXE = MODULES / "axe-core" / "axe.min.js"
# What is laid out only as it comes near is judged too.
_RUN_AXE = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { content-visibility: visible !important }");
  document.adoptedStyleSheets = [sheet];
  return axe.run({ include: [["html"]] }, {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  resultTypes: ["violations"],
}).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
  nodes.map(node => `${id}: ${node.target.join(" ")}: ${node.failureSummary}`)));
}"""


class Variant(NamedTuple):
    """A way to show a page."""

    scheme: Literal["light", "dark"]
    width: int
    """The width of the window, in CSS pixels."""

    def __str__(self) -> str:
        return f"{self.scheme} {self.width}"


VARIANTS = [
    Variant("light", 360),
    Variant("dark", 1280),
    Variant("light", 1280),
    Variant("dark", 360),
]
JUDGED = VARIANTS[: scaled(test=1, ci=2, judge=4)]
"""Variants of each page. The first two have both schemes and both widths between them."""


@dataclass
class PageVisit:
    """All that was recorded during one visit of a page."""

    place: Place
    variant: Variant
    url: str = ""
    status: int = 0
    html: bytes = b""
    """As it was served."""
    complaints: list[str] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """URL and the browser's name for the kind of resource."""
    overflow: int = 0
    """CSS pixels by which the page is wider than the window."""
    barriers: list[str] = field(default_factory=list)
    """Findings of axe."""

    @property
    def name(self) -> str:
        """Say which page, and how it was looked at."""
        return f"{self.place.name} ({self.variant})"


class PageRecorder:
    """Records the complaints, requests and answers of a page."""

    def __init__(self, page: Page, visit: PageVisit) -> None:
        self._visit = visit
        self._answers: list[Response] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        page.on("request", self._ask)
        page.on("response", self._hear)

    def _note(self, message: ConsoleMessage) -> None:
        """Keep errors and warnings, but that of the browser about a status that is meant."""
        place = self._visit.place
        meant = {status for status in (place.status, place.refused) if status >= 400}
        is_meant = any(f"status of {status}" in message.text for status in meant)
        if message.type in ("error", "warning") and not is_meant:
            self._visit.complaints.append(message.text)

    def _ask(self, request: Request) -> None:
        self._visit.requests.append((request.url, request.resource_type))

    def _hear(self, response: Response) -> None:
        request = response.request
        if request.is_navigation_request() and request.frame.parent_frame is None:
            self._answers.append(response)

    async def finish(self, page: Page) -> None:
        """Record the URL, status and HTML of the page itself."""
        last = self._answers[-1]
        self._visit.url, self._visit.status = page.url, last.status
        self._visit.html = await last.body()


async def look(browser: Browser, served: Served, place: Place, variant: Variant) -> PageVisit:
    """Open a page and return what was noticed."""
    visit = PageVisit(place, variant)
    context = await browser.new_context(
        viewport={"width": variant.width, "height": HEIGHT},
        color_scheme=variant.scheme,
        reduced_motion="reduce",
    )
    async with context:
        context.set_default_timeout(MOST_MILLISECONDS)
        await context.add_init_script(REPORT_VIOLATIONS)
        page = await context.new_page()
        recorder = PageRecorder(page, visit)
        await page.goto(served.origin + place.path(served))
        if place.steps:
            await place.steps(page)
        await page.wait_for_load_state("networkidle")
        await recorder.finish(page)
        await measure(page, visit)
    return visit


async def measure(page: Page, visit: PageVisit) -> None:
    """Measure the page as it is shown."""
    visit.overflow = int(await page.evaluate(OVERFLOW))
    # Evaluated by the debugger, which no policy of the page holds back.
    await page.evaluate(_AXE.read_text(encoding="utf-8"))
    found: Any = await page.evaluate(_RUN_AXE)
    visit.barriers = [str(each) for each in found]


async def look_at_all(
    chromium: str, served: Served, all_places: Sequence[Place], variants: Sequence[Variant]
) -> list[PageVisit]:
    """Return a visit of each place in each variant."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def take(browser: Browser, place: Place, variant: Variant) -> PageVisit:
        async with turn:
            return await look(browser, served, place, variant)

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        asked = [take(browser, place, variant) for place in all_places for variant in variants]
        visits = await asyncio.gather(*asked)
        await browser.close()
    return list(visits)
