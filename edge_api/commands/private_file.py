"""Files for their owner's eyes only: keys, and drafts of them."""

import os
import stat
from pathlib import Path

from edge_api.commands.replica import CREDENTIALS
from edge_api.schema.dotenv_file import read_dotenv
from edge_api.settings import SETTINGS
from edge_api.store.sqlite.opening import sync


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
