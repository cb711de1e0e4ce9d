"""What a mail service says came of messages later on: bounces, complaints, wishes to unsubscribe.

Each of its reports takes effect once, however often it is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, get_args

import orjson

from edge_api.domain.actor import Clock, new_id
from edge_api.domain.idempotency import Idempotency, Remember, make_claim
from edge_api.domain.mail.unsubscribe import Suppression, suppress
from edge_api.schema.kinds import spell_instant
from edge_api.schema.tables import EMAIL_SEND_LOG
from edge_api.store.plan import Condition, Insert, Order, Read, Store

ReportType = Literal["email.bounced", "email.complained", "email.unsubscribed"]
REPORT_TYPES: Final[tuple[ReportType, ...]] = get_args(ReportType)
Reason = Literal["unsubscribe", "bounce", "complaint"]
Status = Literal["bounced", "soft_bounced", "complained", "suppressed"]

REMEMBERED_FOR: Final = timedelta(days=7)
"""Longer than any sender repeats a report that it takes for lost."""
_TAKEN: Final = 200
_UNKNOWN_TEMPLATE: Final = "system"
"""Stands for the template of a message that the log does not know."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one message."""

    type: ReportType
    email: str
    message_id: str | None = None
    """As the log knows it, or as the `Message-ID` header has it."""
    is_transient: bool = False
    """Whether a later message may well arrive."""

    @property
    def effect(self) -> tuple[Status, Reason | None]:
        """Return what the log says of it, and why nothing more is mailed there, if so."""
        if self.is_transient:
            return "soft_bounced", None
        return _EFFECTS[self.type]


_EFFECTS: Mapping[ReportType, tuple[Status, Reason]] = MappingProxyType(
    {
        "email.bounced": ("bounced", "bounce"),
        "email.complained": ("complained", "complaint"),
        "email.unsubscribed": ("suppressed", "unsubscribe"),
    }
)


class Feedback:
    """Takes the reports of a mail service; `secret` is the key of what is only kept as a hash."""

    def __init__(self, store: Store, clock: Clock, secret: bytes) -> None:
        self._store = store
        self._clock = clock
        self._secret = secret
        self._once = Idempotency(store, clock, kept_for=REMEMBERED_FOR, status=_TAKEN)

    async def take(self, report: Report, delivery_id: str) -> tuple[bytes, bool]:
        """Log a report, and suppress its address where that is due, in one transaction.

        Returns the answer in JSON, and whether it was given before: `delivery_id` is that of
        every repetition. Raises Problem.
        """
        claim = make_claim(self._secret, "email hook", delivery_id, b"")
        answer, replayed = await self._once.once(claim, partial(self._take, report, delivery_id))
        return answer.encode(), replayed

    async def _take(self, report: Report, delivery_id: str, remember: Remember) -> str:
        status, reason = report.effect
        answer = orjson.dumps({"status": status, "suppressed": reason is not None}).decode()
        plans = (*remember(answer), await self._logged(report, status, delivery_id))
        if reason is None:
            await self._store.run(*plans)
        else:
            suppression = Suppression(report.email, reason, {"webhook_id": delivery_id})
            await suppress(self._store, suppression, self._clock(), *plans)
        return answer

    async def _logged(self, report: Report, status: Status, delivery_id: str) -> Insert:
        """Return the plan of the row that says so in the log."""
        message_id, template = await self._message(report.message_id)
        given = {
            "message_id": message_id,
            "template_name": template,
            "recipient_email": report.email,
            "status": status,
            "metadata": {"webhook_id": delivery_id, "event": report.type},
        }
        now = self._clock()
        row = EMAIL_SEND_LOG.new_row(given, spell_instant(now), partial(new_id, now))
        return Insert(EMAIL_SEND_LOG, [row])

    async def _message(self, given: str | None) -> tuple[str | None, str]:
        """Return how the log knows a message, and by which template it was made."""
        if given is None:
            return None, _UNKNOWN_TEMPLATE
        bare = given.strip().removeprefix("<").removesuffix(">")
        names = tuple({given, bare, bare.partition("@")[0]})
        where, newest = (
            (Condition("message_id", "in", names),),
            (Order("created_at", descending=True),),
        )
        columns = ("message_id", "template_name")
        (found,) = await self._store.run(Read(EMAIL_SEND_LOG, columns, where, newest, limit=1))
        if not found.rows:
            return given, _UNKNOWN_TEMPLATE
        return found.rows[0]["message_id"], found.rows[0]["template_name"]
