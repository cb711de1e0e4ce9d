"""A feed as Atom (RFC 4287), with the whole text of its posts."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from site_build import addresses
from site_build.renderers.feed import Channel, Item, find_latest
from site_build.text import write_instant

_ATOM = "http://www.w3.org/2005/Atom"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_STYLE = {"type": "html"}
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""What no XML document can hold, not even escaped (XML 1.0, section 2.2)."""


def render_atom(channel: Channel, items: Sequence[Item]) -> bytes:
    """Return the feed of `items`, which come newest first."""
    ET.register_namespace("", _ATOM)
    feed = ET.Element(f"{{{_ATOM}}}feed", {_LANG: channel.identity.lang})
    own = channel.locate(addresses.FEED)
    _add(feed, "id", own)
    _add(feed, "title", channel.title)
    _add(feed, "subtitle", channel.describe())
    _add(feed, "updated", write_instant(find_latest(items)))
    _add(feed, "link", rel="self", type="application/atom+xml", href=own)
    _add(feed, "link", rel="alternate", type="text/html", href=channel.page_url)
    author = _add(feed, "author")
    _add(author, "name", channel.identity.author)
    _add(author, "uri", channel.identity.absolute(addresses.HOME))
    for item in items:
        _add_entry(feed, item)
    written: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add_entry(feed: ET.Element, item: Item) -> None:
    record = item.record
    entry = _add(feed, "entry")
    entry.set(_LANG, item.lang)
    _add(entry, "id", item.id)
    _add(entry, "title", record.title)
    if item.author:
        _add(_add(entry, "author"), "name", item.author)
    _add(entry, "published", write_instant(record.publishedAt))
    _add(entry, "updated", write_instant(record.updatedAt))
    _add(entry, "link", rel="alternate", type="text/html", hreflang=item.lang, href=item.url)
    for tag in record.tags:
        _add(entry, "category", term=_clean(tag))
    _add(entry, "summary", record.excerpt)
    _add(entry, "content", record.content_html, **_STYLE)


def _add(parent: ET.Element, name: str, text: str | None = None, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    element.text = text and _clean(text)
    return element


def _clean(text: str) -> str:
    return _UNWRITABLE.sub("", text)
