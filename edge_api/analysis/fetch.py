"""Documents of others, fetched: for analysis, and metadata of OAuth clients.

Only public addresses, and no credentials. A visit goes to ports 80 and 443 with at most three
redirects, six requests and ten seconds in all, and obeys robots.txt.
"""

import asyncio
from codecs import getincrementaldecoder
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ssl import SSLContext
from typing import Final
from urllib.robotparser import RobotFileParser
from weakref import WeakValueDictionary

import aiohttp
from yarl import URL

from edge_api.analysis.analyst import DOCUMENT_MOST, FetchedDocument, too_large
from edge_api.analysis.document import PLACES, ROBOTS, Discovery, DocumentFormat
from edge_api.db.problems import Problem
from edge_api.net.ssrf_guard import Allowed, BlockedAddress, SsrfGuard, is_public, read_chunks

FETCH_TIMEOUT_SECONDS: Final = 10.0
REDIRECTS_MOST: Final = 3
REQUESTS_MOST: Final = 6
MAX_CONCURRENT_FETCHES: Final = 8  # at one time
MAX_WELL_KNOWN_BYTES: Final = 64 * 1024  # bytes of a well-known place
PORTS: Final = frozenset({80, 443})
RETRY_SECONDS: Final = 5
UNREACHABLE: Final = (aiohttp.ClientError, OSError, ValueError)

_KINDS: Final[Mapping[str, DocumentFormat]] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/plain": "text",
}
_ACCEPT: Final = "text/html, text/markdown;q=0.9, text/plain;q=0.8"
_LATIN: Final = frozenset({"iso-8859-1", "latin-1", "latin1", "windows-1252", "us-ascii"})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to one request."""

    status: int
    kind: str  # the media type
    location: str | None
    text: str
    is_whole: bool
    is_coded: bool  # has a content coding, which nobody asked for


_Get = Callable[[URL, int], Awaitable[_Answer]]


class WebDocumentSource:
    """Visits public addresses, politely: one request at a time for each host."""

    def __init__(
        self, agent: str, guard: SsrfGuard | None = None, ports: frozenset[int] = PORTS
    ) -> None:
        """Take the user agent; robots.txt names the part before its slash."""
        self._agent = agent
        self._guard = guard or SsrfGuard()
        self._ports = ports
        self._places = asyncio.Semaphore(MAX_CONCURRENT_FETCHES)
        self._hosts: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def visit(self, url: str) -> FetchedDocument:
        """Return the document at an address, and the well-known places of its origin.

        Raises Problem `forbidden`, `fetch_failed`, and `unavailable` while too many are visited.
        """
        if self._places.locked():
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise Problem("unavailable", "Too many addresses are being read", headers=headers)
        slow = f"its server took longer than {FETCH_TIMEOUT_SECONDS:.0f} s"
        async with self._places:
            with _reported(_failed, _forbidden, slow):
                return await _Tour(self._get, self._check, self._agent).visit(url)

    def _check(self, url: URL) -> None:
        if url.scheme not in ("http", "https") or not url.host:
            raise _forbidden("only http and https are read")
        if url.user is not None or url.password is not None:
            raise _forbidden("an address with a user or a password is not read")
        if url.port not in self._ports:
            raise _forbidden("only the ports 80 and 443 are read")

    async def _get(self, url: URL, most: int) -> _Answer:
        lock = self._hosts.setdefault(url.host or "", asyncio.Lock())
        headers = {"User-Agent": self._agent, "Accept": _ACCEPT}
        async with lock, self._guard.request("GET", url, headers) as answer:
            return await _read(answer, most)


class _Tour:
    """One visit: a page after its redirects, then the well-known places of its origin."""

    def __init__(self, get: _Get, check: Callable[[URL], None], agent: str) -> None:
        self._get = get
        self._check = check
        self._agent = agent
        self._left = REQUESTS_MOST
        self._robots: dict[str, _Answer] = {}

    async def visit(self, url: str) -> FetchedDocument:
        """Return what was found, without the well-known places that did not answer in time."""
        if not url.isascii():  # a digit of another script would become one of ours later on
            raise _forbidden("it is not in ASCII")
        deadline = asyncio.get_running_loop().time() + FETCH_TIMEOUT_SECONDS
        async with asyncio.timeout_at(deadline):
            place, answer = await self._page(URL(url).with_fragment(None))
        kind = _kind(answer)
        return FetchedDocument(str(place), kind, answer.text, await self._discover(place, deadline))

    async def _page(self, url: URL) -> tuple[URL, _Answer]:
        """Return the page and its address; each redirect is checked like a given address."""
        for _ in range(REDIRECTS_MOST + 1):
            self._check(url)
            await self._ask_robots(url)
            answer = await self._ask(url, DOCUMENT_MOST)
            if answer.status not in _REDIRECTS or answer.location is None:
                return url, answer
            url = url.join(URL(answer.location)).with_fragment(None)
        raise _failed(f"it redirects more than {REDIRECTS_MOST} times")

    async def _ask(self, url: URL, most: int) -> _Answer:
        if self._left == 0:
            raise _failed("it redirects through too many sites")
        self._left -= 1
        return await self._get(url, most)

    async def _ask_robots(self, url: URL) -> None:
        """Raise Problem `fetch_failed` if robots.txt disallows the address (RFC 9309)."""
        origin = str(url.origin())
        if origin not in self._robots:
            self._robots[origin] = await self._ask(
                url.origin().with_path(ROBOTS), MAX_WELL_KNOWN_BYTES
            )
        answer = self._robots[origin]
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:  # section 2.3.1.4: keep away
            raise _failed("its robots.txt cannot be read")
        if answer.status == HTTPStatus.OK and not answer.is_coded:
            await asyncio.to_thread(self._obey, answer.text, url)

    def _obey(self, robots: str, url: URL) -> None:
        rules = RobotFileParser()
        rules.parse(robots.splitlines())
        if not rules.can_fetch(self._agent, str(url)):
            raise _failed("its robots.txt asks to keep away")

    async def _discover(self, url: URL, deadline: float) -> Discovery:
        """Return the well-known places, as far as requests and time allow."""
        found: dict[str, str | None] = {ROBOTS: _file(self._robots[str(url.origin())])}
        for place in PLACES:
            if place in found or self._left == 0:
                continue
            try:
                async with asyncio.timeout_at(deadline):
                    answer = await self._ask(url.origin().with_path(place), MAX_WELL_KNOWN_BYTES)
            except (BlockedAddress, *UNREACHABLE):
                break
            found[place] = _file(answer)
        return found


async def _read(answer: aiohttp.ClientResponse, most: int) -> _Answer:
    """Read an answer in UTF-8 or Latin-1, since other codecs may take more than linear time."""
    charset = (answer.charset or "").lower()
    decoder = getincrementaldecoder("latin-1" if charset in _LATIN else "utf-8")("replace")
    parts, size = [], 0
    async for chunk in read_chunks(answer, most):
        parts.append(decoder.decode(chunk))
        size += len(chunk)
    return _Answer(
        status=answer.status,
        kind=answer.content_type,
        location=answer.headers.get("Location"),
        text="".join(parts) + decoder.decode(b"", final=True),
        is_whole=size <= most,
        is_coded=answer.headers.get("Content-Encoding", "identity").lower() != "identity",
    )


def _kind(answer: _Answer) -> DocumentFormat:
    """Return the kind of the document. Raises Problem `fetch_failed` if it is none."""
    if answer.status != HTTPStatus.OK:
        raise _failed(f"its server answers {answer.status}")
    if not answer.is_whole:
        raise too_large()
    if answer.is_coded:
        raise _failed("it came in a coding that was not asked for")
    if answer.kind not in _KINDS:
        raise _failed("it is neither HTML nor Markdown nor plain text")
    return _KINDS[answer.kind]


def _file(answer: _Answer) -> str | None:
    """Return a well-known file; an HTML page in its place is a kind of 404."""
    is_there = answer.status == HTTPStatus.OK and _KINDS.get(answer.kind) != "html"
    return answer.text if is_there and not answer.is_coded else None


@contextmanager
def _reported(
    failed: Callable[[str], Problem], blocked: Callable[[str], Problem], slow: str
) -> Iterator[None]:
    """Turn what a request may raise into a problem."""
    try:
        yield
    except TimeoutError:
        raise failed(slow) from None
    except BlockedAddress:
        raise blocked("its address is not public") from None
    except UNREACHABLE:
        raise failed("its server cannot be reached") from None


def _forbidden(reason: str) -> Problem:
    return Problem("forbidden", f"url: {reason}")


def _failed(reason: str) -> Problem:
    return Problem("fetch_failed", f"url: {reason}")


FETCH_SECONDS: Final = 5.0
BODY_MOST: Final = 64 * 1024  # bytes
_HEADERS: Final = {"Accept": "application/json"}


class Fetcher:
    """Fetches documents over https; `allowed` decides which addresses may be connected to."""

    def __init__(self, allowed: Allowed = is_public, ssl: SSLContext | None = None) -> None:
        """Take the certificates to trust (default: those of the system)."""
        self._guard = SsrfGuard(allowed, ssl)

    async def __call__(self, url: str) -> bytes:
        """Return the body at `url`: 200, no redirects, 64 KiB, 5 s. Raises Problem `invalid`."""
        with _reported(_failure, _failure, f"it took longer than {FETCH_SECONDS:.0f} s"):
            async with asyncio.timeout(FETCH_SECONDS):
                return await self._fetch(url)

    async def _fetch(self, url: str) -> bytes:
        if not url.isascii():  # a digit of another script would become one of ours later on
            raise BlockedAddress
        async with self._guard.request("GET", URL(url), _HEADERS) as answer:
            if answer.status != 200:  # noqa: PLR2004  anything else is no document
                raise _failure(f"its server answers {answer.status}")
            body = b"".join([chunk async for chunk in read_chunks(answer, BODY_MOST)])
        if len(body) > BODY_MOST:
            raise _failure(f"it is larger than {BODY_MOST // 1024} KiB")
        return body


def _failure(reason: str) -> Problem:
    return Problem("invalid", f"The client's document cannot be fetched: {reason}")
