"""The address that a request comes from, and the key by which requests are counted.

The functions are pure. A forwarding header is only believed if a trusted proxy sent it, and is read
from its end, which the nearest proxy wrote.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import AF_INET, inet_pton
from typing import Final

from multidict import MultiMapping

_CACHE_SIZE: Final = 4096
_MAX_LINES: Final = 10  # lines of a header that are read, the last ones: proxies append
_UNREADABLE: Final = ""
"""Replaces invalid elements: it is no address, so those before it are ignored."""

_NODE = re.compile(r"\[(?P<six>[^\[\]]+)\](?::\w+)?|(?P<four>[0-9.]+)(?::\w+)?")
"""An address, maybe with a port, then with brackets around IPv6 (RFC 7239, section 6)."""
_PAIR = re.compile(
    r"\s*+(?:(?P<name>[!#$%&'*+\-.^_`|~\w]++)="
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*+)"|(?P<bare>[^\s";,]*+)))?+\s*+(?P<end>[;,])'
)
"""One parameter, which may be missing, and the separator (RFC 7239, section 4). Possessive, so that
a header of blanks takes linear time."""


@dataclass(frozen=True, slots=True)
class ClientAddress:
    """The address of a request's client."""

    address: str
    key: str  # the key of the address in rate limits
    untrusted_forwarding: bool = False
    """A peer that is no trusted proxy sent a forwarding header, which was ignored."""


@lru_cache(_CACHE_SIZE)
def address_key(address: str) -> str:
    """Return the key of an address in rate limits.

    It is the address of IPv4, also when mapped into IPv6; the /64 network of IPv6; and anything
    else (the peer of a Unix socket) as it is.
    """
    parsed = _parse(address)
    if isinstance(parsed, IPv6Address):
        # The smallest network of a subscriber (RFC 6177) counts as one client.
        return str(IPv6Network((int(parsed), 64), strict=False))
    return str(parsed) if parsed else address


def forget_addresses() -> None:
    """Forget the addresses that were looked at, which are only kept to save time."""
    address_key.cache_clear()
    _parse.cache_clear()


def client_address(
    peer: str, headers: MultiMapping[str], trusted: tuple[str, ...]
) -> ClientAddress:
    """Return the client: the peer, or the address that the trusted proxies name.

    `trusted` are networks. If `X-Forwarded-For` and `Forwarded` disagree, a proxy writes one and
    forwards the other as the client sent it, perhaps made up: both are ignored.
    """
    common = headers.getall("X-Forwarded-For", ())[-_MAX_LINES:]
    standard = headers.getall("Forwarded", ())[-_MAX_LINES:]
    if not common and not standard:
        return ClientAddress(peer, address_key(peer))
    networks = _networks(trusted)
    if not _is_within(_parse(peer), networks):
        return ClientAddress(peer, address_key(peer), untrusted_forwarding=True)
    names = (name.strip() for line in common for name in line.split(","))
    chains = [[name for name in names if name]] if common else []
    chains += [[name for line in standard for name in _nodes(line)]] if standard else []
    found = {_last_untrusted(peer, chain, networks) for chain in chains}
    address = found.pop() if len(found) == 1 else peer
    return ClientAddress(address, address_key(address))


def _last_untrusted(
    peer: str, chain: Sequence[str], trusted: tuple[IPv4Network | IPv6Network, ...]
) -> str:
    """Return the last address that is no trusted proxy, else the first readable one."""
    farthest = peer
    for name in reversed(chain):
        address = _parse(name)
        if address is None and (match := _NODE.fullmatch(name)):
            address = _parse(match["six"] or match["four"])
        if address is None:
            break
        farthest = str(address)
        if not _is_within(address, trusted):
            break
    return farthest


def _nodes(line: str) -> list[str]:
    """Return the `for` of each element of a Forwarded line, or `_UNREADABLE` if it is malformed."""
    nodes: list[str] = []
    node, position, line = None, 0, f"{line},"
    while position < len(line):
        pair = _PAIR.match(line, position)
        if pair is None:
            return [_UNREADABLE]
        if pair["name"]:
            node = _unquote(pair) if pair["name"].lower() == "for" else node or _UNREADABLE
        if pair["end"] == "," and node is not None:
            nodes.append(node)
            node = None
        position = pair.end()
    return nodes


def _unquote(pair: re.Match[str]) -> str:
    return pair["bare"] if pair["quoted"] is None else re.sub(r"\\(.)", r"\1", pair["quoted"])


@lru_cache(_CACHE_SIZE)
def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address, without its zone, and as IPv4 if it is one mapped into IPv6."""
    with suppress(OSError, ValueError):  # the usual case, in a fifth of the time
        return IPv4Address(inet_pton(AF_INET, text))
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


@lru_cache(8)
def _networks(names: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(name, strict=False) for name in names)


def _is_within(
    address: IPv4Address | IPv6Address | None, networks: tuple[IPv4Network | IPv6Network, ...]
) -> bool:
    return address is not None and any(address in network for network in networks)
