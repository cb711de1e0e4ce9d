"""Private files: the secret key, and a folder of backups with their names, lock and rotation."""

import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.copying import REPLACED_INFIX
from edge_api.db.sqlite.opening import sync
from edge_api.schema.environment import LITESTREAM_PREFIXES, read_dotenv
from edge_api.settings import SETTINGS, Settings

BACKUP_LOCK: Final = ".backup-lock"
"""The file that a folder of backups is known by."""
KEY_BYTES: Final = 32  # as long as the output of the hash it keys (RFC 2104, section 3)


def secret_key_path(database: Path) -> Path:
    """Return the path of the generated key beside a store's file."""
    return database.with_suffix(".key")


def secret_key(settings: Settings) -> bytes:
    """Return the secret key; the first call on a machine generates it, in a private file.

    With PostgreSQL it must be in the settings. Raises StoreRefusal if it is not, or if the file
    cannot be read or has lost its content.
    """
    if settings.secret_key:
        return settings.secret_key.encode()
    if settings.database_path is None:
        raise StoreRefusal("SECRET_KEY: needed with PostgreSQL")
    path = secret_key_path(settings.database_path)
    try:
        key = path.read_bytes() if path.exists() else _generate_key(path)
    except OSError as error:
        raise StoreRefusal(f"{path} cannot be read: {error.strerror}") from None
    if len(key) < KEY_BYTES:
        raise StoreRefusal(f"{path} holds no key: restore it, or remove it to have a new one made")
    return key


def _generate_key(path: Path) -> bytes:
    """Create a key file atomically; of two processes, the first one's key is used."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    write_private(draft, secrets.token_hex(KEY_BYTES).encode("ascii"))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    sync(path.parent)
    return path.read_bytes()


def write_private(path: Path, content: bytes) -> None:
    """Write a file with rights for its owner only, and sync it to the disk.

    An existing file keeps its rights, so write temporary files under new names. Raises OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    sync(path)


def replace_private(path: Path, content: bytes) -> None:
    """Write such a file at once: readers find the former content or this. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_private(draft, content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def is_exposed(path: Path) -> bool:
    """Return whether a file exists and the group or others have any right to it."""
    return path.exists() and bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def check_dotenv_permissions(path: Path = Path(".env")) -> str:
    """Return a sentence if `.env` holds a secret and is exposed, or `""`. Raises SettingsError.

    Secrets are Litestream's credentials, and values that the command `settings` hides at least in
    part.
    """
    if not is_exposed(path):
        return ""
    names = []
    for name, value in read_dotenv(path).items():
        setting = SETTINGS.get(name)
        hidden = setting is not None and (setting.secret or setting.show(value) != value)
        if value and (hidden or name.startswith(LITESTREAM_PREFIXES)):
            names.append(name)
    found = ", ".join(names)
    return found and f"{path} holds {found} and can be read by others; run chmod 600 {path}"


def backup_key_path(backup: Path) -> Path:
    """Return the path of the secret key of a backup, or of a store that a restore has put aside."""
    store, aside, instant = backup.name.partition(REPLACED_INFIX)
    return backup.with_name(f"{Path(store).with_suffix('.key')}{aside}{instant}")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_path(backup: Path) -> Path:
    """Return the path of a backup's SHA-256, which `sha256sum -c` reads."""
    return backup.with_name(f"{backup.name}.sha256")


def read_checksum(backup: Path) -> str | None:
    """Return the stored SHA-256 of a backup, unchecked, if there is one. Raises OSError."""
    path = checksum_path(backup)
    return path.read_text("utf-8", "replace").partition(" ")[0] if path.exists() else None


class BackupFolder:
    """A folder of backups of one kind, each named after its instant."""

    def __init__(self, path: Path, kind: str = "edge", suffix: str = ".db") -> None:
        self.path = path
        self._kind = kind
        self._suffix = suffix

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create and lock the folder, and remove partial backups from it. Raises StoreRefusal."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path / BACKUP_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreRefusal(
                f"{self.path} cannot take a backup ({error.strerror}): name another folder by --to"
            ) from None
        with ExitStack() as stack:
            stack.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreRefusal(
                    f"another backup into {self.path} is under way: wait for it"
                ) from None
            self._remove_partial_backups()
            stack.callback(self._remove_partial_backups)
            yield

    def backup_path(self, now: datetime) -> Path:
        """Return the path of a backup that is made at `now`."""
        return self.path / f"{self._kind}-{now:%Y%m%dT%H%M%S.%f}Z{self._suffix}"

    def backups(self) -> Sequence[Path]:
        """Return the backups in the folder, by name, the newest first."""
        name = rf"{self._kind}-[0-9]{{8}}T[0-9]{{6}}\.[0-9]{{6}}Z{re.escape(self._suffix)}"
        found = (path for path in self.path.iterdir() if re.fullmatch(name, path.name))
        return sorted(found, key=lambda path: path.name, reverse=True)

    def rotate(self, keep: int, made: Path) -> Sequence[Path]:
        """Remove all but the backup just made and the newest others; return the removed ones.

        A backup with a later instant in its name was made while the clock was ahead: it is removed
        first. Each is removed with its key and its checksum.
        """
        found = self.backups()
        at = found.index(made)
        old = [*found[at:], *found[:at]][keep:]
        for backup in old:
            backup.unlink(missing_ok=True)
            for file in (backup_key_path(backup), checksum_path(backup)):
                file.unlink(missing_ok=True)
        return old

    def _remove_partial_backups(self) -> None:
        for path in self.path.glob(f".{self._kind}-*.partial*"):
            path.unlink(missing_ok=True)
