"""The Publish screen of a journal with a newsletter: what is mailed, to how many, and Stop."""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge_api.auth.actor import new_id
from edge_api.db.newsletter_tables import MAILINGS, SUBSCRIBERS
from edge_api.db.query import Insert, Read
from edge_api.db.types import format_instant
from edge_api.desk.sessions import HIDDEN_FIELD
from edge_api.journal.builds import BuildManager
from edge_api.mail.dispatcher import make_mail_service
from edge_api.newsletter.mailings import Mailings
from edge_api.newsletter.sending import Letters
from edge_api.webhooks.announcer import Announcer
from tests.edge.conftest import EdgeMaker, RunningEdge, run_build
from tests.edge.desk.conftest import Browser, Response
from tests.edge.desk.test_posts import LIST, NEW, content, send, sign_in_owner
from tests.edge.engines import ON_SQLITE
from tests.edge.writing_process import writing

__all__ = ["content"]
pytestmark = ON_SQLITE
SITE = "https://journal.test"


class Journal:
    """A journal that is written, built, and mailed."""

    def __init__(self, edge: RunningEdge, content: Path, build: Path) -> None:
        self.edge, self.content, self.build_dir = edge, content, build
        self.service = edge.service
        self.announcer = Announcer(
            edge.service.store,
            edge.service.clock,
            edge.service[BuildManager],
            edge.service[Mailings].announce,
        )

    async def build(self) -> None:
        """Build, and let the edge follow."""
        now = format_instant(self.service.clock())
        run_build(self.content.parent, self.build_dir, now, SITE)
        await self.service[BuildManager].refresh()
        await self.announcer.announce()

    async def subscribe(self, number: int) -> None:
        """Store active subscribers."""
        now = self.service.clock()
        given = [
            {"email": f"r{each}@readers-club.net", "token": os.urandom(32).hex()}
            for each in range(number)
        ]
        rows = [
            SUBSCRIBERS.new_row(
                {**each, "status": "active"}, format_instant(now), lambda: new_id(now)
            )
            for each in given
        ]
        await self.service.store.run(Insert(SUBSCRIBERS, rows))

    async def send_test(self, writer: Browser) -> None:
        """Send the owner a test, as the button on the screen Newsletter does."""
        assert (await writer.post("/desk/newsletter/test/")).status == 303
        service = self.service
        letters = Letters(service.settings, service.store, service.clock)
        mailing = make_mail_service(
            service.settings, service.store, service.clock, b"s" * 32, letters=letters.prepare
        )
        while await mailing.dispatcher.send_batch():
            pass

    async def mailings(self) -> dict[str, str]:
        """Return why mailings wait by slug; nothing for those that are due."""
        (found,) = await self.service.store.run(Read(MAILINGS))
        return {row["slug"]: row["waits_for"] for row in found.rows}


@pytest.fixture
async def mailed(make_edge: EdgeMaker, tmp_path: Path, content: Path) -> AsyncIterator[Journal]:
    """Return a journal with two subscribers, whose first build was announced."""
    build = tmp_path / "build"
    given = {
        "CONTENT_DIR": str(content.parent),
        "BUILD_DIR": str(build),
        "SITE_URL": SITE,
        "WRITING": "on",
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "The Journal <post@journal-keepers.net>",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street, Binding",
        "OWNER_EMAIL": "owner@journal-keepers.net",
        "SMTP_URL": f"maildir:{tmp_path}/mail",
    }
    async with make_edge(**given) as running:
        with writing(tmp_path, content.parent, build):
            journal = Journal(running, content, build)
            await journal.subscribe(2)
            await journal.build()
            yield journal


async def write(writer: Browser, title: str) -> str:
    """Write a post; return the address of its Publish screen."""
    given = {"title": title, "text": f"{title} has stood for years.\n"}
    return (await send(writer, await writer.get(NEW), **given, do="publish")).page


async def publish(writer: Browser, path: str, **changes: str) -> Response:
    """Press Publish with the ticks that are set; return the page that follows."""
    form = (await writer.get(path)).one("form.stack")
    fields = [each.attributes for each in form.css("input[type=hidden], input[checked]")]
    given = {str(each["name"]): str(each["value"]) for each in fields}
    given.pop(HIDDEN_FIELD)
    given |= changes
    done = await writer.post(path, **{name: text for name, text in given.items() if text != "-"})
    assert done.status == 303, done.said
    return await writer.get(done.to)


def tick(shown: Response) -> tuple[str, bool]:
    """Return the words of the tick that has a post mailed, and whether it is set."""
    box = shown.one("[name=mail]")
    assert box.parent is not None
    return " ".join(box.parent.text().split()), "checked" in box.attributes


async def test_a_post_is_mailed_as_the_tick_says_and_stopped_there(mailed: Journal) -> None:
    """The tick says to how many, and when; once the mailing is made, the page stops it."""
    writer = await sign_in_owner(mailed.edge)
    await mailed.send_test(writer)
    path = await write(writer, "Two winters")
    words, is_set = tick(await writer.get(path))
    assert re.fullmatch(
        r"mail it to 2 subscribers, at \d\d:\d\d UTC if you publish now, else 10 minutes after; "
        "it can be stopped until then",
        words,
    )
    assert is_set
    done = await publish(writer, path)
    assert "It is mailed to 2 subscribers 10 minutes after readers see it" in done.said
    await mailed.build()
    assert await mailed.mailings() == {"two-winters": ""}

    shown = await writer.get(path)
    assert re.search(r"It is mailed to 2 subscribers at \d\d:\d\d UTC, and can be", shown.said)
    stop = next(each for each in shown.tree.css("form") if "Stop it" in each.text())
    stopped = await writer.post(str(stop.attributes["action"]), back=path)
    assert stopped.page == path
    shown = await writer.get(stopped.to)
    assert "It was stopped at" in shown.said
    release = next(each for each in shown.tree.css("form") if "Mail it to" in each.text())
    assert release.css("button")[0].text() == "Mail it to 2 subscribers"
    again = await writer.post(str(release.attributes["action"]), back=path, to="2")
    assert "It is mailed to 2 subscribers at" in (await writer.get(again.to)).said
    assert again.page == path


async def test_without_the_tick_it_is_kept_out(mailed: Journal) -> None:
    """The head says so, and the tick too when it is taken back; line ends stay."""
    writer = await sign_in_owner(mailed.edge)
    await mailed.send_test(writer)
    path = await write(writer, "Quiet")
    file = mailed.content / "quiet.md"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    done = await publish(writer, path, mail="-")
    assert "It is not mailed to subscribers." in done.said
    raw = file.read_bytes()
    assert b'newsletter: "no"\r\n' in raw
    assert raw.count(b"\r\n") == raw.count(b"\n")
    await mailed.build()
    assert await mailed.mailings() == {}

    loud = await write(writer, "Loud")
    draft = mailed.content / "loud.md"
    draft.write_text(draft.read_text().replace("title:", "newsletter: no\ntitle:"))
    assert tick(await writer.get(loud))[1] is False
    await publish(writer, loud, mail="yes")
    assert "newsletter" not in draft.read_text()
    await mailed.build()
    assert await mailed.mailings() == {"loud": ""}


async def test_what_would_wait_or_not_be_mailed_is_said_before(mailed: Journal) -> None:
    """Without a test, by a key, or dated long ago; a known post has no tick."""
    writer = await sign_in_owner(mailed.edge)
    path = await write(writer, "Untested")
    words = tick(await writer.get(path))[0]
    assert "mail it to 2 subscribers, after a press under Newsletter: no test" in words
    await publish(writer, path)
    await mailed.build()
    assert "no test letter" in (await mailed.mailings())["untested"]
    assert "It waits for your press: no test letter" in (await writer.get(path)).said

    await mailed.send_test(writer)
    by_key = await Browser(mailed.edge).sign_in(await mailed.edge.key())
    path = await write(by_key, "By key")
    assert "a credential published it" in tick(await by_key.get(path))[0]
    await publish(by_key, path)
    await mailed.build()
    assert (await mailed.mailings())["by-key"] == "a credential published it"

    shown = await writer.get(NEW)
    given = {"title": "Old", "text": "From then.\n", "date": "2020-01-01 10:00"}
    path = (await send(writer, shown, **given, do="publish")).page
    assert not (await writer.get(path)).tree.css("[name=mail]")
    await publish(writer, path)
    known = await writer.get(f"{LIST}the-first/publish/")
    assert "mailed" not in known.said


async def test_a_hidden_post_is_mailed_only_if_its_head_asks_for_it(mailed: Journal) -> None:
    """The page says of others that they are not mailed, as they are not."""
    writer = await sign_in_owner(mailed.edge)
    await mailed.send_test(writer)
    date = format_instant(mailed.service.clock())
    for slug, asks in (("aside", ""), ("apart", "newsletter: yes\n")):
        head = f"title: {slug.title()}\nslug: {slug}\ndate: {date}\nstatus: hidden\n{asks}"
        (mailed.content / f"{slug}.md").write_text(f"---\n{head}---\n{slug.title()} it stands.\n")
    aside = await writer.get(f"{LIST}aside/publish/")
    apart = await writer.get(f"{LIST}apart/publish/")
    await mailed.build()

    assert "It is not mailed to subscribers." in aside.said
    assert "It is mailed to 2 subscribers 10 minutes after readers see it" in apart.said
    assert await mailed.mailings() == {"apart": ""}


async def test_an_edge_without_a_newsletter_has_no_tick(
    make_edge: EdgeMaker, tmp_path: Path, content: Path
) -> None:
    """And says nothing of it."""
    folders = {"CONTENT_DIR": str(content.parent), "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(WRITING="on", **folders) as running:
        with writing(tmp_path, content.parent, tmp_path / "build"):
            writer = await sign_in_owner(running)
            path = await write(writer, "Alone")
            assert "mail it" not in (await writer.get(path)).said
            assert "mailed" not in (await publish(writer, path)).said
