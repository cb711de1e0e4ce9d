"""Connections to user-supplied addresses: to public unicast addresses only (SSRF).

A name is resolved once, all its addresses are checked, and only those are connected to, so that the
name cannot change its addresses in between.
"""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from ssl import SSLContext, create_default_context
from threading import BoundedSemaphore, Thread
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Address = IPv4Address | IPv6Address
AddressPolicy = Callable[[Address], bool]

_NON_PUBLIC_NETWORKS: Final = tuple(
    ip_network(network)
    for network in (
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "2001::/32",
        "192.88.99.0/24",
        "fec0::/10",
        "3fff::/20",
        "192.0.0.0/24",
        "5f00::/16",
        "::/96",
    )
)
"""Networks whose addresses are translated to others: NAT64 (RFC 6052, 8215), 6to4 (RFC 3056, 3068),
Teredo (RFC 4380), IPv4 in IPv6 (RFC 4291, 2.5.5.1); and reserved networks that Python classifies as
global (RFC 3879, 9637, 6890, 9602)."""


def is_public(address: Address) -> bool:
    """Return whether an address is public unicast, and not one that is translated to another."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return False
    is_plain = address.is_global and not address.is_multicast and not address.is_reserved
    return is_plain and not any(address in network for network in _NON_PUBLIC_NETWORKS)


def parse_ip_literal(host: str) -> Address | None:
    """Return the IP address of a literal host, or `None` for a name.

    Raises ValueError for a host that is neither, such as 127.1 or 2130706433, which programs parse
    in different ways.
    """
    try:
        return ip_address(host)
    except ValueError:
        # Only IPv4 may end in a number (WHATWG URL, section 3.5).
        if ":" in host or re.fullmatch(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?", host):
            raise
    return None


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port. Raises OSError if there are none."""

MAX_CONCURRENT_LOOKUPS: Final = 32

_lookup_slots = BoundedSemaphore(MAX_CONCURRENT_LOOKUPS)


class BlockedAddress(Exception):  # noqa: N818  a refusal, no error
    """The service may not connect to this address."""


@cache
def system_ssl_context() -> SSLContext:
    """Return a context with the system's certificates, which take 20 ms to read."""
    return create_default_context()


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, by the system's resolver in a new thread.

    A name server that never answers blocks a thread for half a minute despite any timeout, so the
    threads of the event loop's pool, which read files, are not used. Raises OSError if the host has
    no address or too many lookups run, UnicodeError for an invalid host name.
    """
    if not _lookup_slots.acquire(blocking=False):
        raise OSError("too many lookups run at the same time")
    found: asyncio.Future[Sequence[str]] = asyncio.get_running_loop().create_future()
    lookup = partial(_lookup, found, host, port)
    Thread(target=lookup, name="lookup", daemon=True).start()  # the process may end meanwhile
    return await found


def _lookup(found: asyncio.Future[Sequence[str]], host: str, port: int) -> None:
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        outcome = partial(found.set_result, [str(info[4][0]) for info in infos])
    except (OSError, UnicodeError) as error:
        outcome = partial(found.set_exception, error)
    finally:
        _lookup_slots.release()
    with suppress(RuntimeError):  # the loop is closed, and nobody waits
        found.get_loop().call_soon_threadsafe(lambda: None if found.done() else outcome())


class SsrfGuard:
    """Sends requests to allowed addresses only."""

    def __init__(
        self,
        allowed: AddressPolicy = is_public,
        ssl: SSLContext | None = None,
        resolve: Resolve = resolve_by_system,
    ) -> None:
        """`ssl` has the trusted certificates (default: those of the system)."""
        self._allowed = allowed
        self._ssl = ssl
        self._resolve = resolve

    @asynccontextmanager
    async def request(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the raw response.

        Raises BlockedAddress, aiohttp.ClientError, OSError or ValueError.
        """
        self.check_literal(url.host or "")
        sent = {"Accept-Encoding": "identity", **headers}
        connector = aiohttp.TCPConnector(
            resolver=_Resolver(self),
            ssl=self._ssl or system_ssl_context(),  # read for the first request, not at the start
            socket_factory=self._open_socket,
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            ) as session,
            session.request(method, url, data=body, headers=sent, allow_redirects=False) as answer,
        ):
            yield answer

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host. Raises BlockedAddress if one is not allowed."""
        found = await self._resolve(host, port)
        if not all(self._allowed(ip_address(address)) for address in found):
            raise BlockedAddress
        return found

    def check_literal(self, host: str) -> None:
        """Raise BlockedAddress if the host is an IP address that is invalid or not allowed.

        A host name is checked when it is resolved.
        """
        try:
            address = parse_ip_literal(host)
        except ValueError:
            raise BlockedAddress from None
        if address is not None and not self._allowed(address):
            raise BlockedAddress

    def _open_socket(self, address_info: aiohttp.AddrInfoType) -> socket.socket:
        """Open a socket after a last check of its address."""
        family, kind, protocol, _, where = address_info
        if not self._allowed(ip_address(where[0])):
            raise BlockedAddress
        return socket.socket(family, kind, protocol)


class _Resolver(AbstractResolver):
    """Resolves hosts for aiohttp to addresses that the guard allows."""

    def __init__(self, guard: SsrfGuard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._guard.resolve(host, port)
        families = {each: socket.AF_INET6 if ":" in each else socket.AF_INET for each in found}
        flags = socket.AI_NUMERICHOST
        return [
            ResolveResult(hostname=host, host=each, port=port, family=kind, proto=0, flags=flags)
            for each, kind in families.items()
            if family in (socket.AF_UNSPEC, kind)
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def read_chunks(answer: aiohttp.ClientResponse, max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body of an answer, up to the chunk that exceeds `max_bytes`."""
    size = 0
    while size <= max_bytes and (chunk := await answer.content.read(64 * 1024)):
        size += len(chunk)
        yield chunk
