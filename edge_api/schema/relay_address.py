"""Where mail is handed over: a relay that speaks SMTP, or a folder on this machine.

A password stands in the address: neither a message nor a printed value here has it.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import unquote

from edge_api.schema.origin import PORT_MOST

Security = Literal["offered", "starttls", "tls"]
"""TLS where the relay offers it; by STARTTLS or not at all; from the first octet on."""

_SCHEMES: Final = MappingProxyType[str, tuple[Security, int]](
    {"smtp": ("offered", 25), "smtp+starttls": ("starttls", 587), "smtps": ("tls", 465)}
)
"""What each says about TLS, and its usual port (RFC 5321, 6409, 8314)."""
_LABEL: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_PART: Final = "(?:[!$&'()*+,;=A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})"
"""A character of a user or password (RFC 3986, section 3.2.1)."""
_SMTP: Final = re.compile(
    rf"(?P<scheme>smtp|smtp\+starttls|smtps)://"
    rf"(?:(?P<user>{_PART}+):(?P<password>{_PART}+)@)?"
    rf"(?:(?P<host>{_LABEL}(?:\.{_LABEL})*)|\[(?P<six>[0-9A-Fa-f:.]+)\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_MAILDIR: Final = re.compile(r"maildir:(?P<path>(?!//)[^\x00-\x1f\x7f]+)")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f]")

_SENTENCE: Final = (
    "must be smtp://, smtp+starttls:// or smtps:// with user:password@host:port, or maildir: and "
    "a folder; in user and password write what is no letter or digit as %40 for @ and so on"
)


@dataclass(frozen=True, slots=True)
class SmtpRelay:
    """A relay that speaks SMTP."""

    security: Security
    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class MailFolder:
    """A maildir, for a person who wants to see what would be sent."""

    path: Path


def parse_relay(text: str) -> SmtpRelay | MailFolder:
    """Return where mail is handed over. Raises ValueError with what to mend."""
    folder = _MAILDIR.fullmatch(text)
    if folder:
        return MailFolder(Path(folder["path"]))
    found = _SMTP.fullmatch(text)
    if found is None:
        raise ValueError(_SENTENCE)
    security, usual_port = _SCHEMES[found["scheme"]]
    port = int(found["port"] or usual_port)
    if not 1 <= port <= PORT_MOST:
        raise ValueError(f"must have a port from 1 to {PORT_MOST}")
    host = found["host"] or _read_ipv6(found["six"])
    return SmtpRelay(security, host, port, _decode(found["user"]), _decode(found["password"]))


def read_relay(text: str) -> str:
    """Return a setting's address of a relay as it stands, checked.

    Raises ValueError with what to mend.
    """
    parse_relay(text)
    return text


def _read_ipv6(text: str) -> str:
    try:
        return str(IPv6Address(text))
    except ValueError:
        raise ValueError("must have an IPv6 address between its brackets") from None


def _decode(part: str | None) -> str | None:
    if part is None:
        return None
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("must have its user and password in UTF-8") from None
    if _UNPRINTABLE.search(text):
        raise ValueError("must not have control characters in user or password")
    return text
