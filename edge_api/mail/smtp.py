"""Mail over SMTP: a connection for a batch, one recipient a message (RFC 5321).

Every failure becomes a `Refused`. What is sent, and what a refusal means, is not known here.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from ssl import SSLContext, create_default_context
from types import TracebackType
from typing import Final, Self

from aiosmtplib import SMTP, SMTPException, SMTPResponseException, SMTPServerDisconnected

from edge_api.db.email_address import Mailbox, SmtpRelay, parse_mailbox
from edge_api.mail.maildir import is_international, spell
from edge_api.mail.messages import Refused, Stage
from edge_api.settings import is_loopback

FAULTS: Final = (SMTPException, OSError)
"""What opening, speaking and waiting can raise; a TimeoutError is an OSError."""

_ENHANCED: Final = re.compile(r"([245])\.\d{1,3}\.\d{1,3}(?![\d.])")
"""RFC 2034, section 4: the enhanced code stands before a reply's text."""
_CODES: Final = range(200, 600)
_WHAT: Final[Mapping[Stage, str]] = {
    "connect": "the connection",
    "login": "the login",
    "sender": "the sender",
    "recipient": "the recipient",
    "data": "the message",
}


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a relay is waited for, in seconds."""

    envelope: float = 30.0
    """For opening a connection with its login, and for each envelope with what reopens it."""
    data: float = 600.0
    """For a message itself (RFC 5321, section 4.5.3.2.6): whoever gives up earlier sends again what
    the relay takes all the same."""


_FAREWELL_SECONDS: Final = 2.0
_CLOSING: Final = 421
"""The relay ends the connection (RFC 5321, section 3.8)."""


class SmtpTransport:
    """A relay; `ssl` says what to trust, if that is not what the system trusts."""

    def __init__(
        self, relay: SmtpRelay, patience: Patience | None = None, ssl: SSLContext | None = None
    ) -> None:
        self._relay = relay
        self._patience = patience or Patience()
        self._ssl = ssl or create_default_context()

    def session(self) -> "SmtpSession":
        """Return a connection that lasts for a batch. Entering it raises Refused."""
        return SmtpSession(self._relay, self._patience, self._ssl)


@dataclass(frozen=True, slots=True)
class _Letter:
    sender: Mailbox
    recipient: Mailbox
    message: EmailMessage


class SmtpSession:
    """One connection, which is opened once more where the relay closed it between messages."""

    def __init__(self, relay: SmtpRelay, patience: Patience, ssl: SSLContext) -> None:
        self._relay = relay
        self._patience = patience
        self._stage: Stage = "connect"
        self._used = False
        """Whether this connection has begun a message."""
        self._open_envelope = False
        """Whether the last message was begun and not ended."""
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
        async with self._judging(self._patience.envelope):
            await self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            with suppress(*FAULTS):
                async with asyncio.timeout(_FAREWELL_SECONDS):
                    await self._client.quit()
        self._client.close()

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Return when the relay has taken the message for this one recipient. Raises Refused."""
        letter = _Letter(_mailbox("sender", sender), _mailbox("recipient", recipient), message)
        async with self._judging(self._patience.envelope):
            octets, encoding = await self._begin(letter)
            self._stage = "recipient"
            await self._client.rcpt(letter.recipient.address, encoding=encoding)
        async with self._judging(self._patience.data):
            self._stage = "data"
            await self._client.data(octets)
            self._open_envelope = False

    @asynccontextmanager
    async def _judging(self, seconds: float) -> AsyncIterator[None]:
        """Turn faults into refusals; a connection that broke off within a step is closed."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except FAULTS as fault:
            if not isinstance(fault, SMTPResponseException):
                self._client.close()
            raise refusal(self._stage, fault, seconds) from None
        except asyncio.CancelledError:
            self._client.close()
            raise

    async def _open(self) -> None:
        self._stage, self._used, self._open_envelope = "connect", False, False
        try:
            await self._client.connect()
            await self._client.ehlo()
            await self._secure()
            await self._login()
        except BaseException:
            self._client.close()
            raise

    async def _secure(self) -> None:
        """Begin TLS, where that is not done: as the relay's address asks for it.

        On this machine nobody listens, and relays have certificates that nobody has signed: there
        it is only begun where it is required.
        """
        security, offered = self._relay.security, self._client.supports_extension("starttls")
        if security == "tls" or (security == "offered" and (not offered or self._is_near)):
            return
        if not offered:
            sentence = "the relay offers no STARTTLS, which its address asks for"
            raise Refused("connect", None, "", sentence)
        await self._client.starttls()
        await self._client.ehlo()

    async def _login(self) -> None:
        if self._relay.user is None:
            return
        self._stage = "login"
        encrypted = self._client.get_transport_info("sslcontext") is not None
        if not encrypted and not self._is_near:
            sentence = "the relay offers no TLS, without which no password is sent"
            raise Refused("login", None, "", sentence)
        if not self._client.supported_auth_methods:
            sentence = "the relay offers no login that this service knows"
            raise Refused("login", None, "", sentence)
        await self._client.login(self._relay.user, self._relay.password or "")

    @property
    def _is_near(self) -> bool:
        return is_loopback(self._relay.host)

    async def _begin(self, letter: _Letter) -> tuple[bytes, str]:
        """Name the sender, on a new connection if need be; return what to send, how to spell it.

        Nothing of the message is handed over before the recipient is named: doing this twice
        doubles nothing.
        """
        if not self._client.is_connected:
            await self._open()
        try:
            return await self._name_sender(letter)
        except (SMTPServerDisconnected, SMTPResponseException) as fault:
            is_answer = isinstance(fault, SMTPResponseException) and fault.code != _CLOSING
            if is_answer or not self._used:
                raise
        self._client.close()
        await self._open()
        return await self._name_sender(letter)

    async def _name_sender(self, letter: _Letter) -> tuple[bytes, str]:
        self._stage = "sender"
        if self._open_envelope:
            await self._client.rset()
        international = self._takes_beyond_ascii(letter)
        octets = spell(letter.message, international=international)
        options = ["SMTPUTF8", "BODY=8BITMIME"] if international else []
        if self._client.supports_extension("size"):
            options.append(f"SIZE={len(octets)}")
        encoding = "utf-8" if international else "ascii"
        await self._client.mail(letter.sender.address, options=options, encoding=encoding)
        self._used = self._open_envelope = True
        return octets, encoding

    def _takes_beyond_ascii(self, letter: _Letter) -> bool:
        """Tell whether to send by SMTPUTF8 (RFC 6531). Raises Refused where it must be and cannot.

        5.6.7 is the code of relays that have to say so themselves (section 3.5).
        """
        on_envelope = letter.sender.international or letter.recipient.international
        offered = self._client.supports_extension("smtputf8")
        if on_envelope and not offered:
            sentence = "the relay takes no addresses beyond ASCII: 5.6.7"
            raise Refused("recipient", None, "5.6.7", sentence)
        return offered and (on_envelope or is_international(letter.message))


def _mailbox(stage: Stage, text: str) -> Mailbox:
    try:
        return parse_mailbox(text)
    except ValueError:
        sentence = f"the {stage} cannot be written on an envelope: 5.1.3"
        raise Refused(stage, None, "5.1.3", sentence) from None


def refusal(stage: Stage, fault: BaseException, seconds: float) -> Refused:
    """Return what a fault at a stage is to the domain. `seconds` is how long was waited.

    A relay's own words stay here. They may have the address in them, or a piece of the message.
    """
    if isinstance(fault, SMTPResponseException) and fault.code in _CODES:
        return _answered(stage, fault.code, fault.message)
    if stage == "login" and isinstance(fault, SMTPServerDisconnected):
        return Refused("login", None, "", "the relay closed the connection at the login")
    return Refused("connect", None, "", _silence(fault, seconds))


def _answered(stage: Stage, code: int, words: str) -> Refused:
    found = _ENHANCED.match(words)
    enhanced = found[0] if found and found[1] == str(code)[0] else ""
    codes = f"{code} {enhanced}".rstrip()
    return Refused(stage, code, enhanced, f"the relay refused {_WHAT[stage]}: {codes}")


def _silence(fault: BaseException, seconds: float) -> str:
    """Say why there is no answer; the library wraps some causes, and some not."""
    for cause in (fault.__cause__, fault):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "the relay's certificate is not to be trusted"
        if isinstance(cause, ssl.SSLError):
            return "the relay and this machine found no way to speak TLS"
        if isinstance(cause, TimeoutError):
            return f"the relay did not answer within {seconds:g} s"
    if isinstance(fault, SMTPResponseException):
        return "the relay answered what is no SMTP"
    return "the relay cannot be reached, or closed the connection"
