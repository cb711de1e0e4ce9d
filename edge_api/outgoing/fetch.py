"""Fetching what strangers name: public addresses only, and little of it.

The address that was checked is the one that is connected to, so that a name cannot change its
mind in between.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from ssl import SSLContext, create_default_context
from threading import BoundedSemaphore, Thread
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from edge_api.schema.problems import Problem

FETCH_SECONDS: Final = 5.0
BODY_MOST: Final = 64 * 1024
"""Bytes."""
LOOKUPS_MOST: Final = 32
"""Names that are looked up at the same time."""

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


def is_public(address: Address) -> bool:
    """Tell whether an address is public unicast and stands for itself."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return False
    is_plain = address.is_global and not address.is_multicast and not address.is_reserved
    return is_plain and not any(address in network for network in _TRANSLATED)


class Fetcher:
    """Fetches documents over https; `allowed` says which addresses may be connected to."""

    def __init__(self, allowed: Allowed = is_public, ssl: SSLContext | None = None) -> None:
        """Take what to trust, if that is not what the system trusts."""
        self._allowed = allowed
        self._ssl = ssl or create_default_context()

    async def __call__(self, url: str) -> bytes:
        """Return what stands at `url`: 200, without redirects, 64 KiB at the most, in 5 s.

        Raises Problem `invalid` that says why not.
        """
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                return await self._fetch(url)
        except TimeoutError:
            raise _failure(f"it took longer than {FETCH_SECONDS:.0f} s") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise _failure("its server cannot be reached") from None

    async def _fetch(self, url: str) -> bytes:
        if not url.isascii():  # a digit of another script would become one of ours later on
            raise _failure("its address is not public")
        self._check_literal(urlsplit(url).hostname or "")
        connector = aiohttp.TCPConnector(resolver=_Resolver(self._allowed), ssl=self._ssl)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with (
            aiohttp.ClientSession(connector=connector, trust_env=False) as session,
            session.get(url, headers=headers, allow_redirects=False) as answer,
        ):
            if answer.status != 200:  # noqa: PLR2004  anything else is no document
                raise _failure(f"its server answers {answer.status}")
            body = await answer.content.read(BODY_MOST + 1)
            while len(body) <= BODY_MOST and (more := await answer.content.read(BODY_MOST)):
                body += more
        if len(body) > BODY_MOST:
            raise _failure(f"it is larger than {BODY_MOST // 1024} KiB")
        return body

    def _check_literal(self, host: str) -> None:
        """Refuse an address in the URL itself, which no resolver sees."""
        try:
            address = ip_address(host)
        except ValueError:
            return
        if not self._allowed(address):
            raise _failure("its address is not public")


class _Resolver(AbstractResolver):
    """Resolves names to allowed addresses alone."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await _look_up(host, port, family)
        addresses = [(str(place[0]), kind, protocol) for kind, _, protocol, _, place in found]
        if not all(self._allowed(ip_address(address)) for address, _, _ in addresses):
            raise _failure("its address is not public")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for address, kind, protocol in addresses
        ]

    async def close(self) -> None:
        """Let go of nothing."""


_Found = Sequence[tuple[int, int, int, str, tuple[Any, ...]]]
_lookups = BoundedSemaphore(LOOKUPS_MOST)


async def _look_up(host: str, port: int, family: int) -> _Found:
    """Return what the system's resolver says, in a thread of its own.

    A name server that never answers holds a thread for half a minute, whatever a timeout says: in
    the pool of the event loop it would be missed by those who read files there.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[_Found] = loop.create_future()

    def settle(outcome: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(lambda: None if found.done() else outcome())

    def work() -> None:
        try:
            answer = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
            settle(partial(found.set_result, answer))
        except (OSError, UnicodeError) as error:
            settle(partial(found.set_exception, OSError(str(error))))
        finally:
            _lookups.release()

    if not _lookups.acquire(blocking=False):
        raise _failure("too many names are being looked up")
    Thread(target=work, name="lookup", daemon=True).start()  # the end of the process awaits none
    return await found


def _failure(reason: str) -> Problem:
    return Problem("invalid", f"The client's document cannot be fetched: {reason}")
