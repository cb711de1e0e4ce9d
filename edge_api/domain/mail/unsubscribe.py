"""The link with which somebody ends mail to their address: one secret for each address.

Whoever has the link may use it; there is nothing else to prove. What a page says is not known
here.
"""

from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Final
from urllib.parse import quote

from edge_api.domain.actor import Clock
from edge_api.domain.identity import new_id
from edge_api.domain.mail.suppression import (
    Suppression,
    fold_recipient,
    is_suppressed,
    suppress,
)
from edge_api.schema.kinds import spell_instant
from edge_api.schema.paths import UNSUBSCRIBE
from edge_api.schema.problems import Problem
from edge_api.schema.tables import EMAIL_UNSUBSCRIBE_TOKENS
from edge_api.store.plan import Condition, Insert, Read, Store, Update

_TOKEN_BYTES: Final = 32
_SHOWN_FROM: Final = 3
"""Characters of a local part from which on its first one is shown."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Whom a link belongs to."""

    address: str
    is_suppressed: bool
    """Whether nothing is mailed there anyway."""

    @property
    def masked(self) -> str:
        """Return the address so that its owner knows it and others do not learn it."""
        local, _, domain = self.address.rpartition("@")
        first = local[:1] if len(local) >= _SHOWN_FROM else ""
        return f"{first}\u2026@{domain}"


class UnsubscribeLinks:
    """The links of one installation."""

    def __init__(self, store: Store, clock: Clock, site_url: str) -> None:
        self._store = store
        self._clock = clock
        self._site_url = site_url

    async def link(self, address: str) -> str:
        """Return the link of an address, the same each time. Raises Problem `unavailable`."""
        token = await self._token(address) or await self._make(address)
        return f"{self._site_url}{UNSUBSCRIBE}?token={quote(token)}"

    async def look(self, token: str) -> Subscriber:
        """Return whom a token belongs to; nothing is changed. Raises Problem `not_found`."""
        mine = (Condition("token", "eq", token),)
        (outcome,) = await self._store.run(Read(EMAIL_UNSUBSCRIBE_TOKENS, ("email",), mine))
        if not outcome.rows:
            raise Problem("not_found", "There is no such link")
        address: str = outcome.rows[0]["email"]
        return Subscriber(address, await is_suppressed(self._store, address))

    async def unsubscribe(self, token: str) -> bool:
        """Mail nothing more to whom a token belongs; return whether anything would have been.

        That the token was used and that the address is suppressed is one transaction. Where an
        administrator has deleted the suppression, the token works again. Raises Problem
        `not_found`.
        """
        subscriber, now = await self.look(token), self._clock()
        unused = (Condition("token", "eq", token), Condition("used_at", "is", None))
        use = Update(EMAIL_UNSUBSCRIBE_TOKENS, {"used_at": spell_instant(now)}, unused)
        suppression = Suppression(subscriber.address, "unsubscribe")
        return await suppress(self._store, suppression, now, use)

    async def _token(self, address: str) -> str | None:
        mine = (Condition("email", "eq", fold_recipient(address)),)
        (outcome,) = await self._store.run(Read(EMAIL_UNSUBSCRIBE_TOKENS, ("token",), mine))
        tokens: list[str] = [row["token"] for row in outcome.rows]
        return tokens[0] if tokens else None

    async def _make(self, address: str) -> str:
        now = self._clock()
        given = {"email": fold_recipient(address), "token": token_hex(_TOKEN_BYTES)}
        row = EMAIL_UNSUBSCRIBE_TOKENS.new_row(given, spell_instant(now), partial(new_id, now))
        try:
            await self._store.run(Insert(EMAIL_UNSUBSCRIBE_TOKENS, [row]))
        except Problem as problem:
            made = await self._token(address) if problem.code == "conflict" else None
            if made is None:
                raise
            return made  # another was first
        return given["token"]
