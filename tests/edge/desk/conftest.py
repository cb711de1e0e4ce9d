"""The desk of a running edge, seen by a browser without scripts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from edge_api.db.query import Insert, Read
from edge_api.db.table import Row, Table
from edge_api.db.tables import LEADS
from edge_api.desk.sessions import HIDDEN_FIELD
from tests.edge.conftest import RunningEdge
from tests.edge.store.samples import make_row

LEAD = {"name": "Ann Lee", "email": "ann@example.org", "budget_tier": "b", "message": "Hello\nyou"}


@dataclass
class Response:
    """A page, or a redirect."""

    status: int
    headers: Any
    text: str

    @property
    def tree(self) -> LexborHTMLParser:
        """The page's elements."""
        return LexborHTMLParser(self.text)

    def one(self, selector: str) -> LexborNode:
        """Return the first element that a selector finds."""
        found = self.tree.css_first(selector)
        assert found is not None, selector
        return found

    @property
    def said(self) -> str:
        """The text of the desk's part of the page."""
        found = self.tree.css_first(".desk")
        return " ".join(found.text().split()) if found else self.text

    @property
    def to(self) -> str:
        """The target of a redirect."""
        return str(self.headers["Location"])

    @property
    def page(self) -> str:
        """The path of the target of a redirect, without the entry that its notice is about."""
        return self.to.partition("?")[0]


@dataclass
class Browser:
    """A browser: it keeps its cookies, and says where its forms come from."""

    edge: RunningEdge
    cookie: str = ""
    """The cookie of its session."""
    known: str = ""
    """The cookie that it keeps when it signs out."""
    tokens: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def own(self) -> dict[str, str]:
        """The headers that say that a form comes from the site itself."""
        return {"Sec-Fetch-Site": "same-origin", "Origin": self.edge.service.settings.site_url}

    async def ask(self, method: str, path: str, **more: Any) -> Response:
        """Send a request and take the cookie that comes back."""
        cookies = "; ".join(filter(None, (self.cookie, self.known)))
        headers = {"Cookie": cookies, **more.pop("headers", {})}
        async with self.edge.ask(method, path, headers=headers, **more) as answer:
            if given := answer.headers.get("Set-Cookie", "").partition(";")[0]:
                if "desk-browser=" in given:
                    self.known = given
                else:
                    self.cookie = given
            return Response(answer.status, answer.headers, await answer.text())

    async def get(self, path: str) -> Response:
        """Open a page."""
        return await self.ask("GET", path)

    async def token(self) -> str:
        """Return the token of the forms that it is shown, as a page has it."""
        if (self.cookie, self.known) not in self.tokens:
            shown = await self.get("/desk/sign-in/")
            if shown.status == 303:
                shown = await self.get("/desk/")
            token = str(shown.one(f"[name='{HIDDEN_FIELD}']").attributes["value"])
            self.tokens[self.cookie, self.known] = token
        return self.tokens[self.cookie, self.known]

    async def post(self, path: str, headers: Any = None, **form: Any) -> Response:
        """Send a form, as a page of the desk has it."""
        form = {HIDDEN_FIELD: await self.token(), **form}
        pairs = [
            (name, each)
            for name, value in form.items()
            for each in (value if isinstance(value, list) else [value])
        ]
        sent = self.own if headers is None else headers
        return await self.ask("POST", path, data=pairs or "", headers={**FORM, **sent})

    async def sign_in(self, key: str) -> "Browser":
        """Sign in with a key."""
        assert (await self.post("/desk/sign-in/", key=key)).status == 303
        return self

    async def rows(self, table: Table) -> list[Row]:
        """Return the rows of a table as they are stored."""
        (result,) = await self.edge.service.store.run(Read(table))
        return list(result.rows)

    async def lead(self, **changes: Any) -> Row:
        """Store a lead."""
        row = make_row(LEADS, {**LEAD, **changes})
        await self.edge.service.store.run(Insert(LEADS, [row]))
        return row


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BrowserMaker = Callable[..., Any]


@pytest.fixture
async def owner(edge: RunningEdge) -> Browser:
    """Return a browser that is signed in with a key for everything."""
    return await Browser(edge).sign_in(await edge.key())
