"""What carries mail, as far as the domain knows it: a connection, a message, a refusal."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Literal, Protocol

Stage = Literal["connect", "login", "sender", "recipient", "data"]
"""Where a message was refused. `connect`: nothing was said to the relay, or it said no more."""


# Not frozen: `contextlib` writes tracebacks into exceptions that pass through it.
@dataclass(unsafe_hash=True)
class Refused(Exception):  # noqa: N818  an answer, which may well be expected
    """A relay would not have a message, or could not be reached."""

    stage: Stage
    code: int | None
    """Of RFC 5321, section 4.2; `None` where no answer came."""
    enhanced: str
    """Of RFC 3463, such as `5.1.1`; empty where the relay gave none."""
    sentence: str
    """Says what happened without an address or a word of the message: it may be logged."""


class Session(Protocol):
    """One connection to a relay."""

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:
        """Return when the relay has taken the message for this one recipient. Raises Refused."""


class Transport(Protocol):
    """Opens connections to the relay."""

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Return a connection that lasts for a batch. Entering it raises Refused."""
