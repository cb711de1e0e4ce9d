"""Shared drafts: the build writes each into `BUILD_DIR/shares/<digest of its token>/`."""

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import AwareDatetime, BaseModel, ValidationError

PAGE_FILE: Final = "index.html"
_FOLDER: Final = "shares"
_RECORD: Final = "share.json"


class Share(BaseModel):
    """What a folder shares; a folder without this file shares nothing."""

    slug: str
    title: str
    made: AwareDatetime
    expires: AwareDatetime
    files: tuple[str, ...]
    """Names of all files that may be served, in one folder."""

    def write(self, folder: Path) -> None:
        """Store this in its folder. Raises OSError."""
        (folder / _RECORD).write_text(self.model_dump_json(), encoding="utf-8")


def locate_shares(build_dir: Path) -> Path:
    """Return the folder of all shares."""
    return build_dir / _FOLDER


def locate_share(build_dir: Path, token: str) -> Path:
    """Return the folder of a token: any text has one, which hardly ever exists."""
    return build_dir / _FOLDER / sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_share(folder: Path, now: datetime) -> Share | None:
    """Return what a folder shares at `now`; None where it is missing, damaged or expired."""
    try:
        share = Share.model_validate_json((folder / _RECORD).read_bytes())
    except (OSError, ValidationError):
        return None
    return share if share.expires > now else None


def list_shares(build_dir: Path, now: datetime) -> Iterator[tuple[Path, Share | None]]:
    """Yield the folder of each share with what it shares at `now`. Raises OSError."""
    folder = build_dir / _FOLDER
    for each in sorted(folder.iterdir()) if folder.is_dir() else ():
        yield each, read_share(each, now)
