"""Answers to leads: mail that the owner writes, stored with its lead, and sent some seconds later.

One transaction stores an answer and its entry in the outbox, and marks its leads. An answer can be
taken back until a dispatcher has claimed its entry.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from edge_api.auth.actor import Actor, Clock, audit_entry, audited, new_id
from edge_api.db.internal_tables import EMAIL_OUTBOX, FORMER_ROWS
from edge_api.db.problems import Problem
from edge_api.db.query import (
    NEWEST,
    Delete,
    Filter,
    Insert,
    Procedure,
    Query,
    QueryResult,
    Read,
    Store,
    Update,
    Where,
    find_row,
    read_all,
    require_row,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, LEAD_MESSAGES, LEADS
from edge_api.db.types import format_instant
from edge_api.mail.clean_text import one_line
from edge_api.mail.messages import ANSWER, MAX_SUBJECT_LENGTH
from edge_api.mail.preparation import site_language, site_title
from edge_api.mail.queue import NO_RELAY, log_insert, new_entry, undeliverable_reason
from edge_api.mail.suppressions import is_suppressed
from edge_api.outbox import UNCLAIMED
from edge_api.schema.sentences import sentence
from edge_api.settings import Settings

UNDO_TIME: Final = timedelta(seconds=20)
"""The time for which an answer waits in the outbox, so that it can be taken back."""
MAX_PER_HOUR: Final = 60
MAX_TEXT_LENGTH: Final = LEAD_MESSAGES.columns["body"].bounds[1] or 0  # characters
_SENT: Final = Filter("kind", "eq", "sent")
# After an attempt it is not known whether the relay has accepted the mail: its reply may be lost.
UNTRIED: Final = (*UNCLAIMED, Filter("attempts", "eq", 0))
"""The conditions under which a mail can be taken back."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Sends and takes back the answers in one store, and keeps their drafts."""

    settings: Settings
    store: Store
    clock: Clock

    async def send(  # noqa: PLR0913  the parts of an answer
        self,
        lead: Row,
        text: str,
        subject: str,
        actor: Actor,
        others: Sequence[str] = (),
        *,
        seen: str = "",
    ) -> Row:
        """Queue an answer, mark its lead and `others` as answered; return the stored message.

        The same text within `UNDO_TIME` is a second press of the button: nothing more is sent.
        `seen` is the time to which the writer knows the answers to the lead; empty if they need
        not know them. Raises Problem: `invalid` for the text, `forbidden` without the scope,
        `conflict` where nobody can be mailed, the lead was erased, or was answered after `seen`,
        and `too_many_requests`.
        """
        _require_scope(actor)
        body, title = _clean(text, subject)
        if not body:
            raise Problem("invalid", "Write an answer first: the text is empty")
        if reason := await self.unmailable_reason(lead["email"]):
            raise Problem("conflict", reason.rstrip("."))
        title = title or await self.default_subject(lead)
        message = self._row(lead, "sent", body, title)
        ids = (lead["id"], *others)
        try:
            await self.store.run(Procedure(partial(_send, message, lead, ids, seen, actor)))
        except Problem as problem:
            if twin := await self.find(problem.details or ""):
                await self.save_draft(lead, "", "")  # delete the draft, which has the same text
                return twin
            raise
        return message

    async def take_back(self, message_id: str, actor: Actor) -> Row:
        """Turn an answer that waits back into a draft, and restore its leads; return the draft.

        A lead that has changed since then stays as it is. Raises Problem `forbidden` without the
        scope, `not_found`, and `conflict` once the answer is sent or is being sent.
        """
        _require_scope(actor)
        message = await self.find(message_id)
        if message is None:
            raise Problem("not_found", "There is no such answer: it was taken back, or is erased")
        await self.store.run(Procedure(partial(_take_back, message, actor, self.clock())))
        return await require_row(self.store, LEAD_MESSAGES, message_id, "It was erased")

    async def save_draft(self, lead: Row, text: str, subject: str) -> None:
        """Store a draft in place of the former one; an empty text and subject only delete that.

        Raises Problem: `invalid` for a long text, `conflict` where the lead was erased.
        """
        row = self._row(lead, "draft", *_clean(text, subject))
        insert = (Insert(LEAD_MESSAGES, [row]),) if row["body"] or row["subject"] else ()
        await self.store.run(_require_lead(lead), Delete(LEAD_MESSAGES, _draft_of(row)), *insert)

    async def find(self, message_id: str) -> Row | None:
        """Return an answer that was sent or waits. Raises Problem `unavailable`."""
        return await find_row(self.store, LEAD_MESSAGES, message_id, _SENT)

    async def list_messages(self, ids: Sequence[str]) -> list[Row]:
        """Return the newest messages of leads, drafts among them, oldest first."""
        where = (Filter("lead_id", "in", tuple(ids)),)
        newest = Read(LEAD_MESSAGES, (), where, NEWEST, limit=200)
        return (await read_all(self.store, newest))[::-1]

    async def unmailable_reason(self, email: str) -> str:
        """Return a sentence that says why an address cannot be mailed; empty if it can."""
        if self.settings.smtp_url is None:
            return f"No answer can be sent: {NO_RELAY}."
        if reason := undeliverable_reason(email, is_demo=self.settings.demo == "on"):
            return f"{reason}."
        if await is_suppressed(self.store, email):
            return "The address is suppressed: mail to it came back, or the person wants none."
        return ""

    async def default_subject(self, lead: Row) -> str:
        """Return the subject for an answer without one, in the language of the site."""
        if named := [
            row["subject"]
            for row in await self.list_messages([lead["id"]])
            if row["kind"] != "draft" and row["subject"]
        ]:
            # The last subject may begin with "Re:" or its like already.
            bare = re.sub(r"(?i)\A\s*(?:re|aw|sv|tr|rif|antw)\s*:\s*", "", named[-1], count=1)
            found = f"Re: {bare}"
        else:
            own = sentence("Re: your message to %(site)s", site=site_title(self.settings))
            found = site_language(self.settings).translate(own)
        return " ".join(one_line(found).split())[:MAX_SUBJECT_LENGTH]

    def _row(self, lead: Row, kind: str, body: str, subject: str) -> Row:
        now = self.clock()
        given = {"lead_id": lead["id"], "kind": kind, "email": lead["email"]}
        given |= {"body": body, "subject": subject}
        return LEAD_MESSAGES.new_row(given, format_instant(now), lambda: new_id(now))


def _require_scope(actor: Actor) -> None:
    if "mail:send" not in actor.scopes:
        raise Problem(
            "forbidden", "Your key lacks the scope mail:send: sign in with one that has it"
        )


def _clean(text: str, subject: str) -> tuple[str, str]:
    """Normalize text and subject for mail. Raises Problem `invalid` if one is too long."""
    for name, given, most in (
        ("text", text, MAX_TEXT_LENGTH),
        ("subject", subject, MAX_SUBJECT_LENGTH),
    ):
        if (more := len(given) - most) > 0:
            raise Problem(
                "invalid",
                f"The {name} has {len(given):,} characters, and the most is {most:,}: "
                f"shorten it by {more:,}",
            )
    body = "\n".join(one_line(line).rstrip() for line in text.splitlines())
    return body.strip("\n"), " ".join(one_line(subject).split())


def _draft_of(message: Row) -> Where:
    return Filter("lead_id", "eq", message["lead_id"]), Filter("kind", "eq", "draft")


def _require_lead(lead: Row) -> Update:
    """Return a query that fails if the lead no longer exists, as after an erasure."""
    return Update(LEADS, {"created_at": lead["created_at"]}, where_id(lead["id"]), at_least=1)


def _send(  # noqa: PLR0913, PLR0917  the parts of an answer
    message: Row,
    lead: Row,
    ids: Sequence[str],
    seen: str,
    actor: Actor,
    results: list[QueryResult],
) -> Iterator[Query]:
    """Yield the queries that queue an answer, for a `Procedure`.

    `ids` are the leads to mark, and `seen` is as for `Answers.send`.
    Leads that are qualified, won or lost keep their status.
    """
    now = datetime.fromisoformat(message["created_at"])
    marked = Filter("id", "in", tuple(ids)), Filter("status", "in", ("new", "contacted", "spam"))
    values = {**LEADS.new_values({"status": "contacted"}, format_instant(now)), "remind_at": None}
    yield from audited(actor, "answer", Update(LEADS, values, marked), now, ("id",))
    audit_id = results[-1].rows[0]["id"]
    yield Update(LEADS, {"remind_at": None}, marked[:1])
    yield _require_lead(lead)
    hour = Filter("created_at", "gt", format_instant(now - timedelta(hours=1)))
    yield Read(LEAD_MESSAGES, (), (_SENT, hour), NEWEST, MAX_PER_HOUR)
    last, since = results[-1].rows, format_instant(now - UNDO_TIME)
    for row in last:
        is_same = all(row[name] == message[name] for name in ("lead_id", "body", "subject"))
        if is_same and row["created_at"] > since:
            raise Problem("conflict", "The same was sent this moment", details=row["id"])
        if seen and row["lead_id"] == message["lead_id"] and row["created_at"] > seen:
            raise Problem("conflict", "Somebody else answered this moment: read that answer first")
    if len(last) == MAX_PER_HOUR:
        raise Problem(
            "too_many_requests",
            f"{MAX_PER_HOUR} answers were sent within an hour, which is the most: wait a while",
        )
    yield Delete(LEAD_MESSAGES, _draft_of(message))
    yield Insert(LEAD_MESSAGES, [{**message, "audit_id": audit_id}])
    entry = new_entry(ANSWER, message["email"], message["lead_id"], now)
    entry |= {"id": message["id"], "due_at": format_instant(now + UNDO_TIME)}
    yield Insert(EMAIL_OUTBOX, [entry])
    yield log_insert(entry, "pending", now)


def _take_back(
    message: Row, actor: Actor, now: datetime, results: list[QueryResult]
) -> Iterator[Query]:
    """Yield the queries that take an answer back, for a `Procedure`.

    The text of a draft that was begun meanwhile is appended to that of the answer.
    """
    same, of_change = where_id(message["id"]), (Filter("audit_id", "eq", message["audit_id"]),)
    yield Delete(EMAIL_OUTBOX, (*same, *UNTRIED))
    if not results[-1].rows:
        raise Problem("conflict", "It is sent already, or is being sent")
    yield Delete(EMAIL_SEND_LOG, (Filter("message_id", "eq", message["id"]),))
    yield Delete(LEAD_MESSAGES, _draft_of(message))
    bodies = message["body"], *(row["body"] for row in results[-1].rows)
    draft = {"kind": "draft", "audit_id": None, "body": "\n\n".join(bodies)[:MAX_TEXT_LENGTH]}
    yield Update(LEAD_MESSAGES, draft, same)
    yield Delete(FORMER_ROWS, of_change)
    kept = results[-1].rows
    for row in kept:
        marked = Filter("status", "eq", "contacted"), Filter("remind_at", "is", None)
        former = {name: row["former"][name] for name in ("status", "remind_at")}
        yield Update(LEADS, former, (*where_id(row["row_id"]), *marked))
    yield audit_entry(actor, "take back", LEADS, len(kept), now, "id")
