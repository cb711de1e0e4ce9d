"""Whether an address may be mailed at all, and the link with which somebody ends that.

Whoever has the link may use it; there is nothing else to prove. What a page says is not known
here.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from secrets import token_hex
from typing import Any, Final, Literal
from urllib.parse import quote

from edge_api.domain.actor import Clock, new_id
from edge_api.schema.kinds import spell_instant
from edge_api.schema.mailbox import fold_address
from edge_api.schema.paths import UNSUBSCRIBE
from edge_api.schema.problems import Problem
from edge_api.schema.tables import EMAIL_UNSUBSCRIBE_TOKENS, SUPPRESSED_EMAILS
from edge_api.store.plan import Condition, Insert, Plan, Read, Store, Update


def fold_recipient(address: str) -> str:
    """Return the one spelling of an address; also of `owner@localhost`, which leads cannot have."""
    try:
        return fold_address(address)
    except ValueError:
        return address.lower()


def read_suppression(address: str) -> Read:
    """Return the plan that finds the suppression of an address, in either of its spellings.

    Administrators may have written a domain as `xn--`, where the service writes Unicode.
    """
    spellings = tuple({fold_recipient(address), address.lower()})
    return Read(SUPPRESSED_EMAILS, ("id",), (Condition("email", "in", spellings),), limit=1)


async def is_suppressed(store: Store, address: str) -> bool:
    """Tell whether an address must not be mailed. Raises Problem where that cannot be read."""
    (outcome,) = await store.run(read_suppression(address))
    return bool(outcome.rows)


@dataclass(frozen=True, slots=True)
class Suppression:
    """An address that is not to be mailed any more, and why."""

    address: str
    reason: Literal["unsubscribe", "bounce", "complaint"]
    metadata: dict[str, Any] | None = None

    def insert(self, now: datetime) -> Insert:
        """Return the plan that writes it down."""
        given = {
            "email": fold_recipient(self.address),
            "reason": self.reason,
            "metadata": self.metadata,
        }
        row = SUPPRESSED_EMAILS.new_row(given, spell_instant(now), partial(new_id, now))
        return Insert(SUPPRESSED_EMAILS, [row])


async def suppress(store: Store, suppression: Suppression, now: datetime, *others: Plan) -> bool:
    """Carry out the other plans together with a suppression, unless the address has one.

    Returns whether it is new. Raises Problem, those of the other plans among them.
    """
    if await is_suppressed(store, suppression.address):
        await store.run(*others)
        return False
    try:
        await store.run(*others, suppression.insert(now))
    except Problem as problem:
        if problem.code != "conflict" or not await is_suppressed(store, suppression.address):
            raise
        await store.run(*others)  # somebody else was first
        return False
    return True


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
