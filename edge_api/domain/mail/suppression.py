"""Whether an address may be mailed at all: the rows of `suppressed_emails` alone decide.

So mail flows again when an administrator deletes the row, whatever else is known of the address.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal

from edge_api.domain.identity import new_id
from edge_api.schema.kinds import spell_instant
from edge_api.schema.mailbox import fold_address
from edge_api.schema.problems import Problem
from edge_api.schema.tables import SUPPRESSED_EMAILS
from edge_api.store.plan import Condition, Insert, Plan, Read, Store


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
