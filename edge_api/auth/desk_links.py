"""Links that sign the owner in to the desk: stored without their tokens, used once."""

import hmac
from datetime import timedelta
from functools import partial
from typing import Final

from edge_api.auth.actor import OPERATOR, Clock, audit_entry, new_id
from edge_api.db.internal_tables import DESK_LINKS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Query, Read, RowCount, Store, Update, Where
from edge_api.db.table import Row
from edge_api.db.types import format_instant, parse_uuid
from edge_api.schema.paths import DESK

LIFETIME: Final = timedelta(minutes=15)
MAX_PER_HOUR: Final = 10  # links that are mailed within an hour, whoever asks
_HOUR: Final = timedelta(hours=1)


class DeskLinks:
    """The links in one store to the desk at `site_url`; their tokens are derived from `secret`."""

    def __init__(self, store: Store, clock: Clock, secret: bytes, site_url: str) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._site_url = site_url

    async def create(self) -> str:
        """Store a link and return its address. Raises Problem."""
        row = self.new_row()
        await self._store.run(*self.insert(row))
        return self.address(row["id"])

    def address(self, link_id: str) -> str:
        """Return the address of a link, with its token: the HMAC-SHA-256 of the id."""
        return f"{self._site_url}{DESK}link/{link_id}.{self._mac(link_id)}/"

    def _mac(self, link_id: str) -> str:
        return hmac.digest(self._secret, f"desk link\n{link_id}".encode(), "sha256").hex()

    def can_use(self, row: Row) -> bool:
        """Return whether the link of a row can still be used."""
        return row["used_at"] is None and row["expires_at"] > format_instant(self._clock())

    def new_row(self, target: str = DESK) -> Row:
        """Return a link to a page of the desk that is not stored yet."""
        now = self._clock()
        given = {"expires_at": format_instant(now + LIFETIME), "target": target}
        return DESK_LINKS.new_row(given, format_instant(now), partial(new_id, now))

    def insert(self, row: Row) -> tuple[Query, Query]:
        """Return the queries that store a link."""
        audit = audit_entry(OPERATOR, "issue", DESK_LINKS, RowCount(0), self._clock())
        return Insert(DESK_LINKS, [row]), audit

    async def check_rate(self) -> None:
        """Raise Problem `too_many_requests` after `MAX_PER_HOUR` links within an hour."""
        since = Filter("created_at", "gt", format_instant(self._clock() - _HOUR))
        (found,) = await self._store.run(Read(DESK_LINKS, ("id",), (since,), limit=MAX_PER_HOUR))
        if len(found.rows) >= MAX_PER_HOUR:
            message = "Too many links were asked for: sign in with a key, or wait an hour"
            raise Problem("too_many_requests", message, headers={"Retry-After": "3600"})

    async def is_open(self, token: str) -> bool:
        """Return whether a link is of ours and can still be used. Raises Problem `unavailable`."""
        where = self._where(token)
        if where is None:
            return False
        (found,) = await self._store.run(Read(DESK_LINKS, ("id",), where))
        return bool(found.rows)

    async def consume(self, token: str) -> str:
        """Use a link, which works once; return its target, empty where that was not possible."""
        where = self._where(token)
        if where is None:
            return ""
        values = {"used_at": format_instant(self._clock())}
        (done,) = await self._store.run(Update(DESK_LINKS, values, where))
        return str(done.rows[0]["target"]) if done.rows else ""

    def _where(self, token: str) -> Where | None:
        """Return the conditions of the link that can be used with a token; `None` if not ours."""
        link_id, _, mac = token.partition(".")
        try:
            link_id = parse_uuid(link_id)
        except ValueError:
            return None
        if not hmac.compare_digest(mac.encode(), self._mac(link_id).encode()):
            return None
        now = format_instant(self._clock())
        return (
            Filter("id", "eq", link_id),
            Filter("used_at", "is", None),
            Filter("expires_at", "gt", now),
        )
