"""URL paths of the edge, shared with the site build."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Group:
    """The operations with one of the tags, which share a page of the API's reference."""

    name: str
    description: str
    tags: tuple[str, ...]


GROUPS: Final[Mapping[str, Group]] = {
    "posts": Group(
        "Posts",
        "Read the journal: lists, search, one post; write it: drafts, pictures.",
        ("posts", "search", "writing"),
    ),
    "leads": Group("Leads", "Send an enquiry, and list those that came.", ("leads",)),
    "analyze": Group("Analysis", "Measure a document, and list what to fix in it.", ("analyze",)),
    "admin": Group("Administrative tables", "Read, insert, change and delete rows.", ("admin",)),
    "oauth": Group(
        "Access and OAuth",
        "Ask for a credential, or let a person grant one: registration, tokens, keys.",
        ("access", "oauth"),
    ),
    "mcp": Group("MCP", "The Model Context Protocol, and how agents find it.", ("mcp",)),
    "utility": Group(
        "Service and mail",
        "Whether the service runs, what describes it, who reads, and what mail programs call.",
        ("utility", "mail", "newsletter", "stats"),
    ),
}

Audience = Literal["rest", "mcp"]
"""The API that a credential is for."""

AUDIENCES: Mapping[Audience, str] = {"rest": "/api/public/v1", "mcp": "/api/public/mcp"}
"""The path of each protected resource."""

REST_PREFIX: Final = AUDIENCES["rest"]
OPENAPI: Final = f"{AUDIENCES['rest']}/openapi.json"
OAUTH: Final = "/api/public/oauth"
AUTHORIZE: Final = f"{OAUTH}/authorize"
TOKEN: Final = f"{OAUTH}/token"
REGISTER_CLIENT: Final = f"{OAUTH}/register"
REVOKE: Final = f"{OAUTH}/revoke"
METADATA: Final = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
JWKS: Final = "/.well-known/jwks.json"

REQUEST_ACCESS: Final = "/api/public/access-requests"
CLAIM_CREDENTIAL: Final = f"{REQUEST_ACCESS}/claim"

API_CATALOG: Final = "/.well-known/api-catalog"
AI_CATALOG: Final = "/.well-known/ai-catalog.json"
SERVER_CARD: Final = f"{AUDIENCES['mcp']}/server-card"
"""The path of MCP's server card extension, below the endpoint."""

WELL_KNOWN_CARD: Final = "/.well-known/mcp/server-card.json"
"""The path of the server card in drafts of the extension."""

SKILLS: Final = ".well-known/agent-skills/"
"""The folder of the skills in the site, without a slash before it."""

SEARCH: Final = "/search"
SEARCH_DATA: Final = "/api/public/v1/search"
"""The search as JSON, for the page of results."""
DOCS: Final = "/docs/"
DOCS_PAGES: Final = (DOCS, *(f"{DOCS}{group}/" for group in GROUPS))
"""The pages of the reference; each is there as Markdown too, as the `index.md` of its folder."""
TRY_OUT_PATH: Final = "/docs/try/"

DESK: Final = "/desk/"
"""The owner's pages."""
SHARED: Final = "/shared/"
SUBSCRIBE: Final = "/subscribe"
CONFIRM_SUBSCRIPTION: Final = "/subscribe/confirm"
SUBSCRIBERS: Final = f"{REST_PREFIX}/subscribers"
UNSUBSCRIBE: Final = "/unsubscribe"
EMAIL_HOOK: Final = "/api/public/hooks/email"
METRICS: Final = "/metrics"
ACCESS_FORM_PATH: Final = "/contact/access/"
ACCESS_CLAIM_PATH: Final = f"{ACCESS_FORM_PATH}claim/"

EDGE_PAGES: Final = (
    SEARCH,
    *DOCS_PAGES,
    TRY_OUT_PATH,
    UNSUBSCRIBE,
    METRICS,
    ACCESS_FORM_PATH,
    ACCESS_CLAIM_PATH,
)
"""Addresses that the edge answers itself, whatever a build has there."""
NEWSLETTER_PAGES: Final = (SUBSCRIBE, CONFIRM_SUBSCRIPTION)
"""Addresses of the edge with NEWSLETTER=on; a journal without it may have a page `/subscribe/`."""
EDGE_FOLDERS: Final = ("/api/", "/.well-known/", DESK, SHARED)
"""Prefixes of other addresses of the edge; a build has files only below `/.well-known/`."""
