"""Mail into a folder on this machine, in place of a relay, for a person who wants to see it.

The folder is a maildir, which mail programs such as mutt open: each message is a file, whole or
not there.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from mailbox import Error, Maildir
from pathlib import Path
from typing import Final

from edge_api.domain.mail.transport import Refused
from edge_api.outgoing.octets import spell
from edge_api.schema.relay_address import MailFolder

_PRIVATE: Final = 0o700
_PARTS: Final = ("tmp", "new", "cur")


class MaildirTransport:
    """A folder; it is made when it is first needed, for the eyes of its owner only."""

    def __init__(self, folder: MailFolder) -> None:
        self._path = folder.path

    @asynccontextmanager
    async def session(self) -> AsyncIterator["MaildirSession"]:
        """Return a way into the folder. Entering it raises Refused."""
        await asyncio.to_thread(make_maildir, self._path)
        yield MaildirSession(self._path)


class MaildirSession:
    """A way into a maildir."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def send(self, sender: str, recipient: str, message: EmailMessage) -> None:  # noqa: ARG002  the headers name both
        """Return when the message is in the folder, on the disk. Raises Refused."""
        octets = spell(message, international=True, line_end="\n")
        try:
            await asyncio.to_thread(_keep, self._path, octets)
        except (OSError, Error) as fault:
            raise Refused("data", None, "", _sentence(fault)) from None


def make_maildir(path: Path) -> None:
    """Make the folder, unless it is there. Raises Refused."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (path, *(path / part for part in _PARTS)):
            folder.mkdir(_PRIVATE, exist_ok=True)
    except OSError as fault:
        raise Refused("connect", None, "", _sentence(fault)) from None


def _keep(path: Path, octets: bytes) -> None:
    Maildir(path, create=False).add(octets)


def _sentence(fault: Exception) -> str:
    """Say what the system says, without the path."""
    reason = fault.strerror if isinstance(fault, OSError) else None
    return f"the mail folder cannot be written: {reason or 'another program is in the way'}"
