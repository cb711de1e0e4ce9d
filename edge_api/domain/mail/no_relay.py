"""What stands in the place of a relay where none is configured.

Messages that were queued while there was one wait as they would for a relay that is down.
"""

from contextlib import AbstractAsyncContextManager
from typing import Final, Never

from edge_api.domain.mail.outbox import NO_RELAY
from edge_api.domain.mail.transport import Refused, Session

NO_SENDER: Final = "nobody@localhost"
"""Whom mail is from where nobody is named; it never leaves."""


class NoRelay(AbstractAsyncContextManager[Session]):
    """A transport that carries nothing."""

    def session(self) -> AbstractAsyncContextManager[Session]:
        """Return what raises Refused when it is entered."""
        return self

    async def __aenter__(self) -> Never:
        raise Refused("connect", None, "", NO_RELAY)

    async def __aexit__(self, *_exception: object) -> None:
        """Do nothing: it is never entered."""
