"""Copies of rows that an erasure does not reach, and how long each is kept."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from edge_api.db.internal_tables import WEBHOOK_ENDPOINTS
from edge_api.db.query import Order, Read, Store, read_all
from edge_api.db.sqlite.copying import REPLACED_INFIX
from edge_api.settings import Settings


async def list_unerased_copies(store: Store, settings: Settings, now: datetime) -> Sequence[str]:
    """Return a sentence about each place that may still have rows that were erased at `now`.

    Raises Problem.
    """
    endpoints = [
        row
        for row in await read_all(store, Read(WEBHOOK_ENDPOINTS, order=(Order("created_at"),)))
        if "lead.created" in row["events"].split()
    ]
    # Litestream keeps seven days, and takes up to one more to remove older states.
    until = now + timedelta(days=8)
    copies = [
        f"backups made before {now:%-d %b %Y, %H:%M} UTC: until backup --keep removes them, "
        "elsewhere until you delete them; a restore beside the present store erases again"
        if settings.database_path
        else "the server's backups, standbys and log: as long as its operator keeps them",
        settings.backup_recipient
        and f"archives made before {now:%-d %b %Y, %H:%M} UTC: until backup --all --keep removes "
        "them, elsewhere until you delete them; restore --all brings the person back",
        settings.database_path
        and f"{settings.database_path.name}{REPLACED_INFIX}… beside the store, former ones that "
        "restore --force put aside: until you delete them",
        settings.litestream_replica
        and f"the replica, which holds every state of the last 7 days: until {until:%-d %b %Y}",
        settings.smtp_url
        and "mails that were sent: in the mailboxes of those who got them, and of the relay",
        *(
            f"the webhook at {urlsplit(row['url']).hostname}, which got new leads: "
            "ask who runs it to erase them there"
            for row in endpoints
        ),
        "posts that name the person, and their history in git: until you change both",
        "logs of a proxy before the edge: as long as it keeps them",
    ]
    return [each for each in copies if each]
