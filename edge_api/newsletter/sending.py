"""Letters: queued for the subscribers of a due mailing, and composed when their time comes.

A cursor in the mailing moves in the transaction that stores entries. It is compared there, so that
of several edges one stores them. Mailing, subscriber and post are read again when a letter is sent:
whoever has left gets nothing.
"""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from email.message import EmailMessage
from functools import lru_cache
from hashlib import sha256
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from edge_api.auth.actor import SERVICE, Clock
from edge_api.db.internal_tables import ANNOUNCED_POSTS, EMAIL_OUTBOX
from edge_api.db.newsletter_tables import FAR, MAILINGS, SUBSCRIBERS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Filter,
    Insert,
    Order,
    Read,
    Store,
    Update,
    find_row,
    read_all,
    read_first,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG
from edge_api.db.types import format_instant
from edge_api.journal.builds import BuildRefusal
from edge_api.mail.messages import LETTER, TEST_LETTER
from edge_api.mail.preparation import Later, NotSent
from edge_api.mail.queue import new_entry
from edge_api.newsletter.letter import (
    Letter,
    MailedBuild,
    Post,
    compose_letter,
    find_post,
    open_build,
    read_site,
)
from edge_api.newsletter.mailings import NOT_ENDED, NOT_HELD, Mailings, count_letters, of_letters
from edge_api.outbox import WAITING, run_unless_conflict
from edge_api.schema.paths import UNSUBSCRIBE
from edge_api.settings import Settings

QUEUE_SECONDS: Final = 1.0
"""The interval at which letters are queued."""
MOST_QUEUED: Final = 500  # entries in one transaction
MOST_WAITING: Final = 2_000  # with those that are tried again, such as of a relay that greylists
AHEAD_SECONDS: Final = 20
"""The time for which letters are queued ahead of those that are sent."""
_WITHDRAWN: Final = "the post was withdrawn"
_FEWEST_COUNTED: Final = 20
_MOST_REFUSED: Final = 0.05
"""The share of refused letters above which a mailing is held."""
_PAUSE: Final = timedelta(minutes=5)
"""The pause before a letter is tried again that cannot be composed now."""


def letter_id(mailing_id: str, subscriber_id: str) -> str:
    """Return the id of the entry of one letter, a UUID that is always the same for it."""
    digest = sha256(f"{mailing_id} {subscriber_id}".encode()).hexdigest()
    return f"{mailing_id[:13]}-7{digest[:3]}-8{digest[3:6]}-{digest[6:18]}"


class Letters:
    """The letters of one store; each is composed once for a mailing and build, and then copied."""

    def __init__(self, settings: Settings, store: Store, clock: Clock) -> None:
        self._settings, self._store, self._clock = settings, store, clock
        self._all_held = False

    async def prepare(self, entry: Row) -> EmailMessage | NotSent | Later:
        """Return the message of an entry. Raises Problem, and what composing raises."""
        if self._settings.newsletter == "on":
            with suppress(BuildRefusal):
                if entry["template_name"] == TEST_LETTER.template:
                    return await self._prepare_test(entry)
                return await self._prepare(entry)
        return Later(format_instant(self._clock() + _PAUSE))

    async def _prepare(self, entry: Row) -> EmailMessage | NotSent | Later:
        found = await self._store.run(
            Read(MAILINGS, (), where_id(entry["subject_id"])),
            Read(SUBSCRIBERS, (), (Filter("email", "eq", entry["recipient_email"]),)),
        )
        mailing, subscriber = (next(iter(result.rows), {"id": ""}) for result in found)
        # Somebody who was erased and has come back is another subscriber.
        if letter_id(mailing["id"], subscriber["id"]) != entry["id"]:
            return NotSent("the mailing or the subscriber is gone")
        if mailing["ended_at"]:
            return NotSent(f"the mailing has ended: {mailing['ended_for']}")
        if mailing["held_at"]:
            # In the transaction that puts it off, so that no resumption is missed.
            held = {"held_at": mailing["held_at"]}
            is_held = *where_id(mailing["id"]), NOT_ENDED, Filter("held_at", "eq", held["held_at"])
            return Later(FAR, (Update(MAILINGS, held, is_held, at_least=1),))
        if subscriber["status"] != "active":
            return NotSent(f"the subscription is {subscriber['status']}")
        build, post = await self._find_post(mailing)
        if post is None:
            return NotSent(_WITHDRAWN)
        return await self._copy(build, post, entry, subscriber["token"], mailing["host"])

    async def _prepare_test(self, entry: Row) -> EmailMessage | NotSent:
        """Return a letter to the owner; its link to unsubscribe is one that nobody has."""
        build = open_build(self._settings.build_dir)
        for post in build.posts():
            if str(uuid5(NAMESPACE_URL, post["url"])) == entry["subject_id"]:
                host = self._settings.site_host
                return await self._copy(build, post, entry, "test", host)
        return NotSent(_WITHDRAWN)

    async def _copy(
        self, build: MailedBuild, post: Post, entry: Row, token: str, host: str
    ) -> EmailMessage:
        """Return the copy for one recipient; its link to unsubscribe has the `token`."""
        letter = await asyncio.to_thread(_compose, self._settings, build, post["slug"])
        url = f"{self._settings.site_url}{UNSUBSCRIBE}?token={token}"
        date = datetime.fromisoformat(entry["created_at"])
        return letter.copy(entry["recipient_email"], url, f"<{entry['id']}@{host}>", date)

    async def _find_post(self, mailing: Row) -> tuple[MailedBuild, Post | None]:
        """Return the build and the post of a mailing, unless that was withdrawn.

        Raises BuildRefusal also where a newer build than ours was announced.
        """
        build, digest = open_build(self._settings.build_dir), mailing["text_digest"]
        if post := await asyncio.to_thread(find_post, build, mailing["slug"], digest):
            return build, post
        row = await read_first(self._store, Read(ANNOUNCED_POSTS, ("id", "built_for")))
        if row and row["built_for"] > format_instant(build.head.built_for):
            raise BuildRefusal("another edge has announced a newer build")
        return build, None

    async def queue(self, mailings: Mailings) -> None:
        """Queue the letters that are due soon; hold a mailing with many refusals, or all when off.

        Raises Problem.
        """
        if self._settings.newsletter == "off":
            await self._hold_all(mailings)
            return
        waiting = await self._read_waiting()
        for mailing_id in {row["subject_id"] for row in waiting}:
            await self._stop_if_needed(mailing_id, mailings)
        most = self._settings.newsletter_rate * AHEAD_SECONDS
        is_due = Filter("due_at", "lte", format_instant(self._clock()))
        where = is_due, Filter("queued_at", "is", None), NOT_ENDED, NOT_HELD
        due = Read(MAILINGS, (), where, (Order("due_at"),), 1)
        with suppress(BuildRefusal):  # a later turn may have a build
            # Letters that are to be tried again may wait for hours, and must not stop the others.
            while (
                len(waiting) < MOST_WAITING and sum(not e["attempts"] for e in waiting) <= most / 2
            ):
                mailing = await read_first(self._store, due)
                if mailing is None:
                    return
                _, post = await self._find_post(mailing)
                if post is None:
                    await mailings.skip(mailing["id"], SERVICE, _WITHDRAWN)
                elif not await self._queue(mailing, waiting, min(most, MOST_QUEUED)):
                    return
                waiting = await self._read_waiting()

    async def _hold_all(self, mailings: Mailings) -> None:
        """Hold what goes, once, so that nothing is mailed by switching on again."""
        is_released = Filter("due_at", "is", None, negated=True)
        where = NOT_ENDED, NOT_HELD, is_released
        going = [] if self._all_held else await mailings.recent(*where, limit=100)
        for row in going:
            if row["state"] in ("due", "going"):
                await mailings.hold(row["id"], SERVICE, "NEWSLETTER was switched off")
        self._all_held = True

    async def _read_waiting(self) -> list[Row]:
        """Return the letters that wait, apart from those of held mailings."""
        where = WAITING, Filter("queue", "eq", "newsletter"), Filter("due_at", "lt", FAR)
        columns = ("id", "subject_id", "due_at", "attempts", "lease")
        return await read_all(self._store, Read(EMAIL_OUTBOX, columns, where))

    async def _queue(self, mailing: Row, waiting: list[Row], most: int) -> bool:
        """Queue the next letters of a mailing; return whether others may follow at once."""
        active = Filter("status", "eq", "active"), Filter("id", "gt", mailing["cursor"])
        # Nobody has pressed for those who come later, such as by an import.
        pressed = mailing["resumed_at"] or mailing["created_at"]
        before = (Filter(each, "lte", pressed) for each in ("created_at", "confirmed_at"))
        read = Read(SUBSCRIBERS, ("id", "email"), (*active, *before), (Order("id"),), most)
        found = await read_all(self._store, read)
        letters = {letter_id(mailing["id"], row["id"]): row["email"] for row in found}
        # The log has some where the cursor was set back, such as by the owner's release. It is read
        # last: what leaves the outbox meanwhile is there.
        ids = tuple(letters)
        sent = Filter("message_id", "in", ids), Filter("status", "in", ("sent", "bounced"))
        outbox, log = await self._store.run(
            Read(EMAIL_OUTBOX, ("id",), (Filter("id", "in", ids),)),
            Read(EMAIL_SEND_LOG, ("id", "message_id"), sent),
        )
        known = {row.get("message_id", row["id"]) for row in outbox.rows + log.rows}
        now = self._clock()
        # Leased entries are left out: their time is the end of the lease.
        queued = [row["due_at"] for row in waiting if not row["attempts"] and not row["lease"]]
        start = max([now, *map(datetime.fromisoformat, queued)])
        pause = timedelta(seconds=1 / self._settings.newsletter_rate)
        fresh = [(each, email) for each, email in letters.items() if each not in known]
        entries = [
            {
                **new_entry(LETTER, email, mailing["id"], now),
                "id": each,
                "due_at": format_instant(start + number * pause),
            }
            for number, (each, email) in enumerate(fresh, start=1)
        ]
        moved = {
            "cursor": found[-1]["id"] if found else mailing["cursor"],
            "recipients": mailing["recipients"] + len(found),
            "queued_at": None if len(found) == most else format_instant(now),
        }
        same = Filter("cursor", "eq", mailing["cursor"]), NOT_ENDED, NOT_HELD
        move = Update(MAILINGS, moved, (*where_id(mailing["id"]), *same), at_least=1)
        return await run_unless_conflict(self._store, move, Insert(EMAIL_OUTBOX, entries))

    async def _stop_if_needed(self, mailing_id: str, mailings: Mailings) -> None:
        """End a mailing whose post was withdrawn, and hold one of which much is refused."""
        mailing = await find_row(self._store, MAILINGS, mailing_id, NOT_ENDED, NOT_HELD)
        if mailing is None:
            return
        with suppress(BuildRefusal, Problem):  # another edge knows more, or was first
            if (await self._find_post(mailing))[1] is None:
                await mailings.skip(mailing_id, SERVICE, _WITHDRAWN)
        since = Filter("created_at", "gt", mailing["resumed_at"] or mailing["created_at"])
        is_refused = Filter("status", "in", ("bounced", "dlq"))
        where = (*of_letters(mailing_id), since, is_refused)
        last, *counts = await self._store.run(
            Read(EMAIL_SEND_LOG, ("id", "error_message"), where, NEWEST, 1),
            count_letters(mailing_id, since, is_refused),
            count_letters(mailing_id, since, Filter("status", "eq", "sent")),
        )
        refused, sent = (found.total or 0 for found in counts)
        if refused + sent >= _FEWEST_COUNTED and refused > _MOST_REFUSED * (refused + sent):
            reason = f"{refused} of the first {refused + sent} letters were refused; the last was "
            reason += last.rows[0]["error_message"] or "reported by the relay"
            with suppress(Problem):  # it was held or has ended this moment
                await mailings.hold(mailing_id, SERVICE, reason)


@lru_cache(maxsize=2)
def _compose(settings: Settings, build: MailedBuild, slug: str) -> Letter:
    """Return the letter of a post of a build. Raises ValueError, and OSError if that is gone."""
    (post,) = (each for each in build.posts() if each["slug"] == slug)
    sender, address = settings.newsletter_from or "", settings.newsletter_postal_address or ""
    site = read_site(build.folder, build.head, sender, address)
    return compose_letter(post, site, build.notes.languages.get(slug) or site.language.code)
