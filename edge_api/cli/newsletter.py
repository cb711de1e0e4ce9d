"""`newsletter`: take in and write out lists of subscribers."""

import sys

from click import Argument

from edge_api.admin.filters import stream_csv
from edge_api.auth.actor import OPERATOR, system_clock
from edge_api.backup.files import secret_key
from edge_api.cli import printable
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.problems import Problem
from edge_api.db.query import Read
from edge_api.db.transfer import read_pages
from edge_api.newsletter.transfer import COLUMNS, import_subscribers
from edge_api.open_store import command_store
from edge_api.schema.commands import PATH, Actions, Arguments
from edge_api.settings import Settings

ACTIONS: Actions = {
    "import": (
        "subscribe the addresses of a CSV, and name each line that is not taken",
        "members.csv",
        (Argument(["file"], type=PATH, help="the CSV, in UTF-8"),),
    ),
    "export": ("print all subscribers as CSV, which `import` takes", "", ()),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0, or 1 if a line was not taken; raises Problem."""
    async with command_store(settings) as store:
        if arguments.action == "export":
            read = Read(SUBSCRIBERS, ("id", *COLUMNS))
            async for part in stream_csv(COLUMNS, read_pages(store, read)):
                print(part.decode(), end="")
            return 0
        try:
            # Bytes that are not UTF-8 are named with their line, where they are in an address.
            text = arguments.file.read_text("utf-8-sig", errors="replace")
            key = secret_key(settings)
            lines = await import_subscribers(store, system_clock, key, OPERATOR, text)
        except (OSError, ValueError) as error:
            raise Problem("invalid", f"{arguments.file}: {error}") from None
    refused = [line for line in lines if line.reason]
    for line in refused:
        sys.stderr.write(f"line {line.number}: {printable(line.email)} {printable(line.reason)}\n")
    taken = len(lines) - len(refused)
    print(f"{taken} subscriber{'s' * (taken != 1)} taken, {len(refused)} not")
    return 1 if refused else 0
