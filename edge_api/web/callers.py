"""Whose request it is: the address that rate limits count, and the secret that it carries.

Whether a secret is valid is not decided here.
"""

from typing import Final

from multidict import CIMultiDictProxy, istr

from edge_api.api.service import Service
from edge_api.domain.addresses import client_address
from edge_api.schema.problems import Problem
from edge_api.web.request import Request

API_KEY_HEADER: Final = istr("X-API-Key")
_AUTHORIZATION: Final = istr("Authorization")
_BEARER: Final = "bearer"
_NONE: Final[tuple[str, ...]] = ()


class Callers:
    """Finds the client's address, seen through trusted proxies only."""

    def __init__(self, service: Service) -> None:
        self._trusted = service.settings.trusted_proxies
        self._health = service.health

    def address_of(self, request: Request) -> str:
        """Return the address that stands for the client; note forwarding by a stranger."""
        caller = client_address(request.remote or "", request.headers, self._trusted)
        if caller.untrusted_forwarding:
            self._health.untrusted_forwarding = True
        return caller.key


def secret_of(headers: CIMultiDictProxy[str]) -> str | None:
    """Return the credential that was sent, or `None`.

    `X-API-Key` or `Authorization: Bearer` (RFC 6750, section 2.1); other schemes are ignored.
    Raises Problem `invalid` for two that differ.
    """
    keys = headers.getall(API_KEY_HEADER, _NONE)
    authorizations = headers.getall(_AUTHORIZATION, _NONE)
    if len(keys) == 1 and not authorizations:  # as most requests have it
        return keys[0].strip()
    tokens = [token for value in authorizations for token in _token(value)]
    if not keys and not tokens:
        return None
    first, *others = (*(key.strip() for key in keys), *tokens)
    if any(other != first for other in others):
        raise Problem("invalid", "Two different credentials were sent: send one")
    return first


def _token(value: str) -> list[str]:
    scheme, _, token = value.strip().partition(" ")
    return [token.strip()] if scheme.lower() == _BEARER else []
