"""What an e-mail address is: the syntax that `email-validator` checks, with two bounds moved.

Nothing is asked of the DNS: whether mail arrives is found out by sending it.
"""

import re
from functools import lru_cache
from typing import Final

import email_validator
from email_validator import EmailNotValidError, syntax, validate_email

from edge_api.schema.tables import EMAIL_LONGEST

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


@lru_cache(_REMEMBERED)
def fold_address(address: str) -> str:
    """Return the one spelling of an address by which two are told to be the same.

    Lower case, in NFC, the domain in Unicode. Raises ValueError for what is no address.
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
    try:
        return validate_email(address, check_deliverability=False).normalized.lower()
    except EmailNotValidError:
        raise ValueError("not a valid e-mail address") from None
