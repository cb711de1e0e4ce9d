"""Which addresses the service may connect to when a stranger names them: public unicast alone."""

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Allowed = Callable[[Address], bool]

_TRANSLATED: Final = tuple(
    ip_network(network)
    for network in (
        *("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.88.99.0/24"),
        *("fec0::/10", "3fff::/20", "192.0.0.0/24", "5f00::/16", "::/96"),
    )
)
"""Addresses that stand for others: NAT64 (RFC 6052, 8215), 6to4 (RFC 3056, 3068), Teredo (RFC
4380), IPv4 in IPv6 (RFC 4291, 2.5.5.1); and those set apart that Python takes for global (RFC 3879,
9637, 6890, 9602)."""

_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")
"""A host that ends in a number, which only an IPv4 address may do (WHATWG URL, section 3.5)."""


def is_public(address: Address) -> bool:
    """Tell whether an address is public unicast and stands for itself."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return False
    is_plain = address.is_global and not address.is_multicast and not address.is_reserved
    return is_plain and not any(address in network for network in _TRANSLATED)


def read_literal(host: str) -> Address | None:
    """Return the address that a host is, or `None` for a name.

    Raises ValueError for what is neither, such as 127.1 and 2130706433: resolvers, clients and
    people read that in different ways.
    """
    try:
        return ip_address(host)
    except ValueError:
        if ":" in host or _NUMBER.fullmatch(host):
            raise
    return None
