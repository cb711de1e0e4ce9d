"""Runs a program of `node_modules` with the environment's own Node.js."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.patience import patience
from tools.judges import MODULES, NODE

FOLDER = Path(__file__).parent
CONFORMANCE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / ".bin" / "mcp-inspector"


LINE_MOST = 2**22
"""Bytes; the longest line of a program is a list of tools in JSON."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit status and the output of a program."""

    status: int
    said: str
    complained: str

    def __str__(self) -> str:
        return f"exit status {self.status}\n{self.said}\n{self.complained}"


@dataclass(frozen=True, slots=True)
class Running:
    """A program that runs."""

    process: asyncio.subprocess.Process
    complaints: IO[bytes]

    async def lines(self) -> AsyncIterator[str]:
        """Yield what it says, a line each, as soon as it is said."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            yield line.decode()

    async def outcome(self, said: list[str]) -> Outcome:
        """Wait until it has ended; `said` are its lines."""
        status = await self.process.wait()
        self.complaints.seek(0)
        return Outcome(status, "".join(said), self.complaints.read().decode())


@asynccontextmanager
async def program(script: Path, *words: str, folder: Path) -> AsyncIterator[Running]:
    """Start a program in a folder of its own, and kill it at the end if it still runs."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    with (folder / "complaints").open("w+b") as complaints:
        process = await asyncio.create_subprocess_exec(
            str(NODE),
            str(script),
            *words,
            cwd=folder,
            # What a person has set up for these programs at home is not asked for.
            env={**kept, "HOME": str(folder), "NO_COLOR": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=complaints,
            limit=LINE_MOST,
        )
        try:
            async with asyncio.timeout(patience(150)):
                yield Running(process, complaints)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def run(script: Path, *words: str, folder: Path) -> Outcome:
    """Run a program to its end."""
    async with program(script, *words, folder=folder) as running:
        return await running.outcome([line async for line in running.lines()])
