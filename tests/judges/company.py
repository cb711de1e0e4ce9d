"""Programs that need a person at their side, who opens what they print."""

import re
from pathlib import Path

from tests.judges.node import Outcome, program
from tests.judges.person import Person

OPENED = re.compile(r"^OPEN (\S+)")
"""The line with which our own programs name the address to open."""


async def accompany(
    script: Path, *words: str, folder: Path, person: Person, asks: re.Pattern[str]
) -> Outcome:
    """Run a program to its end; whenever it prints an address to open, a person opens it."""
    said = []
    async with program(script, *words, folder=folder) as running:
        async for line in running.lines():
            said.append(line)
            if address := asks.search(line):
                await person.open(address[1])
        return await running.outcome(said)
