"""The authorization server's own addresses, and the resources that its tokens are for."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Door = Literal["rest", "mcp"]
"""Where an access token is shown."""

OAUTH: Final = "/api/public/oauth"
AUTHORIZE: Final = f"{OAUTH}/authorize"
TOKEN: Final = f"{OAUTH}/token"
REGISTER: Final = f"{OAUTH}/register"
REVOKE: Final = f"{OAUTH}/revoke"
METADATA: Final = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
JWKS: Final = "/.well-known/jwks.json"

DOORS: Mapping[Door, str] = MappingProxyType({"rest": "/api/public/v1", "mcp": "/api/public/mcp"})
"""The path of each protected resource."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """One server: its origin, without a slash behind it, is its identifier (RFC 8414, 2)."""

    url: str

    @property
    def resources(self) -> tuple[str, ...]:
        """Every resource that a token can be for (RFC 8707): the whole origin, or one door."""
        return (self.url, *(f"{self.url}{path}" for path in DOORS.values()))

    @property
    def audiences(self) -> tuple[str, ...]:
        """What a client may call the server in an assertion (RFC 7523, section 3)."""
        return (self.url, f"{self.url}{TOKEN}")

    def opens(self, resource: str, door: Door) -> bool:
        """Tell whether a token for `resource` is meant for the door."""
        return resource in (self.url, f"{self.url}{DOORS[door]}")
