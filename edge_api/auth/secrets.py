"""The format of the secrets that the service issues, and the digest that it stores.

A secret is a prefix such as `fe_sk_`, 43 base62 characters (256 random bits), and 6 base62
characters of the CRC-32 of all before it. The checksum finds typing errors and leaked keys in
files; it is no proof of validity.
"""

import hmac
import re
import string
from binascii import crc32
from hashlib import sha256
from secrets import randbits, token_urlsafe
from typing import Final

from edge_api.schema.credentials import (
    CHECK_WIDTH,
    PREFIXES,
    RANDOM_WIDTH,
    SECRET_PATTERN,
    SecretKind,
)

_BASE62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_PATTERN: Final = re.compile(SECRET_PATTERN)


def mint(kind: SecretKind) -> str:
    """Return a new random secret."""
    return _format(kind, randbits(256))


def derive(kind: SecretKind, key: bytes, token: str) -> str:
    """Return the secret that is derived from a token with the key (HMAC-SHA-256)."""
    mac = hmac.digest(key, f"{kind}\n{token}".encode(), "sha256")
    return _format(kind, int.from_bytes(mac, "big"))


def sign(secret: str, purpose: str, salt: str = "") -> str:
    """Return a salted signature of a purpose, which only the holder of `secret` can make."""
    salt = salt or token_urlsafe(12)
    key, message = (each.encode("utf-8", "surrogatepass") for each in (secret, purpose + salt))
    return f"{salt}.{hmac.digest(key, message, 'sha256').hex()}"


def is_signed(secret: str, purpose: str, text: str) -> bool:
    """Return whether `sign` made the text with this secret; False for an empty secret."""
    return (
        bool(secret)
        and text.isascii()  # `compare_digest` takes nothing else
        and hmac.compare_digest(text, sign(secret, purpose, text.partition(".")[0]))
    )


def is_well_formed(secret: str, kind: SecretKind) -> bool:
    """Return whether `secret` has the form and the checksum of that kind."""
    match = _PATTERN.fullmatch(secret)
    if match is None or match[1] != PREFIXES[kind]:
        return False
    return secret.endswith(_checksum(secret[:-CHECK_WIDTH]))


def hash_secret(secret: str) -> str:
    """Return the SHA-256 of a text in hexadecimal; the store has this in place of a secret.

    A slow hash would be wrong: 256 random bits cannot be guessed, and each request looks the digest
    up by an index.
    """
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def last_four(secret: str) -> str:
    """Return the end of a secret, which is stored so that people can tell keys apart."""
    return secret[-4:]


def _format(kind: SecretKind, number: int) -> str:
    body = PREFIXES[kind] + _base62(number, RANDOM_WIDTH)
    return body + _checksum(body)


def _checksum(body: str) -> str:
    return _base62(crc32(body.encode("ascii")), CHECK_WIDTH)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_BASE62))
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))
