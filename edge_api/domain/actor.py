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
    """Empty for a client that acts for itself."""
    name: str
    type: str
    """`api_key` or `access_token`."""
    scopes: frozenset[str]
    tables: frozenset[str] | None = None
    """The administrative tables that it may touch; `None` is all of them."""

    client_id: str = ""
    """The OAuth client that acts, for the credential or, without one, for itself."""

    @property
    def holder(self) -> str:
        """Return whose limits count: the key's, however many clients act for it."""
        return self.credential_id or self.client_id

    @property
    def label(self) -> str:
        """Return how the audit log names the actor."""
        key = f"credential:{self.credential_id}" if self.credential_id else ""
        client = f"client:{self.client_id}" if self.client_id else ""
        return f"{key} {client}".strip() or self.name


OPERATOR = Actor("operator", "operator", "api_key", frozenset())
"""Whoever runs commands on the machine itself; the audit log names it so."""

ANYBODY = Actor("", "anybody", "", frozenset())
"""Whoever comes without a credential."""

SERVICE = Actor("service", "service", "api_key", frozenset())
"""The running service, where nobody asked it to; the audit log names it so."""
