"""The counter of views: what each request adds in memory, and how that is named and stored.

A request adds to a bounded counter and does nothing else. Every ten seconds a thread names what was
counted, and the sums are added to the store. Of visitors one process has keyed
hashes in memory, which midnight throws away. Old days become months.
"""

import asyncio
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from datetime import time as day_time
from functools import partial
from hashlib import blake2b
from itertools import islice
from secrets import token_bytes
from typing import Any, Final, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from multidict import CIMultiDict

from edge_api.auth.actor import Clock, new_id
from edge_api.auth.client_address import client_address, forget_addresses
from edge_api.db.problems import OUTCOME_UNKNOWN, Problem
from edge_api.db.query import (
    Delete,
    Filter,
    Insert,
    Order,
    Procedure,
    Query,
    QueryResult,
    Read,
    Store,
    read_first,
)
from edge_api.db.stats_tables import DAILY_FIGURES, MAX_PATH_LENGTH, OTHER, PAGE_VIEWS, Kind
from edge_api.db.table import Row, Table
from edge_api.db.tables import Origin
from edge_api.journal.builds import Build, BuildManager, read_zone
from edge_api.operation.negotiation import prefers_markdown
from edge_api.settings import Settings
from edge_api.stats.naming import classify_host, clean_host, name_agent

KEPT_MONTHS: Final = 25  # the months of which each day is kept

RowKey = tuple[str, ...]
"""Day, path, kind and agent of views; or day, figure and name of another number."""


def make_inserts(counts: Mapping[RowKey, int]) -> list[Insert]:
    """Return the queries that add counts to the rows of their keys; called in a thread."""
    inserts: dict[tuple[Table, Literal["sum", "largest"]], list[Row]] = defaultdict(list)
    for key, count in counts.items():
        table = next(each for each in (PAGE_VIEWS, DAILY_FIGURES) if len(_names(each)) == len(key))
        row = {**dict(zip(_names(table), key, strict=True)), "count": count}
        # The id has the time of midnight: that of a view would say when somebody came.
        midnight = datetime.fromisoformat(f"{key[0]}T00:00Z")
        new = table.trusted_row(row, "", partial(new_id, midnight))
        inserts[table, "largest" if key[1] == "subscribers" else "sum"].append(new)
    return [Insert(table, rows, merge=merge) for (table, merge), rows in inserts.items()]


def _names(table: Table) -> tuple[str, ...]:
    return table.indexes[0].columns


async def roll_up(store: Store, today: str) -> None:
    """Add the days before the last 25 months to the first days of their months. Raises Problem."""
    year, month = divmod(int(today[:4]) * 12 + int(today[5:7]) - 1 - KEPT_MONTHS, 12)
    old = Filter("day", "lt", f"{year:04}-{month + 1:02}-01")
    where = old, Filter("day", "like", "%-01", negated=True)
    for table in (PAGE_VIEWS, DAILY_FIGURES):
        oldest = Read(table, ("id", "day"), where, (Order("day"),), limit=1)
        while row := await read_first(store, oldest):
            await store.run(Procedure(partial(_move_day, table, row["day"])))


def _move_day(table: Table, day: str, results: list[QueryResult]) -> Iterator[Query]:
    """Yield the queries of one transaction, so that two edges at a time add nothing twice."""
    yield Delete(table, (Filter("day", "eq", day),))
    month = f"{day[:8]}01"
    yield from make_inserts(
        {
            (month, *(row[name] for name in _names(table)[1:])): row["count"]
            for row in results[-1].rows
        }
    )


NAMED_FROM: Final = 5
"""The networks of a day from which a referrer or source is named: one alone may be a person."""
MAX_VISITORS: Final = 100_000
"""The most people of a day; of each other kind of readers a tenth as many."""
MAX_NAMES: Final = 2000  # referrers and sources that are watched until they have networks enough
MAX_AGENT_ROWS: Final = 10_000  # rows with the name of a program; the names are the package's
MAX_NOTES: Final = 10_000


class DayMemory:
    """The hashes of one day, and their salt, which is deleted with them."""

    def __init__(self) -> None:
        self.notes: dict[int, tuple[Origin, str | None]] = {}
        """Where visitors of the contact page came from: the class, and the page of this site."""
        self._salt = token_bytes(32)
        self._seen: dict[Kind, set[int]] = defaultdict(set)
        self._named: dict[int, set[int]] = {}
        self._rows: set[tuple[str, Kind, str]] = set()

    def hash_visitor(self, address: str, agent: str = "") -> int:
        """Return the hash of a visitor, or without `agent` that of a network.

        `address` is a key of rate limits. It is cut to a /24, or to a /48 of IPv6.
        """
        groups = address.replace("::", ":0:0:0:").split(":")  # the third may be a zero left out
        cut = address.rpartition(".")[0] or ":".join(groups[:3])
        return self._hash(f"{cut} {agent}")

    def _hash(self, text: str) -> int:
        encoded = text.encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(encoded, key=self._salt, digest_size=8).digest())

    def is_new(self, kind: Kind, visitor: int) -> bool:
        """Note a visitor, and return whether this is the first visit of the day."""
        seen, most = self._seen[kind], MAX_VISITORS // (1 if kind == "person" else 10)
        if visitor in seen or len(seen) >= most:
            return False
        seen.add(visitor)
        return True

    def name_figure(self, figure: str, name: str, network: int | None) -> str:
        """Return the name under which a referrer or source counts: its own, or `other`."""
        watched = self._hash(f"{figure} {name}")
        known = len(self._named) < MAX_NAMES or watched in self._named
        networks = self._named.setdefault(watched, set()) if known and name else set()
        if network is not None and len(networks) < NAMED_FROM:
            networks.add(network)
        return name if len(networks) >= NAMED_FROM else OTHER

    def name_agent(self, path: str, kind: Kind, agent: str) -> str:
        """Return the name under which a program counts: its own, or `other` over the bound."""
        row = path, kind, agent
        if agent and len(self._rows) < MAX_AGENT_ROWS:
            self._rows.add(row)
        return agent if not agent or row in self._rows else OTHER

    def note(self, visitor: int, origin: Origin, page: str | None) -> None:
        """Note where a visitor of the contact page came from."""
        if visitor in self.notes or len(self.notes) < MAX_NOTES:
            self.notes[visitor] = origin, page


FLUSH_SECONDS: Final = 10.0
"""The time between two storings; kill -9 loses what was counted in it, at the most."""
MAX_HITS: Final = 10_000
"""The number of different requests that are kept apart in an interval. Further ones count without
visitors, and from twice as many on also without their User-Agent, as other programs."""
MAX_WAITING: Final = 50_000  # the most rows that wait in memory for a database that is away
MAX_ROWS: Final = 500  # the most rows of a transaction
MAX_LENGTH: Final = 200  # the characters of a header that are read
WORK_SECONDS: Final = 0.001
"""The time after which the naming thread pauses for as long: else it keeps the interpreter for 5 ms
at a time, for which requests wait."""
_COUNTED: Final = (".html", ".md", ".txt", ".xml", "feed.json")
"""Ends of the names of files that count: pages, their Markdown, feeds, and files for programs."""
_NO_PAGES: Final = frozenset({"/404.html", "/contact/thanks/"})  # nobody comes to read these
_SOURCE: Final = re.compile(r"(?:^|&)(?:ref|utm_source)=([\w.-]{1,32})(?:&|$)", re.ASCII)
_SUBSCRIBERS: Final = re.compile(r"\b(\d{1,6}) (?:subscriber|reader)", re.IGNORECASE)
_FORWARDING: Final = "X-Forwarded-For", "Forwarded"

Hit = tuple[str, str, str, str, str, str | None, str, str]
"""Path, User-Agent, form (empty for a page, `markdown`, `file` or `mcp`), referrer's host, source,
peer, and the lines of the two forwarding headers. Without a peer it counts for no visitor."""


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
        self._ended: list[tuple[str, DayMemory, Mapping[Hit, int]]] = []
        """What was counted on days that have ended since."""
        self._day = self._rolled_up = ""
        self._day_end = datetime.min.replace(tzinfo=UTC)
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
            is_page = name.endswith(".html") and path not in _NO_PAGES
            form = "markdown" if is_markdown else "" if is_page else "file"
        else:
            name, form = ".html" if asked == ("mcp", "POST") else "", "mcp"
        is_owner = self._session in f"; {headers.get('Cookie', '')}"
        purpose = headers.get("Sec-Purpose", "") + headers.get("Purpose", "")
        if is_owner or "prefetch" in purpose or not name.endswith(_COUNTED):
            return
        if self._clock() >= self._day_end:
            self._begin_day(build)
        referrer, query = headers.get("Referer", ""), request.rel_url.raw_query_string
        source = _SOURCE.search(query) if query else None
        is_foreign = referrer and not referrer.startswith(self._own)
        is_hashed = self._hashes and headers.get("Sec-GPC") != "1"
        agent, hits = headers.get("User-Agent", "")[:MAX_LENGTH], self._hits
        hit: Hit = (
            path,
            agent,
            form,
            "".join(referrer.split("/", 3)[2:3])[:MAX_LENGTH] if is_foreign else "",
            source[1] if source else "",
            (request.remote or "") if is_hashed else None,
            "\n".join(headers.getall(_FORWARDING[0], ()))[-2 * MAX_LENGTH :] if is_hashed else "",
            "\n".join(headers.getall(_FORWARDING[1], ()))[-2 * MAX_LENGTH :] if is_hashed else "",
        )
        if len(hits) >= MAX_HITS and hit not in hits:
            hit = path, agent if len(hits) < 2 * MAX_HITS else "", form, "", "", None, "", ""
        hits[hit] = hits.get(hit, 0) + 1
        if path == "/contact/" and (address := self._address_of(hit)) is not None:
            page = self._find_page(referrer, query)
            origin = classify_host(hit[3]) if page is None else "own_page"
            if page != path:  # which is loaded again after an error
                self._memory.note(self._memory.hash_visitor(address, agent), origin, page or None)

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
        """Return the path of the page whose link led to the contact page.

        `about` in the query of the contact page names a post, else the referrer names a page. The
        path is empty if the build lacks the page, and `None` if it is no page of this site.
        """
        build = self._builds.current
        with suppress(KeyError):
            referrer = build.posts.summary(parse_qs(query)["about"][0])["url"] if build else ""
        if build is None or not referrer.startswith(self._own):
            return None
        path = unquote(urlsplit(referrer).path)
        return path if path in build.files and len(path) <= MAX_PATH_LENGTH else ""

    def _begin_day(self, build: Build) -> None:
        """Begin a new day with its own memory, if the date has changed in the journal's zone."""
        local = self._clock().astimezone(read_zone(build.folder))
        former, self._day = self._day, str(local.date())
        self._day_end = datetime.combine(local + timedelta(days=1), day_time(), local.tzinfo)
        if former not in ("", self._day):
            self._ended.append((former, self._memory, self._hits))
            self._memory, self._hits = DayMemory(), {}

    def _address_of(self, hit: Hit) -> str | None:
        *_, peer, common, standard = hit
        if peer is None:
            return None
        pairs = zip(_FORWARDING, (common, standard), strict=True)
        forwarding = CIMultiDict((name, each) for name, text in pairs for each in text.splitlines())
        return client_address(peer, forwarding, self._trusted).key

    async def flush(self) -> None:
        """Name and store what was counted. Raises Problem, and then keeps it for the next time.

        A caller that is cancelled leaves the work in progress, since nothing may be stored twice.
        """
        await asyncio.shield(asyncio.ensure_future(self._flush()))

    async def _flush(self) -> None:
        async with self._lock:
            if build := self._builds.current:
                self._begin_day(build)
            today = self._day
            self._ended.append((today, self._memory, self._hits))
            self._hits = {}
            while self._ended:
                views = await asyncio.to_thread(self._fold, *self._ended.pop(0))
                for kind, count in views.items():
                    self._on_views(kind, count)
            name_agent.cache_clear()  # its keys are agents as they came
            forget_addresses()
            while keys := tuple(islice(self._waiting, MAX_ROWS)):
                taken = {key: self._waiting.pop(key) for key in keys}
                try:
                    await self._store.run(*await asyncio.to_thread(make_inserts, taken))
                except Problem as problem:
                    # What may have been stored is not stored again.
                    if problem.sqlstate != OUTCOME_UNKNOWN:
                        self._waiting = {**taken, **self._waiting}
                    raise
            if self._rolled_up != today:
                await roll_up(self._store, today)
                self._rolled_up = today

    def _fold(self, day: str, memory: DayMemory, hits: Mapping[Hit, int]) -> Counter[Kind]:
        """Add hits to the rows that wait, under the names of a day; return the views by kind."""
        views, paused_at = Counter[Kind](), time.perf_counter()
        for hit, count in hits.items():
            path, agent, form, host, source, *_ = hit
            kind, name = name_agent(agent)
            if form == "mcp":
                kind = "mcp"
            elif form == "markdown" and kind in ("person", "other_program"):
                kind = "markdown_reader"
            elif form == "file" and kind == "person":
                continue
            views[kind] += count
            self._add((day, path, kind, memory.name_agent(path, kind, name)), count)
            address = self._address_of(hit)
            if address is not None and memory.is_new(kind, memory.hash_visitor(address, agent)):
                self._add((day, "visitors", kind), 1)
            for figure, text, shown in (
                ("referrer", host, clean_host(host)),
                ("source", source, source.lower()),
            ):
                if text and kind == "person":
                    network = None if address is None else memory.hash_visitor(address)
                    self._add((day, figure, memory.name_figure(figure, shown, network)), count)
            if kind == "feed_reader" and name and (found := _SUBSCRIBERS.search(agent)):
                self._add((day, "subscribers", name), int(found[1]), max)
            if time.perf_counter() - paused_at > WORK_SECONDS:
                time.sleep(WORK_SECONDS)
                paused_at = time.perf_counter()
        return views

    def _add(self, key: RowKey, count: int, merge: Callable[[int, int], int] = int.__add__) -> None:
        if key in self._waiting or len(self._waiting) < MAX_WAITING:
            self._waiting[key] = merge(self._waiting.get(key, 0), count)
