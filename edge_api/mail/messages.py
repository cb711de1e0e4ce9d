"""Messages that are mailed: their types and templates, and how they are composed.

All values are put on one line, so that none can pass for another part of the message. The standard
library parses a header's text when it is set, and decodes encoded words, even to line ends: so text
is cleaned before it is set, and mailboxes are set as objects.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import EmailPolicy, Policy
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import quote
from uuid import UUID

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from edge_api.db.internal_tables import ACCESS_REQUESTS, DESK_LINKS
from edge_api.db.mail_addresses import Mailbox, parse_mailbox
from edge_api.db.newsletter_tables import MAILINGS, SUBSCRIBERS
from edge_api.db.table import Table
from edge_api.db.tables import CREDENTIALS, LEADS
from edge_api.leads.input import SUSPECT_FROM
from edge_api.mail.clean_text import one_line, safe_display_name
from edge_api.schema.sentences import ENGLISH, Language
from edge_api.schema.template_language import (
    UnknownNames,
    add_language_features,
    note_unknown_names,
)

Queue = Literal["auth", "transactional", "newsletter"]
QUEUES: Final[tuple[Queue, ...]] = ("auth", "transactional", "newsletter")
"""In the order of sending."""


@dataclass(frozen=True, slots=True)
class MessageType:
    """One type of message; `template` is the name of the files with its text and HTML."""

    template: str
    queue: Queue
    subject: str  # a template too
    values: tuple[str, ...]  # the names of the values that its templates need, and no others
    about: Table | None = LEADS
    """The table of the row that it is about; without that row nothing is sent."""
    retry_for: timedelta | None = None
    """The time for which it is retried each hour after the usual attempts."""
    auto_submitted: Literal["auto-generated", "auto-replied", "no"] = "auto-generated"
    """The header of RFC 3834, section 5.1; `no`: a person wrote it, and the header is left out."""
    unsubscribable: bool = False  # whether the templates get `unsubscribe_url`
    to_visitor: bool = False
    """Whether it goes to a visitor, in the site's language; mail to the owner is in English."""

    @property
    def must_reach_owner(self) -> bool:
        """Whether it goes to the owner and must arrive: if it fails, it is kept and reported."""
        return self.retry_for is not None and not self.to_visitor


_SITE: Final = ("site_title", "site_url")

NOTIFICATION: Final = MessageType(
    "lead_notification",
    "transactional",
    "{% if lead is suspect %}[looks like spam] {% elif lead is repeated %}[repeated] "
    "{% endif %}New enquiry from {{ lead.name }}",
    ("lead", "desk_url", *_SITE),
    retry_for=timedelta(hours=72),
)
"""Notifies the owner of a lead; it may be late, but must arrive: somebody waits for an answer."""
ACKNOWLEDGEMENT: Final = MessageType(
    "lead_acknowledgement",
    "transactional",
    "{{ _('Your enquiry has arrived') }}: {{ site_title }}",
    _SITE,
    auto_submitted="auto-replied",
    unsubscribable=True,
    to_visitor=True,
)
"""Thanks the sender of a lead, but quotes nothing: they may have given another's address."""
ACCESS_DECISION: Final = MessageType(
    "access_decision",
    "auth",
    "{{ _('Your request for access is approved') if approved else "
    "_('Your request for access is declined') }}: {{ site_title }}",
    ("approved", "claim_uri", "expires_at", *_SITE),
    about=ACCESS_REQUESTS,
    to_visitor=True,
)
"""Notifies a person of the decision on their request for access."""
REQUEST_NOTICE: Final = MessageType(
    "access_request",
    "transactional",
    "{{ request.name }} asks for access",
    ("request", "desk_url", *_SITE),
    about=ACCESS_REQUESTS,
    retry_for=timedelta(hours=72),
)
"""Notifies the owner of a request for access, which would lapse without a decision."""
OWNER_SUMMARY: Final = MessageType(
    "owner_summary",
    "transactional",
    "{{ number }} more enquir{{ 'y' if number == 1 else 'ies' }}",
    ("number", "desk_url", *_SITE),
    about=None,
    retry_for=timedelta(hours=72),
)
"""Notifies the owner of several leads in one message, in place of too many notices."""
HIDDEN_LEADS: Final = MessageType(
    "hidden_leads",
    "transactional",
    "{{ number }} enquir{{ 'y looks' if number == 1 else 'ies look' }} like spam",
    ("number", "leads", "desk_url", *_SITE),
    about=None,
    retry_for=timedelta(hours=72),
)
"""Lists for the owner, once a day, the leads that were hidden because they look like spam."""
WEEKLY_STATS: Final = MessageType(
    "weekly_stats",
    "transactional",
    "{{ sentence }}",
    ("sentence", "stats", "kinds", "desk_url", *_SITE),
    about=None,
    retry_for=timedelta(hours=24),
)
"""Reports to the owner on Mondays how much was read in the week before."""
SIGN_IN_LINK: Final = MessageType(
    "desk_link",
    "auth",
    "Sign in to the desk: {{ site_title }}",
    ("link_url", "expires_at", *_SITE),
    about=DESK_LINKS,
    retry_for=timedelta(hours=24),
)
"""Mails the owner a link to sign in, made when it is sent; a used or expired one is not sent."""
KEY_NOTICE: Final = MessageType(
    "key_notice",
    "auth",
    "The key {{ key.name }} {{ 'was revoked' if key.revoked_at else 'is valid as before' }}",
    ("key", "undo_until", "desk_url", *_SITE),
    about=CREDENTIALS,
    retry_for=timedelta(hours=72),
)
"""Notifies the owner that a key was revoked at the desk, or its revocation undone there."""
ANSWER: Final = MessageType(
    "lead_answer",
    "transactional",
    "{{ answer.subject }}",
    ("answer", "quoted", *_SITE),
    retry_for=timedelta(hours=72),
    auto_submitted="no",
    to_visitor=True,
)
"""Sends an answer, which the owner wrote at the desk, to the sender of a lead."""
CONFIRMATION: Final = MessageType(
    "newsletter_confirmation",
    "transactional",
    "{{ _('Confirm your subscription') }}: {{ site_title }}",
    ("confirm_url", "leave_url", *_SITE),
    about=SUBSCRIBERS,
    retry_for=timedelta(hours=24),
    to_visitor=True,
)
"""Asks whether an address wants the newsletter; it quotes nothing that a stranger typed."""
MAILING_NOTICE: Final = MessageType(
    "mailing_notice",
    "transactional",
    "{{ 'Held' if mailing.held_at else 'Not mailed yet' }}: {{ mailing.subject }}",
    ("mailing", "desk_url", *_SITE),
    about=MAILINGS,
    retry_for=timedelta(hours=72),
)
"""Notifies the owner that a mailing goes no further without a press, and why."""

MESSAGE_TYPES: Mapping[str, MessageType] = MappingProxyType(
    {
        each.template: each
        for each in (
            NOTIFICATION,
            ACKNOWLEDGEMENT,
            ACCESS_DECISION,
            REQUEST_NOTICE,
            OWNER_SUMMARY,
            HIDDEN_LEADS,
            WEEKLY_STATS,
            SIGN_IN_LINK,
            KEY_NOTICE,
            MAILING_NOTICE,
            ANSWER,
            CONFIRMATION,
        )
    }
)

LETTER: Final = MessageType(
    "newsletter_post",
    "newsletter",
    "",
    (),
    about=None,
    retry_for=timedelta(hours=72),
    auto_submitted="no",
    to_visitor=True,
)
"""A post, to a subscriber of the newsletter."""
TEST_LETTER: Final = MessageType(
    "newsletter_test", "transactional", "", (), about=None, auto_submitted="no"
)
"""A post, to the owner alone."""
LETTER_TYPES: Mapping[str, MessageType] = MappingProxyType(
    {each.template: each for each in (LETTER, TEST_LETTER)}
)
"""The messages that the newsletter composes, which have no templates here."""


def _reasons(lead: Mapping[str, Any]) -> list[str]:
    """Return the spam reasons in words; administrators may have stored any JSON."""
    found = lead["spam_reasons"]
    return [str(name).replace("_", " ") for name in found] if isinstance(found, list) else []


def _is_repeated(lead: Mapping[str, Any]) -> bool:
    return _reasons(lead) == ["repeated"]


_SHIPPED_TEMPLATES: Final[Mapping[str, str]] = {
    **{f"{name}.subject": each.subject for name, each in MESSAGE_TYPES.items()},
    **{
        file.name: file.read_text("utf-8")
        for file in files("edge_api.mail").joinpath("templates").iterdir()
    },
}
"""The text of each template of the distribution, by its name."""


def _read_folder(folder: Path) -> dict[str, str]:
    try:
        found = {each.name: each for each in folder.iterdir() if not each.name.startswith(".")}
        if unknown := sorted(found.keys() - _SHIPPED_TEMPLATES.keys()):
            known = ", ".join(sorted(_SHIPPED_TEMPLATES))
            raise ValueError(f"{unknown[0]} is no template of a message; these are {known}")
        texts = {}
        for name, file in found.items():
            texts[name] = file.read_text("utf-8")
    except OSError as error:
        raise ValueError(f"{error.filename} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not UTF-8; save it in that encoding") from None
    return texts


class MailTemplates:
    """The templates of all messages: the operator's where `folder` has them, else those shipped.

    For a message `NAME` these are `NAME.txt`, `NAME.html` and `NAME.subject`; `frame.html` and
    `styles.html` are what the shipped HTML extends. All are read at once, since an upgrade may
    replace the files while the process runs. Raises ValueError for a folder that cannot be read, or
    has a file with an unknown name.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.unknown: UnknownNames = {}
        """Unknown names that templates of the folder have asked for."""
        texts = {**_SHIPPED_TEMPLATES, **(_read_folder(folder) if folder else {})}
        self._environment = Environment(
            # The name is given as the file too, with which unknown names are reported.
            loader=FunctionLoader(
                lambda name: (texts[name], name, None) if name in texts else None
            ),
            autoescape=select_autoescape(["html"], default_for_string=False),
            auto_reload=False,
            finalize=lambda value: (
                one_line(value)
                if isinstance(value, str) and not isinstance(value, Markup)
                else value
            ),
            undefined=note_unknown_names(self.unknown) if folder else StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        add_language_features(self._environment)
        self._environment.filters.update(
            reasons=_reasons,
            mailto=lambda address: f"mailto:{quote(one_line(address), safe='@')}",
        )
        self._environment.tests.update(
            suspect=lambda lead: lead["spam_score"] >= SUSPECT_FROM and not _is_repeated(lead),
            repeated=_is_repeated,
        )

    def render(
        self,
        message_type: MessageType,
        values: Mapping[str, Any],
        unsubscribe_url: str | None,
        language: Language = ENGLISH,
    ) -> tuple[str, str, str]:
        """Return subject, text and HTML. Raises like `compose`, and like Jinja for a template."""
        name = message_type.template
        wrong = set(values) ^ set(message_type.values)
        if wrong:
            raise TypeError(f"{name}: missing or unknown values: {', '.join(sorted(wrong))}")
        # Cleaned here, since `finalize` does not see values within translated sentences.
        given = {name: one_line(e) if isinstance(e, str) else e for name, e in values.items()}
        given["site_language"] = language if message_type.to_visitor else ENGLISH
        if message_type.unsubscribable:
            if unsubscribe_url is None:
                raise ValueError(f"{name}: needs an address to unsubscribe at")
            given["unsubscribe_url"] = unsubscribe_url
        subject, text, html = map(
            self._environment.get_template, (f"{name}.subject", f"{name}.txt", f"{name}.html")
        )
        given["subject"] = " ".join(subject.render(given).split())
        return given["subject"], text.render(given), html.render(given)


DEFAULT_TEMPLATES: Final = MailTemplates()


MAX_SUBJECT_LENGTH: Final = 200  # characters

_ENCODED_WORD_START: Final = "=?"


def is_message_id(text: str) -> bool:
    """Return whether a text may be put into a header as the Message-ID of another message."""
    return bool(re.fullmatch(r"<[!-;=?-~]+@[!-;=?-~]+>", text)) and _ENCODED_WORD_START not in text


@dataclass(frozen=True, slots=True)
class Envelope:
    """The sender, the recipient and the id of a message."""

    message_id: str  # a UUID, the same for every attempt
    sender: str  # `address` or `Name <address>`
    recipient: str  # as `sender`
    date: datetime
    host: str  # our own, after the @ of the Message-ID
    unsubscribe_url: str | None = None  # one POST there unsubscribes (RFC 8058)
    reply_to: str | None = None  # as `sender`
    references: tuple[str, ...] = ()
    """Message-IDs of the thread; the last is of the message that this one answers."""


class _UnfoldedHeader(UnstructuredHeader, BaseHeader):
    """A header on one line, since folding would encode its long words."""

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


_HEADER_TYPES: Final = HeaderRegistry()
_ID_HEADERS: Final = ("Message-ID", "In-Reply-To", "References")
for _name in (*_ID_HEADERS, "List-Id", "List-Unsubscribe", "List-Unsubscribe-Post"):
    _HEADER_TYPES.map_to_type(_name, _UnfoldedHeader)
MESSAGE_POLICY: Final = EmailPolicy(linesep="\r\n", header_factory=_HEADER_TYPES)


def compose(
    template: str,
    envelope: Envelope,
    values: Mapping[str, Any],
    templates: MailTemplates = DEFAULT_TEMPLATES,
    language: Language = ENGLISH,
) -> EmailMessage:
    """Return a message with text and HTML (RFC 5322, MIME), in ASCII, except for addresses.

    Raises TypeError for values that are not those of the type, and ValueError for an invalid
    envelope.
    """
    message_type = MESSAGE_TYPES[template]
    subject, text, html = templates.render(message_type, values, envelope.unsubscribe_url, language)
    message = EmailMessage(policy=MESSAGE_POLICY)
    message["From"] = header_address(parse_mailbox(envelope.sender))
    message["To"] = header_address(parse_mailbox(envelope.recipient))
    if envelope.reply_to:
        message["Reply-To"] = header_address(parse_mailbox(envelope.reply_to))
    if template == "lead_notification":
        lead = values["lead"]
        with suppress(ValueError):  # an invalid address is in the text only
            message["Reply-To"] = header_address(parse_mailbox(lead["email"]), lead["name"])
    message["Subject"] = header_subject(subject)
    message["Date"] = envelope.date.astimezone(UTC)
    if re.fullmatch(r"[A-Za-z0-9.-]{1,255}|[0-9A-Fa-f:.]{2,45}", envelope.host) is None:
        raise ValueError("the host of a Message-ID must be a domain or an address")
    host = f"[{envelope.host}]" if ":" in envelope.host else envelope.host
    message["Message-ID"] = f"<{UUID(envelope.message_id)}@{host}>"
    if envelope.references:
        message["In-Reply-To"] = envelope.references[-1]
        message["References"] = " ".join(envelope.references)
    if message_type.auto_submitted != "no":
        message["Auto-Submitted"] = message_type.auto_submitted
    if message_type.unsubscribable:
        add_unsubscribe_headers(message, envelope.unsubscribe_url or "")
    # Quoted-printable passes every relay unchanged, so that signatures made on the way hold.
    message.set_content(text, cte="quoted-printable")
    message.add_alternative(html, subtype="html", cte="quoted-printable")
    return message


def header_address(mailbox: Mailbox, name: str | None = None) -> Address:
    """Return a mailbox as From and To take it; `name` replaces its own."""
    # Made of its parts, since `addr_spec` refuses a local part beyond ASCII.
    display_name = safe_display_name(mailbox.name if name is None else name)
    return Address(display_name, mailbox.local_part, mailbox.domain)


def header_subject(text: str) -> str:
    """Return the text of a subject, which is on one line, so that no header is misread."""
    return text[:MAX_SUBJECT_LENGTH].replace(_ENCODED_WORD_START, "= ?")


def add_unsubscribe_headers(message: EmailMessage, url: str) -> None:
    """Add List-Unsubscribe (RFC 2369), over https with one click (RFC 8058); raises ValueError."""
    # Other characters end a URL in a header; a line has 998 octets (RFC 5322, 2.1.1).
    if re.fullmatch(r"https?://[!#-;=?-~]{1,900}", url) is None or _ENCODED_WORD_START in url:
        raise ValueError("the address to unsubscribe at must be a URL of http or https, in ASCII")
    message["List-Unsubscribe"] = f"<{url}>"
    if url.startswith("https:"):
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
