"""A newsroom: content that is built by the real build, an edge that follows, and a real relay."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from secrets import token_hex
from ssl import create_default_context
from typing import Any

import pytest

from edge_api.auth.actor import OPERATOR, new_id
from edge_api.db.mail_addresses import MailServer, parse_relay
from edge_api.db.newsletter_tables import MAILINGS, SUBSCRIBERS
from edge_api.db.query import Filter, Insert, Store, Update
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.journal.builds import BuildManager
from edge_api.journal.search_index_files import SearchOpener
from edge_api.mail.dispatcher import make_mail_service
from edge_api.mail.transports import SmtpSession
from edge_api.newsletter.mailings import Mailings
from edge_api.newsletter.sending import Letters
from edge_api.settings import Settings, read_settings
from edge_api.webhooks.announcer import Announcer
from tests.edge.conftest import run_build
from tests.edge.mail.outbox.post_office import OWNER, SECRET, PostOffice, TickingClock
from tests.edge.mail.outbox.scripted_relay import Relay, relaying
from tests.edge.small_builds import make_post, point_at, write_build

SITE_URL = "https://journal.example"
WORDS = " ".join(f"word{number}" for number in range(30))

_OPENED: list[BuildManager] = []
"""The builds that edges of the present test follow: each holds connections to a search index."""


@dataclass
class Newsroom:
    """Content, its builds, and all of an edge that mails them."""

    folder: Path
    settings: Settings
    office: PostOffice
    mailings: Mailings
    letters: Letters
    relay: Relay
    announcer: Announcer = field(init=False)
    numbers: Iterator[int] = field(default_factory=partial(count, 1))

    def __post_init__(self) -> None:
        """Start an edge."""
        (self.folder / "content").mkdir(exist_ok=True)
        self.start_edge()

    def start_edge(self) -> None:
        """Start an edge that has seen nothing, in place of the one before."""
        self.builds = BuildManager(self.settings.build_dir, SITE_URL, SearchOpener())
        _OPENED.append(self.builds)
        self.announcer = Announcer(
            self.office.store, self.office.clock, self.builds, self.mailings.announce
        )

    def write(self, slug: str, text: str = "", head: str = "", hours: float = 1) -> None:
        """Write a post of so many hours ago; the text is its own unless one is given."""
        date = format_instant(self.office.clock.now - timedelta(hours=hours))
        lines = ["---", f"title: {slug.title()}", f"slug: {slug}", f"date: {date}", head, "---", ""]
        words = text or f"About {slug}. {WORDS}"
        (self.folder / "content" / f"{slug}.md").write_text("\n".join([*lines, words]))

    def remove(self, slug: str) -> None:
        """Remove a post."""
        (self.folder / "content" / f"{slug}.md").unlink()

    async def build(self) -> None:
        """Build, and let the edge follow."""
        now = format_instant(self.office.clock())
        run_build(self.folder / "content", self.settings.build_dir, now, SITE_URL)
        await self.follow()

    async def start(self, *slugs: str) -> list[Row]:
        """Mail posts of a build that is written by hand, after a test; return their mailings."""
        await self.place(*slugs)
        await self.test_letter()
        mailings = []
        for slug in slugs:
            self.office.clock.move(seconds=1)
            mailings.append(await self.mailings.release(slug, OPERATOR))
        self.office.clock.move(minutes=self.settings.newsletter_delay)
        return mailings

    async def place(self, *slugs: str, **head: Any) -> None:
        """Write a build by hand, and let the edge follow."""
        name = f"build-{next(self.numbers):04}"
        posts = [
            make_post(slug, 400 - place, url=f"{SITE_URL}/journal/{slug}/")
            for place, slug in enumerate(slugs)
        ]
        point_at(
            self.settings.build_dir,
            write_build(self.settings.build_dir, name, posts, site_url=SITE_URL, **head),
        )
        await self.follow()

    async def follow(self) -> None:
        """Let the edge follow what is current."""
        await self.builds.refresh()
        await self.announcer.announce()

    async def found(self) -> list[Row]:
        """Return the mailings in the order of their making."""
        return await self.office.rows(MAILINGS, order="created_at")

    async def due(self) -> list[str]:
        """Return the slugs of mailings that are due."""
        return [row["slug"] for row in await self.found() if row["due_at"]]

    async def waiting(self) -> dict[str, str]:
        """Return why mailings wait for the press, by their slugs."""
        return {row["slug"]: row["waits_for"] for row in await self.found() if row["waits_for"]}

    async def test_letter(self, slug: str = "") -> None:
        """Send the owner a test letter."""
        await self.mailings.test(OPERATOR, slug)
        await self.office.tick()

    async def subscribe(self, *addresses: str, status: str = "active") -> list[Row]:
        """Store subscribers, in the order of their ids."""
        rows = []
        for address in addresses:
            now = self.office.clock()
            given = {"email": address, "status": status, "token": token_hex(32)}
            given["confirmed_at"] = format_instant(now)
            rows.append(SUBSCRIBERS.new_row(given, format_instant(now), partial(new_id, now)))
        await self.office.store.run(Insert(SUBSCRIBERS, rows))
        return rows

    async def change(self, address: str, **values: object) -> None:
        """Change a subscriber."""
        await self.office.store.run(Update(SUBSCRIBERS, values, (Filter("email", "eq", address),)))

    async def send_all(self, turns: int = 50) -> None:
        """Let a second pass again and again, with a turn of both loops, until nothing is left."""
        for _ in range(turns):
            self.office.clock.move(seconds=1)
            await self.letters.queue(self.mailings)
            while await self.office.tick():
                pass

    @property
    def readers(self) -> list[str]:
        """Return who has got letters, without the owner."""
        return [each for each in self.relay.recipients if each != OWNER]


@pytest.fixture
def clock() -> TickingClock:
    """Return a clock that was set to noon of 1 June 2026."""
    return TickingClock()


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    """Return a relay that takes every message, unless a test scripts it otherwise."""
    async with relaying() as running:
        yield running


@pytest.fixture
async def newsroom(
    tmp_path: Path, store: Store, clock: TickingClock, relay: Relay
) -> AsyncIterator[Newsroom]:
    """Return a newsroom without a build; its builds and those of others are closed at the end."""
    yield await open_newsroom(tmp_path, store, clock, relay)
    while _OPENED:
        await _OPENED.pop().close()


async def open_newsroom(
    folder: Path, store: Store, clock: TickingClock, relay: Relay, **changes: str
) -> Newsroom:
    """Return a newsroom whose relay is near; `changes` are settings."""
    given = {
        "SITE_URL": SITE_URL,
        "BUILD_DIR": str(folder / "builds"),
        "OWNER_EMAIL": OWNER,
        "MAIL_FROM": "journal@journal-keepers.net",
        "SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "A journal <post@letters-of-it.net>",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Street, Town",
        **changes,
    }
    settings = read_settings(given, dotenv=None)
    place = parse_relay(settings.smtp_url or "")
    assert isinstance(place, MailServer)
    timeouts = (relay.patience, relay.patience)
    transport = partial(SmtpSession, place, create_default_context(), timeouts)
    letters = Letters(settings, store, clock)
    mailing = make_mail_service(settings, store, clock, SECRET, transport, letters=letters.prepare)
    office = PostOffice(store, clock, settings, mailing)
    await office.change_state(send_delay_ms=0)
    mailings = Mailings(settings, store, clock, mailing.outbox)
    return Newsroom(folder, settings, office, mailings, letters, relay)
