"""Which secret a request carries. Pure: whether it is valid is not decided here."""

from multidict import CIMultiDictProxy

from edge_api.schema.problems import Problem

API_KEY_HEADER = "X-API-Key"
_BEARER = "bearer"


def secret_of(headers: CIMultiDictProxy[str]) -> str | None:
    """Return the credential that was sent, or `None`.

    `X-API-Key` or `Authorization: Bearer` (RFC 6750, section 2.1); other schemes are ignored.
    Raises Problem `invalid` for two that differ.
    """
    sent = {value.strip() for value in headers.getall(API_KEY_HEADER, ())}
    for value in headers.getall("Authorization", ()):
        scheme, _, token = value.strip().partition(" ")
        if scheme.lower() == _BEARER:
            sent.add(token.strip())
    if len(sent) > 1:
        raise Problem("invalid", "Two different credentials were sent: send one")
    return sent.pop() if sent else None
