"""A message as octets, the way its carrier can take it."""

from copy import copy
from email.headerregistry import AddressHeader
from email.message import EmailMessage
from email.policy import EmailPolicy


def is_international(message: EmailMessage) -> bool:
    """Tell whether an address in a header is beyond ASCII, so that SMTPUTF8 is needed."""
    return any(map(_is_beyond_ascii, message.values()))


def spell(message: EmailMessage, *, international: bool, line_end: str = "\r\n") -> bytes:
    """Return the octets of a message.

    Where the carrier takes no addresses beyond ASCII, a Reply-To that has one is left out: there
    is no other way to write it (RFC 6531, section 3.4), and the message is worth more.
    """
    policy = message.policy
    assert isinstance(policy, EmailPolicy)  # noqa: S101  the one that has `utf8`
    if not international and _is_beyond_ascii(message["Reply-To"]):
        message = copy(message)
        del message["Reply-To"]
    return message.as_bytes(policy=policy.clone(utf8=international, linesep=line_end))


def _is_beyond_ascii(header: object) -> bool:
    return isinstance(header, AddressHeader) and not all(
        address.addr_spec.isascii() for address in header.addresses
    )
