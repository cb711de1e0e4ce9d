"""Which addresses are never mailed, however they got here.

Pure: the DNS is not asked.
"""

from typing import Final

from edge_api.domain.email_address import fold_address
from edge_api.schema.mailbox import parse_mailbox

ADDRESS_LONGEST: Final = 254
"""Octets of an address (RFC 5321, section 4.5.3.1.3: a path of 256, with its brackets)."""
LOCAL_PART_LONGEST: Final = 64
"""Octets (RFC 5321, section 4.5.3.1.1)."""

_RESERVED: Final = frozenset(
    {
        *("test", "invalid", "example", "localhost"),  # RFC 6761
        *("example.com", "example.net", "example.org"),  # RFC 2606, section 3
        *("local", "onion", "alt", "home.arpa", "internal"),  # RFC 6762, 7686, 9476, 8375; ICANN
    }
)
"""Domains where no mail is ever received, and all below them."""


def undeliverable(address: str) -> str | None:
    """Return why an address is never mailed, in a sentence without it; None where it may be."""
    try:
        fold_address(address)
        mailbox = parse_mailbox(address)
    except ValueError:
        return "The address cannot be written on an envelope"
    if len(mailbox.address.encode()) > ADDRESS_LONGEST:
        return f"The address is longer than {ADDRESS_LONGEST} octets"
    if len(mailbox.local_part.encode()) > LOCAL_PART_LONGEST:
        return f"The address has more than {LOCAL_PART_LONGEST} octets before the @"
    if _is_reserved(mailbox.domain.lower()):
        return "The address is in a domain that is reserved and receives no mail"
    return None


def _is_reserved(domain: str) -> bool:
    labels = domain.split(".")
    return any(".".join(labels[start:]) in _RESERVED for start in range(len(labels)))
