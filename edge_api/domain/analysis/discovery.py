"""What an origin tells programs about itself at well-known addresses, and where that stands."""

from collections.abc import Mapping
from typing import Final

ROBOTS: Final = "/robots.txt"
LLMS: Final = "/llms.txt"
SITEMAP: Final = "/sitemap.xml"
API_CATALOG: Final = "/.well-known/api-catalog"
"""RFC 9727."""
AI_CATALOG: Final = "/.well-known/ai-catalog.json"
"""Where agents look for MCP servers."""

PLACES: Final = (ROBOTS, LLMS, SITEMAP, API_CATALOG, AI_CATALOG)
"""In the order in which they are looked at; the page itself makes six."""

Discovery = Mapping[str, str | None]
"""By place, what stands there; `None` for nothing. A place that was not looked at is absent."""
