"""Fetches documents of other sites: for analysis, and metadata of OAuth clients.

It connects to public addresses only, and sends no credentials. A visit for analysis uses ports 80
and 443, has at most three redirects, six requests and ten seconds, and obeys robots.txt.
"""

import asyncio
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ssl import SSLContext
from typing import Final
from urllib.robotparser import RobotFileParser
from weakref import WeakValueDictionary

import aiohttp
from yarl import URL

from edge_api.analysis.analyst import MAX_DOCUMENT_BYTES, too_large, unavailable
from edge_api.analysis.document import ROBOTS, WELL_KNOWN_PATHS, Discovery, DocumentFormat
from edge_api.analysis.report import Job
from edge_api.db.problems import Problem
from edge_api.net.ssrf_guard import AddressPolicy, BlockedAddress, SsrfGuard, is_public, read_chunks

FETCH_TIMEOUT_SECONDS: Final = 10.0
MAX_REDIRECTS: Final = 3
MAX_CONCURRENT_FETCHES: Final = 8
MAX_WELL_KNOWN_BYTES: Final = 64 * 1024
UNREACHABLE_ERRORS: Final = (aiohttp.ClientError, OSError, ValueError)

_FORMATS: Final[Mapping[str, DocumentFormat]] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/plain": "text",
}


@dataclass(frozen=True, slots=True)
class _Response:
    """The answer to one request."""

    status: int
    media_type: str
    location: str | None
    text: str
    is_complete: bool
    is_encoded: bool  # has a content coding, which was not requested


class WebDocumentFetcher:
    """Fetches documents from public addresses, with one request at a time for each host."""

    def __init__(
        self,
        agent: str,
        guard: SsrfGuard | None = None,
        ports: frozenset[int] = frozenset({80, 443}),
    ) -> None:
        """`agent` is the user agent; robots.txt names the part before its slash."""
        self.agent = agent
        self._guard = guard or SsrfGuard()
        self._ports = ports
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_FETCHES)
        self._hosts: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, url: str) -> Job:
        """Return the document at an address, with the well-known files of its origin.

        Raises Problem `forbidden`, `fetch_failed`, and `unavailable` during too many other visits.
        """
        if self._slots.locked():
            raise unavailable("Too many addresses are being read")
        async with self._slots:
            with _as_problems(
                _failed, _forbidden, f"its server took longer than {FETCH_TIMEOUT_SECONDS:.0f} s"
            ):
                return await _SiteVisit(self).fetch(url)

    def check(self, url: URL) -> None:
        """Raise Problem `forbidden` unless scheme, user and port of an address are allowed."""
        if url.scheme not in ("http", "https") or not url.host:
            raise _forbidden("only http and https are read")
        if url.user is not None or url.password is not None:
            raise _forbidden("an address with a user or a password is not read")
        if url.port not in self._ports:
            raise _forbidden("only the ports 80 and 443 are read")

    async def get(self, url: URL, max_bytes: int) -> _Response:
        """Return the answer, cut at `max_bytes`. Raises BlockedAddress, `UNREACHABLE_ERRORS`."""
        lock = self._hosts.setdefault(url.host or "", asyncio.Lock())
        headers = {
            "User-Agent": self.agent,
            "Accept": "text/html, text/markdown;q=0.9, text/plain;q=0.8",
        }
        async with lock, self._guard.request("GET", url, headers) as answer:
            return await _read(answer, max_bytes)


class _SiteVisit:
    """Fetches a page after its redirects, then the well-known files of its origin."""

    def __init__(self, source: WebDocumentFetcher) -> None:
        self._source = source
        self._requests_left = 6
        self._robots: dict[str, _Response] = {}

    async def fetch(self, url: str) -> Job:
        """Return the document, with the well-known files that could be read in time."""
        if not url.isascii():  # other scripts have digits that would become ASCII ones later
            raise _forbidden("it is not in ASCII")
        deadline = asyncio.get_running_loop().time() + FETCH_TIMEOUT_SECONDS
        async with asyncio.timeout_at(deadline):
            final, answer = await self._fetch_page(URL(url).with_fragment(None))
        if answer.status != HTTPStatus.OK:
            raise _failed(f"its server answers {answer.status}")
        if not answer.is_complete:
            raise too_large()
        if answer.is_encoded:
            raise _failed("it came in a coding that was not asked for")
        if answer.media_type not in _FORMATS:
            raise _failed("it is neither HTML nor Markdown nor plain text")
        found = await self._discover(final, deadline)
        return Job(_FORMATS[answer.media_type], answer.text, str(final), discovery=found)

    async def _fetch_page(self, url: URL) -> tuple[URL, _Response]:
        """Return the page and its address; each redirect is checked like the given address."""
        for _ in range(MAX_REDIRECTS + 1):
            self._source.check(url)
            await self._check_robots(url)
            answer = await self._request(url, MAX_DOCUMENT_BYTES)
            if answer.status not in (301, 302, 303, 307, 308) or answer.location is None:
                return url, answer
            url = url.join(URL(answer.location)).with_fragment(None)
        raise _failed(f"it redirects more than {MAX_REDIRECTS} times")

    async def _request(self, url: URL, max_bytes: int) -> _Response:
        if self._requests_left == 0:
            raise _failed("it redirects through too many sites")
        self._requests_left -= 1
        return await self._source.get(url, max_bytes)

    async def _check_robots(self, url: URL) -> None:
        """Raise Problem `fetch_failed` if robots.txt disallows the address (RFC 9309)."""
        origin = str(url.origin())
        if origin not in self._robots:
            self._robots[origin] = await self._request(
                url.origin().with_path(ROBOTS), MAX_WELL_KNOWN_BYTES
            )
        answer = self._robots[origin]
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:  # section 2.3.1.4: all disallowed
            raise _failed("its robots.txt cannot be read")
        if answer.status == HTTPStatus.OK and not answer.is_encoded:
            rules = RobotFileParser()
            await asyncio.to_thread(rules.parse, answer.text.splitlines())
            if not await asyncio.to_thread(rules.can_fetch, self._source.agent, str(url)):
                raise _failed("its robots.txt asks to keep away")

    async def _discover(self, url: URL, deadline: float) -> Discovery:
        """Return the well-known files, as far as requests and time allow."""
        found: dict[str, str | None] = {ROBOTS: _well_known_text(self._robots[str(url.origin())])}
        for path in WELL_KNOWN_PATHS:
            if path in found or self._requests_left == 0:
                continue
            try:
                async with asyncio.timeout_at(deadline):
                    answer = await self._request(url.origin().with_path(path), MAX_WELL_KNOWN_BYTES)
            except (BlockedAddress, *UNREACHABLE_ERRORS):
                break
            found[path] = _well_known_text(answer)
        return found


async def _read(answer: aiohttp.ClientResponse, max_bytes: int) -> _Response:
    """Read an answer in UTF-8 or Latin-1, since other codecs may take more than linear time."""
    latin = ("iso-8859-1", "latin-1", "latin1", "windows-1252", "us-ascii")
    codec = "latin-1" if (answer.charset or "").lower() in latin else "utf-8"
    decoder = getincrementaldecoder(codec)("replace")
    parts, size = [], 0
    async for chunk in read_chunks(answer, max_bytes):
        parts.append(decoder.decode(chunk))
        size += len(chunk)
    return _Response(
        status=answer.status,
        media_type=answer.content_type,
        location=answer.headers.get("Location"),
        text="".join(parts) + decoder.decode(b"", final=True),
        is_complete=size <= max_bytes,
        is_encoded=answer.headers.get("Content-Encoding", "identity").lower() != "identity",
    )


def _well_known_text(answer: _Response) -> str | None:
    """Return the text of a well-known file, or `None`; an HTML page counts as missing."""
    exists = answer.status == HTTPStatus.OK and _FORMATS.get(answer.media_type) != "html"
    return answer.text if exists and not answer.is_encoded else None


@contextmanager
def _as_problems(
    failed: Callable[[str], Problem], blocked: Callable[[str], Problem], timeout_reason: str
) -> Iterator[None]:
    """Convert errors of a request to problems, which `failed` and `blocked` make of a reason."""
    try:
        yield
    except TimeoutError:
        raise failed(timeout_reason) from None
    except BlockedAddress:
        raise blocked("its address is not public") from None
    except UNREACHABLE_ERRORS:
        raise failed("its server cannot be reached") from None


def _forbidden(reason: str) -> Problem:
    return Problem("forbidden", f"url: {reason}")


def _failed(reason: str) -> Problem:
    return Problem("fetch_failed", f"url: {reason}")


METADATA_TIMEOUT: Final = 5.0
MAX_METADATA_BYTES: Final = 64 * 1024


class ClientMetadataFetcher:
    """Fetches metadata of OAuth clients, from the network addresses that `allowed` accepts."""

    def __init__(self, allowed: AddressPolicy = is_public, ssl: SSLContext | None = None) -> None:
        """`ssl` has the trusted certificates; by default they are those of the system."""
        self._guard = SsrfGuard(allowed, ssl)

    async def __call__(self, url: str) -> bytes:
        """Return the body at `url`. Raises Problem `invalid`.

        The answer must be a 200 without redirects, of at most 64 KiB, within 5 seconds.
        """
        with _as_problems(_invalid, _invalid, f"it took longer than {METADATA_TIMEOUT:.0f} s"):
            if not url.isascii():  # other scripts have digits that would become ASCII ones later
                raise BlockedAddress
            async with (
                asyncio.timeout(METADATA_TIMEOUT),
                self._guard.request("GET", URL(url), {"Accept": "application/json"}) as answer,
            ):
                if answer.status != 200:  # noqa: PLR2004  anything else is no document
                    raise _invalid(f"its server answers {answer.status}")
                body = b"".join([chunk async for chunk in read_chunks(answer, MAX_METADATA_BYTES)])
        if len(body) > MAX_METADATA_BYTES:
            raise _invalid(f"it is larger than {MAX_METADATA_BYTES // 1024} KiB")
        return body


def _invalid(reason: str) -> Problem:
    return Problem("invalid", f"The client's document cannot be fetched: {reason}")
