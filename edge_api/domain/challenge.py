"""The refusals of a request's credential, as RFC 6750 and RFC 9728 word them.

Unknown, expired and revoked are one and the same refusal: nobody learns which keys ever existed.
"""

from dataclasses import dataclass
from typing import Final

from edge_api.schema.problems import Problem
from edge_api.schema.scopes import Scope

RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
"""RFC 9728, section 3."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """Makes the refusals of one service, whose origin is `site_url`."""

    site_url: str

    def missing(self) -> Problem:
        """Return the problem of a request without a credential: no error code (RFC 6750, 3.1)."""
        return Problem("unauthenticated", headers=self._header())

    def refused(self) -> Problem:
        """Return the problem of a credential that is not valid."""
        return Problem("unauthenticated", headers=self._header('error="invalid_token"'))

    def insufficient(self, scope: Scope) -> Problem:
        """Return the problem of a valid credential that lacks the scope that is needed."""
        return Problem(
            "insufficient_scope",
            f"The credential lacks the scope {scope}",
            headers=self._header('error="insufficient_scope"', f'scope="{scope}"'),
        )

    def _header(self, *parameters: str) -> dict[str, str]:
        """Return the header field (RFC 9110, section 11.6.1; RFC 9728, section 5.1)."""
        metadata = f'resource_metadata="{self.site_url}{RESOURCE_METADATA}"'
        return {"WWW-Authenticate": ", ".join(('Bearer realm="api"', *parameters, metadata))}
