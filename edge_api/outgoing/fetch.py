"""Fetching what strangers name: public addresses only, and little of it."""

import asyncio
from ssl import SSLContext, create_default_context
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from edge_api.outgoing.addresses import (
    Allowed,
    CheckedResolver,
    NotAllowedError,
    check_literal,
    is_public,
)
from edge_api.outgoing.lookups import CrowdedError
from edge_api.schema.problems import Problem

FETCH_SECONDS: Final = 5.0
BODY_MOST: Final = 64 * 1024
"""Bytes."""


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
        except NotAllowedError:
            raise _failure("its address is not public") from None
        except TimeoutError:
            raise _failure(f"it took longer than {FETCH_SECONDS:.0f} s") from None
        except CrowdedError:
            raise _failure("too many names are being looked up") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise _failure("its server cannot be reached") from None

    async def _fetch(self, url: str) -> bytes:
        if not url.isascii():  # a digit of another script would become one of ours later on
            raise NotAllowedError(url)
        check_literal(urlsplit(url).hostname or "", self._allowed)
        connector = aiohttp.TCPConnector(resolver=CheckedResolver(self._allowed), ssl=self._ssl)
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


def _failure(reason: str) -> Problem:
    return Problem("invalid", f"The client's document cannot be fetched: {reason}")
