"""Fetching the documents that clients of OAuth name: from public addresses, and little of them."""

import asyncio
from ssl import SSLContext
from typing import Final

import aiohttp
from yarl import URL

from edge_api.outgoing.gate import Allowed, Forbidden, Gate, is_public, read_chunks
from edge_api.schema.problems import Problem

FETCH_SECONDS: Final = 5.0
BODY_MOST: Final = 64 * 1024
"""Bytes."""
_HEADERS: Final = {"Accept": "application/json"}


class Fetcher:
    """Fetches documents over https; `allowed` says which addresses may be connected to."""

    def __init__(self, allowed: Allowed = is_public, ssl: SSLContext | None = None) -> None:
        """Take what to trust, if that is not what the system trusts."""
        self._gate = Gate(allowed, ssl)

    async def __call__(self, url: str) -> bytes:
        """Return what stands at `url`: 200, without redirects, 64 KiB at the most, in 5 s.

        Raises Problem `invalid` that says why not.
        """
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                return await self._fetch(url)
        except TimeoutError:
            raise _failure(f"it took longer than {FETCH_SECONDS:.0f} s") from None
        except Forbidden:
            raise _failure("its address is not public") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise _failure("its server cannot be reached") from None

    async def _fetch(self, url: str) -> bytes:
        if not url.isascii():  # a digit of another script would become one of ours later on
            raise Forbidden
        async with self._gate.ask("GET", URL(url), _HEADERS) as answer:
            if answer.status != 200:  # noqa: PLR2004  anything else is no document
                raise _failure(f"its server answers {answer.status}")
            body = b"".join([chunk async for chunk in read_chunks(answer, BODY_MOST)])
        if len(body) > BODY_MOST:
            raise _failure(f"it is larger than {BODY_MOST // 1024} KiB")
        return body


def _failure(reason: str) -> Problem:
    return Problem("invalid", f"The client's document cannot be fetched: {reason}")
