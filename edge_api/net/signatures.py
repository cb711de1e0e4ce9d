"""Signatures of webhook messages, sent and received (Standard Webhooks 1.0)."""

import base64
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from standardwebhooks import Webhook, WebhookVerificationError

SIGNATURE_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
"""The headers of a signature; the first two are signed with the body."""

_ID: Final = re.compile(r"[!-~]{1,255}")  # visible ASCII characters


def new_secret() -> str:
    """Return a new random secret."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def sign(keys: Sequence[str], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of a message, with one signature for each key."""
    text = body.decode()
    signatures = [Webhook(secret).sign(message_id, at, text) for secret in keys]
    values = message_id, str(int(at.timestamp())), " ".join(signatures)
    return dict(zip(SIGNATURE_HEADERS, values, strict=True))


def is_signed(keys: Sequence[str], headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether one of the keys signed the request within five minutes of now."""
    found = {name: headers.get(name, "") for name in SIGNATURE_HEADERS}
    if _ID.fullmatch(found["webhook-id"]) is None:
        return False
    for webhook in map(Webhook, keys):
        # The library raises ValueError for invalid base64.
        with suppress(WebhookVerificationError, ValueError):
            webhook.verify(body, found, json_parse=False)
            return True
    return False
