"""The product under judgement: a process, and what its operator does on the machine."""

import json
from dataclasses import dataclass
from typing import Any

from tests.edge.edge_process import Installation

ALL_SCOPES = (
    "posts:read posts:publish stats:read leads:read leads:write subscribers:write admin:read "
    "admin:write mcp publish-with-enquiries"
)
MCP_PATH = "/api/public/mcp"


@dataclass(frozen=True, slots=True)
class Product:
    """A serving edge, and its origin."""

    installation: Installation
    origin: str

    @property
    def endpoint(self) -> str:
        """The URL of the MCP endpoint."""
        return f"{self.origin}{MCP_PATH}"

    def issue(self, kind: str, scopes: str) -> str:
        """Return a new credential: an `api_key` or an `access_token`."""
        words = ["--type", kind, "--name", "judge", "--scopes", scopes]
        return str(self._command("keys", "issue", *words)["key"])

    def register(self, *words: str) -> dict[str, Any]:
        """Register an OAuth client; return what the command prints."""
        return self._command("clients", "register", "--name", "judge", *words)

    def _command(self, *words: str) -> dict[str, Any]:
        status, said, complained = self.installation.run(*words, "--json")
        assert status == 0, complained
        printed = json.loads(said)
        assert isinstance(printed, dict)
        return printed
