"""What a worker has from its supervisor: a number, listening sockets, and a line between the two.

Both sides of it are here: the option that one gives and the other reads, what one says on the line
and the other hears. It knows nothing of what is served.
"""

import argparse
import asyncio
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

_OPTION: Final = "--inherited"


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What a worker finds open when it starts, by file descriptor."""

    number: int
    """Which of the workers it is, from 1 on."""
    greets: bool
    """Whether it is the one that tells the person at the terminal."""
    line: int
    sockets: tuple[int, ...]

    def as_options(self) -> list[str]:
        """Return the option by which the worker reads it."""
        numbers = (self.number, int(self.greets), self.line, *self.sockets)
        return [_OPTION, ",".join(map(str, numbers))]

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what the option says. Raises ValueError."""
        number, greets, line, first, *more = map(int, text.split(","))
        return cls(number, bool(greets), line, (first, *more))

    def take(self) -> tuple[socket.socket, list[socket.socket]]:
        """Return the line and the listening sockets; no child of this process has them.

        Raises OSError where nothing of the kind was inherited.
        """
        line, *sockets = [_take(descriptor) for descriptor in (self.line, *self.sockets)]
        return line, sockets


def add_option(parser: argparse.ArgumentParser) -> None:
    """Declare the option, which is for the supervisor alone."""
    parser.add_argument(_OPTION, type=Inheritance.read, help=argparse.SUPPRESS)


def _take(descriptor: int) -> socket.socket:
    os.set_inheritable(descriptor, False)  # noqa: FBT003  the standard library's own form
    return socket.socket(fileno=descriptor)


class Line:
    """One end of the line.

    The worker says once how it is, and takes no connection before the supervisor has said that it
    is wanted. When the supervisor's end is closed, the worker is not needed any more. That is so,
    too, when the supervisor dies, however it dies.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> Self:
        """Return the line whose end is this socket."""
        return cls(*await asyncio.open_connection(sock=end))

    def say(self, fault: str) -> None:
        """Tell the supervisor that this worker can serve, and what is wrong, if anything is."""
        self._writer.write(f"{' '.join(fault.splitlines())}\n".encode())

    async def hear(self) -> str | None:
        """Return what the worker says is wrong, empty if nothing is; `None` when it ends first."""
        said = await self._reader.readline()
        return said.decode().strip() if said.endswith(b"\n") else None

    def want(self) -> None:
        """Tell the worker to take connections."""
        self._writer.write(b"\n")

    async def wanted(self) -> bool:
        """Return when the supervisor has decided about this worker; tell whether it is wanted."""
        with suppress(OSError):
            return bool(await self._reader.read(1))
        return False

    async def last(self) -> None:
        """Return when the other side has closed its end, or is dead."""
        with suppress(OSError):  # what was said to it and not heard, when it died
            await self._reader.read()

    def close(self) -> None:
        """Close this end."""
        self._writer.close()
