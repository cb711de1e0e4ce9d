"""The refusals of a request's credential, as RFC 6750 and RFC 9728 word them.

Unknown, expired and revoked are one and the same refusal: nobody learns which keys ever existed.
The one exception is a credential of the other kind: its prefix is public.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from edge_api.schema.paths import DOORS, RESOURCE_METADATA, Door
from edge_api.schema.problems import Problem
from edge_api.schema.scopes import DEFAULT_SCOPES, Scope

_AT_THE_DOOR: Mapping[Door, tuple[Scope, ...]] = MappingProxyType({"rest": (), "mcp": ("mcp",)})
"""What is needed for any request there: a client asks for all that a challenge names, and no more.
"""
_WRONG_KIND: Mapping[Door, str] = MappingProxyType(
    {
        "rest": f"This access token is for the MCP endpoint, {DOORS['mcp']}: the REST API takes an "
        "API key, or a token whose resource is the REST API",
        "mcp": f"This API key is for the REST API, {DOORS['rest']}/: the MCP endpoint takes an "
        "access token",
    }
)
"""The sentence for a credential that only the other API takes."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """Makes the refusals at one door of a service, whose origin is `site_url`."""

    site_url: str
    door: Door = "rest"

    def missing(self) -> Problem:
        """Return the problem of a request without a credential: no error code (RFC 6750, 3.1)."""
        return Problem("unauthenticated", headers=self._header(*self._wanted()))

    def refused(self, *, is_wrong_kind: bool = False) -> Problem:
        """Return the problem of a credential that is not valid, or is one for the other door."""
        parameters = ('error="invalid_token"', *self._wanted())
        sentence = _WRONG_KIND[self.door] if is_wrong_kind else ""
        return Problem("unauthenticated", sentence, headers=self._header(*parameters))

    def insufficient(self, *scopes: Scope) -> Problem:
        """Return the problem of a valid credential that lacks a scope of those that are needed."""
        needed = " ".join(dict.fromkeys((*_AT_THE_DOOR[self.door], *scopes)))
        return Problem(
            "insufficient_scope",
            f"The credential lacks the scope {' '.join(scopes)}",
            headers=self._header('error="insufficient_scope"', f'scope="{needed}"'),
        )

    def _wanted(self) -> tuple[str, ...]:
        """Return what a client had best ask for: at MCP's door its tools need more than one."""
        if self.door == "rest":
            return ()
        return (f'scope="{" ".join((*_AT_THE_DOOR[self.door], *DEFAULT_SCOPES))}"',)

    def _header(self, *parameters: str) -> dict[str, str]:
        """Return the header field (RFC 9110, section 11.6.1; RFC 9728, section 5.1)."""
        realm = "api" if self.door == "rest" else self.door
        metadata = f'resource_metadata="{self.site_url}{RESOURCE_METADATA}{DOORS[self.door]}"'
        return {"WWW-Authenticate": ", ".join((f'Bearer realm="{realm}"', *parameters, metadata))}
