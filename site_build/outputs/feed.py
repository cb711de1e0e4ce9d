"""Feeds of the journal and of single tags, as Atom and as JSON Feed, with the whole text.

The records come from the posts index, so feeds and the API agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import orjson

from edge_api.schema.index import PostRecord
from edge_api.schema.sentences import sentence
from site_build import addresses
from site_build.images.responsive import Lead
from site_build.site import UNDATED, Identity, PostGroup, Site
from site_build.text import strip_control_characters, write_instant

FEED_POSTS = 50
"""The most posts in the feed of the journal."""
TAG_FEED_POSTS = 20
"""The most posts in the feed of a tag: fewer, since a post is in the feed of each of its tags."""
_ATOM = "http://www.w3.org/2005/Atom"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(frozen=True, slots=True)
class Channel:
    """The title, extent and address of one feed."""

    identity: Identity
    title: str
    tag: str
    """The tag that its posts carry; empty: it has all posts."""
    page_address: str
    """Address of the page with the same posts; the feed is in its folder."""
    total: int
    """Number of posts, including those that the feed leaves out."""
    max_posts: int
    """Largest number of posts in the feed."""
    has_cards: bool = False

    @property
    def page_url(self) -> str:
        """The URL of the page with the same posts."""
        return self.identity.absolute(self.page_address)

    def locate(self, feed: str) -> str:
        """Return the URL of the feed in a format: `FEED` (Atom) or `FEED_JSON`."""
        return self.identity.absolute(addresses.locate_feed(self.page_address, feed))

    def describe(self) -> str:
        """Return the site's description, and how many of its posts the feed has."""
        given = {"tag": self.tag, "number": str(self.total), "most": str(self.max_posts)}
        extents = (
            sentence("The newest %(most)s of %(number)s posts, in full.", **given),
            sentence("All posts, in full."),
            sentence("The newest %(most)s of %(number)s posts tagged %(tag)s, in full.", **given),
            sentence("All posts tagged %(tag)s, in full.", **given),
        )
        extent = extents[2 * bool(self.tag) + (self.total <= self.max_posts)]
        return f"{self.identity.description} {self.identity.language.translate(extent)}".strip()


@dataclass(frozen=True, slots=True)
class Item:
    """One post in a feed."""

    record: PostRecord
    lang: str
    """BCP 47 tag of its language."""
    author: str = ""
    """Names of its authors; empty: the site's author."""
    first_slug: str = ""
    """The slug that it was first published with; empty: its own."""
    lead_picture: Lead | None = None
    """The picture that represents it; None: it has none."""

    @property
    def url(self) -> str:
        """The URL of its page."""
        return str(self.record.url)

    @property
    def id(self) -> str:
        """Its first URL, which stays its id: feed readers show a new id as a new post."""
        slug = quote(self.record.slug)
        before, _, after = self.url.rpartition(slug)
        return f"{before}{quote(self.first_slug) or slug}{after}"


def make_journal_channel(site: Site, *, has_cards: bool = False) -> Channel:
    """Return the channel of all posts."""
    identity, total = site.identity, len(site.posts)
    return Channel(identity, identity.name, "", addresses.HOME, total, FEED_POSTS, has_cards)


def make_tag_channel(identity: Identity, tag: PostGroup, *, has_cards: bool = False) -> Channel:
    """Return the channel of the posts that carry a tag."""
    return Channel(
        identity,
        f"{identity.name}: {tag.name}",
        tag.name,
        tag.address,
        len(tag.posts),
        TAG_FEED_POSTS,
        has_cards,
    )


def render_json_feed(channel: Channel, items: Sequence[Item]) -> bytes:
    """Return JSON Feed 1.1 (jsonfeed.org) of `items`, which come newest first."""
    identity = channel.identity
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": channel.title,
        "home_page_url": channel.page_url,
        "feed_url": channel.locate(addresses.FEED_JSON),
        "description": channel.describe(),
        "authors": [{"name": identity.author, "url": identity.absolute(addresses.HOME)}],
        "language": identity.lang,
        "items": [_describe_item(channel, item) for item in items],
    }
    return orjson.dumps(feed) + b"\n"


def _describe_item(channel: Channel, item: Item) -> dict[str, Any]:
    record = item.record
    card = addresses.locate_card(record.slug) if channel.has_cards else ""
    image = item.lead_picture.path if item.lead_picture else card
    return {
        "id": item.id,
        "url": item.url,
        "title": record.title,
        "summary": record.excerpt,
        "content_html": record.content_html,
        **({"image": channel.identity.absolute(image)} if image else {}),
        "date_published": write_instant(record.publishedAt),
        "date_modified": write_instant(record.updatedAt),
        **({"authors": [{"name": item.author}]} if item.author else {}),
        "tags": record.tags,
        "language": item.lang,
    }


def render_atom(channel: Channel, items: Sequence[Item]) -> bytes:
    """Return Atom (RFC 4287) of `items`, which come newest first."""
    ET.register_namespace("", _ATOM)
    feed = ET.Element(f"{{{_ATOM}}}feed", {_LANG: channel.identity.lang})
    feed_url = channel.locate(addresses.FEED)
    # The feed's date is that of its newest revision, so that equal content gives equal feeds.
    latest = max((item.record.updatedAt for item in items), default=UNDATED)
    _add(feed, "id", feed_url)
    _add(feed, "title", channel.title)
    _add(feed, "subtitle", channel.describe())
    _add(feed, "updated", write_instant(latest))
    _add(feed, "link", rel="self", type="application/atom+xml", href=feed_url)
    _add(feed, "link", rel="alternate", type="text/html", href=channel.page_url)
    author = _add(feed, "author")
    _add(author, "name", channel.identity.author)
    _add(author, "uri", channel.identity.absolute(addresses.HOME))
    for item in items:
        _add_entry(feed, item, channel.identity)
    written: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add_entry(feed: ET.Element, item: Item, identity: Identity) -> None:
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
    if item.lead_picture:  # RFC 4287, section 4.2.7.2
        url, kind = (
            identity.absolute(item.lead_picture.path),
            f"image/{item.lead_picture.picture.kind}",
        )
        _add(entry, "link", rel="enclosure", type=kind, href=url)
    for tag in record.tags:
        _add(entry, "category", term=strip_control_characters(tag))
    _add(entry, "summary", record.excerpt)
    _add(entry, "content", record.content_html, type="html")


def _add(parent: ET.Element, name: str, text: str | None = None, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    element.text = text and strip_control_characters(text)
    return element
