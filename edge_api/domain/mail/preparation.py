"""From an entry to the message, at the moment at which it goes: from the rows as they are then.

So nothing is sent of what was erased, nor to whom has asked for no more mail. A store that cannot
be read ends it: nothing is sent unseen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

from edge_api.domain.mail.acknowledgements import Acknowledgements
from edge_api.domain.mail.compose import Envelope, compose
from edge_api.domain.mail.entry import Entry
from edge_api.domain.mail.letters import ACKNOWLEDGEMENT, DECISION, LETTERS
from edge_api.domain.mail.suppression import is_suppressed
from edge_api.domain.mail.unsubscribe import UnsubscribeLinks
from edge_api.schema.oauth_tables import ACCESS_REQUESTS
from edge_api.schema.paths import CLAIM_CREDENTIAL
from edge_api.schema.table import Row
from edge_api.schema.tables import LEADS
from edge_api.store.plan import Condition, Read, Store


@dataclass(frozen=True, slots=True)
class Withheld:
    """There is no message: why, in a sentence for the log."""

    reason: str
    is_lasting: bool = True
    """Whether nobody can mend it."""


@dataclass(frozen=True, slots=True)
class Letterhead:
    """What is the same on every letter."""

    sender: str
    """A mailbox."""
    site_url: str
    site_title: Callable[[], str]
    """As the build that is served now has it."""


class Preparation:
    """Prepares the messages of one installation."""

    def __init__(
        self,
        store: Store,
        head: Letterhead,
        acknowledgements: Acknowledgements,
        links: UnsubscribeLinks,
    ) -> None:
        self._store = store
        self._head = head
        self._acknowledgements = acknowledgements
        self._links = links

    async def prepare(self, entry: Entry) -> EmailMessage | Withheld:
        """Return the message that an entry stands for.

        Raises Problem, and what composing raises.
        """
        if await is_suppressed(self._store, entry.recipient):
            return Withheld("the address is suppressed", is_lasting=not entry.persists)
        subject = await self._read_subject(entry)
        if subject is None:
            return Withheld(f"the {'request' if entry.letter == DECISION else 'lead'} is gone")
        if entry.letter == ACKNOWLEDGEMENT:
            reason = await self._acknowledgements.hindrance(entry, subject)
            if reason is not None:
                return Withheld(reason)
        template = LETTERS[entry.template].template
        return compose(template, await self._envelope(entry), self._values(entry, subject))

    async def _read_subject(self, entry: Entry) -> Row | None:
        table = ACCESS_REQUESTS if entry.letter == DECISION else LEADS
        where = (Condition("id", "eq", entry.subject_id),)
        (outcome,) = await self._store.run(Read(table, where=where))
        return outcome.rows[0] if outcome.rows else None

    async def _envelope(self, entry: Entry) -> Envelope:
        unasked = entry.letter == ACKNOWLEDGEMENT
        return Envelope(
            message_id=entry.id,
            sender=self._head.sender,
            recipient=entry.recipient,
            date=entry.created_at,
            host=urlsplit(self._head.site_url).hostname or "localhost",
            unsubscribe_url=await self._links.link(entry.recipient) if unasked else None,
        )

    def _values(self, entry: Entry, subject: Row) -> dict[str, Any]:
        site = {"site_title": self._head.site_title(), "site_url": self._head.site_url}
        if entry.letter == ACKNOWLEDGEMENT:
            return site
        if entry.letter == DECISION:
            return {**site, **self._decision(subject)}
        return {**site, "lead": subject}

    def _decision(self, request: Row) -> dict[str, Any]:
        return {
            "approved": request["status"] != "denied",
            "claim_uri": f"{self._head.site_url}{CLAIM_CREDENTIAL}",
            "expires_at": request["expires_at"],
        }
