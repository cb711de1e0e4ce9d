"""A relay that speaks real SMTP on a port of its own, with answers that the test scripts."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.edge.edge_process import until

OK = "250 2.0.0 taken"
DROP = ""
"""Instead of an answer, the connection is broken off."""


@dataclass
class Taken:
    """A message that the relay has taken."""

    sender: str
    recipient: str
    message: EmailMessage
    connection: int
    life: int
    """The number of the sender's life, where a test counts them."""
    at: float
    """On the clock of the event loop."""


@dataclass
class Relay:
    """A relay with scripted answers, and the messages that it has taken.

    Answers to RCPT and DATA are taken from the front of a queue, or by recipient; then all is well.
    """

    port: int = 0
    taken: list[Taken] = field(default_factory=list)
    recipient_answers: deque[str] = field(default_factory=deque)
    data_answers: deque[str] = field(default_factory=deque)
    by_recipient: dict[str, str] = field(default_factory=dict)
    before_recipient: Callable[[str], Awaitable[None]] | None = None
    """Awaited when a recipient is named, before it is answered."""
    before_data: Callable[[], None] = lambda: None
    """Called when a message has arrived, before it is answered."""
    silent: asyncio.Event | None = None
    """If there is one, DATA is answered only when it is set."""
    tried: list[str] = field(default_factory=list)
    """Every recipient that was named."""
    connections: int = 0
    life: int = 0
    patience: float = 20.0
    """Seconds that a client should have with it."""
    origins: dict[SMTP, tuple[int, int]] = field(default_factory=dict)
    open: list[SMTP] = field(default_factory=list)

    @property
    def recipients(self) -> list[str]:
        """Return whom the messages that were taken are for."""
        return [taken.recipient for taken in self.taken]

    async def await_count(self, count: int, seconds: float = 60.0) -> None:
        """Return when so many messages were taken."""
        await until(lambda: len(self.taken) >= count, seconds)

    async def handle_EHLO(  # noqa: N802  aiosmtpd's name
        self, server: SMTP, session: Session, _envelope: Envelope, name: str, answers: list[str]
    ) -> list[str]:
        """Count connections."""
        self.connections += 1
        session.host_name = name
        self.origins[server] = self.connections, self.life
        return answers

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Answer a recipient."""
        self.tried.append(address)
        if self.before_recipient is not None:
            await self.before_recipient(address)
        envelope.rcpt_tos.append(address)
        planned = self.recipient_answers.popleft() if self.recipient_answers else None
        return self._answer(server, planned or self.by_recipient.get(address, OK), planned)

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        """Answer a message."""
        self.before_data()
        if self.silent is not None:
            await self.silent.wait()
        planned = self.data_answers.popleft() if self.data_answers else None
        answer = self._answer(server, OK if planned is None else planned, planned)
        if answer.startswith("2"):
            self._take(server, envelope)
        return answer

    def _answer(self, server: SMTP, answer: str, planned: str | None) -> str:
        if planned == DROP:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
            return "421 gone"
        return answer

    def _take(self, server: SMTP, envelope: Envelope) -> None:
        assert isinstance(envelope.content, bytes)
        message: Any = message_from_bytes(envelope.content, policy=policy.default)
        (recipient,) = envelope.rcpt_tos
        number, life = self.origins[server]
        now = asyncio.get_running_loop().time()
        self.taken.append(Taken(envelope.mail_from or "", recipient, message, number, life, now))


def refuse_login(
    _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, _data: LoginPassword
) -> AuthResult:
    """Let nobody in."""
    return AuthResult(success=False, handled=False)


@asynccontextmanager
async def relaying(**options: Any) -> AsyncIterator[Relay]:
    """Run a relay in this event loop; `options` are those of aiosmtpd."""
    relay = Relay()
    loop = asyncio.get_running_loop()

    def speak() -> SMTP:
        given = {"hostname": "relay.test", "enable_SMTPUTF8": True, **options}
        connection = SMTP(relay, loop=loop, **given)
        relay.open.append(connection)
        return connection

    server = await loop.create_server(speak, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        for connection in relay.open:
            if connection.transport is not None:
                connection.transport.close()
        await server.wait_closed()
