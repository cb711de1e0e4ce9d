"""Relays to send to: aiosmtpd's SMTP in the loop of the test, and one that reads from a script."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

ANY_ADDRESS = "0.0.0.0"  # noqa: S104  leads to this machine too, and is no loopback address


@dataclass
class Received:
    """A message as a relay got it."""

    sender: str
    recipients: list[str]
    octets: bytes
    options: list[str]
    encrypted: bool


@dataclass
class Relay:
    """A relay's behaviour, and what it saw; `answers` says what it replies at a stage."""

    answers: dict[str, str] = field(default_factory=dict)
    silent_at: str | None = None
    drops_at: str | None = None
    port: int = 0
    received: list[Received] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    fell_silent: asyncio.Event = field(default_factory=asyncio.Event)
    connections: list[SMTP] = field(default_factory=list)

    async def handle_MAIL(  # noqa: N802  aiosmtpd's names
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Take a sender, or not."""
        answer = await self._answer("sender", server)
        if answer.startswith("250"):
            envelope.mail_from = address
            envelope.mail_options = options
        return answer

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Take a recipient, or not."""
        answer = await self._answer("recipient", server)
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Take a message, or not."""
        answer = await self._answer("data", server)
        if answer.startswith("250"):
            octets = envelope.original_content
            assert octets is not None
            self.received.append(
                Received(
                    str(envelope.mail_from),
                    list(envelope.rcpt_tos),
                    octets,
                    list(envelope.mail_options),
                    session.ssl is not None or _is_tls(server),
                )
            )
        return answer

    def authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any
    ) -> AuthResult:
        """Take one login only."""
        self.logins.append((data.login, data.password))
        return AuthResult(
            success=(data.login, data.password) == (b"us@er", b"p:/ss"), handled=False
        )

    def hang_up(self) -> None:
        """Close each connection without a word."""
        for connection in self.connections:
            if connection.transport is not None:
                connection.transport.close()

    async def _answer(self, stage: str, server: SMTP) -> str:
        if self.drops_at == stage:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
            return "451 4.3.0 nobody hears this"
        if self.silent_at == stage:
            self.fell_silent.set()
            await asyncio.Event().wait()
        return self.answers.get(stage, "250 2.0.0 fine")


def _is_tls(server: SMTP) -> bool:
    return (
        server.transport is not None and server.transport.get_extra_info("sslcontext") is not None
    )


@asynccontextmanager
async def serving(
    relay: Relay,
    *,
    host: str = "127.0.0.1",
    implicit: ssl.SSLContext | None = None,
    starttls: ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[Relay]:
    """Serve a relay on a free port; `options` are those of `aiosmtpd.smtp.SMTP`."""
    loop = asyncio.get_running_loop()

    def connect() -> SMTP:
        given = {"enable_SMTPUTF8": True, "hostname": "relay.test", **options}
        connection = SMTP(
            relay, loop=loop, tls_context=starttls, authenticator=relay.authenticate, **given
        )
        relay.connections.append(connection)
        return connection

    server = await loop.create_server(connect, host, 0, ssl=implicit)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.hang_up()
        await server.wait_closed()


@asynccontextmanager
async def reciting(*lines: str, pause: float = 0) -> AsyncIterator[int]:
    """Serve a relay that says one line after each it hears, whatever that is; return its port."""
    tasks: list[asyncio.Task[None]] = []

    async def recite(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        with suppress(ConnectionError):
            for line in lines:
                await asyncio.sleep(pause)
                writer.write(f"{line}\r\n".encode())
                await writer.drain()
                if not await reader.readline():
                    break
        writer.close()

    server = await asyncio.start_server(recite, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
    await asyncio.gather(*tasks)
