"""An edge with a newsletter, whose mail is stored in a folder."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientResponse
from selectolax.lexbor import LexborHTMLParser

from edge_api.auth.actor import new_id
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import Filter, Insert, Order, Read, Update
from edge_api.db.table import Row, Table
from edge_api.db.tables import SUPPRESSED_EMAILS
from edge_api.db.types import format_instant
from edge_api.mail.dispatcher import make_mail_service
from tests.edge.domain.conftest import MovableClock
from tests.patience import patience

ANN = "ann@readers-club.net"
SITE = "https://journal.example"
SECRET_KEY = "a secret of thirty-two characters"
POST = """---
title: {title}
date: 2026-05-0{day} 09:00
lang: {language}
description: A post.
---

Some words.
"""


class TickingClock(MovableClock):
    """Goes on by a microsecond whenever it is looked at."""

    def __call__(self) -> Any:
        """Return the instant."""
        self.move(microseconds=1)
        return self.now


@dataclass
class Page:
    """A page that the edge answered."""

    status: int
    html: LexborHTMLParser
    headers: Any

    @property
    def title(self) -> str:
        """Return the heading."""
        return self.html.css("h1")[0].text().strip()

    @property
    def text(self) -> str:
        """Return the words of the main part."""
        return " ".join(self.html.css("main")[0].text().split())

    @property
    def buttons(self) -> dict[str, str]:
        """Return the addresses that buttons post to, by their words."""
        forms = self.html.css("main form")
        return {form.css("button")[0].text(): str(form.attributes["action"]) for form in forms}


@dataclass
class Newsletter:
    """A running edge with a newsletter, and ways to look at what came of it."""

    edge: Any
    clock: TickingClock
    folder: Path
    mailing: Any

    async def page(self, method: str, path: str, **more: Any) -> Page:
        """Send a request, and return the page."""
        async with self.edge.ask(method, path, **more) as answer:
            return await read_page(answer)

    async def ask(self, email: str = ANN, **fields: str) -> Page:
        """Send the form under a post."""
        given = {"email": email, "source": "/journal/first/", "_gotcha": "", **fields}
        return await self.page("POST", "/subscribe", data=given)

    async def rows(self, table: Table, *where: Filter, order: str = "id") -> list[Row]:
        """Return the rows of a table."""
        read = Read(table, where=where, order=(Order(order),))
        (result,) = await self.edge.service.store.run(read)
        found: list[Row] = result.rows
        return found

    async def subscriber(self, email: str = ANN) -> Row:
        """Return one subscriber."""
        (row,) = await self.rows(SUBSCRIBERS, Filter("email", "eq", email))
        return row

    async def add(self, email: str = ANN, **values: Any) -> str:
        """Store a subscriber, and return its token."""
        now = self.clock()
        given = {"email": email, "token": os.urandom(32).hex(), "status": "active"}
        given |= {"confirmed_at": format_instant(now), **values}
        row = SUBSCRIBERS.new_row(given, format_instant(now), lambda: new_id(now))
        await self.edge.service.store.run(Insert(SUBSCRIBERS, [row]))
        return str(row["token"])

    async def change(self, table: Table, **values: Any) -> None:
        """Change every row of a table."""
        every = (Filter(table.key, "is", None, negated=True),)
        await self.edge.service.store.run(Update(table, values, every))

    async def suppress(self, email: str, reason: str) -> None:
        """Suppress an address."""
        now = self.clock()
        given = {"email": email, "reason": reason}
        row = SUPPRESSED_EMAILS.new_row(given, format_instant(now), lambda: new_id(now))
        await self.edge.service.store.run(Insert(SUPPRESSED_EMAILS, [row]))

    async def suppressed(self) -> dict[str, str]:
        """Return the suppressed addresses with their reasons."""
        return {row["email"]: row["reason"] for row in await self.rows(SUPPRESSED_EMAILS)}

    async def deliver(self) -> list[EmailMessage]:
        """Send what is due, and return all messages that were sent since the last call."""
        while await self.mailing.dispatcher.send_batch():
            pass
        sent = []
        for file in sorted((self.folder / "new").glob("*"), key=lambda each: each.stat().st_mtime):
            message = message_from_bytes(file.read_bytes(), policy=policy.default)
            assert isinstance(message, EmailMessage)
            sent.append(message)
            file.unlink()
        return sent

    async def links(self) -> dict[str, str]:
        """Return the paths in the one message that is sent now: of confirming, and leaving."""
        (message,) = await self.deliver()
        text = message.get_body(("plain",))
        assert text is not None
        found = re.findall(rf"{SITE}(/(?:subscribe/confirm|unsubscribe)\?\S+)", text.get_content())
        return {urlsplit(path).path: path for path in found}


async def read_page(answer: ClientResponse) -> Page:
    """Return an answer as a page."""
    return Page(answer.status, LexborHTMLParser(await answer.read()), answer.headers)


@pytest.fixture(scope="session")
def subscribed_journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a BUILD_DIR with a journal that has the newsletter."""
    folder = tmp_path_factory.mktemp("subscribed")
    content = folder / "content" / "posts"
    content.mkdir(parents=True)
    for day, (title, language) in enumerate((("First", "en"), ("Zweiter", "de")), start=1):
        text = POST.format(title=title, day=day, language=language)
        (content / f"{title.lower()}.md").write_text(text)
    words = ["--content", str(folder / "content"), "--output", str(folder / "build")]
    words += ["--site-url", SITE, "--now", "2026-06-01T00:00:00Z"]
    command = [sys.executable, "-m", "site_build", "build", *words]
    environment = {**os.environ, "NEWSLETTER": "on"}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=patience(600))
    return folder / "build"


@pytest.fixture
async def newsletter(
    make_edge: Any, subscribed_journal: Path, tmp_path: Path
) -> AsyncIterator[Newsletter]:
    """Return a running edge with a newsletter, without a limit by address."""
    clock, folder = TickingClock(), tmp_path / "mail"
    settings = {
        "SITE_URL": SITE,
        "SECRET_KEY": SECRET_KEY,
        "BUILD_DIR": str(subscribed_journal),
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "The Journal <post@journal-keepers.net>",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street, Binding",
        "OWNER_EMAIL": "owner@journal-keepers.net",
        "MAIL_FROM": "journal@journal-keepers.net",
        "SMTP_URL": f"maildir:{folder}",
        "RATE_SUBSCRIBE": "0",
    }
    async with make_edge(clock, **settings) as edge:
        service = edge.service
        mailing = make_mail_service(service.settings, service.store, clock, SECRET_KEY.encode())
        yield Newsletter(edge, clock, folder, mailing)
