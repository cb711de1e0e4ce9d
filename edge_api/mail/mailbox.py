"""The owner's mailbox (IMAP, RFC 9051): answers to our mail are read, all else stays as it is.

Edges take turns, which the store keeps, so that one reads at a time. A turn fetches a few headers
of each new message, and the whole message only if it is a report or refers to a message of ours.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from hmac import digest
from imaplib import IMAP4, IMAP4_SSL
from socket import SHUT_RDWR
from ssl import SSLCertVerificationError, create_default_context
from typing import Any, Final

from edge_api.db.mail_addresses import MailServer
from edge_api.db.message_tables import MAILBOX_STATE
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Read, Update, read_first
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.health import Check
from edge_api.mail.incoming import MAX_OCTETS, IncomingMail, is_report
from edge_api.outbox import run_unless_conflict

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
                if is_report(header) or self._incoming.read_references(header):
                    await self._read_one(client, uid)

    async def _read_one(self, client: IMAP4, uid: str) -> None:
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
