"""Proof that the consent form was sent by the browser that it was shown to (RFC 9700, 4.7).

A nonce lies in a cookie and, with the request and its time bound to it, in the form. Nothing is
kept: both are checked against the service's secret.
"""

import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

FORM_LIFE: Final = timedelta(minutes=30)
"""How long a person may look at the question."""
_NONCE_BYTES: Final = 24


def is_nonce(text: str) -> bool:
    """Tell whether a cookie holds what `new_nonce` may have made."""
    return re.fullmatch(r"[A-Za-z0-9_-]{32}", text) is not None


class FormGuard:
    """Makes and checks proofs with one secret."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"consent form", "sha256")

    def new_nonce(self) -> str:
        """Return what goes into the cookie."""
        return secrets.token_urlsafe(_NONCE_BYTES)

    def seal(self, nonce: str, pairs: Sequence[tuple[str, str]], now: datetime) -> str:
        """Return what goes into the form that asks about a request."""
        until = str(int((now + FORM_LIFE).timestamp()))
        return f"{until}.{self._mac(nonce, pairs, until)}"

    def holds(self, seal: str, nonce: str, pairs: Sequence[tuple[str, str]], now: datetime) -> bool:
        """Tell whether a form with this seal was shown to the holder of the cookie, lately."""
        until, _, mac = seal.partition(".")
        if not nonce or not until.isdecimal() or not until.isascii():
            return False
        expected = self._mac(nonce, pairs, until)
        is_late = len(until) > len(expected) or int(until) < now.timestamp()
        return not is_late and hmac.compare_digest(mac.encode(), expected.encode())

    def _mac(self, nonce: str, pairs: Sequence[tuple[str, str]], until: str) -> str:
        # In any order: a form that is decoded into members has lost the one it was sent in.
        said = orjson.dumps([nonce, until, sorted(list(pair) for pair in pairs)])
        return hmac.digest(self._key, said, "sha256").hex()
