"""Links that sign the owner in to the desk: stored without their tokens, used once.

Anybody may ask for one to be mailed. A browser where nobody has signed in yet shares its few mails
with all such browsers: the link that was mailed last stays good until the next may be mailed, so
that no stranger can shut the owner out. Other browsers have limits of their own.
"""

import hmac
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from edge_api.auth.actor import OPERATOR, Clock, audit_entry, new_id
from edge_api.auth.secrets import is_signed, sign
from edge_api.db.internal_tables import DESK_LINKS
from edge_api.db.query import (
    Filter,
    Insert,
    InsertFromRead,
    Query,
    Read,
    Store,
    Update,
    Where,
    read_all,
)
from edge_api.db.table import Row
from edge_api.db.types import format_instant
from edge_api.schema.paths import DESK

LIFETIME: Final = timedelta(minutes=15)
STRANGER: Final = "stranger"  # who asked for a link: a browser where nobody has signed in
STRANGER_LIFETIME: Final = timedelta(days=1) / 5
"""The lifetime of such a link, and the time until the next may be mailed: five a day."""
_BROWSER: Final = "desk browser"


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
        await self._store.run(*self.stored(row))
        return self.address(row["id"])

    def address(self, link_id: str) -> str:
        """Return the address of a link, with its token: the HMAC-SHA-256 of the id."""
        return f"{self._site_url}{DESK}link/{link_id}.{self._mac(link_id)}/"

    def _mac(self, link_id: str) -> str:
        return hmac.digest(self._secret, f"desk link\n{link_id}".encode(), "sha256").hex()

    def new_browser(self) -> str:
        """Return a cookie for a browser where somebody has signed in; it is no credential."""
        return sign(self._secret.hex(), _BROWSER)

    def known(self, browser: str) -> str:
        """Return such a cookie, or an empty text for any other."""
        return browser if is_signed(self._secret.hex(), _BROWSER, browser) else ""

    def can_use(self, row: Row) -> bool:
        """Return whether the link of a row can still be used."""
        return row["used_at"] is None and row["expires_at"] > format_instant(self._clock())

    def new_row(self, target: str = DESK, *, is_known: bool = True) -> Row:
        """Return a link to a page of the desk that is not stored yet.

        `is_known`: whether it is for a terminal, or for a browser where somebody has signed in.
        """
        now = self._clock()
        given = {
            "expires_at": format_instant(now + (LIFETIME if is_known else STRANGER_LIFETIME)),
            "target": target,
            "asked_by": "" if is_known else STRANGER,
        }
        return DESK_LINKS.new_row(given, format_instant(now), partial(new_id, now))

    def stored(self, row: Row, entries: Sequence[Insert] = ()) -> Sequence[Query]:
        """Return the queries that store a link, and the entries that mail it.

        One for a stranger is not stored while an earlier one can be used, also if both are asked
        for at once.
        """
        insert = Insert(DESK_LINKS, [row])
        audit = audit_entry(OPERATOR, "issue", DESK_LINKS, 1, self._clock())
        if not row["asked_by"]:
            return (insert, audit, *entries)
        unanswered = (
            Filter("asked_by", "eq", STRANGER),
            Filter("used_at", "is", None),
            Filter("expires_at", "gt", row["created_at"]),
            # What is a minute ahead is of a time before the clock was set back.
            Filter("created_at", "lt", format_instant(self._clock() + timedelta(minutes=1))),
        )
        this = Read(DESK_LINKS, where=(Filter("id", "eq", row["id"]),))
        return (
            InsertFromRead(
                Read(DESK_LINKS, where=unanswered, limit=1),
                lambda rows: replace(insert, rows=[] if rows else insert.rows),
            ),
            *(InsertFromRead(this, partial(_if_any, each)) for each in (audit, *entries)),
        )

    async def is_open(self, token: str) -> bool:
        """Return whether a link is of ours and can still be used. Raises Problem `unavailable`."""
        where = self._where(token)
        if where is None:
            return False
        return bool(await read_all(self._store, Read(DESK_LINKS, ("id",), where)))

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
        if not hmac.compare_digest(mac.encode(), self._mac(link_id).encode()):
            return None
        return (
            Filter("id", "eq", link_id),
            Filter("used_at", "is", None),
            Filter("expires_at", "gt", format_instant(self._clock())),
        )


def _if_any(insert: Insert, rows: list[Row]) -> Insert:
    return replace(insert, rows=insert.rows if rows else [])
