"""The key of what is only kept as a hash: from the settings, or made beside the store's file."""

import os
import secrets
from pathlib import Path
from typing import Final

from edge_api.commands.private_file import write_private
from edge_api.settings import Settings
from edge_api.store.faults import StoreRefusal
from edge_api.store.sqlite.opening import sync

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
