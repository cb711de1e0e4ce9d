"""A way to a database that cuts connections at random bytes, and around each COMMIT."""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from typing import Literal, Self, get_args
from urllib.parse import urlsplit

COMMIT = b"COMMIT\x00"
MAX_CUT_OFFSET = 20_000  # bytes of one direction after which a connection is cut at the latest

Plan = Literal[
    "answer lost",
    "answer cut short",
    "commit cut short",
    "cut on the way up",
    "cut on the way down",
]


class Cutter:
    """Passes bytes on, and cuts each connection once, until it has cut so many."""

    def __init__(self, url: str, number: int) -> None:
        self._target = urlsplit(url)
        self._number = number
        self._random = random.Random(7)  # noqa: S311  the same plans in each run
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.cuts: Counter[Plan] = Counter()
        self.done = asyncio.Event()

    @property
    def url(self) -> str:
        """Return the URL of the database by this way."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        netloc = f"{self._target.username}@127.0.0.1:{port}"
        return self._target._replace(netloc=netloc).geturl()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        host, port = self._target.hostname, self._target.port
        there_reader, there_writer = await asyncio.open_connection(host, port)
        way = _Way(self._random, (reader, writer), (there_reader, there_writer))
        try:
            with suppress(OSError):
                if self.cuts.total() >= self._number:
                    await way.keep()
                elif (plan := await way.cut()) is not None:
                    self.cuts[plan] += 1
        finally:
            writer.transport.abort()
            there_writer.transport.abort()
            self._tasks.discard(task)
            if self.cuts.total() >= self._number:
                self.done.set()


_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Way:
    """One connection, between a client and the server."""

    def __init__(self, chance: random.Random, client: _Stream, server: _Stream) -> None:
        self._client, self._server = client, server
        self._plan: Plan = chance.choice(get_args(Plan))
        self._offset = chance.randint(400, MAX_CUT_OFFSET)
        self._commits = chance.randint(1, 12)
        self._kept = chance.randint(0, len(COMMIT) - 1)
        self._is_answer = False
        """True if the server's next message answers the COMMIT."""

    async def keep(self) -> None:
        """Pass on what both say until one ends."""
        self._offset = self._commits = 1 << 60
        await self._run()

    async def cut(self) -> Plan | None:
        """Pass on what both say until the plan is carried out, and return it; `None`: one ended."""
        return self._plan if await self._run() else None

    async def _run(self) -> bool:
        tasks = [asyncio.create_task(self._up()), asyncio.create_task(self._down())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return any(task.result() for task in done)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _up(self) -> bool:
        """Pass on what the client says; return whether the plan has cut that."""
        reader, writer = self._client[0], self._server[1]
        while said := await reader.read(65536):
            self._commits -= COMMIT in said
            is_last = COMMIT in said and self._commits <= 0
            if is_last and self._plan == "commit cut short":
                return await _send(writer, said[: said.index(COMMIT) + self._kept])
            self._is_answer = is_last and self._plan in ("answer lost", "answer cut short")
            if self._plan == "cut on the way up":
                self._offset -= len(said)
                if self._offset < 0:
                    return await _send(writer, said[: self._offset])
            await _send(writer, said)
        return False

    async def _down(self) -> bool:
        """Pass on what the server says; return whether the plan has cut that."""
        reader, writer = self._server[0], self._client[1]
        while said := await reader.read(65536):
            if self._is_answer and self._plan == "answer lost":
                return True
            if self._is_answer:
                return await _send(writer, said[: self._kept])
            if self._plan == "cut on the way down":
                self._offset -= len(said)
                if self._offset < 0:
                    return await _send(writer, said[: self._offset])
            await _send(writer, said)
        return False


async def _send(writer: asyncio.StreamWriter, said: bytes) -> bool:
    writer.write(said)
    await writer.drain()
    return True
