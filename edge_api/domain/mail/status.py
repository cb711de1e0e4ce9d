"""Whether mail flows, for readiness: a warning where somebody has to look, and never more.

Leads are taken whatever happens to mail. It says states and no addresses: anybody may read it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from edge_api.domain.actor import Clock
from edge_api.domain.health import Check
from edge_api.domain.mail.claims import LEASE
from edge_api.domain.mail.dispatcher import Dispatcher
from edge_api.domain.mail.letters import LETTERS
from edge_api.domain.mail.outbox import MailRules
from edge_api.domain.mail.state import READ_STATE, SendState, state_of
from edge_api.domain.mail.suppression import read_suppression
from edge_api.schema.kinds import spell_instant
from edge_api.schema.outbox_tables import EMAIL_OUTBOX
from edge_api.schema.problems import Problem
from edge_api.store.plan import Condition, Outcome, Read, Store

_ALIVE = Condition("dead_at", "is", None)
_DEAD = Condition("dead_at", "is", None, negated=True)
_LOST = Condition(
    "template_name", "in", tuple(name for name, letter in LETTERS.items() if letter.persists_for)
)
"""What somebody has to look after: anybody can have us write in vain to an address they made up."""


@dataclass(frozen=True, slots=True)
class MailStatus:
    """Looks at the outbox when asked."""

    store: Store
    clock: Clock
    rules: MailRules
    dispatcher: Dispatcher | None = None
    """The one of this process, where there is one."""

    async def check(self) -> Check:
        """Return what readiness says of mail."""
        try:
            sentences = [*self._settings(), *await self._rows(), *self._heartbeat()]
        except Problem:
            return Check("warn", "the state of mail cannot be read")
        return Check("warn", "; ".join(sentences)) if sentences else Check("pass")

    def _settings(self) -> Iterator[str]:
        if self.rules.configured and self.rules.owner is None:
            yield "mail has a relay, but nobody to tell of leads: set OWNER_EMAIL"

    async def _rows(self) -> Sequence[str]:
        now = self.clock()
        owner = self.rules.owner or ""
        found, dead, suppressed = await self.store.run(
            READ_STATE, _any(_DEAD, _LOST), read_suppression(owner)
        )
        state = state_of(found.rows, now)
        late = await self.store.run(*(_late(queue, state, now) for queue in state.times_to_live))
        return [*_judge_state(state, now), *_judge_rows(dead, suppressed, late)]

    def _heartbeat(self) -> Iterator[str]:
        beat = self.dispatcher and self.dispatcher.beat
        if beat and self.clock() - beat > LEASE:
            yield "the dispatcher of mail does not move: restart the service"


def _judge_state(state: SendState, now: datetime) -> Iterator[str]:
    if state.is_paused(now) and state.retry_after_until is not None:
        until = spell_instant(state.retry_after_until)
        yield f"mail is paused until {until}: email_send_log says why"


def _judge_rows(dead: Outcome, suppressed: Outcome, late: Sequence[Outcome]) -> Iterator[str]:
    if dead.rows:
        yield (
            "mail was given up: python -m edge_api mail list says why, mail retry sends it again"
        )
    if any(outcome.rows for outcome in late):
        yield "mail waits for longer than half of its time to live: look at the relay"
    if suppressed.rows:
        yield "the owner's address is suppressed: delete its row in suppressed_emails"


def _late(queue: str, state: SendState, now: datetime) -> Read:
    since = spell_instant(now - state.times_to_live[queue] / 2)
    return _any(_ALIVE, Condition("queue", "eq", queue), Condition("queued_at", "lte", since))


def _any(*where: Condition) -> Read:
    return Read(EMAIL_OUTBOX, ("id",), where, limit=1)
