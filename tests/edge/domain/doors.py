"""The services that issue and check credentials, over a store and a clock of the test's."""

from typing import Any

from edge_api.auth.credentials import Authenticator
from edge_api.auth.tokens import AccessTokenValidator, Issuer, SigningKeys

SITE = "https://journal.example"


def make_access(store: Any, clock: Any, site: str = SITE) -> Authenticator:
    """Return who decides, with signing keys in the same store."""
    keys = SigningKeys(store, clock, b"s" * 32)
    return Authenticator(store, clock, site, AccessTokenValidator(Issuer(site), store, keys))
