"""The counter of views: what each request adds in memory, and how that is named and stored.

A request adds to a bounded counter and does nothing else. Every ten seconds a thread names what was
counted, and the sums are added to the store.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from multidict import CIMultiDict

from edge_api.auth.actor import Clock
from edge_api.auth.client_address import client_address, forget_addresses
from edge_api.db.problems import OUTCOME_UNKNOWN, Problem
from edge_api.db.query import Store
from edge_api.db.stats_tables import MAX_PATH_LENGTH, OTHER, Kind
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
MAX_LENGTH: Final = 200  # the characters of a header that are read
WORK_SECONDS: Final = 0.001
"""The time after which the naming thread pauses for as long: else it keeps the interpreter for 5 ms
at a time, for which requests wait."""
_COUNTED: Final = (".html", ".md", ".txt", ".xml", "feed.json")
"""Ends of the names of pages, their Markdown, feeds, and files for programs."""
_SOURCE: Final = re.compile(r"(?:^|&)(?:ref|utm_source)=([\w.-]{1,32})(?:&|$)", re.ASCII)
_SUBSCRIBERS: Final = re.compile(r"\b(\d{1,7}) (?:subscriber|reader)", re.IGNORECASE)
_FORWARDING: Final = "X-Forwarded-For", "Forwarded"

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
        self._hashes = self.is_on and settings.stats_visitors == "on"
        self._trusted, self._own = settings.trusted_proxies, f"{settings.site_url}/"
        self._session = f"; {'__Host-' if settings.site_url.startswith('https:') else ''}desk="
        self._store, self._clock, self._builds, self._on_views = store, clock, builds, on_views
        self._hits: dict[Hit, int] = {}
        self._waiting: dict[RowKey, int] = {}
        self._day = ""
        self._memory = DayMemory()
        self._lock = asyncio.Lock()

    def __call__(self, request: Any, route: str, response: Any, _seconds: float) -> None:
        """Count a request as an observer of all of them."""
        path, headers, build = request.path, request.headers, self._builds.current
        asked = route, request.method
        if response.status not in (200, 304) or build is None or len(path) > MAX_PATH_LENGTH:
            return
        if asked == ("site", "GET") and path in build.files:
            name = build.files[path].name
            is_markdown = name.endswith(".md") or prefers_markdown(headers.get("Accept", ""))
            form = "markdown" if is_markdown else ""
        else:
            name, form = ".html" if asked == ("mcp", "POST") else "", "mcp"
        is_owner = self._session in f"; {headers.get('Cookie', '')}"
        purpose = headers.get("Sec-Purpose", "") + headers.get("Purpose", "")
        if is_owner or "prefetch" in purpose or not name.endswith(_COUNTED):
            return
        referrer, query = headers.get("Referer", ""), request.rel_url.raw_query_string
        source = _SOURCE.search(query) if query else None
        is_foreign = referrer and not referrer.startswith(self._own)
        is_told = self._hashes and headers.get("Sec-GPC") != "1"
        agent, hits = headers.get("User-Agent", "")[:MAX_LENGTH], self._hits
        hit: Hit = (
            path,
            agent,
            form,
            "".join(referrer.split("/", 3)[2:3])[:MAX_LENGTH] if is_foreign else "",
            source[1] if source else "",
            (request.remote or "") if is_told else None,
            "\n".join(headers.getall(_FORWARDING[0], ()))[-2 * MAX_LENGTH :] if is_told else "",
            "\n".join(headers.getall(_FORWARDING[1], ()))[-2 * MAX_LENGTH :] if is_told else "",
        )
        if len(hits) >= MAX_HITS and hit not in hits:
            hit = path, agent if len(hits) < 2 * MAX_HITS else "", form, "", "", None, "", ""
        hits[hit] = hits.get(hit, 0) + 1
        if path == "/contact/" and (visitor := self._visitor_of(hit)) is not None:
            page = self._find_page(referrer, query)
            origin = classify_host(hit[3]) if page is None else "own_page"
            if page != path:  # which is loaded again after an error
                self._memory.note(visitor, origin, page or None)

    def find_origin(self, address: str, headers: Mapping[str, str]) -> Mapping[str, str | None]:
        """Return the columns of a lead that say where its sender came to the contact page from.

        They are empty unless this process noted it, or the page's own address names a post.
        """
        if not self._hashes or headers.get("Sec-GPC") == "1":
            return {}
        page = self._find_page("", headers.get("Referer", "").partition("?")[2].partition("#")[0])
        noted = self._memory.notes.get(
            self._memory.hash_visitor(address, headers.get("User-Agent", "")[:MAX_LENGTH]),
            ("own_page", page) if page else (None, None),
        )
        return dict(zip(("origin", "origin_page"), noted, strict=True))

    def _find_page(self, referrer: str, query: str) -> str | None:
        """Return the page of this site with the link that was followed to the contact page.

        The query of that page may name it, else the referrer does; it is empty for a page that the
        build lacks, and `None` for one of another site.
        """
        build = self._builds.current
        with suppress(KeyError):
            referrer = build.posts.summary(parse_qs(query)["about"][0])["url"] if build else ""
        if build is None or not referrer.startswith(self._own):
            return None
        path = unquote(urlsplit(referrer).path)
        return path if path in build.files and len(path) <= MAX_PATH_LENGTH else ""

    def _visitor_of(self, hit: Hit) -> int | None:
        _, agent, _, _, _, peer, *lines = hit
        if peer is None:
            return None
        pairs = zip(_FORWARDING, lines, strict=True)
        forwarding = CIMultiDict((name, each) for name, text in pairs for each in text.splitlines())
        address = client_address(peer, forwarding, self._trusted).key
        return self._memory.hash_visitor(address, agent)

    async def flush(self) -> None:
        """Name and store what was counted. Raises Problem, and then keeps it for the next time.

        A caller that is cancelled leaves the work in progress, since nothing may be stored twice.
        """
        await asyncio.shield(asyncio.ensure_future(self._flush()))

    async def _flush(self) -> None:
        async with self._lock:
            build, hits, self._hits = self._builds.current, self._hits, {}
            zone = read_zone(build.folder) if build else UTC
            today = self._clock().astimezone(zone).date().isoformat()
            former, self._day = self._day, today
            if former not in ("", today):  # what was noted before the first time is of today
                self._memory = DayMemory()
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
            if former != today:
                await roll_up(self._store, today)

    def _fold(self, hits: Mapping[Hit, int]) -> Counter[Kind]:
        """Add hits to the rows that wait, under the names of today; return the views by kind."""
        memory, views, paused_at = self._memory, Counter[Kind](), time.perf_counter()
        for hit, count in hits.items():
            path, agent, form, host, source, *_ = hit
            kind, name = name_agent(agent)
            if form == "mcp":
                kind = "mcp"
            elif form and kind in ("person", "other_program"):
                kind = "markdown_reader"
            views[kind] += count
            self._add((path, kind, memory.name_agent(path, kind, name)), count)
            visitor = self._visitor_of(hit)
            if visitor is not None and memory.is_new(kind, visitor):
                self._add(("visitors", kind), 1)
            for figure, text, shown in (
                ("referrer", host, clean_host(host)),
                ("source", source, source.lower()),
            ):
                if text and kind == "person":
                    self._add((figure, memory.name_figure(figure, shown, visitor)), count)
            if kind == "feed_reader" and (found := _SUBSCRIBERS.search(agent)):
                self._add(("subscribers", name or OTHER), int(found[1]), max)
            if time.perf_counter() - paused_at > WORK_SECONDS:
                time.sleep(WORK_SECONDS)
                paused_at = time.perf_counter()
        return views

    def _add(
        self, names: RowKey, count: int, merge: Callable[[int, int], int] = int.__add__
    ) -> None:
        key = self._day, *names
        if key in self._waiting or len(self._waiting) < MAX_WAITING:
            self._waiting[key] = merge(self._waiting.get(key, 0), count)
