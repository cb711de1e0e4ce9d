"""Links that sign the owner in to the desk: stored without their tokens, used once.

Anybody may request a link by mail. Browsers where nobody has signed in yet (strangers) share one
limit of mails: the last link stays valid until the next may be mailed, so that no stranger can lock
the owner out. Other browsers have limits of their own.
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
STRANGER: Final = "stranger"  # `asked_by` of the links for browsers where nobody has signed in
STRANGER_LIFETIME: Final = timedelta(days=1) / 5
"""The lifetime of a link for a stranger, and the least time between two mails: five a day."""
_COOKIE_PURPOSE: Final = "desk browser"


class DeskLinks:
    """Makes and checks the links to the desk; their tokens are derived from `secret`."""

    def __init__(self, store: Store, clock: Clock, secret: bytes, site_url: str) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._site_url = site_url

    async def create(self) -> str:
        """Store a link and return its address. Raises Problem."""
        row = self.new_row()
        await self._store.run(*self.store_queries(row))
        return self.address(row["id"])

    def address(self, link_id: str) -> str:
        """Return the address of a link, with its token: the HMAC-SHA-256 of the id."""
        return f"{self._site_url}{DESK}link/{link_id}.{self._mac(link_id)}/"

    def _mac(self, link_id: str) -> str:
        return hmac.digest(self._secret, f"desk link\n{link_id}".encode(), "sha256").hex()

    def new_browser_cookie(self) -> str:
        """Return a cookie for a browser where somebody has signed in; it is no credential."""
        return sign(self._secret.hex(), _COOKIE_PURPOSE)

    def check_browser_cookie(self, cookie: str) -> str:
        """Return the cookie if `new_browser_cookie` made it, else an empty text."""
        return cookie if is_signed(self._secret.hex(), _COOKIE_PURPOSE, cookie) else ""

    def is_row_usable(self, row: Row) -> bool:
        """Return whether the link of a row can still be used."""
        return row["used_at"] is None and row["expires_at"] > format_instant(self._clock())

    def new_row(self, target: str = DESK, *, is_known: bool = True) -> Row:
        """Return the row of a new link to a page of the desk, without storing it.

        `is_known` is true for a terminal and for a browser where somebody has signed in.
        """
        now = self._clock()
        given = {
            "expires_at": format_instant(now + (LIFETIME if is_known else STRANGER_LIFETIME)),
            "target": target,
            "asked_by": "" if is_known else STRANGER,
        }
        return DESK_LINKS.new_row(given, format_instant(now), partial(new_id, now))

    def store_queries(self, row: Row, entries: Sequence[Insert] = ()) -> Sequence[Query]:
        """Return the queries that store a link, and the `entries` of the outbox that mail it.

        A link for a stranger is not stored while an earlier one can be used, even if both are
        requested at the same time.
        """
        insert = Insert(DESK_LINKS, [row])
        audit = audit_entry(OPERATOR, "issue", DESK_LINKS, 1, self._clock())
        if not row["asked_by"]:
            return (insert, audit, *entries)
        unanswered = (
            Filter("asked_by", "eq", STRANGER),
            Filter("used_at", "is", None),
            Filter("expires_at", "gt", row["created_at"]),
            # A link from more than a minute ahead was made before the clock was set back.
            Filter("created_at", "lt", format_instant(self._clock() + timedelta(minutes=1))),
        )
        new_link = Read(DESK_LINKS, where=(Filter("id", "eq", row["id"]),))
        return (
            InsertFromRead(
                Read(DESK_LINKS, where=unanswered, limit=1),
                lambda rows: replace(insert, rows=[] if rows else insert.rows),
            ),
            *(
                InsertFromRead(new_link, partial(_insert_if_any, each))
                for each in (audit, *entries)
            ),
        )

    async def is_token_usable(self, token: str) -> bool:
        """Return whether a token's link can still be used. Raises Problem `unavailable`."""
        where = self._where(token)
        if where is None:
            return False
        return bool(await read_all(self._store, Read(DESK_LINKS, ("id",), where)))

    async def consume(self, token: str) -> str:
        """Use up a link; return its target, or an empty text if the link cannot be used."""
        where = self._where(token)
        if where is None:
            return ""
        values = {"used_at": format_instant(self._clock())}
        (done,) = await self._store.run(Update(DESK_LINKS, values, where))
        return str(done.rows[0]["target"]) if done.rows else ""

    def _where(self, token: str) -> Where | None:
        """Return the filters of the usable link with a token; `None` if the token is not ours."""
        link_id, _, mac = token.partition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(link_id).encode()):
            return None
        return (
            Filter("id", "eq", link_id),
            Filter("used_at", "is", None),
            Filter("expires_at", "gt", format_instant(self._clock())),
        )


def _insert_if_any(insert: Insert, rows: list[Row]) -> Insert:
    """Return the insert, without its rows if no row was read."""
    return replace(insert, rows=insert.rows if rows else [])
