"""The Atom feed (RFC 4287) of the newest posts, with their whole text.

The records come from the posts index, so feed and API say the same of a post.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from edge_api.schema.index import PostRecord
from site_build import addresses
from site_build.site import UNDATED, Identity

NEWEST = 50
"""Posts in the feed."""

_ATOM = "http://www.w3.org/2005/Atom"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_STYLE = {"type": "html"}


def render_feed(identity: Identity, records: Sequence[PostRecord]) -> bytes:
    """Return the feed of `records`, which come newest first."""
    ET.register_namespace("", _ATOM)
    feed = ET.Element(f"{{{_ATOM}}}feed", {_LANG: identity.lang})
    home, own = identity.absolute(addresses.HOME), identity.absolute(addresses.FEED)
    _add(feed, "id", own)
    _add(feed, "title", identity.name)
    _add(feed, "subtitle", f"{identity.description} {_tell_extent(len(records))}".strip())
    _add(feed, "updated", _write_instant(max((r.updatedAt for r in records), default=UNDATED)))
    _add(feed, "link", rel="self", type="application/atom+xml", href=own)
    _add(feed, "link", rel="alternate", type="text/html", href=home)
    _add(_add(feed, "author"), "name", identity.author)
    for record in records:
        _add_entry(feed, record)
    written: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _tell_extent(count: int) -> str:
    """Say how much of the journal the feed holds."""
    if count < NEWEST:
        return "All posts, in full."
    return f"The newest {NEWEST} posts, in full; the sitemap lists them all."


def _add_entry(feed: ET.Element, record: PostRecord) -> None:
    entry = _add(feed, "entry")
    url = str(record.url)
    _add(entry, "id", url)
    _add(entry, "title", record.title)
    _add(entry, "published", _write_instant(record.publishedAt))
    _add(entry, "updated", _write_instant(record.updatedAt))
    _add(entry, "link", rel="alternate", type="text/html", href=url)
    for tag in record.tags:
        _add(entry, "category", term=tag)
    _add(entry, "summary", record.excerpt)
    _add(entry, "content", record.content_html, **_STYLE)


def _add(parent: ET.Element, name: str, text: str | None = None, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    element.text = text
    return element


def _write_instant(instant: datetime) -> str:
    """Return an RFC 3339 date-time in UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
