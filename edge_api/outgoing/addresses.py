"""Which network addresses may be connected to: public ones, unless somebody says otherwise.

The address that was checked is the one that is connected to, so that a name cannot change its
mind in between.
"""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

from edge_api.outgoing.lookups import look_up

_TRANSLATED: Final = tuple(
    ip_network(network)
    for network in (
        *("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.88.99.0/24"),
        *("fec0::/10", "3fff::/20", "192.0.0.0/24"),
    )
)
"""Addresses that stand for others: NAT64 (RFC 6052, 8215), 6to4 (RFC 3056, 3068), Teredo (RFC
4380); and those set apart that Python takes for global (RFC 3879, 9637, 6890)."""

Address = IPv4Address | IPv6Address
Allowed = Callable[[Address], bool]


class NotAllowedError(Exception):
    """An address must not be connected to."""


def is_public(address: Address) -> bool:
    """Tell whether an address is public unicast and stands for itself."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return False
    is_plain = address.is_global and not address.is_multicast and not address.is_reserved
    return is_plain and not any(address in network for network in _TRANSLATED)


def check_literal(host: str, allowed: Allowed) -> None:
    """Refuse an address in a URL itself, which no resolver sees. Raises NotAllowedError."""
    try:
        address = ip_address(host)
    except ValueError:
        return
    if not allowed(address):
        raise NotAllowedError(host)


class CheckedResolver(AbstractResolver):
    """Resolves names to allowed addresses alone."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return where a name leads. Raises NotAllowedError if anywhere it must not."""
        found = await look_up(host, port, family)
        addresses = [(str(place[0]), kind, protocol) for kind, _, protocol, _, place in found]
        if not all(self._allowed(ip_address(address)) for address, _, _ in addresses):
            raise NotAllowedError(host)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AddressFamily(kind),
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for address, kind, protocol in addresses
        ]

    async def close(self) -> None:
        """Let go of nothing."""
