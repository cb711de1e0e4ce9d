"""Which secret a request carries. Pure: whether it is valid is not decided here."""

from typing import Final

from multidict import CIMultiDictProxy, istr

from edge_api.schema.problems import Problem

API_KEY_HEADER: Final = istr("X-API-Key")
_AUTHORIZATION: Final = istr("Authorization")
_BEARER: Final = "bearer"
_NONE: Final[tuple[str, ...]] = ()


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
