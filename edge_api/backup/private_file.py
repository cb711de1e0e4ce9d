"""Files for their owner's eyes only, and the secret key, which may lie in one."""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from edge_api.backup.replica import CREDENTIALS
from edge_api.db.errors import StoreRefusal
from edge_api.db.sqlite.opening import sync
from edge_api.schema.environment import read_dotenv
from edge_api.settings import SETTINGS, Settings

_BYTES: Final = 32
"""256 bits, as long as the output of the hash it keys (RFC 2104, section 3)."""


def secret_key_path(database: Path) -> Path:
    """Return where the key is that was made beside a store's file."""
    return database.with_suffix(".key")


def secret_key(settings: Settings) -> bytes:
    """Return the key; the first call on a machine makes it, for its owner's eyes only.

    A store that a server keeps has it from the settings. Raises StoreRefusal for a file that
    cannot be read or has lost its content.
    """
    if settings.secret_key:
        return settings.secret_key.encode()
    if settings.database_path is None:
        raise StoreRefusal("SECRET_KEY: needed with PostgreSQL")
    path = secret_key_path(settings.database_path)
    try:
        key = path.read_bytes() if path.exists() else _make(path)
    except OSError as error:
        raise StoreRefusal(f"{path} cannot be read: {error.strerror}") from None
    if len(key) < _BYTES:
        raise StoreRefusal(f"{path} holds no key: restore it, or remove it to have a new one made")
    return key


def _make(path: Path) -> bytes:
    """Write a new key whole or not at all; of two processes, the first one's stands."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    write_private(draft, secrets.token_hex(_BYTES).encode("ascii"))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    sync(path.parent)
    return path.read_bytes()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else may read and that survives the loss of power.

    A file that was there keeps its rights: a draft gets a name that nobody has. Raises OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    sync(path)


def is_exposed(path: Path) -> bool:
    """Tell whether the group or others have any right to a file; a missing file is not exposed."""
    return path.exists() and bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def complain_of_dotenv(path: Path = Path(".env")) -> str:
    """Return a sentence where `.env` holds a secret and is exposed; empty where it is not.

    Raises DotenvError.
    """
    if not is_exposed(path):
        return ""
    names = [name for name, value in read_dotenv(path).items() if value and _is_secret(name, value)]
    return (
        f"{path} holds {', '.join(names)} and can be read by others; run chmod 600 {path}"
        if names
        else ""
    )


def _is_secret(name: str, value: str) -> bool:
    """Tell whether a value is one that `settings` hides, wholly or in part, or a credential."""
    setting = SETTINGS.get(name)
    hidden = setting is not None and (setting.secret or setting.show(value) != value)
    return hidden or name.startswith(CREDENTIALS)
