"""Incoming mail: the owner's mailbox (IMAP, RFC 9051), replies for their leads, bounce reports.

Edges take turns at the mailbox, and fetch a few headers of each new message. The whole message is
fetched only if it is a report or refers to a Message-ID of ours: a random UUID, known only to those
who received that message. All of it is written by strangers, so it is cut before it is parsed.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import getaddresses
from functools import partial
from hashlib import sha256
from hmac import digest
from imaplib import IMAP4, IMAP4_SSL
from itertools import islice
from socket import SHUT_RDWR
from ssl import SSLCertVerificationError, create_default_context
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

from edge_api.auth.actor import SERVICE, Clock, audited, new_id
from edge_api.db.mail_addresses import MailServer
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
    read_first,
    where_id,
)
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, LEAD_MESSAGES, LEADS, MAILBOX_STATE
from edge_api.db.types import format_instant
from edge_api.health import Check
from edge_api.mail.clean_text import one_line
from edge_api.mail.messages import (
    ACKNOWLEDGEMENT,
    MAX_SUBJECT_LENGTH,
    is_message_id,
)
from edge_api.mail.suppressions import BAD_ADDRESS, Feedback
from edge_api.outbox import run_unless_conflict
from edge_api.settings import Settings

MAX_OCTETS: Final = 2 << 20
"""The most octets that are read of a message: its text comes before its attachments."""
MAX_RECEIVED: Final = 20
"""The most replies stored for one lead in a day: two programs may answer each other for ever."""
_MAX_BODY_LENGTH: Final = LEAD_MESSAGES.columns["body"].bounds[1] or 0
_MAX_ID_LENGTH: Final = LEAD_MESSAGES.columns["message_id"].bounds[1] or 0
_ID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # the UUID in our Message-IDs
_CUT_NOTICE: Final = "\n[cut here: the rest is in the mailbox]"
_PARSED_PART: Final = re.compile(
    rb"(?is)(?=((?:[^\r\n]*+(?:\r\n|\r|\n)){0,20000}+[^\r\n]*+))"
    rb"(?:(?:(?!multipart/|message/|content-type|content-disposition).)*+"
    rb"(?:multipart/|message/|content-type|content-disposition)?+){0,40}+"
)
"""Finds the part of a message that is parsed, the shorter of two matches: group 1 has at most
20,000 lines, the whole match at most 40 words that may declare a container. Python's parser
compares each line with the boundary of each container around it."""
_TAG: Final = re.compile(
    r"(?i)</?(?!(?:head|script|style|template|title)\b)[a-z]"
    r"""(?:=\s*+"[^"]*+"|=\s*+'[^']*+'|[^>])*+>?"""
)
"""An HTML tag that is removed before parsing, which takes quadratic time for nested tags."""
_log: Final = logging.getLogger(__name__)


class _BoundedPolicy(EmailPolicy):
    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        """Return a header's name and truncated value, since parsing takes quadratic time."""
        name, _, value = "".join(sourcelines)[:2000].partition(":")
        octets = value.strip().encode("ascii", "surrogateescape")
        return name, octets.decode("utf-8", "replace")


def _is_automatic(message: EmailMessage) -> bool:
    """Return whether a program wrote a message, or sent it to many (RFC 3834, section 2)."""
    names = ("Auto-Submitted", "Precedence", "Return-Path")
    submitted, mass, path = (str(message.get(name, "")).strip().lower() for name in names)
    is_mass = mass in ("bulk", "junk", "list", "auto_reply") or "List-Id" in message
    is_marked = "X-Autoreply" in message or "X-Autorespond" in message
    return is_mass or is_marked or path == "<>" or submitted.partition(";")[0] not in ("", "no")


def _is_verified(message: EmailMessage, sender: str, authserv_id: str | None) -> bool:
    """Return whether our mail server says that DMARC passed for the sender's domain (RFC 8601).

    Only the topmost Authentication-Results counts, and only if all of it is understood.
    """
    results = re.sub(  # without strings and comments
        r'"(?:[^"\\]|\\.)*+"|\((?:[^()\\]|\\.)*+\)',
        " ",
        str(message.get("Authentication-Results", "")),
    )
    server, domain = re.escape(authserv_id or ""), re.escape(sender.rpartition("@")[2])
    other = r'\s*+(?!dmarc\b)[^;"()\\]*+'
    passed = rf'\s*+dmarc\s*=\s*pass\s(?:[^;"()\\]*\s)?header\.from\s*=\s*{domain}\s*'
    pattern = rf"(?i)\s*{server}(?:\s+1)?\s*(?:;{other})*;{passed}(?:;{other})*"
    return bool(authserv_id and domain and re.fullmatch(pattern, results))


def _read_part(part: Any) -> str:
    """Return the decoded text of a part; `""` for `None`."""
    octets = b"" if part is None else part.get_payload(decode=True)
    charset = "utf-8" if part is None else str(part.get_content_charset("utf-8"))
    # These codecs of Python are not for mail, and some take quadratic time.
    is_slow = re.match("(?i)idna|puny|.*escape|undef", charset)
    try:
        return str(octets.decode("utf-8" if is_slow else charset, "replace"))
    except (LookupError, ValueError):
        return str(octets.decode("utf-8", "replace"))


def _strip_markup(html: str) -> str:
    lines = re.sub(
        r"(?i)<(?=(?:br|div|li|tr|/?(?:p|h[1-6]|table|blockquote|pre))\b)",
        "\n<",
        " ".join(html[: 4 * _MAX_BODY_LENGTH].split()),
    )
    tree = LexborHTMLParser(_TAG.sub("", lines))
    tree.strip_tags(["head", "script", "style", "template", "title"])
    text = tree.body.text() if tree.body else ""
    words = (" ".join(line.split()) for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(words))


def _read_reply(raw: bytes, authserv_id: str | None) -> Row:
    """Return the columns that are stored of a reply."""
    found = _PARSED_PART.match(raw)
    kept = min(found[0], found[1], key=len) if found else b""
    message: Any = message_from_bytes(kept, policy=_BoundedPolicy())
    plain, html = (_read_part(message.get_body((kind,))) for kind in ("plain", "html"))
    text = plain if plain.strip() else _strip_markup(html)
    lines = re.split("\r\n|\r|\n", text[:_MAX_BODY_LENGTH])
    body = "\n".join(one_line(line).rstrip() for line in lines).strip("\n")
    senders = getaddresses(map(str, message.get_all("From", [])))
    sender = one_line(senders[0][1]) if len(senders) == 1 else ""
    names = (name for part in message.walk() if (name := part.get_filename()))
    own_id = str(message.get("Message-ID", "")).strip()
    identity = own_id.encode("utf-8", "replace") or raw
    return {
        "kind": "received",
        "email": sender
        if re.fullmatch(r"[^\s@]{1,64}@[^\s@]{1,190}", sender)
        else "unknown@sender.invalid",
        "subject": " ".join(one_line(str(message.get("Subject", ""))).split())[:MAX_SUBJECT_LENGTH],
        "body": body[: _MAX_BODY_LENGTH - len(_CUT_NOTICE)] + _CUT_NOTICE
        if len(text) > _MAX_BODY_LENGTH
        else body,
        "message_digest": sha256(identity).hexdigest(),
        "message_id": own_id if len(own_id) <= _MAX_ID_LENGTH and is_message_id(own_id) else None,
        "is_verified": int(_is_verified(message, sender, authserv_id)),
        "is_automatic": int(_is_automatic(message)),
        # Only the first 20, since reading each name takes time.
        "attachments": [one_line(re.split(r"[/\\]", each)[-1])[:100] for each in islice(names, 20)]
        or None,
    }


def is_report(raw: bytes) -> bool:
    """Return whether a message is a delivery status report by its headers (RFC 3464)."""
    header = re.split(rb"\r?\n\r?\n", raw, maxsplit=1)[0]
    types = re.findall(rb"(?im)^Content-Type:([^\n]*+(?:\n[ \t][^\n]*+)*+)", header)
    return any(b"delivery-status" in each.lower() for each in types)


@dataclass(frozen=True, slots=True)
class IncomingMail:
    """Stores replies to the mail of one installation, and records reported bounces."""

    settings: Settings
    store: Store
    clock: Clock
    feedback: Feedback

    def read_references(self, raw: bytes) -> tuple[str, ...]:
        """Return the UUIDs of our Message-IDs that the headers of a message refer to."""
        text = raw.decode("latin-1").replace("\r\n", "\n").partition("\n\n")[0]
        named = re.findall(r"(?im)^(?:References|In-Reply-To):((?:[^\n]|\n[ \t])*+)", text)
        host = re.escape(self.settings.site_host)
        found = re.findall(rf"(?i)<({_ID})@{host}>", " ".join(named))
        return tuple(each.lower() for each in found[-50:])

    async def receive(self, raw: bytes) -> bool:
        """Store a reply, or the failure in a report; return whether it is stored, now or earlier.

        Raises Problem, also if the lead changes at the same moment: then try again.
        """
        if is_report(raw):
            failed = re.search(rb"(?im)^Action: *failed\b", raw)
            status = re.search(rb"(?im)^Status: *(5\.\d{1,3}\.\d{1,3})\b", raw)
            # At any host: that of a letter is the one that SITE_URL had when it was mailed.
            named = re.findall(rf"(?im)^Message-ID:\s*<({_ID})@[^<>\s]", raw.decode("latin-1"))
            ids = tuple(each.lower() for each in named[-50:])
            if not (ids and failed and status):
                return False
            code = status[1].decode()
            # Other faults than that of the address may be our own.
            return await self.feedback.record_bounce(ids, code, is_gone=code in BAD_ADDRESS)
        lead = await self._find_lead(self.read_references(raw))
        if lead is None:
            return False
        try:
            reply = await asyncio.to_thread(_read_reply, raw, self.settings.mail_authserv_id)
        except Exception as error:  # noqa: BLE001  the parser may raise anything
            _log.warning("a reply cannot be read: %s", type(error).__name__)
            return False
        now, same = self.clock(), Filter("message_digest", "eq", reply["message_digest"])
        day_ago = Filter("created_at", "gt", format_instant(now - timedelta(days=1)))
        recent = Filter("lead_id", "eq", lead["id"]), Filter("kind", "eq", "received"), day_ago
        stored, others = await self.store.run(
            Read(LEAD_MESSAGES, ("id",), (same,)),
            Read(LEAD_MESSAGES, ("id",), recent, limit=MAX_RECEIVED),
        )
        if stored.rows or len(others.rows) == MAX_RECEIVED:
            return bool(stored.rows)
        is_quiet = reply["is_automatic"] or lead["status"] == "spam"
        values = LEADS.new_values({"status": "new"}, format_instant(now)) | {"remind_at": None}
        where = *where_id(lead["id"]), Filter("status", "eq", lead["status"])
        # A quiet reply leaves its lead as it is, but must fail if that was erased meanwhile.
        change = Update(
            LEADS, {"status": lead["status"]} if is_quiet else values, where, at_least=1
        )
        row = LEAD_MESSAGES.new_row(
            {**reply, "lead_id": lead["id"]}, format_instant(now), partial(new_id, now)
        )
        insert = Insert(LEAD_MESSAGES, [row])
        await self.store.run(*audited(SERVICE, "receive", change, now), insert)
        return True

    async def _find_lead(self, ids: tuple[str, ...]) -> Row | None:
        """Return the lead that was sent one of these messages, an answer or an acknowledgement."""
        answers = Filter("id", "in", ids), Filter("kind", "eq", "sent")
        thanks = Filter("template_name", "eq", ACKNOWLEDGEMENT.template)
        sent, log = await self.store.run(
            Read(LEAD_MESSAGES, ("lead_id",), answers, NEWEST, 1),
            # The first log row of an acknowledgement is written together with its lead.
            Read(
                EMAIL_SEND_LOG,
                (),
                (Filter("message_id", "in", ids), thanks),
                (Order("created_at"),),
                1,
            ),
        )
        for row in sent.rows:
            return await find_row(self.store, LEADS, row["lead_id"])
        for row in log.rows:
            before = Filter("created_at", "lte", row["created_at"])
            where = Filter("email", "eq", row["recipient_email"]), before
            return await read_first(self.store, Read(LEADS, (), where, NEWEST, 1))
        return None


POLL_SECONDS: Final = 20.0  # the interval at which an edge checks whether a turn is due
PAUSE: Final = timedelta(seconds=50)
"""The time between two turns, of the same edge or of two."""
PAUSE_AFTER_FAULT: Final = timedelta(minutes=10)
"""The time to the next turn after a fault: servers lock out clients with a wrong password."""
MAX_TURN: Final = timedelta(minutes=5)
"""The longest time of a turn; if an edge is killed in its turn, another may read after that."""
_FETCHED_HEADERS: Final = (
    "(UID BODY.PEEK[HEADER.FIELDS (REFERENCES IN-REPLY-TO CONTENT-TYPE)]<0.16384>)"
)
_FAULTS: Final = {
    SSLCertVerificationError: "the mailbox's certificate is not to be trusted",
    IMAP4.abort: "the mailbox closed the connection, or offers no TLS",
    IMAP4.error: "the mailbox refused user, password or folder: correct MAILBOX_URL",
    TimeoutError: "the mailbox does not answer in time",
    OSError: "the mailbox cannot be reached",
}
"""The report of each class of errors, without names or addresses; the first that fits counts."""


def _connect(server: MailServer) -> IMAP4:
    host, port, seconds = server.host, server.port, 10.0  # the time limit of each answer
    if server.security == "tls":
        return IMAP4_SSL(host, port, ssl_context=create_default_context(), timeout=seconds)
    return IMAP4(host, port, seconds)


def _log_in(client: IMAP4, server: MailServer) -> None:
    """Log in and select the folder. Without TLS the server is on this machine."""
    if server.security == "starttls":
        client.starttls(create_default_context())
    client.authenticate("PLAIN", lambda _: f"\0{server.user}\0{server.password}".encode())
    if client.select(f'"{server.folder}"')[0] != "OK":
        raise IMAP4.error("SELECT")


def _close(connected: asyncio.Future[IMAP4]) -> None:
    if connected.exception() is None:
        connected.result().shutdown()


@asynccontextmanager
async def _open(server: MailServer) -> AsyncIterator[IMAP4]:
    connecting = asyncio.get_running_loop().run_in_executor(None, _connect, server)
    try:
        client = await asyncio.shield(connecting)
    except asyncio.CancelledError:  # the thread goes on, and its connection has to be closed
        connecting.add_done_callback(_close)
        raise
    try:
        await asyncio.to_thread(_log_in, client, server)
        yield client
        await asyncio.to_thread(client.logout)
    finally:
        with suppress(OSError):  # it may be closed already
            client.socket().shutdown(SHUT_RDWR)  # a thread that waits for an answer ends now
        with suppress(OSError):
            client.shutdown()


class MailboxReader:
    """Reads the mailbox of one installation, in turn with other edges."""

    def __init__(self, server: MailServer, incoming: IncomingMail, secret: bytes) -> None:
        self._server = server
        self._incoming = incoming
        # Another server or password makes a turn due at once. The digest is keyed, so that nobody
        # can guess the password from it.
        self._digest = digest(secret, f"{server}{server.password}".encode(), "sha256").hex()
        self._turn_end = ""

    async def check(self) -> Check | None:
        """Return the state of the mailbox, for readiness; `None` if the store cannot be read."""
        with suppress(Problem):  # the check of the store reports that
            row = await read_first(self._incoming.store, Read(MAILBOX_STATE))
            return Check("warn" if row and row["fault"] else "pass", (row and row["fault"]) or "")
        return None

    async def read(self) -> None:
        """Read the new messages if a turn is due, and no other edge has it. Raises Problem."""
        state = await self._take_turn()
        if state is None:
            return
        fault = None
        try:
            async with asyncio.timeout(MAX_TURN.total_seconds()), _open(self._server) as client:
                await self._read_new(client, state)
        except tuple(_FAULTS) as error:
            fault = next(text for kind, text in _FAULTS.items() if isinstance(error, kind))
        finally:
            now = self._incoming.clock()
            due = format_instant(now + (PAUSE_AFTER_FAULT if fault else PAUSE))
            await self._save(turn_until=due, checked_at=format_instant(now), fault=fault)

    async def _take_turn(self) -> Row | None:
        """Take a turn; return how far the mailbox was read, or `None` if no turn is due."""
        now, store = self._incoming.clock(), self._incoming.store
        is_due = (
            Filter("turn_until", "is", None),
            Filter("turn_until", "lte", format_instant(now)),
            Filter("mailbox_digest", "neq", self._digest),
        )
        if await read_first(store, Read(MAILBOX_STATE)) is None:
            first = MAILBOX_STATE.trusted_row({}, "", str)
            await run_unless_conflict(store, Insert(MAILBOX_STATE, [first]))
        self._turn_end = format_instant(now + MAX_TURN)
        where = Filter("id", "eq", 1), Filter("id", "any", is_due)
        (taken,) = await store.run(Update(MAILBOX_STATE, {"turn_until": self._turn_end}, where))
        return next(iter(taken.rows), None)

    async def _save(self, **values: Any) -> None:
        """Store values of the mailbox's state. Raises Problem `conflict` if our turn is over."""
        where = Filter("id", "eq", 1), Filter("turn_until", "eq", self._turn_end)
        await self._incoming.store.run(Update(MAILBOX_STATE, values, where, at_least=1))

    async def _read_new(self, client: IMAP4, state: Row) -> None:
        validity, uid_next = (
            int(client.response(name)[1][0] or 0) for name in ("UIDVALIDITY", "UIDNEXT")
        )
        is_same = (state["mailbox_digest"], state["uid_validity"]) == (self._digest, validity)
        last = state["last_uid"] if is_same else 0
        while True:
            await self._save(mailbox_digest=self._digest, uid_validity=validity, last_uid=last)
            if last + 1 >= uid_next:
                return
            first, last = last + 1, min(last + 200, uid_next - 1)
            for uid, header in await _fetch(client, f"{first}:{last}", _FETCHED_HEADERS):
                if not is_report(header) and not self._incoming.read_references(header):
                    continue
                for _, raw in await _fetch(client, uid, f"(UID BODY.PEEK[]<0.{MAX_OCTETS}>)"):
                    if await self._incoming.receive(raw):
                        await asyncio.to_thread(client.uid, "STORE", uid, r"+FLAGS.SILENT (\Seen)")


async def _fetch(client: IMAP4, uids: str, items: str) -> list[tuple[str, bytes]]:
    """Return the UID and the octets of each message that still exists."""
    _, data = await asyncio.to_thread(client.uid, "FETCH", uids, items)
    # A server may send the UID after the octets.
    pairs = zip(data, [*data[1:], b""], strict=True)
    found = [(f"{each[0]} {rest}", each[1]) for each, rest in pairs if isinstance(each, tuple)]
    return [(re.findall(r"UID (\d+)", text)[0], octets) for text, octets in found]
