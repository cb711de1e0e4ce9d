"""The transports of mail: SMTP (RFC 5321), a maildir on this machine, or none.

SMTP uses one connection for a batch, and has one recipient for each message. A maildir has a file
for each message, never an incomplete one; mail programs such as mutt can open it. Every failure is
raised as `MailRefusal`.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass
from email.headerregistry import AddressHeader
from email.message import EmailMessage
from email.policy import EmailPolicy
from functools import partial
from mailbox import Error, Maildir
from pathlib import Path
from ssl import SSLContext, create_default_context
from typing import Final, Literal, Protocol, Self

from aiosmtplib import SMTP, SMTPException, SMTPResponseException, SMTPServerDisconnected

from edge_api.db.mail_addresses import Mailbox, MaildirRelay, MailServer, parse_mailbox, parse_relay
from edge_api.mail.queue import NO_RELAY
from edge_api.settings import is_loopback

CLOSING_CODE: Final = 421  # the relay ends the connection (RFC 5321, section 3.8)
Stage = Literal["connect", "login", "sender", "recipient", "data"]
"""The stage of a refusal. `connect`: the relay was not reached, or stopped answering."""


# Not frozen: `contextlib` writes tracebacks into exceptions that pass through it.
@dataclass(unsafe_hash=True)
class MailRefusal(Exception):  # noqa: N818  an answer, which may well be expected
    """A relay refused a message, or could not be reached."""

    stage: Stage
    code: int | None  # RFC 5321, section 4.2; `None` without an answer
    enhanced: str  # RFC 3463, such as `5.1.1`; empty if the relay gave none
    message: str
    """The reason, without an address or a word of the message: it may be logged."""


class MailSession(Protocol):
    """One connection to a relay."""

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Send the message to one recipient; return once it is accepted. Raises MailRefusal."""


Transport = Callable[[], AbstractAsyncContextManager[MailSession]]
"""Returns a connection to the relay that lasts for a batch. Entering it raises MailRefusal."""

TRANSPORT_ERRORS: Final = (SMTPException, OSError)
"""The exceptions of connecting, sending and waiting; TimeoutError is an OSError."""

_STAGES: Final[Mapping[Stage, str]] = {
    "connect": "the connection",
    "login": "the login",
    "sender": "the sender",
    "recipient": "the recipient",
    "data": "the message",
}


class SmtpSession:
    """One SMTP connection, opened again if the relay closed it between two messages.

    Entering it raises MailRefusal; `ssl` has the trusted certificates. `timeouts` are two times in
    seconds. The first is for connecting with the login, and for each envelope. The second is for
    the data of a message (RFC 5321, section 4.5.3.2.6): if it is too short, the relay may have
    accepted a message that is then sent again.
    """

    def __init__(
        self, relay: MailServer, ssl: SSLContext, timeouts: tuple[float, float] = (30.0, 600.0)
    ) -> None:
        self._relay = relay
        self._envelope_seconds, self._data_seconds = timeouts
        self._stage: Stage = "connect"
        self._used = False  # whether this connection has begun a message
        self._has_open_transaction = False  # whether the last message was begun and not ended
        # The library's own STARTTLS and login would send a password without TLS; its time limits
        # are for single answers, and lose cancellations (`asyncio.wait_for` before Python 3.12).
        self._client = SMTP(
            hostname=relay.host,
            port=relay.port,
            timeout=None,
            use_tls=relay.security == "tls",
            start_tls=False,
            tls_context=ssl,
        )

    async def __aenter__(self) -> Self:
        async with self._translate_errors(self._envelope_seconds):
            await self._open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        if kind is None:
            with suppress(*TRANSPORT_ERRORS):
                async with asyncio.timeout(2):
                    await self._client.quit()
        self._client.close()

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Send the message to one recipient; return once it is accepted. Raises MailRefusal."""
        origin, target = _parse_mailbox("sender", sender), _parse_mailbox("recipient", recipient)
        async with self._translate_errors(self._envelope_seconds):
            octets, encoding = await self._begin_transaction(origin, target, message)
            self._stage = "recipient"
            await self._client.rcpt(target.address, encoding=encoding)
        async with self._translate_errors(self._data_seconds):
            self._stage = "data"
            await self._client.data(octets)
            self._has_open_transaction = False

    @asynccontextmanager
    async def _translate_errors(self, seconds: float) -> AsyncIterator[None]:
        """Turn exceptions into MailRefusal; close a connection that broke within a step."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TRANSPORT_ERRORS as error:
            if not isinstance(error, SMTPResponseException):
                self._client.close()
            raise to_refusal(self._stage, error, seconds) from None
        except asyncio.CancelledError:
            self._client.close()
            raise

    async def _open(self) -> None:
        self._stage, self._used, self._has_open_transaction = "connect", False, False
        try:
            await self._client.connect()
            await self._client.ehlo()
            await self._start_tls()
            await self._login()
        except BaseException:
            self._client.close()
            raise

    async def _start_tls(self) -> None:
        """Start TLS as the relay's address requires, unless it is on already.

        On this machine it is only started if it is required: local relays have self-signed
        certificates.
        """
        security, offered = self._relay.security, self._client.supports_extension("starttls")
        if security == "tls" or (
            security == "offered" and (not offered or is_loopback(self._relay.host))
        ):
            return
        if not offered:
            raise _refusal_without_code(
                "connect", "the relay offers no STARTTLS, which its address asks for"
            )
        await self._client.starttls()
        await self._client.ehlo()

    async def _login(self) -> None:
        if self._relay.user is None:
            return
        self._stage = "login"
        encrypted = self._client.get_transport_info("sslcontext") is not None
        if not encrypted and not is_loopback(self._relay.host):
            raise _refusal_without_code(
                "login", "the relay offers no TLS, without which no password is sent"
            )
        if not self._client.supported_auth_methods:
            raise _refusal_without_code(
                "login", "the relay offers no login that this service knows"
            )
        await self._client.login(self._relay.user, self._relay.password or "")

    async def _begin_transaction(
        self, sender: Mailbox, recipient: Mailbox, message: EmailMessage
    ) -> tuple[bytes, str]:
        """Send MAIL FROM, on a new connection if necessary; return the octets and the encoding.

        No part of the message is sent before the recipient is named, so repeating this is safe.
        """
        if not self._client.is_connected:
            await self._open()
        try:
            return await self._send_mail_from(sender, recipient, message)
        except (SMTPServerDisconnected, SMTPResponseException) as error:
            is_answer = isinstance(error, SMTPResponseException) and error.code != CLOSING_CODE
            if is_answer or not self._used:
                raise
        self._client.close()
        await self._open()
        return await self._send_mail_from(sender, recipient, message)

    async def _send_mail_from(
        self, sender: Mailbox, recipient: Mailbox, message: EmailMessage
    ) -> tuple[bytes, str]:
        self._stage = "sender"
        if self._has_open_transaction:
            await self._client.rset()
        # SMTPUTF8 where it is needed (RFC 6531, section 3.5).
        on_envelope = sender.international or recipient.international
        offered = self._client.supports_extension("smtputf8")
        if on_envelope and not offered:
            raise MailRefusal(
                "recipient", None, "5.6.7", "the relay takes no addresses beyond ASCII: 5.6.7"
            )
        international = offered and (on_envelope or any(map(_is_non_ascii, message.values())))
        octets = serialize(message, international=international)
        options = ["SMTPUTF8", "BODY=8BITMIME"] if international else []
        if self._client.supports_extension("size"):
            options.append(f"SIZE={len(octets)}")
        encoding = "utf-8" if international else "ascii"
        await self._client.mail(sender.address, options=options, encoding=encoding)
        self._used = self._has_open_transaction = True
        return octets, encoding


def _parse_mailbox(stage: Stage, text: str) -> Mailbox:
    try:
        return parse_mailbox(text)
    except ValueError:
        raise MailRefusal(
            stage, None, "5.1.3", f"the {stage} cannot be written on an envelope: 5.1.3"
        ) from None


def to_refusal(stage: Stage, error: BaseException, seconds: float) -> MailRefusal:
    """Return an exception as MailRefusal, without the relay's words, which may hold addresses."""
    if isinstance(error, SMTPResponseException) and error.code in range(200, 600):
        found = re.match(r"([245])\.\d{1,3}\.\d{1,3}(?![\d.])", error.message)  # RFC 2034, 4
        enhanced = found[0] if found and found[1] == str(error.code)[0] else ""
        codes = f"{error.code} {enhanced}".rstrip()
        return MailRefusal(
            stage, error.code, enhanced, f"the relay refused {_STAGES[stage]}: {codes}"
        )
    if stage == "login" and isinstance(error, SMTPServerDisconnected):
        return _refusal_without_code("login", "the relay closed the connection at the login")
    return _refusal_without_code("connect", _explain(error, seconds))


def _refusal_without_code(stage: Stage, message: str) -> MailRefusal:
    return MailRefusal(stage, None, "", message)


def _explain(error: BaseException, seconds: float) -> str:
    """Return the reason for a missing answer; the library wraps only some causes."""
    for cause in (error.__cause__, error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "the relay's certificate is not to be trusted"
        if isinstance(cause, ssl.SSLError):
            return "the relay and this machine found no way to speak TLS"
        if isinstance(cause, TimeoutError):
            return f"the relay did not answer within {seconds:g} s"
    if isinstance(error, SMTPResponseException):
        return "the relay answered what is no SMTP"
    return "the relay cannot be reached, or closed the connection"


def serialize(message: EmailMessage, *, international: bool, line_end: str = "\r\n") -> bytes:
    """Return the octets of a message.

    If the transport takes no addresses beyond ASCII, a Reply-To that has one is left out: it cannot
    be written in another way (RFC 6531, section 3.4).
    """
    policy = message.policy
    assert isinstance(policy, EmailPolicy)  # noqa: S101  the one that has `utf8`
    if not international and _is_non_ascii(message["Reply-To"]):
        message = copy(message)
        del message["Reply-To"]
    return message.as_bytes(policy=policy.clone(utf8=international, linesep=line_end))


def _is_non_ascii(header: object) -> bool:
    return isinstance(header, AddressHeader) and not all(
        address.addr_spec.isascii() for address in header.addresses
    )


class MaildirTransport:
    """A maildir, made when it is first needed, accessible to its owner only."""

    def __init__(self, folder: MaildirRelay) -> None:
        self._path = folder.path

    @asynccontextmanager
    async def session(self) -> AsyncIterator["MaildirTransport"]:
        """Return a session with the folder. Entering it raises MailRefusal."""
        await asyncio.to_thread(make_maildir, self._path)
        yield self

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:  # noqa: ARG002  the headers name both
        """Add the message to the folder; return once it is on the disk. Raises MailRefusal."""
        octets = serialize(message, international=True, line_end="\n")
        try:
            await asyncio.to_thread(Maildir(self._path, create=False).add, octets)
        except (OSError, Error) as error:
            raise _refusal_without_code("data", _folder_error(error)) from None


def make_maildir(path: Path) -> None:
    """Create the folder, unless it exists. Raises MailRefusal."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (path, path / "tmp", path / "new", path / "cur"):
            folder.mkdir(0o700, exist_ok=True)
    except OSError as error:
        raise _refusal_without_code("connect", _folder_error(error)) from None


def _folder_error(error: Exception) -> str:
    """Return the system's reason, without the path."""
    reason = error.strerror if isinstance(error, OSError) else None
    return f"the mail folder cannot be written: {reason or 'another program is in the way'}"


@asynccontextmanager
async def null_session() -> AsyncIterator[MailSession]:
    """Raise MailRefusal, as no relay is configured: messages wait as for a relay that is down."""
    raise _refusal_without_code("connect", NO_RELAY)
    yield  # never reached, but a context manager needs it


def open_transport(url: str) -> Transport:
    """Return the transport for an address such as SMTP_URL. Raises ValueError."""
    relay = parse_relay(url)
    if isinstance(relay, MaildirRelay):
        return MaildirTransport(relay).session
    return partial(SmtpSession, relay, create_default_context())


async def check_relay(smtp_url: str) -> list[str]:
    """Return an error if the mail relay cannot be reached or refuses the login; send nothing."""
    try:
        async with open_transport(smtp_url)():
            return []
    except MailRefusal as refused:
        relay, message = parse_relay(smtp_url), refused.message
        if isinstance(relay, MaildirRelay):
            return [f"SMTP_URL: {message}"]
        fix = (
            "check user and password"
            if refused.stage == "login"
            else "check its name and port, and whether this network lets that port out"
        )
        return [f"SMTP_URL: {relay.host}, port {relay.port}: {message}: {fix}"]
