"""The counter of views: what each request adds in memory, and how that is named and stored.

A request adds to a bounded counter and does nothing else. Every ten seconds a thread names what was
counted, and the sums are added to the store.
"""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC
from http import HTTPStatus
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from multidict import CIMultiDict, MultiMapping, istr

from edge_api.auth.actor import Clock
from edge_api.auth.client_address import client_address, forget_addresses
from edge_api.db.problems import OUTCOME_UNKNOWN, Problem
from edge_api.db.query import Store
from edge_api.db.stats_tables import MAX_PATH_LENGTH, OTHER, Figure, Kind
from edge_api.journal.builds import BuildManager, read_zone
from edge_api.operation.negotiation import prefers_markdown
from edge_api.settings import Settings
from edge_api.stats.naming import name_agent
from edge_api.stats.origins import classify_host, clean_host
from edge_api.stats.rows import RowKey, make_inserts, roll_up
from edge_api.stats.visitors import DayMemory

FLUSH_SECONDS: Final = 10.0
"""The interval at which counts are stored; kill -9 loses so much at the most."""
MAX_HITS: Final = 10_000
"""The most different requests of an interval: more of them count without their visitors, and from
twice as many on as other programs."""
MAX_WAITING: Final = 50_000  # the most rows that wait in memory for a database that is away
MAX_ROWS: Final = 500  # the most rows of a transaction
MAX_AGENT_LENGTH: Final = 200
MAX_LINES: Final = 4
WORK_SECONDS: Final = 0.001
"""The time after which the naming thread pauses for as long: else it keeps the interpreter for 5 ms
at a time, for which requests wait."""
CONTACT: Final = "/contact/"
_READ: Final = (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)
_COUNTED: Final = (".html", ".md", ".txt", ".xml", "feed.json")
"""Ends of the names of pages, their Markdown, feeds, and files for programs."""
_SOURCE: Final = re.compile(r"(?:^|&)(?:ref|utm_source)=([\w.-]{1,32})(?:&|$)", re.ASCII)
_SUBSCRIBERS: Final = re.compile(r"\b(\d{1,7}) (?:subscriber|reader)", re.IGNORECASE)
_ACCEPT, _AGENT, _COOKIE, _GPC, _PURPOSE, _REFERRER, _SEC_PURPOSE = map(
    istr, ("Accept", "User-Agent", "Cookie", "Sec-GPC", "Purpose", "Referer", "Sec-Purpose")
)
_FORWARDING: Final = istr("X-Forwarded-For"), istr("Forwarded")
_log = logging.getLogger(__name__)

Hit = tuple[str, str, str, str, str, str | None, str, str]
"""Path, User-Agent, form (empty, `markdown` or `mcp`), referrer's host, source, peer, and the lines
of the two forwarding headers. Without a peer no visitor is told apart."""


class Stats:
    """The counts of this process, which are added to the store every ten seconds."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        builds: BuildManager,
        on_views: Callable[[Kind, int], None] = lambda *_: None,
    ) -> None:
        """Take `on_views`, which is called with each kind of readers and the number of views."""
        self.is_on = settings.stats == "on"
        self._hashes = settings.stats_visitors == "on"
        self._trusted = settings.trusted_proxies
        self._own = f"{settings.site_url}/"
        scheme = "__Host-" if settings.site_url.startswith("https:") else ""
        self._session = f"{scheme}desk="
        self._store, self._clock, self._builds, self._on_views = store, clock, builds, on_views
        self._hits: dict[Hit, int] = {}
        self._waiting: dict[RowKey, int] = {}
        self._memory = DayMemory(self.today())
        self._lock = asyncio.Lock()

    def today(self) -> str:
        """Return the day in the journal's time zone, as rows have it (YYYY-MM-DD)."""
        build = self._builds.current
        zone = read_zone(build.folder) if build else UTC
        return self._clock().astimezone(zone).date().isoformat()

    def __call__(self, request: Any, route: str, response: Any, _seconds: float) -> None:
        """Count a request as an observer of all of them."""
        method, path, status = request.method, request.path, response.status
        headers, form = request.headers, ""
        if route == "site":
            build = self._builds.current
            file = build.files.get(path) if build else None
            if method != "GET" or status not in _READ or len(path) > MAX_PATH_LENGTH:
                return
            if file is None or not file.name.endswith(_COUNTED):
                return
            if file.name.endswith(".md") or _wants_markdown(headers.get(_ACCEPT, "")):
                form = "markdown"
        elif route == "mcp" and method == "POST" and status == HTTPStatus.OK:
            form = "mcp"
        else:
            return
        if "prefetch" in headers.get(_SEC_PURPOSE, "") + headers.get(_PURPOSE, ""):
            return
        if f"; {self._session}" in f"; {headers.get(_COOKIE, '')}":
            return
        referrer, query = headers.get(_REFERRER, ""), request.rel_url.raw_query_string
        source = _SOURCE.search(query) if query else None
        is_told = self._hashes and headers.get(_GPC) != "1"
        agent = headers.get(_AGENT, "")[:MAX_AGENT_LENGTH]
        hit: Hit = (
            path,
            agent,
            form,
            "" if not referrer or referrer.startswith(self._own) else _host_of(referrer),
            source[1] if source else "",
            (request.remote or "") if is_told else None,
            _last_lines(headers, _FORWARDING[0]) if is_told else "",
            _last_lines(headers, _FORWARDING[1]) if is_told else "",
        )
        before = self._hits.get(hit, 0)
        for bound, named in ((MAX_HITS, agent), (2 * MAX_HITS, "")):
            if not before and len(self._hits) >= bound:
                hit = (path, named, form, "", "", None, "", "")
                before = self._hits.get(hit, 0)
        self._hits[hit] = before + 1
        if path == CONTACT and is_told:
            self._note(hit, referrer, query)

    def _note(self, hit: Hit, referrer: str, query: str) -> None:
        """Note where a visitor of the contact page came from, until the form is sent."""
        origin, page = classify_host(clean_host(hit[3])), self._find_post(query)
        if page or referrer.startswith(self._own):
            path = unquote(urlsplit(referrer).path)
            origin, page = "own_page", page or (path if self._is_page(path) else None)
        visitor = self._visitor_of(self._memory, hit)
        if visitor is not None and page != CONTACT:  # which is loaded again after an error
            self._memory.note(visitor, origin, page)

    def _find_post(self, query: str) -> str | None:
        """Return the path of the post that the query of the contact page names, or `None`."""
        with suppress(KeyError, Problem):
            summary = self._builds.build().posts.summary(parse_qs(query)["about"][0])
            path = unquote(urlsplit(summary["url"]).path)
            return path if self._is_page(path) else None
        return None

    def _is_page(self, path: str) -> bool:
        build = self._builds.current
        return build is not None and path in build.files and len(path) <= MAX_PATH_LENGTH

    def find_origin(self, address: str, headers: Mapping[str, str]) -> Mapping[str, str | None]:
        """Return the columns of a lead that say where its sender came to the contact page from.

        They are empty unless this process noted it, or the page's own address names a post.
        """
        if not self.is_on or not self._hashes or headers.get("Sec-GPC") == "1":
            return {}
        agent = headers.get("User-Agent", "")[:MAX_AGENT_LENGTH]
        noted = self._memory.notes.get(self._memory.hash_visitor(address, agent))
        if noted is not None:
            return {"origin": noted[0], "origin_page": noted[1]}
        post = self._find_post(headers.get("Referer", "").partition("?")[2].partition("#")[0])
        return {"origin": "own_page", "origin_page": post} if post else {}

    def _visitor_of(self, memory: DayMemory, hit: Hit) -> int | None:
        _, agent, _, _, _, peer, *lines = hit
        if peer is None:
            return None
        forwarding = CIMultiDict(
            [
                (name, line)
                for name, found in zip(_FORWARDING, lines, strict=True)
                for line in found.splitlines()
            ]
        )
        address = client_address(peer, forwarding, self._trusted).key
        return memory.hash_visitor(address, agent)

    async def flush(self) -> None:
        """Name and store what was counted. Raises Problem, and then keeps it for the next time.

        A caller that is cancelled leaves the work in progress, since nothing may be stored twice.
        """
        await asyncio.shield(asyncio.ensure_future(self._flush()))

    async def _flush(self) -> None:
        async with self._lock:
            hits, self._hits = self._hits, {}
            if self._memory.day != (today := self.today()):
                self._memory = DayMemory(today)
                name_agent.cache_clear()
                forget_addresses()
            for kind, count in (await asyncio.to_thread(self._fold, hits)).items():
                self._on_views(kind, count)
            while keys := tuple(islice(self._waiting, MAX_ROWS)):
                taken = {key: self._waiting.pop(key) for key in keys}
                try:
                    await self._store.run(*await asyncio.to_thread(make_inserts, taken))
                except Problem as problem:
                    # What may have been stored is not stored again.
                    if problem.sqlstate != OUTCOME_UNKNOWN:
                        self._waiting = {**taken, **self._waiting}
                    raise

    def _fold(self, hits: Mapping[Hit, int]) -> Counter[Kind]:
        """Add hits to the rows that wait, under the names of today; return the views by kind."""
        memory, views, paused_at = self._memory, Counter[Kind](), time.perf_counter()
        for hit, count in hits.items():
            path, agent, form, host, source, _, _, _ = hit
            kind, name = name_agent(agent)
            if form == "mcp":
                kind = "mcp"
            elif form and kind in ("person", "other_program"):
                kind = "markdown_reader"
            views[kind] += count
            self._add((memory.day, path, kind, memory.name_agent(path, kind, name)), count)
            visitor = self._visitor_of(memory, hit)
            if visitor is not None and memory.is_new(kind, visitor):
                self._add((memory.day, "visitors", kind), 1)
            brought: tuple[tuple[Figure, str], ...] = (("referrer", host), ("source", source))
            for figure, text in brought if kind == "person" else ():
                if text:
                    given = clean_host(text) if figure == "referrer" else text.lower()
                    self._add(
                        (memory.day, figure, memory.name_figure(figure, given, visitor)), count
                    )
            if kind == "feed_reader" and (found := _SUBSCRIBERS.search(agent)):
                self._add(
                    (memory.day, "subscribers", name or OTHER), int(found[1]), is_largest=True
                )
            if time.perf_counter() - paused_at > WORK_SECONDS:
                time.sleep(WORK_SECONDS)
                paused_at = time.perf_counter()
        return views

    def _add(self, key: RowKey, count: int, *, is_largest: bool = False) -> None:
        before = self._waiting.get(key, 0)
        if before or len(self._waiting) < MAX_WAITING:
            self._waiting[key] = max(before, count) if is_largest else before + count

    async def roll_up(self) -> None:
        """Make months of old days. Raises Problem."""
        await roll_up(self._store, self.today())

    async def close(self) -> None:
        """Store what was counted since the last time."""
        try:
            await self.flush()
        except Problem as problem:
            _log.warning("%d counts could not be stored: %s", len(self._waiting), problem.message)


def _wants_markdown(accepted: str) -> bool:
    return "markdown" in accepted and prefers_markdown(accepted)


def _last_lines(headers: MultiMapping[str], name: str) -> str:
    """Return the ends of a header's last lines, which the nearest proxies wrote."""
    lines = headers.getall(name, ())
    if len(lines) > 1:
        return "\n".join(line[-MAX_AGENT_LENGTH:] for line in lines[-MAX_LINES:])
    return lines[0][-MAX_AGENT_LENGTH:] if lines else ""


def _host_of(referrer: str) -> str:
    """Return the host of an address, and nothing else of it."""
    return "".join(referrer.split("/", 3)[2:3])[:100]
