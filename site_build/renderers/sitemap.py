"""The sitemap (sitemaps.org protocol 0.9), split where it outgrows one file.

`lastmod` comes from the content, never from the clock: a date that changes with every build tells
a crawler nothing.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from xml.sax.saxutils import escape

from edge_api.schema.paths import DOCS_PAGES
from site_build import addresses
from site_build.post import Document
from site_build.site import UNDATED, Site
from site_build.text import write_instant

LARGEST = 50_000
"""URLs in one file, by the protocol."""

_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_Row = tuple[str, datetime]


def render_sitemaps(site: Site, largest: int = LARGEST) -> dict[str, str]:
    """Return the sitemap's files by their paths: one, or an index and its parts."""
    rows = list(_list_rows(site))
    if len(rows) <= largest:
        return {addresses.SITEMAP: _render("urlset", "url", site, rows)}
    parts = [rows[first : first + largest] for first in range(0, len(rows), largest)]
    names = [f"sitemap-{number}.xml" for number, _ in enumerate(parts, 1)]
    files = {
        name: _render("urlset", "url", site, part) for name, part in zip(names, parts, strict=True)
    }
    heads = [
        (name, max(instant for _, instant in part)) for name, part in zip(names, parts, strict=True)
    ]
    return {addresses.SITEMAP: _render("sitemapindex", "sitemap", site, heads), **files}


def _list_rows(site: Site) -> Iterator[_Row]:
    """Yield the path of each page that stands for itself, and its last revision."""
    latest = _find_latest(site.posts)
    for path in (addresses.HOME, addresses.JOURNAL, addresses.TAGS, addresses.ARCHIVE):
        yield path, latest
    for page in site.pages:
        yield addresses.locate_page(page.slug), page.updated
    for tag in site.tags:
        yield addresses.locate_tag(tag.slug), _find_latest(tag.posts)
    for post in site.posts:
        yield addresses.locate_post(post.slug), post.updated
    for path in DOCS_PAGES:
        yield path.removeprefix("/"), UNDATED


def _find_latest(posts: Sequence[Document]) -> datetime:
    return max((post.updated for post in posts), default=UNDATED)


def _render(kind: str, item: str, site: Site, rows: Sequence[_Row]) -> str:
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<{kind} xmlns="{_NAMESPACE}">',
        *(_render_row(item, site.identity.absolute(path), instant) for path, instant in rows),
        f"</{kind}>",
    ]
    return "\n".join(lines) + "\n"


def _render_row(item: str, url: str, instant: datetime) -> str:
    dated = "" if instant == UNDATED else f"<lastmod>{write_instant(instant)}</lastmod>"
    return f"<{item}><loc>{escape(url)}</loc>{dated}</{item}>"
