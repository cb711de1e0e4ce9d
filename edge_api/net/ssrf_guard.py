"""Connections to addresses that others name: to public unicast addresses alone (SSRF).

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
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Address = IPv4Address | IPv6Address
Allowed = Callable[[Address], bool]

_TRANSLATED: Final = tuple(
    ip_network(network)
    for network in (
        *("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.88.99.0/24"),
        *("fec0::/10", "3fff::/20", "192.0.0.0/24", "5f00::/16", "::/96"),
    )
)
"""Networks that stand for others: NAT64 (RFC 6052, 8215), 6to4 (RFC 3056, 3068), Teredo (RFC 4380),
IPv4 in IPv6 (RFC 4291, 2.5.5.1); and reserved ones that Python takes for global (RFC 3879, 9637,
6890, 9602)."""

_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")
"""A host that ends in a number: only IPv4 may (WHATWG URL, section 3.5)."""


def is_public(address: Address) -> bool:
    """Return whether an address is public unicast and stands for itself."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return False
    is_plain = address.is_global and not address.is_multicast and not address.is_reserved
    return is_plain and not any(address in network for network in _TRANSLATED)


def read_literal(host: str) -> Address | None:
    """Return the address that a host is, or `None` for a name.

    Raises ValueError for what is neither, such as 127.1 and 2130706433: programs read that in
    different ways.
    """
    try:
        return ip_address(host)
    except ValueError:
        if ":" in host or _NUMBER.fullmatch(host):
            raise
    return None


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host. Raises OSError where it has none."""

CHUNK: Final = 64 * 1024  # bytes that are read at a time
LOOKUPS_MOST: Final = 32  # at the same time

Found = Sequence[tuple[int, int, int, str, tuple[Any, ...]]]
"""As `socket.getaddrinfo` returns it."""

_places = BoundedSemaphore(LOOKUPS_MOST)


class BlockedAddress(Exception):  # noqa: N818  a refusal, no fault
    """The service may not connect to this address."""


@cache
def system_trust() -> SSLContext:
    """Return the certificates that the system trusts, which take 20 ms to read."""
    return create_default_context()


async def ask_system(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host from the system's resolver."""
    return [str(place[0]) for _, _, _, _, place in await resolve_host(host, port)]


class SsrfGuard:
    """Sends requests to allowed addresses alone."""

    def __init__(
        self,
        allowed: Allowed = is_public,
        ssl: SSLContext | None = None,
        resolve: Resolve = ask_system,
    ) -> None:
        """Take the certificates to trust (default: those of the system)."""
        self._allowed = allowed
        self._ssl = ssl or system_trust()
        self._resolve = resolve

    @asynccontextmanager
    async def ask(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give the raw answer.

        Raises BlockedAddress, aiohttp.ClientError, OSError or ValueError.
        """
        self.check(url.host or "")
        sent = {"Accept-Encoding": "identity", **headers}
        connector = aiohttp.TCPConnector(
            resolver=_Resolver(self), ssl=self._ssl, socket_factory=self._open_socket
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

    async def find(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host. Raises BlockedAddress if one is not allowed."""
        found = await self._resolve(host, port)
        if not all(self._allowed(ip_address(address)) for address in found):
            raise BlockedAddress
        return found

    def check(self, host: str) -> None:
        """Check an address in a URL itself, which no resolver sees. Raises BlockedAddress."""
        try:
            address = read_literal(host)
        except ValueError:
            raise BlockedAddress from None
        if address is not None and not self._allowed(address):
            raise BlockedAddress

    def _open_socket(self, place: aiohttp.AddrInfoType) -> socket.socket:
        """Check the address of a connection a last time."""
        family, kind, protocol, _, where = place
        if not self._allowed(ip_address(where[0])):
            raise BlockedAddress
        return socket.socket(family, kind, protocol)


class _Resolver(AbstractResolver):
    """Gives aiohttp the addresses that the guard allows."""

    def __init__(self, guard: SsrfGuard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._guard.find(host, port)
        families = {
            address: socket.AF_INET6 if ":" in address else socket.AF_INET for address in found
        }
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=kind,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address, kind in families.items()
            if family in (socket.AF_UNSPEC, kind)
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def read_chunks(answer: aiohttp.ClientResponse, most: int) -> AsyncIterator[bytes]:
    """Yield the body of an answer, up to the chunk that exceeds `most` bytes."""
    size = 0
    while size <= most and (chunk := await answer.content.read(CHUNK)):
        size += len(chunk)
        yield chunk


class TooManyLookupsError(OSError):
    """Too many lookups are under way."""


async def resolve_host(host: str, port: int, family: int = socket.AF_UNSPEC) -> Found:
    """Return the addresses of a host, by the system's resolver in a thread of its own.

    A name server that never answers holds a thread for half a minute despite any timeout; a thread
    of the event loop's pool would be missing for reading files. Raises OSError if it has none,
    UnicodeError for what cannot be a name, CrowdedError.
    """
    if not _places.acquire(blocking=False):
        raise TooManyLookupsError
    found: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
    work = partial(_work, found, host, port, family)
    Thread(target=work, name="lookup", daemon=True).start()  # the end of the process awaits none
    return await found


def _work(found: asyncio.Future[Found], host: str, port: int, family: int) -> None:
    try:
        answer = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        _settle(found, partial(found.set_result, answer))
    except (OSError, UnicodeError) as error:
        _settle(found, partial(found.set_exception, error))
    finally:
        _places.release()


def _settle(found: asyncio.Future[Found], outcome: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed, and nobody waits
        found.get_loop().call_soon_threadsafe(lambda: None if found.done() else outcome())
