"""A mailbox: an address, maybe with a name before it, as it stands in settings and in messages.

Exactly one: what two readers could take for two addresses is refused.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import email_validator
from email_validator import EmailNotValidError, ValidatedEmail, syntax, validate_email

from edge_api.schema.tables import EMAIL_LONGEST

_NAMED: Final = re.compile(r"(?P<name>[^<>]*?) *<(?P<address>[^<>]*)>")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_QUOTED: Final = re.compile(r'"(?P<name>[^"\\]*)"')
_ENCODED_WORD: Final = "=?"

# Addresses in .test, .invalid and their like are taken: test rigs send from them. They are no
# reason to refuse a lead, only one to send nothing there.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()
# The library stops at the 254 of RFC 3696's erratum 1690; the published bound is one more.
syntax.EMAIL_MAX_LENGTH = EMAIL_LONGEST  # type: ignore[attr-defined]  # no public name
_REMEMBERED: Final = 1024
_PLAIN: Final = re.compile(
    r"([A-Za-z0-9_+-]{1,64}(?:\.[A-Za-z0-9_+-]{1,64})*)@((?!.*xn--)[A-Za-z0-9.-]{1,128})",
    re.IGNORECASE,
)
_PLAIN_LOCAL_LONGEST: Final = 64
"""Octets of a local part (RFC 5321, section 4.5.3.1.1)."""


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Whom a message is from or for."""

    name: str
    """As a person typed it; empty where there is none."""
    local_part: str
    domain: str
    """In ASCII where the local part is (RFC 5891), else in Unicode, as RFC 6531 has it."""

    @property
    def address(self) -> str:
        """The address as it is spelled on the way."""
        return f"{self.local_part}@{self.domain}"

    @property
    def international(self) -> bool:
        """Whether carrying it needs SMTPUTF8 (RFC 6531)."""
        return not self.address.isascii()


def parse_mailbox(text: str) -> Mailbox:
    """Return the mailbox that `address` or `Name <address>` says. Raises ValueError."""
    if _UNPRINTABLE.search(text):
        raise ValueError("must not contain control characters")
    named = _NAMED.fullmatch(text)
    name, address = (named["name"].strip(), named["address"]) if named else ("", text)
    # A local part may look like an encoded word, and some readers would decode it (RFC 2047,
    # section 5, forbids both): then it could turn into line ends.
    if _ENCODED_WORD in address:
        raise ValueError("must not have =? in its address")
    try:
        checked = check_address(address, bare_host=True)
    except ValueError:
        raise ValueError("must be an address, or a name and <address>, and one alone") from None
    quoted = _QUOTED.fullmatch(name)
    domain = checked.ascii_domain if checked.ascii_email else checked.domain
    return Mailbox(quoted["name"] if quoted else name, checked.local_part, domain)


def read_mailbox(text: str) -> str:
    """Return a setting's mailbox as it stands, checked. Raises ValueError with what to mend."""
    parse_mailbox(text)
    return text


def check_address(address: str, *, bare_host: bool = False) -> ValidatedEmail:
    """Return what `email-validator` finds in an address. Raises ValueError for what is none.

    Nothing is asked of the DNS: whether mail arrives is found out by sending it. `bare_host` lets
    the domain be a name without a dot, such as `localhost`.
    """
    try:
        return validate_email(
            address, check_deliverability=False, globally_deliverable=not bare_host
        )
    except EmailNotValidError:
        raise ValueError("not a valid e-mail address") from None


@lru_cache(_REMEMBERED)
def fold_address(address: str) -> str:
    """Return the one spelling of an address by which two are told to be the same.

    Quick for plain addresses: every lead and every look at a suppression comes through here. Lower
    case, in NFC, the domain in Unicode. Raises ValueError for what is no address.
    """
    plain = _PLAIN.fullmatch(address)
    if plain is None or len(plain[1]) > _PLAIN_LOCAL_LONGEST:
        return _fold(address)
    return f"{plain[1].lower()}@{_fold_domain(plain[2])}"


@lru_cache(_REMEMBERED)
def _fold_domain(domain: str) -> str:
    """Ask the library about a domain once: that is nearly all of its work on plain addresses."""
    return _fold(f"a@{domain}").removeprefix("a@")


def _fold(address: str) -> str:
    return check_address(address).normalized.lower()
