"""A way to a server that a test can cut: in silence, as a network does, or in mid-sentence."""

import asyncio
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """Passes bytes on in both directions, until a test stops it."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.last_word = b""
        """What, when a client says it, the server still hears; the client hears no more."""
        self.unheard = b""
        """What, when a client says it, the server does not hear; the connection ends."""
        self.cut_at = b""
        """What, when a client says it, the server still hears; then the proxy is cut."""
        self.delay = 0.0
        """Seconds for which each piece is held up."""
        self._refusing = False
        self.refused = asyncio.Event()
        """Set once a connection was not taken."""

    @property
    def url(self) -> str:
        """Return the URL of the database by way of the proxy."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user = f"{self._target.username}@" if self._target.username else ""
        return urlunsplit(self._target._replace(netloc=f"{user}127.0.0.1:{port}"))

    def cut(self) -> None:
        """Let nothing through from now on; no connection learns of it."""
        self._open.clear()

    def refuse(self) -> None:
        """End every connection from now on, at once."""
        self._refusing = True
        for writer in self._clients:
            writer.transport.abort()

    def refuse_new(self) -> None:
        """Take no connection from now on; those that are there stay."""
        self._refusing = True

    def lead_to(self, url: str) -> None:
        """Connect those who come from now on to another server."""
        self._target = urlsplit(url)

    def fix(self) -> None:
        """Let through what waits, and what comes."""
        self._refusing = False
        self._open.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._server is not None
        self._server.close()
        self.refuse()
        self._open.set()
        await asyncio.gather(*self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._refusing:
            self.refused.set()
            writer.transport.abort()
            return
        self._tasks.add(task)
        self._clients.add(writer)
        host, port = self._target.hostname, self._target.port
        try:
            there_reader, there_writer = await asyncio.open_connection(host, port)
            try:
                with suppress(OSError):
                    await self._pass_both_ways((reader, writer), (there_reader, there_writer))
            finally:
                there_writer.close()
        finally:
            writer.transport.abort()
            self._tasks.discard(task)
            self._clients.discard(writer)

    async def _pass_both_ways(self, client: "_Stream", server: "_Stream") -> None:
        answers = asyncio.create_task(self._pass_on(server[0], client[1]))
        try:
            while said := await client[0].read(65536):
                await self._open.wait()
                if self.last_word and self.last_word in said:
                    answers.cancel()
                    await asyncio.wait({answers})  # two cannot read at once
                    server[1].write(said)
                    await server[0].read(1)  # it has answered: the statement is done
                    return
                if self.unheard and self.unheard in said:
                    return
                if self.cut_at and self.cut_at in said:
                    self.cut_at = b""
                    self.cut()
                await asyncio.sleep(self.delay)
                server[1].write(said)
                await server[1].drain()
        finally:
            answers.cancel()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while said := await reader.read(65536):
                await self._open.wait()
                writer.write(said)
                await writer.drain()
            writer.close()


_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
