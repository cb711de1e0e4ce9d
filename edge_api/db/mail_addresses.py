"""Parse addresses of mailboxes and mail servers; refuse those that mail programs could misread."""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import IPv6Address
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import unquote

import email_validator
from email_validator import EmailNotValidError, ValidatedEmail, syntax, validate_email

from edge_api.db.types import MAX_EMAIL_LENGTH
from edge_api.schema.environment import MAX_PORT, URL_CHARACTER
from edge_api.schema.sentences import sentence

# Options of email-validator for the whole process. Accept addresses in .test, .invalid and other
# special-use domains, from which tests send: such a lead is stored, and no mail is sent to it.
# The library's limit is 254 octets (RFC 3696, erratum 1690), and that of our API is one more.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()
syntax.EMAIL_MAX_LENGTH = MAX_EMAIL_LENGTH  # type: ignore[attr-defined]  # no public name

Security = Literal["offered", "starttls", "tls"]
"""`offered`: TLS if it is offered; `starttls`: STARTTLS is required; `tls`: TLS from the start."""

_SCHEMES: Final = MappingProxyType[str, tuple[Security, int]](
    {
        "smtp": ("offered", 25),
        "smtp+starttls": ("starttls", 587),
        "smtps": ("tls", 465),
        "imap": ("offered", 143),
        "imap+starttls": ("starttls", 143),
        "imaps": ("tls", 993),
    }
)
"""The security and the default port of each scheme (RFC 5321, 6409, 8314, 9051)."""
_LABEL: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_AUTHORITY: Final = (
    rf"(?:(?P<user>{URL_CHARACTER}+):(?P<password>{URL_CHARACTER}+)@)?"
    rf"(?:(?P<host>{_LABEL}(?:\.{_LABEL})*)|\[(?P<six>[0-9A-Fa-f:.]+)\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_IMAP: Final = re.compile(
    r"(?P<scheme>imap(?=://[^@]*@(?:localhost|127[0-9.]*|\[::1\])(?:[:/]|$))|imap\+starttls|imaps)"
    rf"://(?=[^@]+@){_AUTHORITY}"
    rf"(?:/(?P<folder>(?:(?!%(?:22|5[Cc]|[89A-Fa-f]))(?:{URL_CHARACTER}|[/ ]))+))?"
)


@dataclass(frozen=True, slots=True)
class MailServer:
    """A relay that speaks SMTP, or the server of a mailbox that speaks IMAP."""

    security: Security
    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    folder: str = ""  # the folder that is read by IMAP; empty for a relay


@dataclass(frozen=True, slots=True)
class MaildirRelay:
    """A maildir that stores messages in place of a relay, which would send them."""

    path: Path


def parse_relay(text: str) -> MailServer | MaildirRelay:
    """Return the relay or folder that mail is sent to. Raises ValueError with what to fix."""
    folder = re.fullmatch(r"maildir:(?P<path>(?!//)[^\x00-\x1f\x7f]+)", text)
    if folder:
        return MaildirRelay(Path(folder["path"]))
    found = re.fullmatch(rf"(?P<scheme>smtp|smtp\+starttls|smtps)://{_AUTHORITY}", text)
    if found is None:
        raise ValueError(
            "must be smtp://, smtp+starttls:// or smtps:// with user:password@host:port, or "
            "maildir: and a folder; in user and password write what is no letter or digit as %40 "
            "for @ and so on"
        )
    return _read_server(found)


def parse_imap(text: str) -> MailServer:
    """Return the server and folder of an IMAP URL. Raises ValueError with what to fix."""
    found = _IMAP.fullmatch(text)
    if found is None:
        raise ValueError(
            "must be imaps:// or imap+starttls:// with user:password@host:port/folder, where port "
            "and folder may be left out; in user and password write what is no letter or digit as "
            "%40 for @ and so on. imap:// is for this machine alone"
        )
    return replace(_read_server(found), folder=_decode(found["folder"]) or "INBOX")


def _read_server(found: re.Match[str]) -> MailServer:
    """Return the server of a matched URL with a scheme and `_AUTHORITY`. Raises ValueError."""
    security, default_port = _SCHEMES[found["scheme"]]
    port = int(found["port"] or default_port)
    if not 1 <= port <= MAX_PORT:
        raise ValueError(f"must have a port from 1 to {MAX_PORT}")
    try:
        host = found["host"] or str(IPv6Address(found["six"]))
    except ValueError:
        raise ValueError("must have an IPv6 address between its brackets") from None
    return MailServer(security, host, port, _decode(found["user"]), _decode(found["password"]))


def check_relay(text: str) -> str:
    """Return a setting's relay address unchanged. Raises ValueError if it is invalid."""
    parse_relay(text)
    return text


def _decode(part: str | None) -> str | None:
    """Return a part of a URL without percent-encoding. Raises ValueError."""
    if part is None:
        return None
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("must have its user and password in UTF-8") from None
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("must not have control characters in user or password")
    return text


_CACHE_SIZE: Final = 1024
_PLAIN_ADDRESS: Final = re.compile(
    r"([A-Za-z0-9_+-]{1,64}(?:\.[A-Za-z0-9_+-]{1,64})*)@((?!.*xn--)[A-Za-z0-9.-]{1,128})",
    re.IGNORECASE,
)
"""ASCII addresses without Punycode, whose local part is normalized by lower case alone."""
_MAX_LOCAL_PART: Final = 64  # octets (RFC 5321, section 4.5.3.1.1)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The sender or the recipient of a message."""

    name: str
    """The display name as a person typed it; empty where there is none."""
    local_part: str
    domain: str
    """The domain, in ASCII (RFC 5891) if the local part is ASCII, else in Unicode (RFC 6531)."""

    @property
    def address(self) -> str:
        """The address as SMTP carries it."""
        return f"{self.local_part}@{self.domain}"

    @property
    def international(self) -> bool:
        """Whether mail with this address needs SMTPUTF8 (RFC 6531)."""
        return not self.address.isascii()


def parse_mailbox(text: str) -> Mailbox:
    """Return the mailbox of `address` or `Name <address>`. Raises ValueError."""
    if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", text):
        raise ValueError("must not contain control characters")
    named = re.fullmatch(r"(?P<name>[^<>]*?) *<(?P<address>[^<>]*)>", text)
    name, address = (named["name"].strip(), named["address"]) if named else ("", text)
    # Some mail programs decode a local part that looks like an encoded word, although RFC 2047,
    # section 5, forbids that: the decoded text could contain line ends.
    if "=?" in address:
        raise ValueError("must not have =? in its address")
    try:
        checked = check_address(address, bare_host=True)
    except ValueError:
        raise ValueError("must be an address, or a name and <address>, and one alone") from None
    quoted = re.fullmatch(r'"(?P<name>[^"\\]*)"', name)
    domain = checked.ascii_domain if checked.ascii_email else checked.domain
    return Mailbox(quoted["name"] if quoted else name, checked.local_part, domain)


def check_mailbox(text: str) -> str:
    """Return a setting's mailbox unchanged. Raises ValueError if it is invalid."""
    parse_mailbox(text)
    return text


def check_address(address: str, *, bare_host: bool = False) -> ValidatedEmail:
    """Return an address validated by `email-validator`. Raises ValueError for an invalid one.

    The DNS is not queried: only sending shows whether mail arrives. `bare_host` allows a domain
    without a dot, such as `localhost`.
    """
    try:
        return validate_email(
            address, check_deliverability=False, globally_deliverable=not bare_host
        )
    except EmailNotValidError:
        raise ValueError(sentence("not a valid e-mail address")) from None


@lru_cache(_CACHE_SIZE)
def normalize_address(address: str) -> str:
    """Return the canonical form of an address: equal for two spellings of the same mailbox.

    It is in lower case and in NFC, with the domain in Unicode. Plain addresses take a fast path,
    since each lead and each check of suppressions needs this. Raises ValueError.
    """
    plain = _PLAIN_ADDRESS.fullmatch(address)
    if plain is None or len(plain[1]) > _MAX_LOCAL_PART:
        return _fold(address)
    return f"{plain[1].lower()}@{_fold_domain(plain[2])}"


@lru_cache(_CACHE_SIZE)
def _fold_domain(domain: str) -> str:
    """Normalize a domain; cached, since it is most of the library's work on a plain address."""
    return _fold(f"a@{domain}").removeprefix("a@")


def _fold(address: str) -> str:
    """Return the canonical form as email-validator finds it. Raises ValueError."""
    return check_address(address).normalized.lower()
