"""The groups of operations that the reference has a page for, by the name in the page's address."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that one page is about, told by their tags."""

    name: str
    sentence: str
    tags: tuple[str, ...]


GROUPS: Final[Mapping[str, Group]] = MappingProxyType(
    {
        "posts": Group(
            "Posts",
            "Read the journal: lists, search, one post as Markdown and HTML.",
            ("posts", "search"),
        ),
        "leads": Group("Leads", "Send an enquiry, and list those that came.", ("leads",)),
        "analyze": Group(
            "Analysis", "Measure a document, and hear what to mend in it.", ("analyze",)
        ),
        "admin": Group(
            "Administrative tables", "Read, insert, change and delete rows.", ("admin",)
        ),
        "oauth": Group(
            "Access and OAuth",
            "Ask for a credential, or let a person grant one: registration, tokens, keys.",
            ("access", "oauth"),
        ),
        "mcp": Group("MCP", "The Model Context Protocol, and how agents find it.", ("mcp",)),
        "utility": Group(
            "Service and mail",
            "Whether the service runs, what describes it, and what mail programs call.",
            ("utility", "mail"),
        ),
    }
)
