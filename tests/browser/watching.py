"""A page that is watched: what it complains of, what it asks for, how far it is too wide.

It knows no page of this site.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", event =>
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
"""
"""To be run before a page's own scripts."""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""CSS pixels by which a page is wider than its window; not above 0 where it fits."""


@dataclass
class Watched:
    """A page, and what it asked for and complained of."""

    page: Page
    statuses: Mapping[str, int]
    """By path, of pages that are meant to say that something is wrong."""
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def note(self, message: ConsoleMessage) -> None:
        """Keep an error or warning, but that the page itself says no, which is wanted."""
        status = self.statuses.get(urlsplit(self.page.url).path)
        is_page_itself = message.location["url"] == self.page.url and str(status) in message.text
        if message.type in ("error", "warning") and not is_page_itself:
            self.complaints.append(message.text)

    def keep(self, request: Request) -> None:
        """Keep the address of a request."""
        self.requests.append(request.url)


def watch(context: BrowserContext, statuses: Mapping[str, int] = MappingProxyType({})) -> Watched:
    """Return a new page of `context`, watched from its first request on."""
    context.add_init_script(REPORT_VIOLATIONS)
    watched = Watched(context.new_page(), statuses)
    watched.page.on("console", watched.note)
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on("request", watched.keep)
    return watched
