"""Shared drafts and previews, a folder each in `BUILD_DIR/shares/` or `BUILD_DIR/previews/`.

The build writes them for the edge.
"""

import json
import os
import shutil
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

RECORD_FILE: Final = "share.json"  # JSON: digest, made, expires (RFC 3339), slug, title

SHARES: Final = "shares"
PAGE_SECONDS: Final = 50  # the longest time for making one; the edge waits a little longer
PREVIEWS: Final = "previews"  # only for those who are signed in at the desk


def locate_share(build_dir: Path, token: str, kind: str = SHARES) -> Path:
    """Return the path of the folder for a token, which may be any text; it need not exist."""
    return build_dir / kind / sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_share(folder: Path, now: datetime) -> Any:
    """Return the record of a share; None where it is missing, damaged or expired."""
    try:
        share = json.loads((folder / RECORD_FILE).read_bytes())
        return share if datetime.fromisoformat(share["expires"]) > now else None
    except (OSError, KeyError, TypeError, ValueError):
        return None


def find_shared(build_dir: Path, token: str, name: str, now: datetime, kind: str = SHARES) -> Path:
    """Return the file `name` that a token shares at `now`. Raises OSError if there is none."""
    folder = locate_share(build_dir, token, kind)
    if not read_share(folder, now) or name not in {*os.listdir(folder)} - {RECORD_FILE}:  # noqa: PTH208
        raise FileNotFoundError(folder)
    return folder / name


def list_shares(build_dir: Path, now: datetime, kind: str = SHARES) -> dict[Path, Any]:
    """Return records of shares by folder, oldest first; delete expired and abandoned shares."""
    shares = locate_share(build_dir, "", kind).parent
    found = {each: read_share(each, now) for each in shares.glob("[!.]*")}
    expired = [each for each in found if not found[each]]
    for each in shares.glob(".*"):
        with suppress(OSError):  # a running command may rename or delete its folder now
            # A folder that is unfinished after an hour was abandoned by its command.
            expired += [each] * (each.stat().st_mtime < now.timestamp() - 3600)
    for folder in expired:
        shutil.rmtree(folder, ignore_errors=True)
        found.pop(folder, None)
    return dict(sorted(found.items(), key=lambda each: each[1].get("made", "")))
