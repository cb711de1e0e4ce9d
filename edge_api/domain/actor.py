"""Who asks: a value that every decision takes as an argument."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

Clock = Callable[[], datetime]
"""Gives the present instant, aware and in UTC. A parameter, so that tests choose the time."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The holder of a valid credential."""

    credential_id: str
    name: str
    type: str
    """`api_key` or `access_token`."""
    scopes: frozenset[str]
    tables: frozenset[str] | None = None
    """The administrative tables that it may touch; `None` is all of them."""

    @property
    def label(self) -> str:
        """Return how the audit log names the actor."""
        return f"credential:{self.credential_id}"


OPERATOR = Actor("operator", "operator", "api_key", frozenset())
"""Whoever runs commands on the machine itself; the audit log names it so."""
