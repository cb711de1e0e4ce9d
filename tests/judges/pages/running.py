"""A browser that notices every script which was not the page's own, with or without its policy."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from playwright.async_api import Browser, BrowserContext, Dialog, Page, Route, async_playwright

from tests.browser.conftest import ARGUMENTS

AT_ONCE = 4
_SETTLED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))"
_PLANTED = """() => [...document.querySelectorAll("*")].flatMap(node => [
  ...[...node.attributes]
    .filter(({ name, value }) => /^on/i.test(name)
      || /^[\\s\\x00-\\x1f]*(javascript|vbscript|data:text)/i.test(value) && name !== "value"
        && name !== "content")
    .map(({ name, value }) => `${node.tagName} ${name}=${value}`),
  ...(node.tagName === "SCRIPT" && node.type !== "application/ld+json"
      && new URL(node.src || "data:,").origin !== location.origin
    ? [`a script: ${node.outerHTML}`] : []),
]).map(found => found.slice(0, 200))"""
"""What could run later, by a click or a key: handlers, addresses that are code, foreign scripts."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A page to look at: an address that is opened, or an answer that was fetched before."""

    name: str
    path: str
    html: bytes | None = None
    headers: Mapping[str, str] | None = None
    is_authors: bool = False
    """Whether it may hold handlers, which are the author's, as long as none of them runs."""


class Spy:
    """Opens pages in one context, and keeps what ran on which."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.found: dict[str, list[str]] = {}
        self._context = context
        self._origin = origin
        self._numbers = count()
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def show(self, shown: Shown) -> None:
        """Open a page, let it come to rest, and keep what was found."""
        async with self._turn:
            page = await self._context.new_page()
            found: list[str] = []
            try:
                await self._listen(page, found)
                await self._open(page, shown)
                await page.evaluate(_SETTLED)
                if not shown.is_authors:
                    found += await page.evaluate(_PLANTED)
            finally:
                await page.close()
            if found:
                self.found[shown.name] = found

    async def _listen(self, page: Page, found: list[str]) -> None:
        async def close(dialog: Dialog) -> None:
            found.append(f"a dialog: {dialog.message}")
            await dialog.dismiss()

        page.on("dialog", close)
        await page.expose_function("__ran", lambda *_: found.append("a script ran"))

    async def _open(self, page: Page, shown: Shown) -> None:
        address = self._origin + shown.path
        if shown.html is not None:
            address = f"{self._origin}/judged/{next(self._numbers)}"
            await page.route(address, _answer(shown.html, shown.headers or {}))
        await page.goto(address, wait_until="load")


def _answer(html: bytes, headers: Mapping[str, str]) -> Callable[[Route], Awaitable[None]]:
    async def answer(route: Route) -> None:
        sent = {"content-type": "text/html; charset=utf-8", **headers}
        sent.pop("content-length", None)
        await route.fulfill(body=html, headers=sent)

    return answer


async def watch(
    chromium: str, origin: str, pages: Iterable[Shown], *, has_policy: bool
) -> dict[str, list[str]]:
    """Show every page, and return what ran or could run, by the page's name."""
    async with async_playwright() as playwright:
        browser: Browser = await playwright.chromium.launch(
            executable_path=chromium, args=list(ARGUMENTS)
        )
        options: dict[str, Any] = {"bypass_csp": not has_policy}
        context = await browser.new_context(**options)
        spy = Spy(context, origin)
        await asyncio.gather(*(spy.show(shown) for shown in pages))
        await browser.close()
    return dict(sorted(spy.found.items()))
