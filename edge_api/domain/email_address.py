"""When two e-mail addresses are the same.

Pure, and quick for plain addresses: every lead and every look at a suppression comes through here.
"""

import re
from functools import lru_cache
from typing import Final

from edge_api.schema.mailbox import check_address

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
    return check_address(address).normalized.lower()
