"""Access tokens: signed statements that a resource server believes (RFC 9068). Pure.

Who issues them, and for which resources, is here too; whether the grant behind one still holds is
not decided here.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from edge_api.schema.paths import AUDIENCES, TOKEN, Audience


@dataclass(frozen=True, slots=True)
class Issuer:
    """One server: its origin, without a slash behind it, is its identifier (RFC 8414, 2)."""

    url: str

    @property
    def resources(self) -> tuple[str, ...]:
        """Every resource that a token can be for (RFC 8707): the whole origin, or one door."""
        return (self.url, *(f"{self.url}{path}" for path in AUDIENCES.values()))

    def within(self, resource: str) -> tuple[str, ...]:
        """Return what a token may be for under a grant for `resource`: itself, then its parts."""
        return self.resources if resource == self.url else (resource,)

    @property
    def audiences(self) -> tuple[str, ...]:
        """What a client may call the server in an assertion (RFC 7523, section 3)."""
        return (self.url, f"{self.url}{TOKEN}")

    def opens(self, resource: str, audience: Audience) -> bool:
        """Tell whether a token for `resource` is meant for the door."""
        return resource in (self.url, f"{self.url}{AUDIENCES[audience]}")


ALGORITHM: Final = "ES256"
TOKEN_LIFE: Final = timedelta(hours=1)
TOKEN_LONGEST: Final = 8192
"""Characters; ours have some 700."""
_TYPE: Final = "at+jwt"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What an access token says."""

    id: str
    """Its `jti`."""
    subject: str
    """The API key that consented, or the client itself where nobody did."""
    client_id: str
    scopes: tuple[str, ...]
    resource: str
    """Its audience."""
    grant_id: str | None
    """`None` where a client acts for itself."""
    expires_at: datetime


def is_jwt(text: str) -> bool:
    """Tell whether `text` has the shape of a signed token rather than of an opaque secret."""
    return text.count(".") == 2 and text.startswith("ey")  # noqa: PLR2004  three parts


def sign(token: AccessToken, issuer: str, key: ECKey) -> str:
    """Return the token in its compact form (RFC 9068, section 2)."""
    claims: dict[str, Any] = {
        "iss": issuer,
        "aud": token.resource,
        "sub": token.subject,
        "client_id": token.client_id,
        "scope": " ".join(token.scopes),
        "iat": int((token.expires_at - TOKEN_LIFE).timestamp()),
        "exp": int(token.expires_at.timestamp()),
        "jti": token.id,
    }
    if token.grant_id is not None:
        claims["grant_id"] = token.grant_id
    return jwt.encode({"alg": ALGORITHM, "typ": _TYPE, "kid": key.kid}, claims, key)


def read(text: str, issuer: str, keys: KeySet) -> AccessToken | None:
    """Return what a token of ours says, or `None` for any other text (RFC 9068, section 4).

    Its time is not looked at.
    """
    if len(text) > TOKEN_LONGEST:
        return None
    try:
        token = jwt.decode(text, keys, algorithms=[ALGORITHM])
    except Exception:  # noqa: BLE001  a stranger's text, and a library that reads all of it
        return None
    claims = token.claims
    if token.header.get("typ") != _TYPE or claims.get("iss") != issuer:
        return None
    return AccessToken(
        id=claims["jti"],
        subject=claims["sub"],
        client_id=claims["client_id"],
        scopes=tuple(claims["scope"].split()),
        resource=claims["aud"],
        grant_id=claims.get("grant_id"),
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
    )
