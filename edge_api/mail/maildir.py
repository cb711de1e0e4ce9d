"""Mail into a folder on this machine, and a message as octets for any carrier.

The folder is a maildir, which mail programs such as mutt open: each message is a file, whole or
not there.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from email.headerregistry import AddressHeader
from email.message import EmailMessage
from email.policy import EmailPolicy
from mailbox import Error, Maildir
from pathlib import Path
from typing import Final

from edge_api.db.email_address import MailFolder
from edge_api.mail.messages import Refused


def is_international(message: EmailMessage) -> bool:
    """Tell whether an address in a header is beyond ASCII, so that SMTPUTF8 is needed."""
    return any(map(_is_beyond_ascii, message.values()))


def spell(message: EmailMessage, *, international: bool, line_end: str = "\r\n") -> bytes:
    """Return the octets of a message.

    Where the carrier takes no addresses beyond ASCII, a Reply-To that has one is left out: there
    is no other way to write it (RFC 6531, section 3.4), and the message is worth more.
    """
    policy = message.policy
    assert isinstance(policy, EmailPolicy)  # noqa: S101  the one that has `utf8`
    if not international and _is_beyond_ascii(message["Reply-To"]):
        message = copy(message)
        del message["Reply-To"]
    return message.as_bytes(policy=policy.clone(utf8=international, linesep=line_end))


def _is_beyond_ascii(header: object) -> bool:
    return isinstance(header, AddressHeader) and not all(
        address.addr_spec.isascii() for address in header.addresses
    )


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
