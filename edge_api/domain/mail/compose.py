"""Letters and what carries them: which there are, and each as a message ready to be sent.

The standard library reads a header's text once more when it is set, and decodes what looks like
an encoded word, line ends included. So text is tamed before it is set, and mailboxes are set as
objects.
"""

import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import EmailPolicy, Policy
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol
from uuid import UUID

from edge_api.domain.mail.wording import TEMPLATES, TemplateName, label, render
from edge_api.schema.mailbox import Mailbox, parse_mailbox

Stage = Literal["connect", "login", "sender", "recipient", "data"]
"""Where a message was refused. `connect`: nothing was said to the relay, or it said no more."""


# Not frozen: `contextlib` writes tracebacks into exceptions that pass through it.
@dataclass(unsafe_hash=True)
class Refused(Exception):  # noqa: N818  an answer, which may well be expected
    """A relay would not have a message, or could not be reached."""

    stage: Stage
    code: int | None
    """Of RFC 5321, section 4.2; `None` where no answer came."""
    enhanced: str
    """Of RFC 3463, such as `5.1.1`; empty where the relay gave none."""
    sentence: str
    """Says what happened without an address or a word of the message: it may be logged."""


class Session(Protocol):
    """One connection to a relay."""

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Return when the relay has taken the message for this one recipient. Raises Refused."""


class Transport(Protocol):
    """Opens connections to the relay."""

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Return a connection that lasts for a batch. Entering it raises Refused."""


Queue = Literal["auth", "transactional"]
QUEUES: Final[tuple[Queue, ...]] = ("auth", "transactional")
"""In the order in which they are sent from."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One kind of letter."""

    template: TemplateName
    queue: Queue
    persists_for: timedelta | None = None
    """How long it is tried each hour when the usual attempts are used up; else not at all."""


NOTIFICATION: Final = Letter("lead_notification", "transactional", timedelta(hours=72))
"""To the owner. It may come late, but it must come: somebody waits for an answer."""
ACKNOWLEDGEMENT: Final = Letter("lead_acknowledgement", "transactional")
"""To whoever sent a lead."""
DECISION: Final = Letter("access_decision", "auth")
"""To whoever asked for access."""

LETTERS: Mapping[str, Letter] = MappingProxyType(
    {letter.template: letter for letter in (NOTIFICATION, ACKNOWLEDGEMENT, DECISION)}
)


__all__ = ["Envelope", "TemplateName", "compose"]

SUBJECT_LONGEST: Final = 200
"""Characters; no reader shows more of it."""

_HOST: Final = re.compile(r"[A-Za-z0-9.-]{1,255}|[0-9A-Fa-f:.]{2,45}")
_URL: Final = re.compile(r"https?://[!#-;=?-~]{1,900}")
"""ASCII without what ends a URL in a header, within a line's 998 octets (RFC 5322, 2.1.1)."""
_ENCODED_WORD: Final = "=?"


@dataclass(frozen=True, slots=True)
class Envelope:
    """Between whom a message goes, and what tells it from all others."""

    message_id: str
    """A UUID: the same for every attempt."""
    sender: str
    """`address` or `Name <address>`."""
    recipient: str
    """Likewise."""
    date: datetime
    host: str
    """Ours, behind the @ of the Message-ID."""
    unsubscribe_url: str | None = None
    """Where one POST unsubscribes (RFC 8058)."""


class _Whole(UnstructuredHeader, BaseHeader):
    """A header that stands on one line as it is: folding would encode a long word of it."""

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


_HEADERS: Final = HeaderRegistry()
for _name in ("Message-ID", "List-Unsubscribe", "List-Unsubscribe-Post"):
    _HEADERS.map_to_type(_name, _Whole)
_POLICY: Final = EmailPolicy(linesep="\r\n", header_factory=_HEADERS)


def compose(template: TemplateName, envelope: Envelope, values: Mapping[str, Any]) -> EmailMessage:
    """Return a message: RFC 5322, MIME, text and HTML, 7 bits wide but for addresses beyond ASCII.

    Raises TypeError for values that are not the template's (`TEMPLATES` names them), and ValueError
    for an envelope that cannot be: no mailbox, no UUID, no address to unsubscribe at.
    """
    wording = render(template, values, envelope.unsubscribe_url)
    message = EmailMessage(policy=_POLICY)
    message["From"] = _address(parse_mailbox(envelope.sender))
    message["To"] = _address(parse_mailbox(envelope.recipient))
    if template == "lead_notification":
        _answer_to(message, values["lead"])
    message["Subject"] = _subject(wording.subject)
    message["Date"] = envelope.date.astimezone(UTC)
    message["Message-ID"] = _message_id(envelope)
    message["Auto-Submitted"] = TEMPLATES[template].auto_submitted
    if TEMPLATES[template].unsubscribable:
        _list_unsubscribe(message, envelope.unsubscribe_url or "")
    # Quoted-printable passes every relay unchanged, so that signatures made on the way hold.
    message.set_content(wording.text, cte="quoted-printable")
    message.add_alternative(wording.html, subtype="html", cte="quoted-printable")
    return message


def _address(mailbox: Mailbox, name: str | None = None) -> Address:
    # Not `addr_spec`, which takes no local part beyond ASCII.
    display_name = label(mailbox.name if name is None else name)
    return Address(display_name, mailbox.local_part, mailbox.domain)


def _answer_to(message: EmailMessage, lead: Mapping[str, Any]) -> None:
    """Have answers go to whoever sent a lead; an address that cannot be stands in the text."""
    try:
        mailbox = parse_mailbox(lead["email"])
    except ValueError:
        return
    message["Reply-To"] = _address(mailbox, lead["name"])


def _subject(text: str) -> str:
    return text[:SUBJECT_LONGEST].replace(_ENCODED_WORD, "= ?")


def _message_id(envelope: Envelope) -> str:
    if _HOST.fullmatch(envelope.host) is None:
        raise ValueError("the host of a Message-ID must be a domain or an address")
    host = f"[{envelope.host}]" if ":" in envelope.host else envelope.host
    return f"<{UUID(envelope.message_id)}@{host}>"


def _list_unsubscribe(message: EmailMessage, url: str) -> None:
    """Let readers unsubscribe with one click, by a POST, which RFC 8058 wants to go over https."""
    if _URL.fullmatch(url) is None or _ENCODED_WORD in url:
        raise ValueError("the address to unsubscribe at must be a URL of http or https, in ASCII")
    message["List-Unsubscribe"] = f"<{url}>"
    if url.startswith("https:"):
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
