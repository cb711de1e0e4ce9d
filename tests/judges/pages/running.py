"""A browser that notices every script which was not the page's own, with or without its policy."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from playwright.async_api import Browser, BrowserContext, Dialog, Page, Route, async_playwright

from tests.browser.conftest import ARGUMENTS

AT_ONCE = 4
"""Tabs."""
_FETCHED = "/judged/"
"""The path under which answers that were fetched before are shown."""
_SETTLED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))"
_PLANTED = """() => [...document.querySelectorAll("*")].flatMap(node => [
  ...[...node.attributes]
    .filter(({ name, value }) => /^on/i.test(name)
      || /^[\\s\\x00-\\x1f]*(javascript|vbscript|data:text)/i.test(value) && name !== "value"
        && name !== "content"
      || name === "data-module" && !value.startsWith("/theme/"))
    .map(({ name, value }) => `${node.tagName} ${name}=${value}`),
  ...(node.tagName === "SCRIPT" && node.type !== "application/ld+json"
      && new URL(node.src || "data:,").origin !== location.origin
    ? [`a script: ${node.outerHTML}`] : []),
]).map(found => found.slice(0, 200))"""
"""A script that lists code that could run later: handlers, script addresses, foreign scripts."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A page to look at: an address that is opened, or an answer that was fetched before."""

    name: str
    path: str
    html: bytes | None = None
    headers: Mapping[str, str] | None = None
    is_authors: bool = False
    """True if it may hold handlers, which are the author's, as long as none of them runs."""


class Tab:
    """One tab of a browser, which shows one page after the other and keeps what ran on it."""

    def __init__(self, page: Page, origin: str) -> None:
        self._page = page
        self._origin = origin
        self._found: list[str] = []
        self._answer: Shown | None = None

    async def listen(self) -> None:
        """Hear every dialog and every call, and be ready to give answers that were fetched."""
        self._page.on("dialog", self._close)
        await self._page.expose_function("__ran", self._hear)
        await self._page.route(f"{self._origin}{_FETCHED}*", self._give)

    async def show(self, shown: Shown, number: int) -> list[str]:
        """Open a page, let it come to rest, and return what ran on it or could."""
        self._found, self._answer = [], shown
        path = shown.path if shown.html is None else f"{_FETCHED}{number}"
        await self._page.goto(self._origin + path, wait_until="load")
        await self._page.evaluate(_SETTLED)
        planted = [] if shown.is_authors else await self._page.evaluate(_PLANTED)
        return [*self._found, *planted]

    async def _close(self, dialog: Dialog) -> None:
        self._found.append(f"a dialog: {dialog.message}")
        await dialog.dismiss()

    def _hear(self, *_: object) -> None:
        self._found.append("a script ran")

    async def _give(self, route: Route) -> None:
        assert self._answer is not None
        sent = {"content-type": "text/html; charset=utf-8", **(self._answer.headers or {})}
        kept = {name: value for name, value in sent.items() if name.lower() != "content-length"}
        await route.fulfill(body=self._answer.html or b"", headers=kept)


async def watch(
    chromium: str, origin: str, pages: Iterable[Shown], *, has_policy: bool
) -> dict[str, list[str]]:
    """Show every page, and return what ran or could run, by the page's name."""
    waiting = iter(enumerate(pages))
    seen: dict[str, list[str]] = {}

    async def work(context: BrowserContext) -> None:
        tab = Tab(await context.new_page(), origin)
        await tab.listen()
        for number, shown in waiting:
            if found := await tab.show(shown, number):
                seen[shown.name] = found

    async with async_playwright() as playwright:
        browser: Browser = await playwright.chromium.launch(
            executable_path=chromium, args=list(ARGUMENTS)
        )
        context = await browser.new_context(bypass_csp=not has_policy)
        await asyncio.gather(*(work(context) for _ in range(AT_ONCE)))
        await browser.close()
    return dict(sorted(seen.items()))
