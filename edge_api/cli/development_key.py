"""The development key, with every scope, and the greeting at a terminal that tells it.

It is kept in a file, for its owner's eyes only, and used again while it is valid.
"""

import os
from pathlib import Path
from typing import Final

from edge_api.app import Assembly
from edge_api.auth.actor import Clock, system_clock
from edge_api.auth.keys import Keys, NewKey
from edge_api.backup.private_file import write_private
from edge_api.db.email_address import MailFolder, parse_relay
from edge_api.db.query import Store
from edge_api.journal.builds import BuildManager
from edge_api.schema.credentials import SCOPES
from edge_api.settings import Settings, is_loopback


async def greet(assembly: Assembly, host: str, port: int) -> None:
    """Tell the person at the terminal where to look, and with which key.

    A key with every scope is only made where this machine alone can use it.
    """
    service = assembly.service
    print(f"serving {service.settings.site_url} on http://{host}:{port}", flush=True)
    if service.settings.smtp_url:
        relay = parse_relay(service.settings.smtp_url)
        if isinstance(relay, MailFolder):
            print(f"mail is not sent: it lies in {relay.path}/new", flush=True)
    if service[BuildManager].error:
        print(f"the journal: {service[BuildManager].error}", flush=True)
    if service.settings.is_loopback and is_loopback(host):
        path = development_key_path(service.settings)
        key = await development_key(service.store, path, system_clock)
        print(f"development key (all scopes, this machine only): {key}", flush=True)


DEVELOPMENT: Final = "development"
"""The name of such a key in the store."""
WITHOUT_FILE: Final = Path("var/edge.dev-key")
"""Where the key is when a server keeps the store."""
_FOR_ITS_OWNER: Final = 0o600


def development_key_path(settings: Settings) -> Path:
    """Return where the development key is kept: beside a store that is a file."""
    path = settings.database_path
    return path.with_suffix(".dev-key") if path else WITHOUT_FILE


async def development_key(store: Store, path: Path, clock: Clock) -> str:
    """Return the secret in the file at `path`, or a new one, put there, if it is not valid."""
    keys = Keys(store, clock)
    kept = _read(path)
    if kept and await keys.allows(kept, frozenset(SCOPES)):
        return kept
    issued = await keys.issue(NewKey(DEVELOPMENT, scopes=tuple(SCOPES)))
    _write(path, issued.secret)
    return issued.secret


def _read(path: Path) -> str:
    try:
        path.chmod(_FOR_ITS_OWNER)
        return path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""


def _write(path: Path, secret: str) -> None:
    """Put the secret there whole: the file is never seen half written or with other rights."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    write_private(draft, f"{secret}\n".encode("ascii"))
    draft.replace(path)
