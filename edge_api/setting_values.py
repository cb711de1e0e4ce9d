"""Parsers of the values of settings; each raises ValueError with what to fix."""

import base64
import re
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from edge_api.schema.environment import MAX_PORT, read_key

MAX_RETENTION_DAYS: Final = 36500
"""The longest retention; 0 is for ever."""
MIN_SECRET_LENGTH: Final = 32  # characters: fewer can be guessed
MAX_SOCKET_PATH: Final = 100
"""Bytes of a Unix socket's path; systems allow a few more."""
_REPLICA_SCHEMES: Final = ("file", "s3", "gs", "abs", "sftp", "nats", "oss", "webdav", "webdavs")
"""The URL schemes that Litestream 0.5 writes to."""


def number_between(minimum: int, maximum: int, message: str) -> Callable[[str], int]:
    """Return the parser of a whole number with a minimum and a maximum."""

    def check(text: str) -> int:
        is_number = re.fullmatch(f"[0-9]{{1,{len(str(maximum))}}}", text) is not None
        if not is_number or not minimum <= int(text) <= maximum:
            raise ValueError(message)
        return int(text)

    return check


read_port: Final = number_between(1, MAX_PORT, f"must be a port from 1 to {MAX_PORT}")
read_days: Final = number_between(
    0, MAX_RETENTION_DAYS, f"must be a number of days from 1 to {MAX_RETENTION_DAYS}, or 0 for ever"
)


def read_port_or_socket(text: str) -> Path | int:
    """Return a TCP port, or the path of a Unix socket."""
    if text.isdigit():
        return read_port(text)
    if ":" in text or len(text.encode()) > MAX_SOCKET_PATH:
        raise ValueError(
            f"must be a port of this machine, or a path of at most {MAX_SOCKET_PATH} characters"
        )
    return Path(text)


def read_networks(text: str) -> tuple[str, ...]:
    """Return the names of IP networks."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        try:
            ip_network(name, strict=False)
        except ValueError:
            raise ValueError(f"must be like 127.0.0.1,10.0.0.0/8, and {name!r} is not") from None
    return names


def read_schemes(text: str) -> tuple[str, ...]:
    """Return the names of URL schemes other than those of the web."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if re.fullmatch(r"[a-z][a-z0-9+.-]*", name) is None or name in ("http", "https"):
            raise ValueError("must be names of schemes such as cursor, separated by commas")
    return names


def read_https(text: str) -> str:
    """Return an address that requests are sent to; http is for this machine alone."""
    near = r"http://(localhost|127\.0\.0\.1|\[::1\]):[0-9]+(/[!-~]*)?"
    if "#" in text or re.fullmatch(rf"https://[!-~]{{1,2000}}|{near}", text) is None:
        raise ValueError("must be like https://alerts.example/topic, in ASCII and without a #")
    return text


def read_secret(text: str) -> str:
    """Return a secret unchanged if it is long enough."""
    if len(text) < MIN_SECRET_LENGTH:
        raise ValueError(f"must have {MIN_SECRET_LENGTH} characters or more, all of them random")
    return text


def read_hook_secrets(text: str) -> tuple[str, ...]:
    """Return the secrets of a webhook, in the form of Standard Webhooks."""
    found = tuple(text.replace(",", " ").split())
    if not all(map(_is_hook_secret, found)):
        raise ValueError("must be whsec_ and the base64 of 24 to 64 bytes, or two such, by a comma")
    return found


def _is_hook_secret(text: str) -> bool:
    prefix, _, coded = text.partition("_")
    try:
        length = len(base64.b64decode(coded, validate=True))
    except ValueError:
        return False
    return prefix == "whsec" and length in range(24, 64 + 1)  # as Standard Webhooks 1.0 has it


def one_of(*words: str) -> Callable[[str], str]:
    """Return the parser of one of a few words."""

    def check(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return text

    return check


def read_replica(text: str) -> str:
    """Return the address of a replica unchanged if Litestream can write to it."""
    parts = urlsplit(text)
    if parts.scheme not in _REPLICA_SCHEMES:
        raise ValueError(
            f"must be an address such as s3://bucket/path, of {', '.join(_REPLICA_SCHEMES)}"
        )
    if parts.scheme == "file" and (parts.netloc or not parts.path.strip("/")):
        raise ValueError("must be like file:///path/to/folder, with three slashes")
    if parts.scheme != "file" and not parts.hostname:
        raise ValueError("must name a bucket or host after the two slashes")
    return text


def read_build_keys(text: str) -> tuple[str, ...]:
    """Return public keys of those who push builds; two during a rotation."""
    found = tuple(text.replace(",", " ").split())
    for each in found:
        read_key(each)
    return found


def read_recipients(text: str) -> tuple[str, ...]:
    """Return public keys of age, separated by commas or blanks."""
    import pyrage  # noqa: PLC0415  only needed where the setting has a value

    found = tuple(text.replace(",", " ").split())
    for each in found:
        try:
            pyrage.x25519.Recipient.from_str(each)
        except pyrage.RecipientError:
            raise ValueError(
                "must be public keys of age, such as age1…, which age-keygen prints; "
                "a private key must not be on this machine"
            ) from None
    return found
