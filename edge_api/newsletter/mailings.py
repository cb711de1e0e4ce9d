"""Mailings: each post is mailed once; the owner can release, hold, resume or skip that.

A mailing is made in the transaction that announces a build, so that of several edges one makes it.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import orjson

from edge_api.auth.actor import Actor, Clock, audit_entry, new_id
from edge_api.db.internal_tables import ANNOUNCED_POSTS, EMAIL_OUTBOX
from edge_api.db.newsletter_tables import FAR, LETTER_LOG_DAYS, MAILINGS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Delete,
    Filter,
    Insert,
    Order,
    Procedure,
    Query,
    QueryResult,
    Read,
    Store,
    Update,
    Where,
    count_query,
    read_all,
    read_first,
    require_row,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import AUDIT_LOG, EMAIL_SEND_LOG
from edge_api.db.types import format_instant
from edge_api.health import Check
from edge_api.journal.builds import Build, BuildRefusal
from edge_api.mail.clean_text import one_line
from edge_api.mail.messages import LETTER, MAILING_NOTICE, TEST_LETTER
from edge_api.mail.queue import Outbox
from edge_api.newsletter.letter import (
    MailedBuild,
    Post,
    digest_text,
    find_post,
    open_build,
    read_build,
)
from edge_api.outbox import GIVEN_UP, UNCLAIMED, WAITING, run_unless_conflict
from edge_api.schema.environment import EDGE
from edge_api.settings import Settings

RECENT: Final = timedelta(hours=48)
"""The age up to which a post is news."""
MOST_A_BUILD: Final = 2
NOT_ENDED: Final = Filter("ended_at", "is", None)
NOT_HELD: Final = Filter("held_at", "is", None)
HELD_BY_OWNER: Final = "the owner held it"
_STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "release": ("waits", "ended"),
    "hold": ("due", "going"),
    "resume": ("held",),
    "skip": ("waits", "due", "going", "held"),
}
"""The states of a mailing in which it can be changed."""
_FIRST: Final = "it is the first build since the newsletter was turned on, or since a restore"
_IMPORT: Final = "older posts came with it, as an import brings them"
_RENAMED: Final = "another post vanished in the same build: it may be the same with a new name"
_BY_CREDENTIAL: Final = "a credential published it"
_UNTESTED: Final = "no test letter was sent to you yet: send one, look at it, and release this"
_MANY: Final = f"{MOST_A_BUILD} posts of the same build are mailed already"


class Mailings:
    """The mailings of one store; `outbox` queues the test letters, and knows the owner."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, outbox: Outbox) -> None:
        self._settings, self._store, self._clock, self._outbox = settings, store, clock, outbox
        self._delay = timedelta(minutes=settings.newsletter_delay)

    def announce(
        self, build: Build, row: Row | None, now: datetime
    ) -> tuple[str, tuple[Query, ...]]:
        """Return the digests of a build's texts, and the queries that make its mailings.

        `row` is what was announced before. Raises Problem `unavailable`.
        """
        if self._settings.newsletter == "off":
            return "", ()
        mailed = _refusing(read_build, build.folder)
        posts = sorted(mailed.posts(), key=_published)
        texts = {post["slug"]: digest_text(post) for post in posts}
        before = orjson.loads(row["posts"]) if row else {}
        known = orjson.loads(row["texts"]) if row and row["texts"] else {}
        # What was taken off the site stays known: it may come back, or with another name.
        names, digests = {*before, *known}, {*known.values()}
        added = [
            post
            for post in posts
            if texts[post["slug"]] not in digests
            and names.isdisjoint(mailed.list_names(post["slug"]))
        ]
        recent = [post for post in added if _published(post) >= now - RECENT]
        present = {*texts, *mailed.notes.kept_out, *mailed.head.renamed, *mailed.notes.renamed}
        reasons = {
            _FIRST: not known,
            _IMPORT: len(recent) < len(added),
            _RENAMED: not present.issuperset(before),
        }
        reason = next((text for text, is_so in reasons.items() if is_so), "")
        make = Procedure(partial(self._make, mailed, recent, reason, now))
        return orjson.dumps({**known, **texts}).decode(), ((make,) if recent else ())

    def _make(
        self,
        build: MailedBuild,
        added: Sequence[Post],
        reason: str,
        now: datetime,
        results: list[QueryResult],
    ) -> Iterator[Query]:
        """Yield the queries that make mailings of posts, unless there was one with their text."""
        yield from self._find_tests()
        is_tested = any(result.rows for result in results)
        due, waiting = 0, None
        for number, post in enumerate(added):
            # The time makes the beginning of the id, which no other mailing has.
            row = self._row(post, now + timedelta(milliseconds=number))
            yield Read(MAILINGS, (), (_is_same(build, row),), limit=1)
            if results[-1].rows:
                continue
            yield _find_publication(post["slug"])
            reasons = {
                reason: bool(reason),
                _BY_CREDENTIAL: any(is_by_credential(e["actor"]) for e in results[-1].rows),
                _UNTESTED: not is_tested,
                _MANY: due >= MOST_A_BUILD,
            }
            row["waits_for"] = next((text for text, is_so in reasons.items() if is_so), "")
            due += not row["waits_for"]
            row["due_at"] = None if row["waits_for"] else format_instant(now + self._delay)
            yield Insert(MAILINGS, [row])
            if row["waits_for"] and not waiting:  # one message for a build
                waiting = row
                yield from self._outbox.owner_entries(MAILING_NOTICE, row)

    def _row(self, post: Post, now: datetime) -> Row:
        given = {
            "slug": post["slug"],
            "subject": one_line(post["title"])[:300],
            "url": post["url"][:2048],
            "text_digest": digest_text(post),
            "host": self._settings.site_host,
        }
        return MAILINGS.new_row(given, format_instant(now), partial(new_id, now))

    def _find_tests(self) -> Iterator[Read]:
        """Yield two reads: one of them finds a row once a test or a mailing was sent."""
        yield Read(MAILINGS, ("id",), (Filter("recipients", "gt", 0),), limit=1)
        sent = (
            Filter("recipient_email", "eq", self._outbox.owner or ""),
            Filter("template_name", "eq", TEST_LETTER.template),
            Filter("status", "eq", "sent"),
        )
        yield Read(EMAIL_SEND_LOG, ("id",), sent, limit=1)

    async def foresee(self, slug: str, actor: Actor, date: datetime | None = None) -> str | None:
        """Return why the mailing of a post that `actor` publishes would wait; empty: it would not.

        It is `None` where there would be no mailing: the newsletter is off, the chosen `date` is
        old, or the post is known. Raises Problem.
        """
        announced, mailed, *tests = await self._store.run(
            Read(ANNOUNCED_POSTS),
            Read(MAILINGS, ("id",), (Filter("slug", "eq", slug),)),
            *self._find_tests(),
        )
        row = next(iter(announced.rows), {"posts": "{}", "texts": ""})
        texts = orjson.loads(row["texts"] or "{}")
        known = {**texts, **orjson.loads(row["posts"])}
        is_old = date is not None and date < self._clock() - RECENT
        if self._settings.newsletter == "off" or mailed.rows or slug in known or is_old:
            return None
        if is_by_credential(actor.label):
            return _BY_CREDENTIAL
        reason = "" if any(found.rows for found in tests) else _UNTESTED
        return reason if texts else _FIRST

    async def recent(self, *where: Filter, limit: int = 10) -> list[Row]:
        """Return mailings, the newest first, each with its `state` and its numbers of letters.

        Raises Problem.
        """
        rows = await read_all(self._store, Read(MAILINGS, (), where, NEWEST, limit))
        now = format_instant(self._clock())
        found = [{**row, **await self.count(row["id"])} for row in rows]
        return [{**row, "state": state_of(row, now)} for row in found]

    async def of_post(self, slug: str) -> list[Row]:
        """Return the mailing of a post as `recent`, also of a renamed one. Raises Problem."""
        is_same = Filter("slug", "eq", slug)
        with suppress(Problem):  # it was withdrawn, or the newsletter is off
            build, post = await asyncio.to_thread(self._require_post, slug)
            is_same = _is_same(build, self._row(post, self._clock()))
        return await self.recent(is_same)

    async def is_tested(self) -> bool:
        """Return whether a test or a mailing was sent. Raises Problem."""
        return any(found.rows for found in await self._store.run(*self._find_tests()))

    async def read_resting(self) -> list[Row]:
        """Return the mailings that go no further without the owner's press. Raises Problem."""
        rests = Filter("due_at", "is", None), Filter("held_at", "is", None, negated=True)
        where = NOT_ENDED, Filter("id", "any", rests)
        is_off = self._settings.newsletter == "off"
        return [] if is_off else await read_all(self._store, Read(MAILINGS, (), where))

    async def check(self) -> Check | None:
        """Return a warning while a mailing is held that the owner did not hold, for readiness."""
        with suppress(Problem):  # the store's own check says so
            reasons = {row["held_for"] for row in await self.read_resting()}
            if reasons - {None, HELD_BY_OWNER}:
                return Check("warn", f"a mailing is held: {EDGE} newsletter status says why")
        return None

    async def count(self, mailing_id: str) -> Mapping[str, int]:
        """Return how many letters of a mailing wait or failed, and how many the log has, by status.

        Raises Problem.
        """
        statuses = ("sent", "bounced", "suppressed")
        reads = {each: count_letters(mailing_id, Filter("status", "eq", each)) for each in statuses}
        letters = _where_letters(mailing_id)
        reads["waiting"] = count_query(EMAIL_OUTBOX, *letters, WAITING)
        # The log has a line of each time that a letter was given up.
        reads["dlq"] = count_query(EMAIL_OUTBOX, *letters, GIVEN_UP)
        results = await self._store.run(*reads.values())
        return {each: found.total or 0 for each, found in zip(reads, results, strict=True)}

    async def hold(self, mailing_id: str, actor: Actor, reason: str = HELD_BY_OWNER) -> None:
        """Stop a mailing until it is resumed, also the letters that are queued already.

        Raises Problem `not_found`, and `conflict` where there is nothing to hold.
        """
        values = {"held_at": format_instant(self._clock()), "held_for": reason[:200]}
        where = NOT_ENDED, NOT_HELD, Filter("due_at", "is", None, negated=True)
        far = dict.fromkeys(("due_at", "queued_at"), FAR)
        later = Update(EMAIL_OUTBOX, far, (*_where_letters(mailing_id), *UNCLAIMED))
        entries = self._outbox.owner_entries(MAILING_NOTICE, {"id": mailing_id})
        notice = entries if reason != HELD_BY_OWNER else ()
        await self._change(mailing_id, actor, "hold", values, where, later, *notice)

    async def resume(self, mailing_id: str, actor: Actor) -> None:
        """Let a held mailing go on. Raises Problem `not_found`, or `conflict` if it is not held."""
        self._require_on()
        now = format_instant(self._clock())
        values = {"held_at": None, "held_for": None, "resumed_at": now}
        where = NOT_ENDED, Filter("held_at", "is", None, negated=True)
        letters = Filter("subject_id", "eq", mailing_id), Filter("due_at", "eq", FAR)
        go_on = Update(EMAIL_OUTBOX, {"due_at": now, "queued_at": now}, letters)
        await self._change(mailing_id, actor, "resume", values, where, go_on)

    async def skip(
        self, mailing_id: str, actor: Actor, reason: str = "the owner skipped it"
    ) -> None:
        """End a mailing; what is queued of it is not sent.

        Raises Problem `not_found`, and `conflict` if it has ended.
        """
        values = {"ended_at": format_instant(self._clock()), "ended_for": reason[:200]}
        drop = Delete(EMAIL_OUTBOX, (Filter("subject_id", "eq", mailing_id), *UNCLAIMED))
        await self._change(mailing_id, actor, "skip", values, (NOT_ENDED,), drop)

    async def release(self, slug: str, actor: Actor) -> Row:
        """Mail a post of the current build, after the usual delay; return its mailing.

        Raises Problem: `not_found` without such a post, `conflict` if it was mailed or is being
        mailed, or if no test was sent yet.
        """
        build, post = await asyncio.to_thread(self._require_post, slug)
        if not await self.is_tested():
            raise Problem("conflict", f"It was not released: {_UNTESTED}")
        now = self._clock()
        due = {"due_at": format_instant(now + self._delay)}
        fresh = {**self._row(post, now), **due}
        row = await read_first(self._store, Read(MAILINGS, (), (_is_same(build, fresh),)))
        if row is None:
            entry = audit_entry(actor, "release", MAILINGS, 1, now, "slug")
            await self._store.run(Insert(MAILINGS, [fresh]), entry)
            return fresh
        if row["held_at"] and not row["ended_at"]:
            await self.resume(row["id"], actor)
        else:
            days = min(self._settings.retain_mail_log_days or LETTER_LOG_DAYS, LETTER_LOG_DAYS)
            again: Row = {**due, "waits_for": "", "resumed_at": format_instant(now)}
            if row["created_at"] > format_instant(now - timedelta(days=days)):
                # From the first subscriber on: the log still says who has got it already.
                again |= {"cursor": "", "recipients": 0}
            again |= dict.fromkeys(("queued_at", "ended_at", "ended_for", "held_at", "held_for"))
            rests = Filter("due_at", "is", None), Filter("ended_at", "is", None, negated=True)
            is_resting = Filter("id", "any", rests)
            await self._change(row["id"], actor, "release", again, (is_resting,))
        return await require_row(self._store, MAILINGS, row["id"], "The mailing is gone")

    async def test(self, actor: Actor, slug: str = "") -> Row:
        """Queue a letter to the owner, of a post or of the newest one; return the outbox entry.

        Raises Problem `not_found` without such a post, and `conflict` if the newsletter is off.
        """
        _, post = await asyncio.to_thread(self._require_post, slug)
        subject = {"id": str(uuid5(NAMESPACE_URL, post["url"]))}
        queries = self._outbox.owner_entries(TEST_LETTER, subject)
        entry = audit_entry(actor, "test", MAILINGS, 1, self._clock(), "slug")
        await self._store.run(*queries, entry)
        self._outbox.wake()
        return dict(queries[0].rows[0])

    def _require_post(self, slug: str) -> tuple[MailedBuild, Post]:
        """Return the current build and its post, or its newest one. Raises Problem."""
        self._require_on()
        build = _refusing(open_build, self._settings.build_dir)
        if post := find_post(build, slug):
            return build, post
        raise Problem(
            "not_found",
            "No post of the current build has this slug, or it is not to be mailed",
        )

    def _require_on(self) -> None:
        if self._settings.newsletter == "off":
            raise Problem("conflict", "NEWSLETTER is off: nothing is mailed")

    async def _change(
        self, mailing_id: str, actor: Actor, verb: str, values: Row, where: Where, *others: Query
    ) -> None:
        """Change a mailing that fulfils `where`, with an audit entry. Raises Problem."""
        change = Update(MAILINGS, values, (*where_id(mailing_id), *where), at_least=1)
        entry = audit_entry(actor, verb, MAILINGS, 1, self._clock(), "id")
        is_free = await self._read_state(mailing_id) in _STATES[verb]
        if not (is_free and await run_unless_conflict(self._store, change, *others, entry)):
            state = await self._read_state(mailing_id)
            raise Problem(
                "conflict", f"This mailing is in no state to {verb}: its state is {state}"
            )

    async def _read_state(self, mailing_id: str) -> str:
        """Return the state of a mailing. Raises Problem."""
        for row in await self.recent(*where_id(mailing_id)):
            return str(row["state"])
        raise Problem("not_found", "There is no such mailing")


def _refusing(read: Callable[[Path], MailedBuild], path: Path) -> MailedBuild:
    """Return a build. Raises Problem `unavailable`."""
    try:
        return read(path)
    except BuildRefusal as refusal:
        raise Problem("unavailable", str(refusal)) from None


def _is_same(build: MailedBuild, row: Row) -> Filter:
    """Return the filter of the mailing of the same post: by its slugs, or its text."""
    by_slug = Filter("slug", "in", tuple(build.list_names(row["slug"])))
    same = by_slug, Filter("text_digest", "eq", row["text_digest"])
    return Filter("id", "any", same)


def _find_publication(slug: str) -> Read:
    """Return the read of the newest audit entry that published a post, or scheduled it."""
    escaped = slug.replace("_", "\\_")
    where = (
        Filter("table_name", "eq", "posts"),
        Filter("verb", "in", ("publish", "schedule")),
        Filter("columns", "like", f"{escaped},*"),
    )
    return Read(AUDIT_LOG, ("id", "actor"), where, (Order("at", descending=True),), 1)


def _where_letters(mailing_id: str) -> Where:
    """Return the conditions of the letters of a mailing in the outbox, which has notices of it."""
    return Filter("subject_id", "eq", mailing_id), Filter("queue", "eq", "newsletter")


def count_letters(mailing_id: str, *where: Filter) -> Read:
    """Return the read that counts the log's lines about the letters of a mailing."""
    return count_query(EMAIL_SEND_LOG, *of_letters(mailing_id), *where)


def of_letters(mailing_id: str) -> Where:
    """Return the conditions of the log's lines about a mailing: their ids begin as its own.

    The full stop is the character after the hyphen.
    """
    start = mailing_id[:13]
    begins = Filter("message_id", "gte", f"{start}-"), Filter("message_id", "lt", f"{start}.")
    return *begins, Filter("template_name", "eq", LETTER.template)


def is_by_credential(label: str) -> bool:
    """Return whether the actor of an audit entry is the holder of a credential."""
    return label.startswith(("credential:", "client:"))


def state_of(row: Row, now: str) -> str:
    """Return the state at an instant, in a word, of a mailing with its numbers of letters."""
    states = {
        "ended": row["ended_at"],
        "held": row["held_at"],
        "waits": not row["due_at"],
        "due": (row["due_at"] or "") > now,
        "sent": row["queued_at"] and not row["waiting"],
    }
    return next((name for name, is_so in states.items() if is_so), "going")


def _published(post: Post) -> datetime:
    return datetime.fromisoformat(post["published_at"])
