"""Names looked up by the system's resolver, so that a slow name server is nobody else's trouble.

A name server that never answers holds a thread for half a minute, whatever a timeout says: in the
pool of the event loop it would be missed by those who read files there.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import BoundedSemaphore, Thread
from typing import Any, Final

LOOKUPS_MOST: Final = 32
"""At the same time."""

Found = Sequence[tuple[int, int, int, str, tuple[Any, ...]]]
"""As `socket.getaddrinfo` returns it."""

_places = BoundedSemaphore(LOOKUPS_MOST)


class CrowdedError(OSError):
    """Too many names are being looked up."""


async def look_up(host: str, port: int, family: int = socket.AF_UNSPEC) -> Found:
    """Return the addresses of a host.

    Raises OSError where it has none, UnicodeError for what cannot be a name, CrowdedError.
    """
    if not _places.acquire(blocking=False):
        raise CrowdedError
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
