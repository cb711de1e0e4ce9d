"""The letters that the service writes: which there are, how urgent each is, how long it is tried.

What they say is composed elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Literal

from edge_api.domain.mail.wording import TemplateName

Queue = Literal["auth", "transactional"]
QUEUES: Final[tuple[Queue, ...]] = ("auth", "transactional")
"""In the order in which they are sent from."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One kind of letter."""

    template: TemplateName
    queue: Queue
    persists_for: timedelta | None = None
    """How long it is tried each hour when the usual attempts are used up; else not at all."""


NOTIFICATION: Final = Letter("lead_notification", "transactional", timedelta(hours=72))
"""To the owner. It may come late, but it must come: somebody waits for an answer."""
ACKNOWLEDGEMENT: Final = Letter("lead_acknowledgement", "transactional")
"""To whoever sent a lead."""
DECISION: Final = Letter("access_decision", "auth")
"""To whoever asked for access."""

LETTERS: Mapping[str, Letter] = MappingProxyType(
    {letter.template: letter for letter in (NOTIFICATION, ACKNOWLEDGEMENT, DECISION)}
)
