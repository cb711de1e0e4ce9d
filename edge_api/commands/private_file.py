"""Files for their owner's eyes only: keys, and drafts of them."""

import os
from pathlib import Path

from edge_api.store.sqlite.opening import sync


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else may read and that survives the loss of power.

    A file that was there keeps its rights: a draft gets a name that nobody has. Raises OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    sync(path)
