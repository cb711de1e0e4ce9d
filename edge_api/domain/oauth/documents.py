"""Clients whose identifier is the URL of a document that describes them (CIMD).

draft-ietf-oauth-client-id-metadata-document. The document is fetched by somebody who keeps away
from addresses that are not public; here it is asked for, checked and remembered.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from edge_api.domain.oauth.client_metadata import document_client, read_metadata
from edge_api.schema.kinds import spell_instant
from edge_api.schema.oauth_tables import CLIENT_ID_LONGEST
from edge_api.schema.problems import Problem
from edge_api.schema.table import Row

FRESH_FOR: Final = timedelta(hours=1)
"""How long a document is believed without another look."""
STALE_FOR: Final = timedelta(hours=24)
"""How long a document that cannot be fetched again is believed beyond that."""

Fetch = Callable[[str], Awaitable[bytes]]
"""Returns what stands at a public https address, without following redirects. Raises Problem."""


class Unreachable(Problem):
    """A document is not to be had now, whatever it says."""


_URL: Final = re.compile(r"https://[!#-\[\]-~]+")


def is_document_id(client_id: str) -> bool:
    """Tell whether a client is named by the URL of a document (section 3 of the draft)."""
    if len(client_id) > CLIENT_ID_LONGEST or _URL.fullmatch(client_id) is None:
        return False
    try:
        parts = urlsplit(client_id)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not parts.fragment and "@" not in parts.netloc and bool(parts.hostname)
    has_dots = any(step in (".", "..") for step in parts.path.split("/"))
    return is_plain and parts.path not in ("", "/") and not has_dots


async def fetch_client(fetch: Fetch, url: str, schemes: Iterable[str], now: datetime) -> Row:
    """Return the given columns of the client that the document at `url` describes.

    Raises Problem `invalid` that says what is wrong with the document; Unreachable where there is
    none to be had.
    """
    given = _read(await _body(fetch, url))
    if given.get("client_id") != url:
        raise Problem("invalid", "client_id: the document does not name its own address")
    if "client_secret" in given:
        raise Problem("invalid", "client_secret: a secret in a public document is none")
    row = document_client(url, read_metadata(given, schemes))
    return {**row, "fresh_until": spell_instant(now + FRESH_FOR)}


async def _body(fetch: Fetch, url: str) -> bytes:
    try:
        return await fetch(url)
    except Problem as problem:
        raise Unreachable(problem.code, problem.sentence) from None


def _read(body: bytes) -> dict[str, Any]:
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise Problem("invalid", "The client's document is not a JSON object")
    return given
