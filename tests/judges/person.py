"""A person with a browser, who is asked for consent: pastes an API key, and allows what is asked.

The browser knows no JavaScript. It reads the page's form, whatever its fields are.
"""

import asyncio
from contextlib import suppress
from urllib.parse import urljoin

from aiohttp import ClientConnectorError, ClientResponse, ClientSession, CookieJar
from selectolax.lexbor import LexborHTMLParser, LexborNode
from yarl import URL

_STEPS_MOST = 5
"""Pages between the first address and the client; nobody is sent about for longer."""
_RELOADS_MOST = 400


def filled_in(form: LexborNode, api_key: str) -> list[tuple[str, str]]:
    """Return what a browser sends of a form: every box ticked, the key, and the button `allow`."""
    fields = form.css("input[type=hidden], input[type=checkbox]")
    pairs = [(field.attributes["name"], field.attributes["value"]) for field in fields]
    sent = [(name or "", value or "") for name, value in pairs]
    return [*sent, ("api_key", api_key), ("decision", "allow")]


class Person:
    """Opens the address that a client gives, and ends where the client waits."""

    def __init__(self, session: ClientSession, api_key: str) -> None:
        """Take a session that keeps cookies, and the key to paste."""
        self._session = session
        self._api_key = api_key

    async def open(self, address: str) -> None:
        """Go from the address to the client, and show it the answer.

        A client may print the address before it listens: then the page is loaded again.
        """
        destination = await self.consent(address)
        for _ in range(_RELOADS_MOST):
            with suppress(ClientConnectorError):
                await self._get(destination)
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"nobody listens at {destination}")

    async def consent(self, address: str) -> str:
        """Return where the browser is sent from the address: to the client, with the answer."""
        origin = URL(address).origin()
        answer = await self._get(address)
        for _ in range(_STEPS_MOST):
            if answer.status == 200:
                answer = await self._allow(answer)
            assert answer.status in (302, 303), f"{answer.status}: {await answer.text()}"
            following = urljoin(str(answer.url), answer.headers["Location"])
            if URL(following, encoded=True).origin() != origin:
                return following
            answer = await self._get(following)
        raise AssertionError(f"sent about from {address} without an end")

    async def _get(self, address: str) -> ClientResponse:
        answer = await self._session.get(URL(address, encoded=True), allow_redirects=False)
        await answer.read()
        return answer

    async def _allow(self, page: ClientResponse) -> ClientResponse:
        """Fill in the form of the page, and press the button that allows."""
        text = await page.text()
        form = LexborHTMLParser(text).css_first("form:has(input[name=api_key])")
        assert form is not None, text
        assert form.css("button[name=decision][value=allow]"), text
        assert (form.attributes["method"] or "").lower() == "post", text
        sent = filled_in(form, self._api_key)
        address = urljoin(str(page.url), form.attributes["action"] or "")
        headers = {"Origin": str(page.url.origin()), "Referer": str(page.url)}
        answer = await self._session.post(
            address, data=sent, headers=headers, allow_redirects=False
        )
        await answer.read()
        return answer


def browser() -> ClientSession:
    """Return a session that keeps cookies, also those of an address without a name."""
    return ClientSession(cookie_jar=CookieJar(unsafe=True))
