"""What is written when there is something to say by mail: an entry in the outbox, or why not.

Both go into the transaction of what they tell of, so that no message is lost and none is sent of
what was rolled back. It sends nothing, and does not ask the DNS.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from edge_api.domain.actor import Clock
from edge_api.domain.mail.compose import ACKNOWLEDGEMENT, DECISION, NOTIFICATION, Letter
from edge_api.domain.mail.entry import keep, new_entry, transition
from edge_api.schema.mailbox import fold_address, parse_mailbox
from edge_api.schema.table import Row
from edge_api.store.plan import Plan

NO_RELAY: Final = "mail is not configured: SMTP_URL is not set"
NO_OWNER: Final = "OWNER_EMAIL is not set"
NOBODY: Final = "owner"
"""Stands in the log for the address of an owner who gave none."""
ADDRESS_LONGEST: Final = 254
"""Octets of an address (RFC 5321, section 4.5.3.1.3: a path of 256, with its brackets)."""
LOCAL_PART_LONGEST: Final = 64
"""Octets (RFC 5321, section 4.5.3.1.1)."""

_RESERVED: Final = frozenset(
    {
        *("test", "invalid", "example", "localhost"),  # RFC 6761
        *("example.com", "example.net", "example.org"),  # RFC 2606, section 3
        *("local", "onion", "alt", "home.arpa", "internal"),  # RFC 6762, 7686, 9476, 8375; ICANN
    }
)
"""Domains where no mail is ever received, and all below them."""


@dataclass(frozen=True, slots=True)
class MailRules:
    """What the settings say about who is written to."""

    configured: bool
    """Whether there is a relay."""
    owner: str | None
    acknowledges: bool


def _ignore() -> None:
    pass


class Outbox:
    """Herald of leads, and of decisions about access."""

    def __init__(self, rules: MailRules, clock: Clock, wake: Callable[[], None] = _ignore) -> None:
        self._rules = rules
        self._clock = clock
        self._wake = wake

    async def plans(self, lead: Row) -> tuple[Plan, ...]:
        """Return what tells the owner of a lead and, where that is wanted, thanks its sender."""
        if lead["status"] == "spam":
            return ()
        plans = self._notify(lead)
        if self._rules.acknowledges:
            plans += self._post(ACKNOWLEDGEMENT, lead["email"], lead, undeliverable(lead["email"]))
        return plans

    def wake(self) -> None:
        """Have what was written sent at once."""
        self._wake()

    def decision(self, request: Row) -> tuple[Plan, ...]:
        """Return what tells somebody that their request for access is decided."""
        if not self._rules.configured or request["email"] is None:
            return ()
        return self._post(DECISION, request["email"], request, undeliverable(request["email"]))

    def _notify(self, lead: Row) -> tuple[Plan, ...]:
        # The owner's address is the operator's word: `owner@localhost` is good in a maildir.
        owner = self._rules.owner
        return self._post(NOTIFICATION, owner or NOBODY, lead, None if owner else NO_OWNER)

    def _post(
        self, letter: Letter, recipient: str, subject: Row, hindrance: str | None
    ) -> tuple[Plan, ...]:
        now = self._clock()
        entry = new_entry(letter, recipient, subject["id"], now)
        reason = hindrance if self._rules.configured else NO_RELAY
        if reason is not None:
            return (transition(entry, "suppressed", now, reason),)
        return keep(entry), transition(entry, "pending", now)


def undeliverable(address: str) -> str | None:
    """Return why an address is never mailed, in a sentence without it; None where it may be."""
    try:
        fold_address(address)
        mailbox = parse_mailbox(address)
    except ValueError:
        return "The address cannot be written on an envelope"
    if len(mailbox.address.encode()) > ADDRESS_LONGEST:
        return f"The address is longer than {ADDRESS_LONGEST} octets"
    if len(mailbox.local_part.encode()) > LOCAL_PART_LONGEST:
        return f"The address has more than {LOCAL_PART_LONGEST} octets before the @"
    if _is_reserved(mailbox.domain.lower()):
        return "The address is in a domain that is reserved and receives no mail"
    return None


def _is_reserved(domain: str) -> bool:
    labels = domain.split(".")
    return any(".".join(labels[start:]) in _RESERVED for start in range(len(labels)))
