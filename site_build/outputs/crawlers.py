"""What crawlers look for: `robots.txt` (RFC 9309), the sitemap, and `security.txt` (RFC 9116).

Crawlers of models are named by what they fetch for, since many obey a group of their own alone;
the content signals (contentsignals.org) say the same to all others.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from xml.sax.saxutils import escape

from edge_api.schema import paths
from site_build import addresses
from site_build.site import UNDATED, Document, Identity, Policy, Site
from site_build.text import write_instant

AGENTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "ai-train": (
            *("GPTBot", "ClaudeBot", "anthropic-ai", "Google-Extended", "Applebot-Extended"),
            *("CCBot", "Meta-ExternalAgent", "Bytespider", "cohere-training-data-crawler"),
        ),
        "ai-input": (
            *("ChatGPT-User", "Claude-User", "Perplexity-User", "MistralAI-User"),
            *("DuckAssistBot", "Meta-ExternalFetcher", "Claude-Web"),
        ),
        "search": ("OAI-SearchBot", "Claude-SearchBot", "PerplexityBot", "Applebot", "Amazonbot"),
    }
)
"""Crawlers by the content signal under which they fetch, as their operators state it.

Longer names come first: some crawlers take the first group whose name begins as theirs does.
"""

_SENSE = (
    ("search", "to be found: an index, links, short excerpts"),
    ("ai-input", "to answer somebody who asks: retrieval, grounding, an agent that reads along"),
    ("ai-train", "to train or fine-tune a model"),
)
_NOT_PAGES = (f"{paths.OAUTH}/", paths.UNSUBSCRIBE)
"""Made for one person each; a crawler has no business there."""
_MONTHS = 11
"""The norm recommends less than a year."""
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def render_robots(identity: Identity, policy: Policy) -> str:
    """Return `robots.txt`: who may read what and for which use, and where the sitemap is."""
    said = {name: "yes" if policy.signals[name] else "no" for name, _ in _SENSE}
    signal = ", ".join(f"{name}={value}" for name, value in said.items())
    senses = [f"#   {name}: {sense}" for name, sense in _SENSE]
    note = "\n".join(["# What this site may be used for (contentsignals.org):", *senses, ""])
    groups = [
        _write_group(agents, signal, allowed=policy.signals[name])
        for name, agents in AGENTS.items()
    ]
    everyone = _write_group(["*"], signal, allowed=True)
    sitemap = f"Sitemap: {identity.absolute(addresses.SITEMAP)}\n"
    return "\n".join([note, everyone, *groups, sitemap])


def _write_group(agents: Sequence[str], signal: str, *, allowed: bool) -> str:
    rules = ["Allow: /", *(f"Disallow: {path}" for path in _NOT_PAGES)]
    lines = [f"User-agent: {agent}" for agent in agents]
    lines += [f"Content-Signal: {signal}", *(rules if allowed else ["Disallow: /"])]
    return "\n".join([*lines, ""])


def render_security(identity: Identity, policy: Policy, now: datetime) -> str:
    """Return `security.txt` as it stands at `now` (UTC)."""
    contact = policy.security_contact or identity.absolute(addresses.CONTACT)
    fields = (
        ("Contact", contact),
        ("Expires", f"{find_expiry(now):%Y-%m-%dT%H:%M:%SZ}"),
        ("Preferred-Languages", identity.lang),
        ("Canonical", identity.absolute(addresses.SECURITY)),
    )
    return "".join(f"{name}: {value}\n" for name, value in fields)


def render_opensearch(identity: Identity) -> str:
    """Return what lets a browser search the site from its own field (OpenSearch 1.1)."""
    name, url = escape(identity.name[:16]), escape(f"{identity.url}{paths.SEARCH}")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">\n'
        f"<ShortName>{name}</ShortName>\n"
        f"<Description>{escape(f'Search {identity.name}'[:1024])}</Description>\n"
        f'<Url type="text/html" template="{url}?q={{searchTerms}}"/>\n'
        "<InputEncoding>UTF-8</InputEncoding>\n</OpenSearchDescription>\n"
    )


def find_expiry(now: datetime) -> datetime:
    """Return the first of a month, ten to eleven months ahead: so it changes once a month."""
    months = now.month - 1 + _MONTHS
    return datetime(now.year + months // 12, months % 12 + 1, 1, tzinfo=now.tzinfo)


def render_sitemap(site: Site) -> str:
    """Return the sitemap; the protocol allows it 50,000 addresses."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<urlset xmlns="{_NAMESPACE}">']
    for path, instant in _list_rows(site):
        url = escape(site.identity.absolute(path))
        dated = "" if instant == UNDATED else f"<lastmod>{write_instant(instant)}</lastmod>"
        lines.append(f"<url><loc>{url}</loc>{dated}</url>")
    return "\n".join([*lines, "</urlset>"]) + "\n"


def _list_rows(site: Site) -> Iterator[tuple[str, datetime]]:
    """Yield the path of each page that stands for itself, and its last revision."""
    latest = _find_latest(site.posts)
    for path in (addresses.HOME, *site.identity.addresses.list_overviews()):
        yield path, latest
    for page in site.pages:
        yield page.address, page.updated
    for tag in site.tags + site.authors:
        yield tag.address, _find_latest(tag.posts)
    for post in site.posts:
        yield post.address, post.updated
    for path in paths.DOCS_PAGES:
        yield path.removeprefix("/"), UNDATED


def _find_latest(posts: Sequence[Document]) -> datetime:
    return max((post.updated for post in posts), default=UNDATED)
