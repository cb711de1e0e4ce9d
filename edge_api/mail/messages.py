"""Messages: which letters there are, their words, and each as a message ready to be sent.

Whatever a template prints is put on one line first, so that no value can pass for a part of the
message that it is not. The standard library reads a header's text once more when it is set, and
decodes what looks like an encoded word, line ends included: so text is tamed before it is set, and
mailboxes are set as objects.
"""

import re
import unicodedata
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import EmailPolicy, Policy
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, get_args
from urllib.parse import quote
from uuid import UUID

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from edge_api.db.email_address import Mailbox, parse_mailbox
from edge_api.leads.input import HELD_FROM

TemplateName = Literal["lead_notification", "lead_acknowledgement", "access_decision"]
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
AutoSubmitted = Literal["auto-generated", "auto-replied"]
"""Whether something happened, or somebody wrote (RFC 3834, section 5.1)."""


@dataclass(frozen=True, slots=True)
class MessageType:
    """One kind of letter; its text and HTML are the files of its template's name."""

    template: TemplateName
    queue: Queue
    subject: str
    """A template too."""
    values: tuple[str, ...]
    """What it is given, no more and no less."""
    persists_for: timedelta | None = None
    """How long it is tried each hour when the usual attempts are used up; else not at all."""
    auto_submitted: AutoSubmitted = "auto-generated"
    unsubscribable: bool = False
    """Whether it is given `unsubscribe_url` besides."""


_SITE: Final = ("site_title", "site_url")

NOTIFICATION: Final = MessageType(
    "lead_notification",
    "transactional",
    "{% if lead is suspect %}[looks like spam] {% elif lead is repeated %}[repeated] "
    "{% endif %}New enquiry from {{ lead.name }}",
    ("lead", *_SITE),
    persists_for=timedelta(hours=72),
)
"""To the owner. It may come late, but it must come: somebody waits for an answer."""
ACKNOWLEDGEMENT: Final = MessageType(
    "lead_acknowledgement",
    "transactional",
    "Your enquiry has arrived: {{ site_title }}",
    _SITE,
    auto_submitted="auto-replied",
    unsubscribable=True,
)
"""To whoever sent a lead. Anybody can have it sent to anybody: it has not one word of theirs."""
DECISION: Final = MessageType(
    "access_decision",
    "auth",
    "Your request for access is {{ 'approved' if approved else 'declined' }}: {{ site_title }}",
    ("approved", "claim_uri", "expires_at", *_SITE),
)
"""To whoever asked for access."""

LETTERS: Mapping[str, MessageType] = MappingProxyType(
    {letter.template: letter for letter in (NOTIFICATION, ACKNOWLEDGEMENT, DECISION)}
)
assert tuple(LETTERS) == get_args(TemplateName)  # noqa: S101  one list, stated twice for the type

_JOINERS: Final = frozenset("\u200c\u200d")
"""Format characters that are part of how words are spelled, and of some emoji."""
_LABEL_SIGNS: Final = frozenset(" .'-&+\u2019")
"""What stands in names beside letters, and separates nothing in a header of addresses."""


def _render(
    letter: MessageType, values: Mapping[str, Any], unsubscribe_url: str | None
) -> tuple[str, str, str]:
    """Return the subject, the text and the HTML of a message.

    Raises TypeError for values that are not the letter's, and ValueError where it needs an address
    to unsubscribe at and has none.
    """
    name = letter.template
    wrong = set(values) ^ set(letter.values)
    if wrong:
        raise TypeError(f"{name}: missing or unknown values: {', '.join(sorted(wrong))}")
    given = dict(values)
    if letter.unsubscribable:
        if unsubscribe_url is None:
            raise ValueError(f"{name}: needs an address to unsubscribe at")
        given["unsubscribe_url"] = unsubscribe_url
    given["subject"] = " ".join(_SUBJECTS[name].render(given).split())
    text, html = (
        _TEMPLATES.get_template(f"{name}.{form}").render(given) for form in ("txt", "html")
    )
    return given["subject"], text, html


def _finalize(value: object) -> object:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return one_line(value)


def _instant(value: str | datetime) -> str:
    """Return an instant for people, in UTC."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    moment = moment.astimezone(UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _reasons(lead: Mapping[str, Any]) -> list[str]:
    """Return the signs of a lead in words; administrators may have put any JSON there."""
    found = lead["spam_reasons"]
    return [str(name).replace("_", " ") for name in found] if isinstance(found, list) else []


def _is_repeated(lead: Mapping[str, Any]) -> bool:
    """Tell whether nothing speaks against a lead but that it came before."""
    return _reasons(lead) == ["repeated"]


def _is_suspect(lead: Mapping[str, Any]) -> bool:
    return lead["spam_score"] >= HELD_FROM and not _is_repeated(lead)


def _mailto(address: str) -> str:
    """Return the URL that writes to an address (RFC 6068)."""
    return f"mailto:{quote(one_line(address), safe='@')}"


_TEMPLATES: Final = Environment(
    loader=PackageLoader("edge_api.mail"),
    autoescape=select_autoescape(["html"], default_for_string=False),
    finalize=_finalize,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters.update(instant=_instant, reasons=_reasons, mailto=_mailto)
_TEMPLATES.tests.update(suspect=_is_suspect, repeated=_is_repeated)
_SUBJECTS: Final = {
    name: _TEMPLATES.from_string(letter.subject) for name, letter in LETTERS.items()
}


def one_line(text: str) -> str:
    """Return a stranger's text fit to be in a message: on one line, as long as it was or shorter.

    Line ends, tabs and other control characters become spaces; characters of Unicode's category
    Cf, such as those that turn the direction of writing, go, and so do lone surrogates.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_tame, text))


def label(text: str) -> str:
    """Return the letters, digits and spaces of a name, which no reader takes for an address."""
    kept = (sign if _is_label(sign) else " " for sign in one_line(text))
    return " ".join("".join(kept).split())


def _tame(sign: str) -> str:
    category = unicodedata.category(sign)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category in ("Cf", "Cs") and sign not in _JOINERS else sign


def _is_label(sign: str) -> bool:
    return sign in _LABEL_SIGNS or sign in _JOINERS or unicodedata.category(sign)[0] in "LMN"


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

    Raises TypeError for values that are not the letter's (`LETTERS` names them), and ValueError
    for an envelope that cannot be: no mailbox, no UUID, no address to unsubscribe at.
    """
    letter = LETTERS[template]
    subject, text, html = _render(letter, values, envelope.unsubscribe_url)
    message = EmailMessage(policy=_POLICY)
    message["From"] = _address(parse_mailbox(envelope.sender))
    message["To"] = _address(parse_mailbox(envelope.recipient))
    if template == "lead_notification":
        _answer_to(message, values["lead"])
    message["Subject"] = _subject(subject)
    message["Date"] = envelope.date.astimezone(UTC)
    message["Message-ID"] = _message_id(envelope)
    message["Auto-Submitted"] = letter.auto_submitted
    if letter.unsubscribable:
        _list_unsubscribe(message, envelope.unsubscribe_url or "")
    # Quoted-printable passes every relay unchanged, so that signatures made on the way hold.
    message.set_content(text, cte="quoted-printable")
    message.add_alternative(html, subtype="html", cte="quoted-printable")
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
