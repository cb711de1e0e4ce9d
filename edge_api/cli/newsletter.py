"""`newsletter`: look at mailings and steer them; take in and write out lists of subscribers."""

import json
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import Final

from click import Argument

from edge_api.auth.actor import OPERATOR, system_clock
from edge_api.backup.files import secret_key
from edge_api.cli import Columns, minute_column, print_list, printable
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Read, Store
from edge_api.db.transfer import read_pages
from edge_api.mail.dispatcher import make_mail_service
from edge_api.newsletter.checks import SIGNED, check_letter
from edge_api.newsletter.mailings import Mailings
from edge_api.newsletter.subscribers import (
    COLUMNS,
    MAX_CONFIRMATIONS_PER_HOUR,
    Subscribers,
    import_subscribers,
)
from edge_api.open_store import command_store
from edge_api.operation.sheets import stream_csv
from edge_api.schema.commands import JSON, PATH, Actions, Arguments
from edge_api.settings import Settings

_COLUMNS: Columns = {
    "SLUG": "slug",
    "STATE": lambda row: " ".join(
        filter(None, (row["state"], row["ended_for"] or row["held_for"] or row["waits_for"]))
    ),
    "DUE": minute_column("due_at", "-"),
    "SENT": "sent",
    "FAILED": "dlq",
    "BOUNCED": "bounced",
    "WAITING": "waiting",
}
_SLUG: Final = Argument(["slug"], help="of the post, as `newsletter status` shows it")
ACTIONS: Actions = {
    "status": ("print how many are subscribed, and the newest mailings", "--json", (JSON,)),
    "test": (
        "mail a post to the owner alone",
        "two-winters",
        (Argument(["slug"], default="", help="of the post (default: the newest)"),),
    ),
    "release": (
        "mail a post to all subscribers, after NEWSLETTER_DELAY",
        "two-winters",
        (_SLUG, JSON),
    ),
    "hold": (
        "stop a mailing until it is resumed, also its queued letters",
        "two-winters",
        (_SLUG, JSON),
    ),
    "resume": ("let a held mailing go on", "two-winters", (_SLUG, JSON)),
    "skip": ("stop a mailing for good; `release` begins it again", "two-winters", (_SLUG, JSON)),
    "check": (
        "check the DKIM signature of a test that you have got, saved as a file",
        "test.eml",
        (Argument(["file"], type=PATH, help="the message, with all its headers"),),
    ),
    "import": (
        "subscribe the addresses of a CSV, and name each line that is not taken",
        "members.csv",
        (Argument(["file"], type=PATH, help="the CSV, in UTF-8 or UTF-16"),),
    ),
    "export": ("print all subscribers as CSV, which `import` takes", "", ()),
}


async def run(arguments: Arguments, settings: Settings) -> int:
    """Run one action. Returns 0, or 1 if something is not as it should be; raises Problem."""
    if arguments.action == "check":
        try:
            fault = check_letter(arguments.file.read_bytes())
        except OSError as error:
            raise Problem("invalid", f"{arguments.file}: {error.strerror}") from None
        print(fault or f"the DKIM signature of the sender covers {SIGNED}")
        return 1 if fault else 0
    async with command_store(settings) as store:
        if arguments.action == "export":
            read = Read(SUBSCRIBERS, ("id", *COLUMNS))
            async for part in stream_csv(COLUMNS, read_pages(store, read)):
                print(part.decode(), end="")
            return 0
        if arguments.action != "import":
            return await _steer(arguments, settings, store)
        try:
            # Bytes that are not UTF-8 are named with their line, where they are in an address.
            raw = arguments.file.read_bytes()
            is_wide = raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
            text = raw.decode("utf-16" if is_wide else "utf-8-sig", errors="replace")
            key = secret_key(settings)
            lines = await import_subscribers(store, system_clock, key, OPERATOR, text)
        except (OSError, ValueError) as error:
            about = printable(getattr(error, "strerror", "") or str(error))
            raise Problem("invalid", f"{arguments.file}: {about}") from None
    refused = [line for line in lines if line.reason]
    for line in refused:
        sys.stderr.write(
            f"line {line.number}: '{printable(line.email)}' {printable(line.reason)}\n"
        )
    taken = len(lines) - len(refused)
    print(f"{taken} subscriber{'s' * (taken != 1)} imported, {len(refused)} skipped")
    if lines and {"uuid", "attributes"} <= lines[0].values.keys():
        print(
            "this looks like an export of listmonk, whose status is that of the address alone: who "
            "left the list or never confirmed was imported too, unless the page of the list was "
            "filtered before the export, as with ?subscription_status=confirmed"
        )
    return 1 if refused else 0


async def _steer(arguments: Arguments, settings: Settings, store: Store) -> int:
    """Change a mailing, and print it; `status` prints all. Raises Problem."""
    key, verb, where = secret_key(settings), arguments.action, None
    outbox = make_mail_service(settings, store, system_clock, key).outbox
    mailings = Mailings(settings, store, system_clock, outbox)
    if verb == "test":
        sent = await mailings.test(OPERATOR, arguments.slug)
        print(f"a test to {sent['recipient_email']} is queued; the running edge sends it")
        return 0
    if verb != "status":
        of_slug = await mailings.of_post(arguments.slug)
        keys = [arguments.slug] if verb == "release" else [row["id"] for row in of_slug]
        if not keys:
            raise Problem("not_found", f"{arguments.slug} has no mailing; see newsletter status")
        released = await getattr(mailings, verb)(keys[0], OPERATOR)
        where = Filter("id", "eq", released["id"] if released else keys[0])
    rows = await mailings.recent(*filter(None, (where,)))
    subscribers = Subscribers(store, system_clock, key, outbox)
    is_tested = await mailings.is_tested()
    counts, delayed = await subscribers.count(), await subscribers.count_delayed()
    if arguments.json:
        found = {"subscribers": counts, "delayed_confirmations": delayed, "is_tested": is_tested}
        print(json.dumps({**found, "mailings": rows}, indent=2))
    else:
        print(f"subscribers: {', '.join(f'{count} {name}' for name, count in counts.items())}")
        if delayed:
            print(f"{delayed} confirmations wait: {MAX_CONFIRMATIONS_PER_HOUR} go in an hour")
        print("a test was sent" if is_tested else "nothing is mailed until you send a test")
        print_list(rows, _COLUMNS, "no mailing yet", as_json=False)
    return 0
