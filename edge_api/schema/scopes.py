"""The scopes: what a credential may do, one word each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

Scope = Literal["posts:read", "leads:read", "leads:write", "admin:read", "admin:write", "mcp"]

SCOPES: Mapping[Scope, str] = MappingProxyType(
    {
        "posts:read": "read posts",
        "leads:read": "read leads",
        "leads:write": "create leads",
        "admin:read": "read administrative tables",
        "admin:write": "insert, change and delete rows of administrative tables",
        "mcp": "call the MCP endpoint",
    }
)
assert tuple(SCOPES) == get_args(Scope)  # noqa: S101  one list, stated twice for the type

DEFAULT_SCOPES: tuple[Scope, ...] = ("posts:read", "leads:read", "leads:write")
"""What a key gets when its issuer names no scopes: the published, non-administrative API."""

UNVETTED_SCOPES: tuple[Scope, ...] = (*DEFAULT_SCOPES, "mcp")
"""The most that goes to whoever nobody named scopes for: the same, and the MCP endpoint."""
