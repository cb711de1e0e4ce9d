"""A client as Authlib's rules look at it: a row, and what follows from it. No store, no HTTP."""

import hmac
from typing import Any

from authlib.oauth2.rfc6749 import ClientMixin  # type: ignore[import-untyped]
from joserfc.jwk import KeySet

from edge_api.domain.oauth.request import matches
from edge_api.domain.secrets import digest_of
from edge_api.schema.table import Row

SECRET_METHODS = ("client_secret_basic", "client_secret_post")


class Client(ClientMixin):  # type: ignore[misc]
    """One client; the methods are Authlib's questions about it."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.client_id: str = row["id"]
        self.scopes: tuple[str, ...] = tuple(row["scopes"].split())
        self.redirect_uris: tuple[str, ...] = tuple(row["redirect_uris"].split())

    @property
    def keys(self) -> KeySet:
        """Its public keys, for `private_key_jwt`."""
        jwks: Any = self.row["jwks"] or {"keys": []}
        return KeySet.import_key_set(jwks)

    def get_client_id(self) -> str:
        """Return its identifier."""
        return self.client_id

    def get_default_redirect_uri(self) -> str | None:
        """Return where it goes without being named: its only one (OAuth 2.1, section 4.1.1)."""
        return self.redirect_uris[0] if len(self.redirect_uris) == 1 else None

    def is_due(self, present: str) -> bool:
        """Tell whether the document that describes it should be looked at again."""
        return self.row["kind"] == "document" and (self.row["fresh_until"] or "") <= present

    def get_allowed_scope(self, scope: str | None) -> str | None:
        """Return those of the scopes asked for that it may have; all it may have for none."""
        wanted = scope.split() if scope else self.scopes
        return " ".join(name for name in self.scopes if name in wanted) or None

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Tell whether the URI is one that it registered."""
        return any(matches(registered, redirect_uri) for registered in self.redirect_uris)

    def check_client_secret(self, client_secret: str) -> bool:
        """Tell whether the secret is its own, in a time that does not depend on it."""
        known = self.row["secret_digest"] or ""
        return hmac.compare_digest(known, digest_of(client_secret))

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        """Tell whether it may authenticate so; a secret may come in the header or in the form."""
        own = self.row["auth_method"]
        return method == own or (method in SECRET_METHODS and own in SECRET_METHODS)

    def check_response_type(self, response_type: str) -> bool:
        """Tell whether it may ask for this: codes alone (OAuth 2.1, section 10)."""
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        """Tell whether it may use the grant."""
        return grant_type in self.row["grant_types"].split()
