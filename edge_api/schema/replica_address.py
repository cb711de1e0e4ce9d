"""Addresses of replicas, as Litestream knows them."""

from typing import Final
from urllib.parse import urlsplit

SCHEMES: Final = ("file", "s3", "gs", "abs", "sftp", "nats", "oss", "webdav", "webdavs")
"""The places that Litestream 0.5 writes to."""


def read_replica(text: str) -> str:
    """Return the address as it stands. Raises ValueError with what it must be."""
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"must be an address such as s3://bucket/path, of {', '.join(SCHEMES)}")
    if parts.scheme == "file" and (parts.netloc or not parts.path.strip("/")):
        raise ValueError("must be like file:///path/to/folder, with three slashes")
    if parts.scheme != "file" and not parts.hostname:
        raise ValueError("must name a bucket or host after the two slashes")
    return text
