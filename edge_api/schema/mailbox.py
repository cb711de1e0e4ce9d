"""A mailbox: an address, maybe with a name before it, as it stands in settings and in messages.

Exactly one: what two readers could take for two addresses is refused.
"""

import re
from dataclasses import dataclass
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
