"""Requests that come again byte for byte: answered without being read a second time.

Reading a request costs several times what it takes to send an answer that is ready. Whatever
answers one may leave with it how the same bytes are answered once more: that is asked each time,
so that nothing is given which would not be given now. What requests mean is not known here.
"""

import weakref
from asyncio import Transport
from collections.abc import Callable
from hashlib import sha256
from time import monotonic
from typing import Final, NamedTuple

from aiohttp import hdrs, web

from edge_api.schema.problems import Problem
from edge_api.web.cache import SizedCache
from edge_api.web.request import Again, Request
from edge_api.web.trace import ID_HEADER, new_id
from edge_api.web.wire import DRAINED_FROM, Wire

READ_EVERY_SECONDS: Final = 10.0
"""How long requests on a connection go unread: aiohttp counts how long it is idle from one that it
has read."""

_CAME_MOST: Final = 16 * 1024
"""Requests of which it is known that they came; then all of them are forgotten."""
_COST: Final = 1024
"""Bytes that the cache counts for what it remembers beside an answer."""
_MOST: Final = 32 * 1024 * 1024
_END: Final = b"\r\n\r\n"


class Asked(NamedTuple):
    """A request under way whose bytes have come before."""

    digest: bytes
    ground: Callable[[], object | None]
    """Refers to what its answer stands on, if that is still there behind the answer."""


class Repeats:
    """What may be answered again, as long as `ground` stays the same object.

    `ground` gives what all such answers stand on, or `None` while nothing is to be repeated. It is
    not kept alive by that. Requests are known by the digests of their bytes, which carry
    credentials. Of one that came once a hash is known: most of those never come again.
    """

    def __init__(self, ground: Callable[[], object | None]) -> None:
        self._ground = ground
        self._stood_on: Callable[[], object | None] = _nothing
        self._kept: SizedCache[Again] = SizedCache(_MOST)
        self._came: set[int] = set()

    def came(self, data: bytes) -> bool:
        """Tell whether the same bytes have come before, as far as a hash can tell; note that."""
        mark = hash(data)
        if mark in self._came:
            return True
        if len(self._came) >= _CAME_MOST:
            self._came.clear()
        self._came.add(mark)
        return False

    def find(self, digest: bytes) -> tuple[Wire, bytes] | None:
        """Return the answer and the lines it carries beside its own; `None`: read the request."""
        again = self._kept.get(digest) if self._is_grounded() else None
        try:
            return again() if again is not None else None
        except Problem:  # reading the request tells it
            return None

    def refer(self) -> Callable[[], object | None]:
        """Return a reference to the present ground that does not keep it alive."""
        return self._stood_on if self._is_grounded() else _nothing

    def keep(self, asked: Asked, again: Again, answer: Wire) -> None:
        """Remember how one whole request is answered, unless the ground has changed meanwhile."""
        is_small = answer.size <= DRAINED_FROM  # more of it is sent only as fast as a client reads
        if is_small and self._is_grounded() and self._stood_on() is asked.ground():
            self._kept.keep(asked.digest, again, answer.size + _COST)

    def _is_grounded(self) -> bool:
        """Tell whether anything may be repeated; forget all that stood on something else."""
        ground = self._ground()
        if ground is None:
            return False
        if self._stood_on() is not ground:
            self._stood_on = weakref.ref(ground)
            self._kept = SizedCache(_MOST)
        return True


class Conversation:
    """One connection, as long as each request on it arrives whole, alone, and without a body.

    Only then is it known without reading where a request begins: once it is not, all that follows
    on the connection is read (RFC 9112, section 11.2: a wrong guess is how requests are smuggled).
    """

    def __init__(self, repeats: Repeats) -> None:
        self._repeats = repeats
        self._is_simple = True
        self._is_under_way = False
        self._asked: Asked | None = None
        self._read_again_at = 0.0

    def answer(self, data: bytes, transport: Transport) -> bool:
        """Answer bytes that were answered before; tell whether that is done."""
        if not self._is_simple:
            return False
        if self._is_under_way:  # they have come before the answer to the last ones
            self.end()
            return False
        now = monotonic()
        if self._repeats.came(data):
            digest = sha256(data).digest()
            found = self._repeats.find(digest) if self._may_repeat(now, transport) else None
            if found is not None:
                wire, lines = found
                wire.put(transport, lines, new_id())
                return True
            self._asked = Asked(digest, self._repeats.refer())
        self._is_simple, self._is_under_way = _is_one_head(data), True
        self._read_again_at = now + READ_EVERY_SECONDS
        return False

    def note(self, request: Request, answer: web.StreamResponse) -> None:
        """Be told what has answered the request that was under way."""
        asked, self._asked, self._is_under_way = self._asked, None, False
        repeat, request.repeat = request.repeat, None  # it may know the request: no ring is left
        if _has_framing(request) or not answer.keep_alive:
            self.end()
        if asked is None or repeat is None or not self._is_simple:
            return
        if isinstance(answer, Wire) and ID_HEADER not in request.headers:
            again = repeat()
            if again is not None:
                self._repeats.keep(asked, again, answer)

    def end(self) -> None:
        """Have all that follows read."""
        self._is_simple = False

    def _may_repeat(self, now: float, transport: Transport) -> bool:
        return (
            now < self._read_again_at
            and not transport.is_closing()
            and transport.get_write_buffer_size() <= DRAINED_FROM
        )


def _nothing() -> None:
    """Stand for a ground that never was."""


def _has_framing(request: Request) -> bool:
    """Tell whether a head says anything of a body, be it one that aiohttp takes for none."""
    return hdrs.CONTENT_LENGTH in request.headers or hdrs.TRANSFER_ENCODING in request.headers


def _is_one_head(data: bytes) -> bool:
    """Tell whether the bytes are the whole head of one GET; aiohttp knows no other line ends."""
    return data.startswith(b"GET /") and data.find(_END) == len(data) - len(_END)
